// SPDX-License-Identifier: GPL-2.0
/*
 * The least qdisc there is, which drops everything, with one more thing that a qdisc might want to
 * do. Whether the kernel takes it is what the test `probes` finds out; PROBE names the thing.
 */
#include "kernel.h"

char LICENSE[] SEC("license") = "GPL";

#define CONTROL 0
#define ECN_DIRECT 1 /* store to the packet's memory */
#define ECN_HELPER 2 /* bpf_skb_ecn_set_ce() */
#define ECN_STORE 3 /* bpf_skb_store_bytes() */
#define ECN_DYNPTR 4 /* bpf_dynptr_write() */
#define CONNTRACK_KFUNC 5 /* bpf_skb_ct_lookup() */
#define CONNTRACK_READ 6 /* the entry that the packet points to, read only */
#define GSO_SEGMENT 7 /* __skb_gso_segment() */
#define CHANGE 8 /* the operation behind `tc qdisc change` */
#define DUMP 9 /* the operation behind `tc qdisc show` */

/* What the probe's call returned; 1 if it was not made. */
int result = 1;
/* Something to store that the compiler does not know. */
__u8 mark = 3;

#if PROBE == CONNTRACK_KFUNC
/* Whole types, which is all that libbpf compares. */
struct bpf_ct_opts {
	int error;
};
struct nf_conn {
	u32 mark;
};
struct bpf_sock_tuple {
	u32 ports;
};
extern struct nf_conn *bpf_skb_ct_lookup(struct __sk_buff *skb, struct bpf_sock_tuple *tuple,
					 u32 tuple_size, struct bpf_ct_opts *opts,
					 u32 opts_size) __ksym;
#endif

#if PROBE == CONNTRACK_READ
struct nf_conn {
	unsigned int mark;
} CORE;
struct sk_buff___conntrack {
	unsigned long _nfct;
} CORE;
#endif

#if PROBE == GSO_SEGMENT
extern struct sk_buff *__skb_gso_segment(struct sk_buff *skb, u64 features, bool tx_path) __ksym;
#endif

/* Offset of the traffic class behind an Ethernet header. */
#define TRAFFIC_CLASS 15

static __always_inline void probe(struct sk_buff *skb)
{
#if PROBE == ECN_DIRECT
	skb->data[TRAFFIC_CLASS] = mark;
	result = 0;
#elif PROBE == ECN_HELPER
	result = bpf_skb_ecn_set_ce((void *)skb) - 1;
#elif PROBE == ECN_STORE
	result = bpf_skb_store_bytes((void *)skb, TRAFFIC_CLASS, &mark, 1, 0);
#elif PROBE == ECN_DYNPTR
	struct bpf_dynptr packet;

	if (!bpf_dynptr_from_skb(skb, 0, &packet))
		result = bpf_dynptr_write((void *)&packet, TRAFFIC_CLASS, &mark, 1, 0);
#elif PROBE == CONNTRACK_KFUNC
	result = !bpf_skb_ct_lookup((void *)skb, 0, 0, 0, 0);
#elif PROBE == CONNTRACK_READ
	struct sk_buff___conntrack *with = (void *)skb;

	result = VIEW(struct nf_conn, (void *)(with->_nfct & ~7UL))->mark & 0;
#elif PROBE == GSO_SEGMENT
	result = !__skb_gso_segment(skb, 0, true);
#endif
}

SEC("struct_ops/enqueue")
int BPF_PROG(enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	probe(skb);
	bpf_qdisc_skb_drop(skb, to_free);
	return NET_XMIT_DROP;
}

SEC("struct_ops/dequeue")
struct sk_buff *BPF_PROG(dequeue, struct Qdisc *sch)
{
	return 0;
}

SEC("struct_ops/init")
int BPF_PROG(init, struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	return 0;
}

SEC("struct_ops/reset")
void BPF_PROG(reset, struct Qdisc *sch)
{
}

SEC("struct_ops/destroy")
void BPF_PROG(destroy, struct Qdisc *sch)
{
}

#if PROBE == CHANGE
SEC("struct_ops/change")
int BPF_PROG(change, struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	return 0;
}
#endif

#if PROBE == DUMP
SEC("struct_ops/dump")
int BPF_PROG(dump, struct Qdisc *sch, struct sk_buff *skb)
{
	return 0;
}
#endif

struct Qdisc_ops___probe {
	char id[16];
	int (*enqueue)(struct sk_buff *, struct Qdisc *, struct sk_buff **);
	struct sk_buff *(*dequeue)(struct Qdisc *);
	int (*init)(struct Qdisc *, struct nlattr *, struct netlink_ext_ack *);
	void (*reset)(struct Qdisc *);
	void (*destroy)(struct Qdisc *);
	int (*change)(struct Qdisc *, struct nlattr *, struct netlink_ext_ack *);
	int (*dump)(struct Qdisc *, struct sk_buff *);
};

SEC(".struct_ops.link")
struct Qdisc_ops___probe probe_ops = {
	.enqueue = (void *)enqueue,
	.dequeue = (void *)dequeue,
	.init = (void *)init,
	.reset = (void *)reset,
	.destroy = (void *)destroy,
#if PROBE == CHANGE
	.change = (void *)change,
#endif
#if PROBE == DUMP
	.dump = (void *)dump,
#endif
	.id = "slprobe",
};
