#!/bin/sh
# `make bench [ARGS="--rounds 5 --strict"]`: builds the product and the bare servers alike, and prints ratios of calls per
# CPU-second. Absolute times are not printed: they tell about the machine.
set -eu
cd "$(dirname "$0")/.."

scripts/require.sh
scripts/postgres.sh >/dev/null
scripts/web.sh
SQLX_OFFLINE=true cargo build --quiet --release -p portolan -p portolan-bench
exec target/release/portolan-bench "$@"
