#!/usr/bin/env bash
# What the sources promise to other builds than the usual one: the oldest Rust that Cargo.toml names, a target
# without an operating system, every feature, the crates that others build on as packages, and the fuzzers.
# `scripts/setup.sh toolchains` gets the toolchains, where rustup does.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${CARGO:=cargo}"
readonly BARE_TARGET=thumbv7em-none-eabihf
# Those that others can build on.
readonly PUBLISHED=(sched frame tcp sim)

oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if rustup toolchain list 2> /dev/null | grep -q "^$oldest-"; then
	rustup run "$oldest" cargo check --quiet --locked --workspace --target-dir target/oldest
	echo "ok: Rust $oldest compiles all of it"
else
	echo "SKIPPED: Rust $oldest, which Cargo.toml promises, is not here, nor rustup to get it" >&2
fi

if rustup target list --installed 2> /dev/null | grep -qx "$BARE_TARGET"; then
	"$CARGO" check --quiet --locked --target "$BARE_TARGET" --package shortlane-sched
	echo "ok: sched for $BARE_TARGET"
else
	echo "SKIPPED: the target $BARE_TARGET is not here, nor rustup to get it; scripts/purity.sh shows the same" >&2
fi

"$CARGO" check --quiet --locked --package shortlane-engine --features harness --all-targets
"$CARGO" check --quiet --locked --package shortlane-python --no-default-features
echo "ok: the engine with its harness, the Python package without the engines (make test-features: the program)"

# With what they need of ours. Each is built from its package, on its own: together, crates lend each other
# features of what they share.
mapfile -t named < <("$CARGO" tree --locked --edges normal --prefix none "${PUBLISHED[@]/#/--package=shortlane-}" |
	sed -n 's/^\(shortlane-[a-z]*\) v.*/--package=\1/p' | sort -u)
# Cargo keeps what a package of this name and version once had: it gets a home that has the crates of others only.
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
real=${CARGO_HOME:-$HOME/.cargo}
for part in index cache src; do
	mkdir -p "$home/registry/$part"
	find "$real/registry/$part" -mindepth 1 -maxdepth 1 -name 'index.*' -exec ln -s {} "$home/registry/$part/" \;
done
[ ! -e "$real/config.toml" ] || ln -s "$real/config.toml" "$home/"
CARGO_HOME=$home "$CARGO" package --quiet --locked --allow-dirty "${named[@]}"
echo "ok: as packages, built from what is in them: ${named[*]#--package=}"

"$CARGO" check --quiet --locked --manifest-path fuzz/Cargo.toml --bins --target-dir target/fuzz
echo "ok: the fuzzers"
