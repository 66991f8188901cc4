#!/bin/sh
# add|change DEVICE RATE: an hfsc with one class, which has the rate and no more, and an fq_codel.
set -eu
verb=$1 device=$2 rate=$3
if [ "$verb" = add ]; then
    tc qdisc add dev "$device" root handle 1: hfsc default 1
fi
tc class "$verb" dev "$device" parent 1: classid 1:1 hfsc ls m2 "${rate}bit" ul m2 "${rate}bit"
if [ "$verb" = add ]; then
    tc qdisc add dev "$device" parent 1:1 handle 10: fq_codel
fi
