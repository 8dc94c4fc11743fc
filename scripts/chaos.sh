#!/bin/bash
# chaos.sh [SECONDS] [SEED]: the chaos test in its long form, 30 minutes unless told otherwise. A debug build: its checks are on.
set -euo pipefail
cd "$(dirname "$0")/.."

export SQLX_OFFLINE=true
unset DATABASE_URL
scripts/require.sh
# The official SDKs, HAProxy, nginx, Redis and Postgres.
scripts/test-tools.sh
export PATH=$PATH:$PWD/.portolan/tools/programs/bin
scripts/web.sh
cargo build --quiet --bin portolan
export PORTOLAN_TEST_CHAOS_SECS=${1:-1900}
export PORTOLAN_TEST_CHAOS_SEED=${2:-$(date +%s)}
# With the checker's own test: doctored histories that it must see through. Not by nextest: it would end a test that runs for this long.
cargo test --quiet --package portolan-tests --test it -- --nocapture chaos:: checker::
