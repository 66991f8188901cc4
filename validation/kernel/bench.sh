#!/bin/sh
# bench SEEDS SCHEDULER...: every file of /scenarios through these, in a guest; results into /out.
set -eu
seeds=$1
shift
for scheduler; do
    set -- "$@" --scheduler "$scheduler"
    shift
done
for file in /scenarios/*.toml; do
    name=$(basename "$file" .toml)
    shortlane lab "$file" --engine kernel --seeds "$seeds" --jobs 1 --late-limit 60% \
        "$@" --out "/out/$name" >&2 || failed="${failed-} $name"
done
[ -z "${failed-}" ] || { echo "failed:$failed" >&2; exit 1; }
