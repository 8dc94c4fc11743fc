#!/bin/bash
# `make test`: everything that must hold, cheapest first. One build of the workspace serves all of it.
set -euo pipefail
cd "$(dirname "$0")/.."

step() {
    printf '\n== %s (%d:%02d)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60))
}

# The queries are checked against .sqlx; `make prepare` refreshes it. No database is asked while building.
export SQLX_OFFLINE=true
unset DATABASE_URL

scripts/require.sh
step "Tools"
scripts/test-tools.sh
# Crates for other systems too: the tests of the repository read every crate of the lockfile,
# without the network.
cargo fetch --quiet --locked
export PATH=$PATH:$PWD/.portolan/tools/programs/bin
step "Console"
scripts/web.sh
npm --prefix web run --silent check
npm --prefix web run --silent test
step "Format and lints"
cargo fmt --all --check
cargo clippy --quiet --workspace --all-targets -- -D warnings
step "Deploy files"
scripts/lint-deploy.sh
step "Build"
cargo build --workspace --bins --tests --examples
step "Tests"
# Tests of SQL get a private Postgres; end-to-end tests start the built binary, which brings its own.
if cargo nextest --version >/dev/null 2>&1; then
    scripts/with-postgres.sh cargo nextest run --workspace
else
    # Slower, and without limits of time; building nextest would take longer than it saves.
    scripts/with-postgres.sh cargo test --workspace --lib --bins --tests -- --test-threads=2
fi
step "Documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps
step "Done"
