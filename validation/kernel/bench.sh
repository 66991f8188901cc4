#!/bin/sh
# bench ENGINE OPTIONS SCHEDULER...: every file of /scenarios through these, in a guest; results
# into /out.
set -eu
engine=$1
options=$2
shift 2
for scheduler; do
    set -- "$@" --scheduler "$scheduler"
    shift
done
for file in /scenarios/*.toml; do
    name=$(basename "$file" .toml)
    # shellcheck disable=SC2086 # several options
    shortlane lab "$file" --engine "$engine" $options --jobs 1 --late-limit 60% \
        "$@" --out "/out/$name" >&2 || failed="${failed-} $name"
done
[ -z "${failed-}" ] || { echo "failed:$failed" >&2; exit 1; }
