#!/usr/bin/env bash
# What the sources promise to other builds than the usual one: the oldest Rust that Cargo.toml names, a target
# without an operating system, every feature, the crates that others build on as packages, and the fuzzers.
# `scripts/setup.sh toolchains` gets the toolchains, where rustup does.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${CARGO:=cargo}"
readonly BARE_TARGET=thumbv7em-none-eabihf
# Those that take no operating system, and those that others can build on, with what these need.
readonly PURE=(sched)
readonly PUBLISHED=(sched tcp workload sim frame)

packages() { printf -- '--package=shortlane-%s\n' "$@"; }

oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if rustup toolchain list 2> /dev/null | grep -q "^$oldest-"; then
	rustup run "$oldest" cargo check --quiet --locked --workspace --target-dir target/oldest
	echo "ok: Rust $oldest compiles all of it"
else
	echo "SKIPPED: Rust $oldest, which Cargo.toml promises, is not here, nor rustup to get it" >&2
fi

if rustup target list --installed 2> /dev/null | grep -qx "$BARE_TARGET"; then
	mapfile -t named < <(packages "${PURE[@]}")
	"$CARGO" check --quiet --locked --target "$BARE_TARGET" "${named[@]}"
	echo "ok: ${PURE[*]} for $BARE_TARGET"
else
	echo "SKIPPED: the target $BARE_TARGET is not here, nor rustup to get it; scripts/purity.sh shows the same" >&2
fi

"$CARGO" check --quiet --locked --package shortlane-engine --features harness --all-targets
"$CARGO" check --quiet --locked --package shortlane-python --no-default-features
echo "ok: the engine with its harness, the Python package without the engines (make test-features: the program)"

# Each is built from its package, on its own: together, crates lend each other features of what they share.
mapfile -t named < <(packages "${PUBLISHED[@]}")
"$CARGO" package --quiet --locked --allow-dirty "${named[@]}"
echo "ok: ${PUBLISHED[*]} as packages, built from what is in them"

"$CARGO" check --quiet --locked --manifest-path fuzz/Cargo.toml --bins --target-dir target/fuzz
echo "ok: the fuzzers"
