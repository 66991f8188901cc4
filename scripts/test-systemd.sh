#!/usr/bin/env bash
# Has systemd read the units, and rate what they leave open: `systemd-analyze verify` and `security`.
# With a PROGRAM, and as root, also boots a systemd that runs them: test-systemd.sh [PROGRAM]
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v systemd-analyze > /dev/null; then
	echo "SKIPPED: no systemd-analyze here" >&2
	exit 0
fi
# Most that a unit may leave open, of 10: what was reached, rounded up.
declare -A most=([shortlane@.service]=4.0 [shortlane-metrics.service]=2.5)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for unit in "${!most[@]}"; do
	# The program need not be installed for this, nor its man pages.
	sed -e 's#=/usr/bin/shortlane#=/bin/true#' -e '/^Documentation=/d' \
		"packaging/systemd/$unit" > "$work/$unit"
	# It also has words for other units of the machine.
	said=$(systemd-analyze verify "$work/$unit" 2>&1 | grep shortlane || true)
	if [ -n "$said" ]; then
		echo "$unit: $said" >&2
		exit 1
	fi
	score=$(systemd-analyze security --offline=true "$work/$unit" |
		sed -n 's/.*Overall exposure level.*: \([0-9.]*\) .*/\1/p')
	echo "$unit: verified; exposure level $score of 10, at most ${most[$unit]}"
	awk "BEGIN { exit !($score <= ${most[$unit]}) }"
done

[ -z "${1:-}" ] || scripts/test-systemd-boot.sh "$1"
