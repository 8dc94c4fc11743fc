#!/bin/sh
# release.sh --bin PROGRAM...: builds what is released, guided by the profile in deploy/ (which code runs often, which never; `make profile`
# takes it). A profile that this compiler cannot read is left out, and said so: the build is right without it, only slower to run.
# The profile knows functions by names in which the features of all dependencies have a part, so the packages are always the same two.
set -eu
cd "$(dirname "$0")/.."

profile=deploy/portolan.profdata
# Another profile has another name, and the same one is not written again: the compiler looks at the flags, and cargo at the file's time.
copy=$PWD/target/$(cksum <$profile | tr ' ' -).profdata
mkdir -p target
[ -f "$copy" ] || cp $profile "$copy"
# It says so with a warning, and there is nothing else to warn of.
if said=$(echo 'pub fn one() -> u8 { 1 }' | rustc --crate-name probe --crate-type lib --emit obj -o target/probe.o -Cprofile-use="$copy" - 2>&1) && [ -z "$said" ]; then
    # Functions that changed since the profile was taken are compiled without it; a warning for each
    # is of no use.
    # What the profile never saw is split from the code that it saw, and the rest is laid out for the instruction cache.
    export RUSTFLAGS="${RUSTFLAGS:-} -Cprofile-use=$copy -Cllvm-args=-no-pgo-warn-mismatch -Cllvm-args=-enable-split-machine-functions -Cllvm-args=-enable-ext-tsp-block-placement"
else
    echo "portolan: $(rustc --version) cannot read $profile; building without it" >&2
fi
SQLX_OFFLINE=true exec cargo build --release -p portolan -p portolan-bench "$@"
