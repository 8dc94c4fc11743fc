#!/bin/bash
# Takes the profile that scripts/release.sh builds with: a build that counts runs the scenes of `make bench`, and its counts become
# deploy/portolan.profdata.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/require.sh
scripts/postgres.sh >/dev/null
scripts/unpack.sh redis-server redis-server redis-tools
scripts/unpack.sh haproxy haproxy
scripts/web.sh
llvm=$(scripts/llvm.sh)

counts=$PWD/target/profile/counts
mkdir -p "$counts"
# Build scripts and macros count too; theirs are not wanted. Counting comes before optimising across crates, which is left out:
# flags of the compiler have no part in the names of functions, and cargo's settings have.
LLVM_PROFILE_FILE=/dev/null RUSTFLAGS="-Cprofile-generate=$counts -Clinker-plugin-lto=no -Clto=off" SQLX_OFFLINE=true \
    cargo build --release --target-dir target/profile -p portolan -p portolan-bench --bin portolan --bin portolan-bench
rm -rf "$counts"
ulimit -n "$(ulimit -Hn)"
target/profile/release/portolan-bench --rounds 10 --streams 2000 --sessions 2000
# What never ran is left out: the file is a fifth as large.
"$llvm/llvm-profdata" merge --sparse -o deploy/portolan.profdata "$counts"/*.profraw
ls -l deploy/portolan.profdata
