#!/bin/bash
# list-tests.sh: writes which test programs there are, for run-tests.sh. The workspace is built.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo nextest --version >/dev/null 2>&1 || exit 0
cargo metadata --format-version 1 --locked >target/test-metadata.json
cargo nextest list --workspace --list-type binaries-only --message-format json \
    >target/test-programs.json
