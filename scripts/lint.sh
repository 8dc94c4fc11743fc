#!/bin/sh
# `make lint`: formatting and lints of both languages. Warnings of rustc and clippy are errors here.
set -eu
cd "$(dirname "$0")/.."

cargo fmt --all --check
SQLX_OFFLINE=true cargo clippy --quiet --workspace --all-targets -- -D warnings
scripts/web.sh
npm --prefix web run --silent check
