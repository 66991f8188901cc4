#!/usr/bin/env bash
# Installs what gives `tc` the options of shortlane's qdiscs: `make install-tc`.
# Where iproute2 was built to look for it, or in TC_LIB_DIR, which `tc` then has to be given too.
set -euo pipefail

directory=${TC_LIB_DIR:-}
if [ -z "$directory" ]; then
	# Whatever the distribution, its own files for `tc` lie there.
	for known in /usr/lib/*-linux-*/tc /usr/lib64/tc /usr/lib/tc; do
		if [ -e "$known/normal.dist" ] || [ -e "$known/pareto.dist" ]; then
			directory=$known
			break
		fi
	done
fi
if [ -z "$directory" ]; then
	echo "install-tc: where does tc look for plug-ins? TC_LIB_DIR=DIRECTORY says it" >&2
	exit 1
fi
install -D -m 644 -t "$directory" "$@"
echo "installed in $directory: ${*##*/}"
