#!/usr/bin/env bash
# Boots systemd in namespaces of its own, over a throw-away layer on this machine's files, and uses
# the units there as an operator does, sandbox and all: start, look, kill, stop.
#   test-systemd-boot.sh PROGRAM     this program, and the units of packaging/systemd
#   test-systemd-boot.sh --in ROOT   on the files below ROOT, with what the Debian package has put there
set -euo pipefail
cd "$(dirname "$0")/.."

# What the new system does once it is up. Its last line says that all of it worked.
guest() {
	# Tries a command until it works, for a minute.
	until_it_works() {
		for _ in $(seq 120); do
			if "$@" > /dev/null 2>&1; then return 0; fi
			sleep 0.5
		done
		echo "never worked: $*" >&2
		systemctl --no-pager status shortlane@wan0 shortlane-metrics >&2
		return 1
	}
	# These are called by name.
	# shellcheck disable=SC2329
	scrape() {
		exec 3<> /dev/tcp/127.0.0.1/9750
		printf 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
		grep "^shortlane_attachment_info{device=\"wan0\"" <&3
	}
	# shellcheck disable=SC2329
	is_another() {
		[ "$(systemctl show -p MainPID --value shortlane@wan0)" != "$1" ] && shows_the_file
	}
	shows_the_file() { shortlane show wan0 | grep docsis; }
	# shellcheck disable=SC2329
	shows_nothing() { shortlane show 2>&1 | grep "^nothing is attached"; }

	ip link set lo up
	ip link add wan0 type veth peer name far0
	ip link set wan0 up
	ip link set far0 up
	systemctl start shortlane@wan0
	shows_the_file > /dev/null
	echo "shortlane@wan0.service: ready when it is attached as /etc/shortlane.toml has it"
	systemctl start shortlane-metrics
	until_it_works scrape
	echo "shortlane-metrics.service: is scraped"
	local process
	process=$(systemctl show -p MainPID --value shortlane@wan0)
	kill -9 "$process"
	until_it_works is_another "$process"
	echo "shortlane@wan0.service: is there again after kill -9"
	systemctl stop shortlane@wan0
	until_it_works shows_nothing
	echo "shortlane@wan0.service: stopped, nothing is left"
	echo "all worked"
}

# From here on this is the first process of its namespaces.
boot() {
	local work=$1 root=$1/root
	mount --make-rprivate /
	mount -t tmpfs none "$work"
	mkdir "$work"/{upper,scratch,root}
	mount -t overlay overlay "$root" \
		-o "lowerdir=$ROOT,upperdir=$work/upper,workdir=$work/scratch"
	mount -t proc proc "$root/proc"
	mount -t sysfs sysfs "$root/sys"
	# As the machine has it: unified, or a hierarchy of systemd's own beside the controllers.
	if [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]; then
		mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
	else
		mount -t tmpfs none "$root/sys/fs/cgroup"
		mkdir "$root/sys/fs/cgroup/systemd"
		mount -t cgroup -o none,name=systemd,xattr cgroup "$root/sys/fs/cgroup/systemd"
	fi
	mount -t tmpfs none "$root/run"
	mount -t tmpfs none "$root/dev"
	mkdir "$root"/dev/{net,pts,shm}
	mount -t devpts devpts "$root/dev/pts"
	ln -s pts/ptmx "$root/dev/ptmx"
	local device
	for device in null zero full random urandom tty net/tun; do
		cp -a "/dev/$device" "$root/dev/$device"
	done
	mount -t bpf bpf "$root/sys/fs/bpf"
	if [ "$ROOT" = / ]; then
		cp "$PROGRAM" "$root/usr/bin/shortlane"
		cp packaging/systemd/* "$root/usr/lib/systemd/system/"
	fi
	# Devices have no units there, which udev would make: all else is as it is packaged.
	sed '/net-devices-%i.device/d; /^After=/d' "$root/usr/lib/systemd/system/shortlane@.service" \
		> "$root/etc/systemd/system/shortlane@.service"
	sed 's/eth0/wan0/' packaging/shortlane.toml > "$root/etc/shortlane.toml"
	mkdir -p "$root/trial/scripts"
	cp "scripts/$(basename "$0")" "$root/trial/scripts/"
	touch "$root/trial/said"
	mount --bind "$SAID" "$root/trial/said"
	cat > "$root/etc/systemd/system/trial.service" <<-UNIT
		[Service]
		Type=oneshot
		ExecStart=/trial/scripts/$(basename "$0") guest
		StandardOutput=append:/trial/said
		StandardError=append:/trial/said
		ExecStopPost=/bin/systemctl --force --force exit
		TimeoutStartSec=300
	UNIT
	exec chroot "$root" /usr/bin/env -i container=other PATH="$PATH" \
		/lib/systemd/systemd --unit=trial.service --show-status=0
}

case ${1:-} in
guest)
	guest
	exit
	;;
boot) boot "$2" ;;
esac
if [ "$(id -u)" != 0 ] || [ ! -x /lib/systemd/systemd ] || [ ! -c /dev/net/tun ] ||
	! unshare --net --mount --cgroup true 2> /dev/null; then
	echo "SKIPPED: to boot systemd takes root, systemd, /dev/net/tun and namespaces" >&2
	exit 0
fi
ROOT=/
PROGRAM=
if [ "$1" = --in ]; then ROOT=$(realpath "$2"); else PROGRAM=$(realpath "$1"); fi
work=$(mktemp -d)
SAID=$work.said
: > "$SAID"
export ROOT PROGRAM SAID
# Control groups of its own, of which nothing stays.
groups=()
leave() {
	local group
	for group in "${groups[@]}"; do
		echo $$ > "$(dirname "$group")/cgroup.procs"
		find "$group" -depth -type d -exec rmdir {} +
	done
	rm -rf "$work" "$SAID"
}
trap leave EXIT
while read -r parent; do
	group=$parent/shortlane-trial-$$
	mkdir "$group"
	groups+=("$group")
	# Not every controller takes a process before it is configured; systemd asks for none of those.
	echo $$ > "$group/cgroup.procs" 2> /dev/null || true
done < <(awk '$3 ~ /^cgroup2?$/ { print $2 }' /proc/mounts)
unshare --pid --fork --kill-child --mount --net --uts --ipc --cgroup \
	"scripts/$(basename "$0")" boot "$work" || true
cat "$SAID"
tail -n 1 "$SAID" | grep -qx "all worked"
