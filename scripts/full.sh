#!/bin/bash
# full.sh [TEST…]: tests that stand for a row of `docs/design/testing.md` with fewer streams, calls
# or sessions, as large as the row has them: TEST-L7, TEST-L10, TEST-L11, TEST-L14, TEST-B8,
# TEST-B12, TEST-B13, TEST-S4; and the fuzzer of the management API. An optimised build, since what they promise is about seconds; without
# optimising across crates, which takes longer than all of them.
set -euo pipefail
cd "$(dirname "$0")/.."

export SQLX_OFFLINE=true PORTOLAN_TEST_FULL=1
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_TARGET_DIR=$PWD/target/full
unset DATABASE_URL
[ $# -gt 0 ] || set -- \
    nodes::load::l7_ nodes::load::l10_ nodes::load::l14_ only_redis::memory_per_session_ \
    nodes::hostile::b8_ nodes::hostile::b12_b13_ nodes::neighbours::s4_ \
    management_api::a_fuzzer_
scripts/require.sh
scripts/test-tools.sh
export PATH=$PATH:$PWD/.portolan/tools/programs/bin
scripts/web.sh
cargo build --quiet --release --bin portolan
# Ten thousand streams, and as many connections that come back.
ulimit -n "$(ulimit -Hn)"
# One after the other: each of them takes both cores. Not by nextest: it would end a test that runs for this long.
cargo test --quiet --release --package portolan-tests --package portolan-cluster --test it -- --nocapture --test-threads=1 "$@"
