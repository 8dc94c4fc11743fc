#!/bin/sh
# apt.sh PROGRAM PACKAGE...: installs Debian packages if PROGRAM is not there yet.
# Uses root or password-less sudo; else says what a person should run.
set -eu

program=$1
shift
command -v "$program" >/dev/null && exit 0

if ! command -v apt-get >/dev/null; then
    echo "portolan: $program is missing and this machine has no apt; install it and try again" >&2
    exit 1
fi
if [ "$(id -u)" = 0 ]; then
    as_root=""
elif sudo -n true 2>/dev/null; then
    as_root="sudo"
else
    echo "portolan: $program is missing; please run: sudo apt-get install $*" >&2
    exit 1
fi
echo "portolan: installing $*"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 || {
    $as_root apt-get update -qq
    $as_root apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}
