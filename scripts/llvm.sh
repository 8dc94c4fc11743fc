#!/bin/bash
# llvm.sh: makes llvm-profdata and llvm-cov of the compiler's own LLVM available, and prints the folder that they are in. The ones that the machine
# has are taken if they are as new; else Debian's unstable packages are unpacked inside the project, with every library that they need, and run by
# their own loader: nothing is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
place=$PWD/.portolan/tools/llvm-$version
if [ -x "$place/bin/llvm-cov" ]; then
    echo "$place/bin"
    exit 0
fi
if command -v "llvm-cov-$version" >/dev/null; then
    mkdir -p "$place/bin"
    for program in llvm-profdata llvm-cov; do
        ln -sf "$(command -v "$program-$version")" "$place/bin/$program"
    done
    echo "$place/bin"
    exit 0
fi

echo "portolan: fetching the tools of LLVM $version" >&2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Under root apt fetches as a user of its own, who must be able to write here.
chmod 777 "$folder"
mkdir -p "$folder/lists/partial" "$folder/archives/partial"
# The machine's own mirror, which apt knows under this name; what comes from it is signed, and apt looks.
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -E '/debian/?$' | head -n 1)
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keys] $mirror sid main" >"$folder/sources.list"
# A machine on which nothing is installed yet: what is needed is all that comes.
: >"$folder/status"
unstable=(-qq -o "Dir::Etc::SourceList=$folder/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$folder/lists"
    -o "Dir::State::Status=$folder/status" -o "Dir::Cache::Archives=$folder/archives" -o Dir::Cache::PkgCache= -o Dir::Cache::SrcPkgCache=
    -o Debug::NoLocking=1 -o APT::Sandbox::User=)
apt-get "${unstable[@]}" update >&2
apt-get "${unstable[@]}" install --yes --download-only --no-install-recommends "llvm-$version" >/dev/null
rm -rf "$place"
mkdir -p "$place/root" "$place/bin"
for file in "$folder/archives"/*.deb; do
    dpkg-deb -x "$file" "$place/root"
done
loader=$(find "$place/root" -name 'ld-linux*' | head -n 1)
libraries=$(find "$place/root" -type d -path '*/lib/*-linux-gnu' | paste -sd:)
for program in llvm-profdata llvm-cov; do
    printf '#!/bin/sh\nexec %s --library-path %s %s "$@"\n' "$loader" "$libraries:$place/root/usr/lib/llvm-$version/lib" \
        "$place/root/usr/lib/llvm-$version/bin/$program" >"$place/bin/$program"
    chmod +x "$place/bin/$program"
done
"$place/bin/llvm-cov" --version >/dev/null
echo "$place/bin"
