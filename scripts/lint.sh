#!/bin/sh
# `make lint`: formatting, dead dependencies, and lints of both languages. Warnings of rustc and clippy are errors here.
set -eu
cd "$(dirname "$0")/.."

cargo fmt --all --check
SQLX_OFFLINE=true cargo clippy --quiet --workspace --all-targets -- -D warnings
PATH=$PATH:$PWD/.portolan/tools/programs/bin
command -v cargo-machete >/dev/null ||
    cargo install --quiet --locked --root .portolan/tools/programs cargo-machete
# Dependencies that no source names.
cargo machete
scripts/web.sh
npm --prefix web run --silent check
