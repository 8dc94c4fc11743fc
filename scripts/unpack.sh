#!/bin/bash
# unpack.sh PROGRAM PACKAGE...: makes a daemon of the distribution available if PROGRAM is not there yet. The packages, and those
# libraries that the machine lacks, are unpacked inside the project and not installed: no service starts, and no root is needed,
# unless the machine has never asked apt for its lists. What to put into PATH: .portolan/tools/programs/bin.
set -euo pipefail
cd "$(dirname "$0")/.."

program=$1
shift
place=$PWD/.portolan/tools/programs
PATH=$PATH:/usr/sbin:/usr/local/sbin:$place/bin
command -v "$program" >/dev/null && exit 0

if ! command -v apt-get >/dev/null; then
    echo "portolan: $program is missing and this machine has no apt; install it and try again" >&2
    exit 1
fi
echo "portolan: fetching $program"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Under root apt fetches as a user of its own, who must be able to write here.
chmod 777 "$folder"

fetch() {
    # Missing packages that they need, by name.
    mapfile -t needed < <(apt-get install --print-uris -qq --no-install-recommends -o Debug::NoLocking=1 "$@" 2>/dev/null |
        sed -E "s/^'[^']*' ([^_]+)_.*/\1/")
    (cd "$folder" && apt-get download -qq "$@" "${needed[@]}" 2>/dev/null)
}
fetch "$@" || {
    as_root=""
    [ "$(id -u)" = 0 ] || as_root="sudo -n"
    $as_root apt-get update -qq || {
        echo "portolan: please run: sudo apt-get update" >&2
        exit 1
    }
    fetch "$@" || {
        echo "portolan: cannot fetch $program; please install: $*" >&2
        exit 1
    }
}
mkdir -p "$place/root" "$place/bin"
for file in "$folder"/*.deb; do
    dpkg-deb -x "$file" "$place/root"
done
found=$(find "$place/root" -path "*bin/$program" | head -n 1)
if [ -z "$found" ]; then
    echo "portolan: $* has no $program" >&2
    exit 1
fi
libraries=$(find "$place/root" -type d -path '*/lib/*-linux-gnu' | paste -sd:)
{
    echo '#!/bin/sh'
    [ -z "$libraries" ] || echo "export LD_LIBRARY_PATH=$libraries"
    # Signals meant for the program reach it.
    echo "exec $found \"\$@\""
} >"$place/bin/$program"
chmod +x "$place/bin/$program"
