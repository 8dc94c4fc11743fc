#!/bin/bash
# Installs what scripts/lint-deploy.sh needs and the machine lacks, inside the project. Needs no root, unless the machine has
# never asked apt for its lists. Packages are unpacked and not installed: no service starts.
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=.portolan/tools/lint-deploy
requirements=scripts/lint-deploy/requirements.txt
programs=$PWD/.portolan/tools/lint-deploy-programs
PATH=$PATH:/usr/sbin:$programs/usr/sbin:$programs/usr/bin

if [ "$(cat "$venv/.installed" 2>/dev/null)" != "$(cksum <"$requirements")" ]; then
    echo "portolan: installing $requirements"
    rm -rf "$venv"
    scripts/apt.sh python3 python3 python3-venv
    python3 -m venv "$venv" 2>/dev/null || {
        rm -rf "$venv"
        # Debian splits venv off; the program python3 alone does not tell.
        scripts/apt.sh python3-venv-is-missing python3-venv || true
        python3 -m venv "$venv"
    }
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
    cksum <"$requirements" >"$venv/.installed"
fi

# unpack PROGRAM PACKAGE...: the packages of the distribution that hold PROGRAM and what it alone needs.
unpack() {
    local program=$1
    shift
    command -v "$program" >/dev/null && return
    if ! command -v apt-get >/dev/null; then
        echo "portolan: $program is missing and this machine has no apt; install it and try again" >&2
        exit 1
    fi
    echo "portolan: fetching $program"
    local folder
    folder=$(mktemp -d)
    # Under root apt fetches as a user of its own, who must be able to write here.
    chmod 777 "$folder"
    (cd "$folder" && apt-get download -qq "$@" 2>/dev/null) || {
        local as_root=""
        [ "$(id -u)" = 0 ] || as_root="sudo -n"
        $as_root apt-get update -qq || {
            echo "portolan: please run: sudo apt-get update" >&2
            exit 1
        }
        (cd "$folder" && apt-get download -qq "$@")
    }
    mkdir -p "$programs"
    for package in "$folder"/*.deb; do
        dpkg-deb -x "$package" "$programs"
    done
    rm -rf "$folder"
}

# with_libraries PACKAGE: its name and the names of what it needs and the machine lacks.
with_libraries() {
    apt-get install --print-uris -qq --no-install-recommends -o Debug::NoLocking=1 "$1" 2>/dev/null |
        sed -E "s/^'[^']*' ([^_]+)_.*/\1/"
}

unpack promtool prometheus
# shellcheck disable=SC2046 # one word a package
command -v haproxy >/dev/null || unpack haproxy haproxy $(with_libraries haproxy | grep '^lib' || true)
# shellcheck disable=SC2046
command -v nginx >/dev/null || unpack nginx nginx $(with_libraries nginx | grep -E '^(lib|nginx)' | grep -vx nginx || true)
command -v openssl >/dev/null || scripts/apt.sh openssl openssl
command -v shellcheck >/dev/null || unpack shellcheck shellcheck
