#!/bin/bash
# run-tests.sh: runs every test, on the Postgres of with-postgres.sh. The binary is built, and the
# tests are listed by list-tests.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

# Every test of SQL makes a database, which Postgres copies from this one: they find the schema in place.
PORTOLAN_DATABASE_OWNER_URL=${DATABASE_URL%/*}/template1 target/debug/portolan migrate
if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --cargo-metadata target/test-metadata.json \
        --binaries-metadata target/test-programs.json
else
    # Slower, and without limits of time; building nextest would take longer than it saves.
    cargo test --workspace --lib --bins --tests -- --test-threads=2
fi
