#!/bin/sh
# add|change DEVICE RATE: an hfsc with one class, which has the rate and no more, and an fq_codel.
set -eu
verb=$1 device=$2 rate=$3
curve="hfsc ls m2 ${rate}bit ul m2 ${rate}bit"
if [ "$verb" = change ]; then
    exec tc class change dev "$device" parent 1: classid 1:1 $curve
fi
tc qdisc add dev "$device" root handle 1: hfsc default 1
# shellcheck disable=SC2086 # several words
tc class add dev "$device" parent 1: classid 1:1 $curve
tc qdisc add dev "$device" parent 1:1 handle 10: fq_codel
