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
# What the tests need is fetched beside the first steps: that is waiting for the network.
mkdir -p target
fetched=$PWD/target/test-tools.log
scripts/test-tools.sh >"$fetched" 2>&1 &
tools=$!
trap 'kill "$tools" 2>/dev/null || true' EXIT
# Crates for other systems too: the tests of the repository read every crate of the lockfile,
# without the network.
cargo fetch --quiet --locked
step "Console"
scripts/web.sh
npm --prefix web run --silent check
npm --prefix web run --silent test
step "Format and lints"
cargo fmt --all --check
cargo clippy --quiet --workspace --all-targets -- -D warnings
step "Build"
cargo build --workspace --bins --tests --examples
step "Tools"
wait "$tools" || {
    cat "$fetched"
    exit 1
}
trap - EXIT
export PATH=$PATH:$PWD/.portolan/tools/programs/bin
step "Deploy files"
scripts/lint-deploy.sh
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
