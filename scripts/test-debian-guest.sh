#!/usr/bin/env bash
# From nothing to marks and back on a Debian with its own kernel, in QEMU, by what docs/operators says:
#   test-debian-guest.sh ROOT PACKAGE KERNEL
# ROOT is a Debian's root with iproute2, PACKAGE the Debian package to install there, KERNEL a series
# as validation/kernel/vm.py names it. The commands are those of the page's block about marks, as they
# stand there; between them a long flow is sent, which has to be in the tin that the page names.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$1 package=$2 kernel=$3
out=target/kernel-runs/debian-guest
mkdir -p "$out"
work=$(mktemp -d "$out/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

# The block of README.md that attaches marks, without what is said beside the commands.
awk '/^```console$/ { on = 1; block = ""; next }
	/^```/ { if (on && block ~ /--engine marks/) printf "%s", block; on = 0 }
	on { sub(/ {2,}#.*/, ""); block = block $0 "\n" }' docs/operators/README.md > "$work/commands"
grep -q '^shortlane detach wan0$' "$work/commands" ||
	{ echo "docs/operators/README.md has no commands for marks" >&2; exit 1; }

# Runs in the Debian.
cat > "$work/typed.sh" << 'END'
set -euo pipefail
state() {
	tc qdisc show dev wan0
	tc filter show dev wan0 egress
	tc filter show dev wan0 ingress
	# The module brings two of its own.
	ip -o link | grep -v -E ': ifb[01]:' | sed 's/ state .*//'
}
# One flow of 500 packets to a neighbour that takes everything.
long_flow() {
	exec 3> /dev/udp/192.0.2.2/9
	for _ in {1..500}; do printf '%1000s' x >&3; done
	exec 3>&-
}
! command -v shortlane || { echo "it is installed already"; exit 1; }
apt-get -qq install -y /root/shortlane.deb > /dev/null
shortlane --version
state > /tmp/before
attached=
while read -r line; do
	echo "\$ $line"
	$line < /dev/null | tee /tmp/said
	case $line in
	*attach*)
		attached=yes
		shortlane show wan0 | grep 'wan0: marks, rate 19mbit'
		long_flow
		;;
	tc*)
		long=$(awk '$1 == "Bulk" { is_tins = 1 } $1 == "pkts" && is_tins { print $2; exit }' /tmp/said)
		echo "$long packets in Bulk"
		[ "$long" -gt 100 ]
		;;
	esac
done < /root/commands
[ -n "$attached" ]
state > /tmp/after
diff /tmp/before /tmp/after
[ -z "$(shortlane show 2> /dev/null)" ]
apt-get -qq purge -y shortlane > /dev/null
. /etc/os-release
echo "from nothing to marks and back: $PRETTY_NAME, Linux $(uname -r)"
END

# Runs in the guest: the Debian is in memory, below /debian.
cat > "$work/guest.sh" << 'END'
set -e
mkdir /debian
mount -t tmpfs -o size=90% debian /debian
tar -C /debian -xf /debian.tar
rm /debian.tar
for folder in proc sys dev; do mount --bind /$folder /debian/$folder; done
mount -t tmpfs run /debian/run
mount -t bpf bpf /debian/sys/fs/bpf
cp /shortlane.deb /commands /typed.sh /debian/root
ip link add wan0 type veth peer name modem
ip link set wan0 up
ip link set modem up
ip address add 192.0.2.1/24 dev wan0
ip neighbour add 192.0.2.2 lladdr "$(cat /sys/class/net/modem/address)" dev wan0
exec chroot /debian env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root bash /root/typed.sh
END

tar -C "$root" --exclude=./src --exclude='./proc/*' --exclude='./sys/*' \
	--exclude='./var/cache/apt/archives/*' --exclude='./usr/share/doc/*' --exclude='./usr/share/locale/*' --exclude='./root/*' -cf "$work/debian.tar" .
validation/kernel/vm.py run --kernel "$kernel" --memory 2G --timeout 600 --out "$out" \
	--file "$work/debian.tar=/debian.tar" --file "$package=/shortlane.deb" \
	--file "$work/commands=/commands" --file "$work/typed.sh=/typed.sh" --file "$work/guest.sh=/guest.sh" \
	-- sh /guest.sh
