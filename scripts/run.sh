#!/bin/sh
# `make run`: from a fresh clone to a running Portolan. Later starts only rebuild what has changed.
set -eu
cd "$(dirname "$0")/.."

scripts/require.sh
# Beside the build, which takes longer.
scripts/postgres.sh >/dev/null &
postgres=$!
# In a fresh clone the build script of the binary builds the console, while the dependencies compile.
[ ! -f web/dist/index.html ] || scripts/web.sh
SQLX_OFFLINE=true cargo build --profile quick
wait "$postgres"
# Ctrl-C goes to the binary itself, which stops its children.
exec target/quick/portolan dev "$@"
