#!/usr/bin/env bash
# The userspace engine on a kernel without TCX links, in QEMU: test-older-kernel.sh [SERIES [ARGUMENT...]]
# With arguments, only the tests of the command that they select: test-older-kernel.sh newest auto::
# The same tests run on this machine's kernel by `make test`.
set -euo pipefail
cd "$(dirname "$0")/.."
series=${1:-6.1}
selected=("${@:2}")
: "${CARGO:=cargo}"
target=${CARGO_TARGET_DIR:-target}

tests=(--test userspace)
options=()
if [ "${#selected[@]}" -eq 0 ]; then
	tests+=(--test attach_userspace --test xdp)
else
	# What a test waits for is over at once if the clock counts instructions.
	options+=(--icount)
fi
programs=()
while read -r name path; do
	programs+=(--program "$path=test-$name")
done < <("$CARGO" test --locked --package shortlane --package shortlane-engine \
	"${tests[@]}" --no-run 2>&1 | tee /dev/stderr |
	sed -n 's#^ *Executable tests/\([a-z_]*\)[/.].*(\(.*\))$#\1 \2#p')
# The tests start the command where cargo has put it.
command=$(realpath "$target/debug/shortlane")
validation/kernel/vm.py run --kernel "$series" "${options[@]}" "${programs[@]}" \
	--program "$command" \
	--program /usr/bin/setpriv --program /usr/bin/prlimit \
	--out target/kernel-runs/userspace --timeout "${TIMEOUT:-2400}" -- sh -c "
		set -e
		export KILLED_STEP=${KILLED_STEP:-400} KILLED_EFFECTS=${KILLED_EFFECTS:-}
		mkdir -p '$(dirname "$command")'
		ln -s /usr/bin/shortlane '$command'
		mkdir -p /etc
		touch /etc/resolv.conf
		if [ -n '${selected[*]}' ]; then
			exec test-userspace --test-threads 1 --nocapture ${selected[*]}
		fi
		test-xdp --test-threads 1
		test-attach_userspace --test-threads 1
		# Rates that follow a link go by real time, of which an emulator on a busy machine has too little.
		test-userspace --test-threads 1 --skip auto::"
