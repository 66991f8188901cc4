#!/usr/bin/env bash
# Runs every command that docs/operators shows as run (```console), in private namespaces with
# devices of the names that they use; needs root: test-operators.sh PROGRAM
set -euo pipefail
cd "$(dirname "$0")/.."

program=$(realpath "$1")
if [ "${2:-}" != inside ]; then
	if [ "$(id -u)" != 0 ] || ! unshare --net --mount true 2> /dev/null; then
		echo "SKIPPED: this takes root and namespaces" >&2
		exit 0
	fi
	exec unshare --net --mount "$0" "$program" inside
fi

mount -t tmpfs none /run
ip link set lo up
for device in wan0 lan0; do
	ip link add "$device" type veth peer name "$device-far"
	ip link set "$device" up
	ip link set "$device-far" up
done
# As a ppp device, this has no Ethernet header.
ip tuntap add ppp0 mode tun
ip link set ppp0 up

count=0
for page in docs/operators/*.md; do
	while read -r line; do
		echo "\$ $line"
		[[ $line == shortlane\ * ]]
		read -r -a words <<< "$line"
		"$program" "${words[@]:1}" > /dev/null
		count=$((count + 1))
	done < <(awk '/^```console$/ { on = 1; next } /^```/ { on = 0 } on' "$page")
done
left=$("$program" show 2> /dev/null || true)
[ -z "$left" ] || { echo "still attached: $left" >&2; exit 1; }
echo "$count commands of docs/operators have been run"
