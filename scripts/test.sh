#!/bin/bash
# `make test`: everything that must hold. One build of the workspace serves all of it.
set -euo pipefail
cd "$(dirname "$0")/.."

step() {
    printf '\n== %s (%d:%02d)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60))
}

# The queries are checked against .sqlx; `make prepare` refreshes it. No database is asked while building.
export SQLX_OFFLINE=true
unset DATABASE_URL

scripts/require.sh
# Many tests wait for programs and for times, and downloads wait for the network. What needs the
# processor alone runs beside them: the checks of the console beside the build, which one big crate
# after another bounds, and lints and documentation beside the tests.
mkdir -p target
# Each job is a group of processes, so that all of it ends with this script. Only what still runs is
# signalled: the id of an ended job may be that of another program by now.
trap 'for job in $(jobs -pr); do kill -- "-$job" 2>/dev/null || true; done' EXIT
beside() { # NAME COMMAND...: runs a command beside what follows; `join NAME` waits for it.
    set -m
    {
        "${@:2}" >"target/test-$1.log" 2>&1 || {
            printf '\n== %s: failed, see target/test-%s.log\n' "$1" "$1" >&2
            exit 1
        }
    } &
    set +m
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
# The tests come first where both need a processor: some of them measure times.
lint() {
    nice -n 19 cargo clippy --quiet --workspace --all-targets -- -D warnings &&
        RUSTDOCFLAGS="-D warnings" nice -n 19 cargo doc --quiet --workspace --no-deps
}
beside tools scripts/test-tools.sh
# Crates for other systems too: the tests of the repository read every crate of the lockfile,
# without the network.
cargo fetch --quiet --locked
step "Format"
cargo fmt --all --check
step "Console"
scripts/web.sh
beside console check_console
step "Build"
cargo build --workspace --bins --tests --examples
join console
step "Tools"
join tools
export PATH=$PATH:$PWD/.portolan/tools/programs/bin
step "Deploy files"
scripts/lint-deploy.sh
step "Tests, lints, documentation"
# Hundreds of databases are made of many small files each. In memory, where there is room for 10 GB,
# the tests take half the time.
temporary=${TMPDIR:-/tmp}
room=$(df --output=avail -k /dev/shm 2>/dev/null | tail -1 || true)
if [ "${room:-0}" -gt 12000000 ] && [ "$(awk '/^MemAvailable/ {print $2}' /proc/meminfo)" -gt 16000000 ]; then
    temporary=/dev/shm
fi
# The tests are listed first: afterwards the lints hold the lock of the build.
scripts/list-tests.sh
beside lints lint
# Tests of SQL get a private Postgres; end-to-end tests start the built binary, which brings its own.
TMPDIR=$temporary scripts/with-postgres.sh scripts/run-tests.sh
step "Lints, documentation"
join lints
step "Done"
