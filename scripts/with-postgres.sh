#!/bin/bash
# with-postgres.sh COMMAND...: runs COMMAND with DATABASE_URL pointing at a private, empty Postgres that
# lives in a temporary folder and ends with the command. Durability is off: the data is thrown away.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$(scripts/postgres.sh)/bin
data=$(mktemp -d "${TMPDIR:-/tmp}/portolan-postgres.XXXXXX")
owner=$(id -un)
# Postgres refuses to run as root.
[ "$(id -u)" != 0 ] || owner=nobody
as_owner() {
    if [ "$owner" = "$(id -un)" ]; then "$@"; else (cd / && setpriv --reuid="$owner" --regid=nogroup --clear-groups -- "$@"); fi
}
chown "$owner" "$data"

cleanup() {
    as_owner "$tools/pg_ctl" stop -D "$data/pg" -m immediate -s >/dev/null 2>&1 || true
    rm -rf "$data"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

port=$(node -e 'const s=require("net").createServer().listen(0,"127.0.0.1",()=>{console.log(s.address().port);s.close()})')
as_owner "$tools/initdb" -D "$data/pg" -U postgres -A trust -E UTF8 --locale=C --no-sync >"$data/log" 2>&1 || { cat "$data/log" >&2; exit 1; }
as_owner "$tools/pg_ctl" start -w -s -D "$data/pg" -l "$data/pg/server.log" \
    -o "-c listen_addresses=127.0.0.1 -p $port -k $data -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=200" ||
    { cat "$data/pg/server.log" >&2; exit 1; }

export DATABASE_URL="postgres://postgres@127.0.0.1:$port/postgres"
"$@"
