#!/bin/sh
# Says whether this kernel has what the tests need, and whether packets get through a veth pair.
# Status 1 if anything is missing; each line of it is said.
# shellcheck disable=SC2329 # functions that `check` calls
failed=0

# check WHAT COMMAND...: one line, and what the command said if it failed.
check() {
    what=$1
    shift
    if said=$("$@" 2>&1); then
        echo "ok      $what"
    else
        echo "MISSING $what: $said"
        failed=1
    fi
}

# qdisc KIND [OPTIONS...]: the kernel has it, if need be as a module that it finds itself.
qdisc() {
    tc qdisc replace dev left root "$@" &&
        tc qdisc show dev left root | grep -q "qdisc $1 "
}

# inside NAME COMMAND...: a command in a network namespace.
inside() {
    ip netns exec "$@"
}

ping_through_veth() {
    ip netns add one && ip netns add two &&
        ip link add dev eth1 netns one type veth peer name eth2 netns two &&
        inside one ip address add 10.0.0.1/24 dev eth1 && inside one ip link set dev eth1 up &&
        inside two ip address add 10.0.0.2/24 dev eth2 && inside two ip link set dev eth2 up &&
        inside one ping -c 3 -i 0.2 -W 5 10.0.0.2
    status=$?
    ip netns delete one && ip netns delete two && return "$status"
}

# The configuration is not in these kernels' /proc; BTF names what BPF queueing disciplines call.
check "BPF queueing disciplines" grep -q bpf_qdisc_skb_drop /sys/kernel/btf/vmlinux
check veth ip link add dev left type veth peer name right
check "BPF file system" sh -c 'mkdir /sys/fs/bpf/probe && rmdir /sys/fs/bpf/probe'
check "JIT" grep -q 1 /proc/sys/net/core/bpf_jit_enable
check "control groups, version 2" test -e /sys/fs/cgroup/cgroup.controllers
check "tracing" test -e /sys/kernel/tracing/trace
check pfifo qdisc pfifo
check tbf qdisc tbf rate 1mbit burst 10k latency 50ms
for kind in sfq fq fq_codel cake hhf pie red htb hfsc netem drr prio; do
    case $kind in
    red) check red qdisc red limit 100k avpkt 1000 bandwidth 10mbit ;;
    *) check $kind qdisc $kind ;;
    esac
done
check "ingress and clsact" tc qdisc add dev left clsact
check ifb ip link add dev ifb9 type ifb
check "vlan" ip link add link left name left.5 type vlan id 5
check bridge ip link add dev bridge0 type bridge
check tun ip tuntap add dev tap0 mode tap
check bbr sysctl -q -w net.ipv4.tcp_congestion_control=bbr
check pktgen modprobe pktgen
check "a ping between two network namespaces" ping_through_veth
exit $failed
