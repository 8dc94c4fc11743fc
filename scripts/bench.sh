#!/bin/sh
# `make bench [ARGS="--only streams --strict"]`: builds the product and the bare servers alike, and prints what the product costs
# against them. Absolute times are printed only where one is promised: they tell about the machine.
set -eu
cd "$(dirname "$0")/.."

scripts/require.sh
scripts/postgres.sh >/dev/null
scripts/unpack.sh redis-server redis-server redis-tools
scripts/unpack.sh haproxy haproxy
scripts/web.sh
scripts/release.sh --quiet --bin portolan --bin portolan-bench
# Ten thousand open streams are as many files, in the node and in the generator.
ulimit -n "$(ulimit -Hn)"
exec target/release/portolan-bench "$@"
