#!/usr/bin/env bash
# Faults of the machine while this is set up, built and packaged, on the real thing where that is cheap: a
# checkout that cannot be written to, no network, a disk that is full. Each ends with a line that says what to
# do, with no package half made, and with no file outside the checkout. test-setup.sh has those of apt, root,
# compilers and Rust, with stand-ins.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" != inside ]; then
	if [ "$(id -u)" -ne 0 ] || ! unshare --mount --net true 2> /dev/null; then
		echo "SKIPPED: to fill disks takes root and namespaces" >&2
		exit 0
	fi
	RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup} CARGO_HOME=${CARGO_HOME:-$HOME/.cargo} exec unshare --mount --net "$0" inside
fi

work=$(mktemp -d)
trap 'umount --quiet "$work"/{checkout,small} || true; rm -rf --one-file-system "$work"' EXIT
mkdir "$work"/{checkout,home,temporary}
# Whatever is put somewhere else is put here.
export HOME=$work/home TMPDIR=$work/temporary

# expect WHAT LINE COMMAND...: it fails, and its last words have LINE; those of make itself come after.
expect() {
	local what=$1 line=$2 said
	shift 2
	if said=$("$@" 2>&1); then echo "FAILED: $what: $* succeeds" >&2; exit 1; fi
	said=$(grep -vE "^(make|$)" <<< "$said" | tail -n 1)
	[[ $said == *"$line"* ]] || { echo "FAILED: $what: $* ends with: $said" >&2; exit 1; }
	said=$(find "$HOME" "$TMPDIR" -mindepth 1)
	[ -z "$said" ] || { echo "FAILED: $what: $* leaves $said" >&2; exit 1; }
	echo "ok: $what"
}

mount --bind . "$work/checkout"
mount -o remount,bind,ro "$work/checkout"
expect "a checkout that is read-only" "cannot write to target: work on a copy" \
	env -u CARGO_TARGET_DIR sh -c "cd '$work/checkout' && make build"
umount "$work/checkout"

mkdir "$work/small"
mount -t tmpfs -o size=2m none "$work/small"
expect "a disk that is full during the build" "the disk of $work/small is full" \
	env CARGO_TARGET_DIR="$work/small" make build
umount "$work/small"

# No crate is there, and nobody to ask.
expect "no network during the build" "a first build takes a network" \
	env CARGO_HOME="$work/cargo" CARGO_NET_RETRY=0 CARGO_TARGET_DIR="$work/target" make build

mkdir -p "$work"/staged/usr/{bin,share/{zsh/site-functions,man/man1,doc/shortlane}}
cp "$(command -v bash)" "$work/staged/usr/bin/shortlane"
touch "$work"/staged/usr/share/{zsh/site-functions/_shortlane,man/man1/shortlane.1}
cp packaging/shortlane.toml "$work/staged/usr/share/doc/shortlane/"
mount -t tmpfs -o size=1m none "$work/small"
expect "a disk that is full during packaging" "no package was made" packaging/deb.sh "$work/staged" "$work/small"
left=$(ls -A "$work/small")
[ -z "$left" ] || { echo "FAILED: half a package: $left" >&2; exit 1; }
