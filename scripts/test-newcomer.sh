#!/usr/bin/env bash
# A new discipline is one file, the line that declares it and its line in the registry: puts one of at
# most 80 lines into a copy of the crates that disciplines need, and asserts that the conformance suite
# has it, that the fuzzers' cases stay those of the disciplines they were kept for, and that the suite
# asks for what its author owes: a sequence worked out by hand.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly NEW=scripts/newcomer
readonly COPY=$PWD/target/newcomer

lines=$(wc -l < $NEW/lifo.rs)
[ "$lines" -le 80 ] || { echo "$NEW/lifo.rs has $lines lines; 80 are accepted" >&2; exit 1; }

rm -rf "$COPY"
mkdir -p "$COPY"
git ls-files -z -- Cargo.toml Cargo.lock crates fuzz/corpus validation | tar --null --files-from=- --create | tar --extract --directory "$COPY"
cd "$COPY"
cp "$OLDPWD/$NEW/lifo.rs" crates/sched/src/disciplines/lifo.rs
sed -i 's/^pub(crate) mod fq_codel;/&\npub(crate) mod lifo;/' crates/sched/src/disciplines/mod.rs
sed -i 's/^    fifo::Fifo,/&\n    crate::disciplines::lifo::Lifo,/' crates/sched/src/registry.rs
# Third-party crates are compiled there already.
export CARGO_TARGET_DIR=$OLDPWD/target

fails() { # what, what its output has, the command
	local what=$1 expected=$2
	shift 2
	if "$@" > failure.log 2>&1; then echo "$what passes, and should ask for it" >&2; exit 1; fi
	grep -q -- "$expected" failure.log || { echo "$what fails with something else:" >&2; tail -30 failure.log >&2; exit 1; }
	echo "ok: $what asks for it"
}
has() { # what, what its output has, the command
	local what=$1 expected=$2
	shift 2
	"$@" > output.log 2>&1 || { echo "$what fails:" >&2; tail -30 output.log >&2; exit 1; }
	grep -q -- "$expected" output.log || { echo "$what lacks $expected:" >&2; tail -30 output.log >&2; exit 1; }
	echo "ok: $what"
}

# What its author owes.
fails "a sequence worked out by hand" "lifo has none" \
	cargo test --locked --package shortlane-conformance --test golden
sed -i 's/^fn fifo() {/&\n    golden("lifo:limit=2packets", "+A +B +A!A2 >B1 >A1 >-");/' crates/conformance/tests/golden.rs
has "that sequence" "test fifo ... ok" cargo test --locked --package shortlane-conformance --test golden
has "the invariants" "test result: ok" cargo test --locked --package shortlane-conformance --test generic
has "the corpus, whose cases are what they were" "test result: ok. 2 passed" \
	cargo test --locked --package shortlane-conformance --test corpus
has "the labels of the fuzzers" "test result: ok" \
	cargo test --locked --package shortlane-conformance --lib label
