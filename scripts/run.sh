#!/bin/sh
# `make run`: from a fresh clone to a running Portolan. Later starts only rebuild what has changed.
set -eu
cd "$(dirname "$0")/.."

scripts/require.sh
scripts/postgres.sh >/dev/null
scripts/web.sh
SQLX_OFFLINE=true cargo build --quiet
# Ctrl-C goes to the binary itself, which stops its children.
exec target/debug/portolan dev "$@"
