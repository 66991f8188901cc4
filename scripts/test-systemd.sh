#!/usr/bin/env bash
# Has systemd read the units, and rate what they leave open: `systemd-analyze verify` and `security`.
# With a PROGRAM, and as root, also runs it with the capabilities of the units, in private
# namespaces: test-systemd.sh [PROGRAM]
set -euo pipefail
cd "$(dirname "$0")/.."

# The capabilities of a unit as setpriv takes them.
capabilities() {
	local set
	set=$(sed -n 's/^CapabilityBoundingSet=//p' "packaging/systemd/$1")
	set=${set//CAP_/+}
	set=-all,${set// /,}
	echo "${set,,}"
}

# Starts what the unit starts, waits until it says that it works, and ends it by SIGTERM.
run_units() {
	local program=$1 work=$2
	mount -t tmpfs none /run
	ip link set lo up
	ip link add wan0 type veth peer name far0
	ip link set wan0 up
	ip link set far0 up
	sed 's/eth0/wan0/' packaging/shortlane.toml > "$work/shortlane.toml"
	local bounds
	bounds=$(capabilities shortlane@.service)
	NOTIFY_SOCKET=$work/notify python3 - "$work/notify" setpriv --bounding-set "$bounds" \
		--inh-caps=-all --no-new-privs \
		"$program" attach wan0 --config "$work/shortlane.toml" --foreground <<'PY'
import signal, socket, subprocess, sys
notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notified.bind(sys.argv[1])
notified.settimeout(60)
process = subprocess.Popen(sys.argv[2:])
try:
    said = notified.recv(100)
    shown = subprocess.run([sys.argv[-6], "show", "wan0"], capture_output=True, text=True)
finally:
    process.send_signal(signal.SIGTERM)
if said != b"READY=1" or process.wait(60) != 0 or "docsis" not in shown.stdout:
    sys.exit(f"{said}, {process.returncode}, {shown}")
PY
	[ "$("$program" show 2>&1)" = "nothing is attached in this network namespace" ]
	echo "shortlane@.service: works with $bounds, and leaves nothing"
	bounds=$(capabilities shortlane-metrics.service)
	setpriv --bounding-set "$bounds" --inh-caps=-all --no-new-privs "$program" metrics --once |
		grep -q '^# EOF'
	echo "shortlane-metrics.service: works with $bounds"
}
if [ "${2:-}" = inside ]; then
	run_units "$1" "$3"
	exit
fi

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
	said=$(systemd-analyze verify "$work/$unit" 2>&1)
	if [ -n "$said" ]; then
		echo "$unit: $said" >&2
		exit 1
	fi
	score=$(systemd-analyze security --offline=true "$work/$unit" |
		sed -n 's/.*Overall exposure level.*: \([0-9.]*\) .*/\1/p')
	echo "$unit: verified; exposure level $score of 10, at most ${most[$unit]}"
	awk "BEGIN { exit !($score <= ${most[$unit]}) }"
done

[ -n "${1:-}" ] || exit 0
if [ "$(id -u)" != 0 ] || ! unshare --net --mount true 2> /dev/null; then
	echo "SKIPPED: to run the program takes root and namespaces" >&2
	exit 0
fi
unshare --net --mount "$0" "$(realpath "$1")" inside "$work"
