#!/bin/bash
# Readers and writers of streams that are wrong on purpose: each must be found by the tests of the nodes (TEST-M, *Mutation
# check*). Wrong scripts of Redis are tried by `mutants::` in every run of the tests; these need a build each, in a copy of the tree.
set -euo pipefail
cd "$(dirname "$0")/.."

place=$PWD/target/mutants
tree=$place/tree
rm -rf "$tree"
mkdir -p "$tree"
git ls-files -z --cached --others --exclude-standard -- Cargo.toml Cargo.lock '*.toml' '*.rs' '*.lua' '.sqlx' migrations |
    while IFS= read -r -d '' file; do [ -e "$file" ] && printf '%s\0' "$file"; done |
    tar --null -T - -c | tar -x -C "$tree"
export CARGO_TARGET_DIR=$place/build SQLX_OFFLINE=true RUST_BACKTRACE=0
cd "$tree"

# Fails if a test does. The schedules are the same in every run.
tests() {
    cargo test --quiet --locked --package portolan-cluster --lib -- --test-threads=2 &&
        cargo test --quiet --locked --package portolan-cluster --test it -- --test-threads=2 node:: --skip real
}

echo "The right ones:"
tests >"$place/right.log" 2>&1 || {
    tail -n 40 "$place/right.log"
    echo "mutants: the tests fail without any mutant" >&2
    exit 1
}

killed=0
all=0
alive=()

# mutant WHAT FILE FROM TO: FROM must be in FILE once.
mutant() {
    local file=crates/cluster/src/node/$2
    cp "$file" "$place/right.rs"
    FROM=$3 TO=$4 perl -0777 -pi -e '
        my ($from, $to) = @ENV{qw(FROM TO)};
        my $count = () = /\Q$from\E/g;
        die "found $count times: $from\n" unless $count == 1;
        s/\Q$from\E/$to/;
    ' "$file"
    all=$((all + 1))
    # A mutant that does not compile was not found by a test.
    if ! cargo build --quiet --locked --package portolan-cluster 2>"$place/mutant.log"; then
        tail -n 20 "$place/mutant.log"
        alive+=("$1 (does not compile)")
    elif tests >"$place/mutant.log" 2>&1; then
        alive+=("$1")
    else
        killed=$((killed + 1))
        printf 'killed: %s (%s)\n' "$1" "$(grep -m 1 -oE '^    [a-z_:]+$' "$place/mutant.log" | tr -d ' ' || true)"
    fi
    cp "$place/right.rs" "$file"
}

mutant "an event in a message is taken without looking at its epoch" reader.rs \
    'if generation < inside.generation || inside.view != Some(epoch) {' \
    'if generation < inside.generation {'
mutant "an event in a message is taken although it is not the next one" reader.rs \
    '|| !inside.position.is_next(event.seq)' \
    ''
mutant "dropped events are passed over in silence" position.rs \
    'return Judgement::Dropped;' \
    'return Judgement::Follows;'
mutant "nobody audits after the store lost writes" writer/task.rs \
    '=> self.must_audit = true,' \
    '=> self.must_audit = false,'
mutant "a stream that is gone is made again without what was in it" unacked_buffer.rs \
    'self.acked = self.first() - 1;' \
    'self.acked = self.last();'

echo "$killed of $all wrong readers and writers killed"
if [ ${#alive[@]} -gt 0 ]; then
    printf 'alive: %s\n' "${alive[@]}" >&2
    exit 1
fi
