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
# What the tests need is fetched beside the first steps: that is waiting for the network. The checks of
# the console use one processor at a time: they run beside the lints.
mkdir -p target
# Only what still runs: the id of an ended job may be that of another program by now.
trap 'kill $(jobs -pr) 2>/dev/null || true' EXIT
beside() { # NAME COMMAND...: runs a command beside what follows; `join NAME` waits for it.
    "${@:2}" >"target/test-$1.log" 2>&1 &
    printf -v "job_$1" %d $!
}
join() { # NAME: its output is shown if it fails.
    local job=job_$1
    wait "${!job}" || {
        cat "target/test-$1.log"
        exit 1
    }
}
check_console() {
    npm --prefix web run --silent check && npm --prefix web run --silent test
}
beside tools scripts/test-tools.sh
# Crates for other systems too: the tests of the repository read every crate of the lockfile,
# without the network.
cargo fetch --quiet --locked
step "Console"
scripts/web.sh
beside console check_console
step "Format and lints"
cargo fmt --all --check
cargo clippy --quiet --workspace --all-targets -- -D warnings
join console
step "Build"
cargo build --workspace --bins --tests --examples
step "Tools"
join tools
export PATH=$PATH:$PWD/.portolan/tools/programs/bin
step "Deploy files"
scripts/lint-deploy.sh
step "Tests"
# Hundreds of databases are made of many small files each. In memory, where there is room for 10 GB,
# the tests take half the time.
temporary=${TMPDIR:-/tmp}
room=$(df --output=avail -k /dev/shm 2>/dev/null | tail -1 || true)
if [ "${room:-0}" -gt 12000000 ] && [ "$(awk '/^MemAvailable/ {print $2}' /proc/meminfo)" -gt 16000000 ]; then
    temporary=/dev/shm
fi
# Tests of SQL get a private Postgres; end-to-end tests start the built binary, which brings its own.
TMPDIR=$temporary scripts/with-postgres.sh scripts/run-tests.sh
step "Documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps
step "Done"
