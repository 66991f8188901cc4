#!/bin/sh
# add|change DEVICE RATE: a CAKE with tins behind a rule that knows flows by what conntrack has counted
# of them, as scripts for home routers have it (qosmate): a TCP connection that has had more than ten
# seconds of the link goes to Bulk.
set -eu
verb=$1 device=$2 rate=$3
tc qdisc "$verb" dev "$device" root cake bandwidth "${rate}bit" diffserv4
[ "$verb" = add ] || exit 0
modprobe nf_conntrack 2>/dev/null || true
echo 1 >/proc/sys/net/netfilter/nf_conntrack_acct
nft -f - <<RULES
table inet bytes_$device {
    chain forward {
        type filter hook forward priority 0; policy accept;
        oifname "$device" meta l4proto tcp ct bytes > $((rate * 10 / 8)) ip dscp set cs1
    }
}
RULES
