#!/bin/sh
# Checks what a person must bring: git, make, cargo 1.89 or later, Node 20 or later with npm.
# Says everything that is missing in one go, with what to do about it.
set -eu

missing=0
lacks() {
    echo "portolan: $1" >&2
    missing=1
}

# at_least HAVE WANT: compares major.minor.
at_least() {
    printf '%s\n%s\n' "$2" "$1" | sort -t. -k1,1n -k2,2n -c 2>/dev/null
}

for tool in git make; do
    command -v "$tool" >/dev/null || lacks "$tool is missing; on Debian or Ubuntu: apt install $tool"
done

if ! command -v cargo >/dev/null; then
    lacks "cargo is missing; install Rust 1.89 or later from https://rustup.rs, then open a new shell"
else
    have=$(cargo --version | cut -d' ' -f2)
    at_least "$have" 1.89 || lacks "cargo $have is too old; Rust 1.89 or later is needed: rustup update stable"
fi

if ! command -v cc >/dev/null; then
    lacks "a C compiler is missing; on Debian or Ubuntu: apt install build-essential"
fi

if ! command -v node >/dev/null; then
    lacks "node is missing; install Node 20 or later from https://nodejs.org"
else
    have=$(node --version | tr -d v)
    at_least "$have" 20.0 || lacks "node $have is too old; Node 20 or later is needed: https://nodejs.org"
fi
command -v npm >/dev/null || lacks "npm is missing; it comes with Node from https://nodejs.org"

exit "$missing"
