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
said=/run/said
for page in docs/operators/*.md; do
	skipping=
	while read -r line; do
		line=${line%%  *}
		# What belongs to an attach that this kernel cannot do ends with the next one.
		if [[ $line == shortlane\ attach\ * ]]; then skipping=; fi
		[ -z "$skipping" ] || continue
		echo "\$ $line"
		read -r -a words <<< "$line"
		case ${words[0]} in
		shortlane) words[0]=$program ;;
		tc) ;;
		*) echo "$page has \`$line\`, which this does not know" >&2; exit 1 ;;
		esac
		if ! "${words[@]}" > $said 2>&1 < /dev/null; then
			grep -q "this kernel has neither" $said || { cat $said >&2; exit 1; }
			echo "SKIPPED: \`$line\`: $(tail -n 1 $said)" >&2
			skipping=yes
			continue
		fi
		count=$((count + 1))
	done < <(awk '/^```console$/ { on = 1; next } /^```/ { on = 0 } on' "$page")
done
left=$("$program" show 2> /dev/null || true)
[ -z "$left" ] || { echo "still attached: $left" >&2; exit 1; }
echo "$count commands of docs/operators have been run"
