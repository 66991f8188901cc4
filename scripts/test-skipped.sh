#!/usr/bin/env bash
# .ci/skipped on logs made here: what is known may be skipped, anything else fails.
set -euo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT

refuses() { ! .ci/skipped "$log" > "$log.said"; }
check() { "$@" || { echo "FAILED: $* with a log of:" >&2; cat "$log" >&2; exit 1; }; rm -f "$log.said"; }

echo "test result: ok. 3 passed" > "$log"
check .ci/skipped "$log" > /dev/null
echo "SKIPPED: SHORTLANE_CAPTURES names no folder of captures" >> "$log"
check .ci/skipped "$log" > /dev/null
echo "SKIPPED [1] python/tests/report_help.py:75: none of chromium, google-chrome is installed" >> "$log"
check refuses
echo "SKIPPED, nothing was tested: not root" > "$log"
check refuses
echo ".ci/skipped lets through what .ci/skips has, and nothing else"
