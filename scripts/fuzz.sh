#!/bin/sh
# Fuzzes each target for a while: fuzz.sh SECONDS [TARGET…]. Coverage comes from flags that stable
# Rust has; libFuzzer is compiled by the C++ compiler of the machine. New inputs stay in fuzz/work,
# to be copied into fuzz/corpus if it is worth keeping; a crash stays in fuzz/artifacts and ends the
# run.
set -eu
cd "$(dirname "$0")/../fuzz"

seconds=${1:-600}
[ $# -gt 0 ] && shift
# All that Cargo.toml knows.
# shellcheck disable=SC2046
[ $# -gt 0 ] || set -- $(awk -F'"' '/^name = / { name = $2 } /^path = "targets\// { print name }' Cargo.toml)
host=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS="--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
export RUSTFLAGS
# What these targets need, and nothing else.
features=$(awk -F'"' -v wanted=" $* " '/^name = / { name = $2 } /^required-features/ && index(wanted, " " name " ") { print $2 }' Cargo.toml | sort -u | paste -sd, -)
bins=
for target in "$@"; do
    bins="$bins --bin $target"
done
# A target of its own for the host, so that build scripts and macros are not counted.
# shellcheck disable=SC2086
cargo build --release --target "$host" --features "$features" $bins
for target in "$@"; do
    echo "fuzz: $target"
    mkdir -p "corpus/$target" "artifacts/$target" "work/$target"
    "target/$host/release/$target" -max_total_time="$seconds" -timeout=2 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
        -artifact_prefix="artifacts/$target/" "work/$target" "corpus/$target"
done
