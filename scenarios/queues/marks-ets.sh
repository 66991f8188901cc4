#!/bin/sh
# add|change DEVICE RATE: marks in front of an ets, in which long flows have a sixteenth for certain,
# behind a tbf. For a guest: what `attach` writes down of a device stays when the device goes.
set -eu
verb=$1 device=$2 rate=$3
tc qdisc "$verb" dev "$device" root handle 1: tbf rate "${rate}bit" burst $((1514 + rate / 8000)) limit 1mb
[ "$verb" = add ] || exit 0
tc qdisc add dev "$device" parent 1:1 handle 2: ets bands 2 quanta 22710 1514 \
    priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
for band in 1 2; do
    tc qdisc add dev "$device" parent "2:$band" handle "${band}0:" fq_codel
done
# Queues are tried on a loopback first, where nothing is attached.
[ "$device" = lo ] ||
    shortlane attach "$device" --engine marks --rate "${rate}bit" --join 2:1,2:2 >/dev/null
