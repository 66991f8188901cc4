#!/bin/sh
# Proves that crates/sched does without std: a program with its own panic handler links it.
# Then proves that the proof can fail: with std pulled into sched, the same build must not work.
set -eu
cd "$(dirname "$0")/.."

cargo build --quiet --locked --manifest-path crates/purity/Cargo.toml
echo "sched links without std"

leaky=$(mktemp -d)
trap 'rm -rf "$leaky"' EXIT
mkdir "$leaky/crates"
cp Cargo.toml "$leaky"
cp -r crates/units crates/sched "$leaky/crates"
mkdir "$leaky/crates/purity"
cp -r crates/purity/Cargo.toml crates/purity/Cargo.lock crates/purity/src "$leaky/crates/purity"
echo 'extern crate std;' >> "$leaky/crates/sched/src/lib.rs"
if CARGO_TARGET_DIR="$leaky/target" cargo build --quiet --locked \
    --manifest-path "$leaky/crates/purity/Cargo.toml" 2> "$leaky/log"; then
    echo "purity.sh: std was pulled into sched and the build did not notice" >&2
    exit 1
fi
if ! grep -q 'E0152' "$leaky/log"; then
    echo "purity.sh: the build with std failed for another reason than E0152:" >&2
    cat "$leaky/log" >&2
    exit 1
fi
echo "with std pulled in, it does not (E0152)"
