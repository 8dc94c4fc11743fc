#!/bin/bash
# `make pictures`: takes pictures of README.md and docs/ anew. The browser tests of these pages take them, with
# the data that they make.
set -euo pipefail
cd "$(dirname "$0")/.."

export SQLX_OFFLINE=true
scripts/require.sh
scripts/web.sh
cargo build --quiet --bin portolan
export PORTOLAN_TOUR=$PWD/docs/images
scripts/with-postgres.sh cargo nextest run -p portolan-tests -E 'test(/^browser::(access_tokens|alerts|calls|commands_are_signed_in|configuration|the_playground_calls|webhooks)_/)'
large=$(find docs/images -maxdepth 1 -name '*.png' -size +150k)
if [ -n "$large" ]; then
    echo "pictures of more than 150 KiB: $large" >&2
    exit 1
fi
