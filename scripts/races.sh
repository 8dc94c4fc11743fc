#!/bin/bash
# races.sh [ROUNDS]: what must happen once, tried by many at the same instant a thousand times, unless told otherwise: the tests that try it fifty times in
# `make test` (AUTH-6.3, AUTH-6.4). Prints each race with its rounds, and fails if one is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${1:-1000}
export SQLX_OFFLINE=true
unset DATABASE_URL
scripts/require.sh
# Postgres and Redis, the authorization server and the MCP server behind which two nodes renew one account.
scripts/test-tools.sh
export PATH=$PATH:$PWD/.portolan/tools/programs/bin
scripts/web.sh
cargo build --quiet --bin portolan

# A race names itself where it asks for its rounds.
mapfile -t races < <(grep -rhazoE 'races::rounds\([[:space:]]*"[a-z0-9_]+"' --include='*.rs' crates/*/tests services/*/tests tests/it |
    tr '\0' '\n' | grep -oE '"[a-z0-9_]+"' | tr -d '"' | sort -u)
[ ${#races[@]} -gt 0 ] || {
    echo "races: no test asks for rounds" >&2
    exit 1
}
log=target/races.log
# Not by nextest: it would end a test that runs for this long.
PORTOLAN_TEST_RACE_ROUNDS=$rounds scripts/with-postgres.sh cargo test --quiet --no-fail-fast --package portolan-storage --package portolan-auth \
    --package portolan-tests --test it --test oauth -- --nocapture --test-threads=2 "${races[@]}" 2>&1 | tee "$log"

missing=0
for race in "${races[@]}"; do
    grep -q "race $race: $rounds rounds" "$log" || {
        echo "races: $race was not run" >&2
        missing=1
    }
done
[ $missing = 0 ]
echo "${#races[@]} races, $rounds rounds each: one winner in every one"
