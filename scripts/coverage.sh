#!/bin/bash
# coverage.sh [LEAST]: how many of the lines that decode foreign bytes are reached by what fuzzing keeps (fuzz/corpus, read by tests/replay). Prints each
# file of fuzz/decoders.txt, writes the lines that are missed to target/coverage/missed.txt, and fails below LEAST percent of all (95).
set -euo pipefail
cd "$(dirname "$0")/.."

least=${1:-95}
llvm=$(scripts/llvm.sh)
place=$PWD/target/coverage
mkdir -p "$place"
mapfile -t decoders < <(grep -v '^#' fuzz/decoders.txt)
# Build scripts and macros count too; theirs are not wanted.
program=$(LLVM_PROFILE_FILE=/dev/null RUSTFLAGS=-Cinstrument-coverage CARGO_TARGET_DIR=$place SQLX_OFFLINE=true \
    cargo test --package portolan-replay --test it --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
LLVM_PROFILE_FILE=$place/counts.profraw "$program" --quiet >"$place/replay.log"
"$llvm/llvm-profdata" merge --sparse -o "$place/counts.profdata" "$place/counts.profraw"
# A file that targets read by path is compiled more than once, also under names with `..` in them: a line is reached if it is in any of its copies.
"$llvm/llvm-cov" export --format=lcov --instr-profile="$place/counts.profdata" "$program" | python3 -c '
import os, sys
least, missed, decoders = float(sys.argv[1]), sys.argv[2], sys.argv[3:]
files = {os.path.abspath(name): {} for name in decoders}
for record in sys.stdin:
    kind, _, rest = record.rstrip("\n").partition(":")
    if kind == "SF":
        lines = files.get(os.path.normpath(rest))
    elif kind == "DA" and lines is not None:
        line, count = map(int, rest.split(",")[:2])
        lines[line] = max(count, lines.get(line, 0))

def say(lines, name):
    reached = sum(count > 0 for count in lines)
    percent = 100 * reached / len(lines)
    print("%6.1f %% of %4d  %s" % (percent, len(lines), name))
    return percent

with open(missed, "w") as out:
    for name in decoders:
        path = os.path.abspath(name)
        assert files[path], name + " is in no target"
        text = open(path).read().split("\n")
        for line, count in sorted(files[path].items()):
            if count == 0:
                out.write("%s %5d|      0|%s\n" % (path, line, text[line - 1]))
        say(files[path].values(), name.split("/", 1)[1])
total = say([count for lines in files.values() for count in lines.values()], "lines of decoders")
sys.exit(total < least)
' "$least" "$place/missed.txt" "${decoders[@]}"
