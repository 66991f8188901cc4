#!/usr/bin/env bash
# What the sources promise to other toolchains, as far as these are on this machine, which fetches
# none: the oldest Rust that Cargo.toml names, a target without an operating system, and the fuzzers.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${CARGO:=cargo}"

oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
installed=$(rustup toolchain list 2> /dev/null || true)
if named=$(grep -oE "^${oldest}[.0-9]*-[^ ]+" <<< "$installed"); then
	rustup run "${named%%$'\n'*}" cargo check --locked --workspace --target-dir target/oldest
	echo "Rust $oldest compiles all of it"
else
	echo "SKIPPED: Rust $oldest, which Cargo.toml promises, is not on this machine" >&2
fi

targets=$(rustup target list --installed 2> /dev/null || true)
if bare=$(grep -m 1 -E -- '-none(-eabi|-elf)?(hf)?$' <<< "$targets"); then
	"$CARGO" check --locked --package shortlane-sched --target "$bare"
	echo "sched compiles for $bare"
else
	echo "SKIPPED: no target without an operating system is installed; scripts/purity.sh has shown the same" >&2
fi

"$CARGO" check --locked --manifest-path fuzz/Cargo.toml --bins
echo "the fuzzers compile"
