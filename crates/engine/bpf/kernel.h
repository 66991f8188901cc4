/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's own types and functions, as far as this qdisc touches them. Field offsets are
 * relocated when the object is loaded (CO-RE), so this is no copy of any one kernel's layout.
 */
#ifndef SHORTLANE_KERNEL_H
#define SHORTLANE_KERNEL_H

/* Written out, so that the object does not depend on the headers of the machine it is built on. */
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed int __s32;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0

enum {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_F_MMAPABLE = 1 << 10,
};

struct bpf_dynptr {
	__u64 opaque[2];
} __attribute__((aligned(8)));

struct bpf_iter_num {
	__u64 opaque[1];
} __attribute__((aligned(8)));

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1
#define ENOSPC 28
#define EINVAL 22
#define EOPNOTSUPP 95
#define TC_H_ROOT 0xffffffffU
#define ETH_P_IP 0x0800

#define fallthrough __attribute__((fallthrough))

/* Ends a loop that the verifier cannot see the end of, should it go on for too long: the instruction
 * may_goto (Linux 6.9), which older compilers have no name for. */
#define can_loop                                                                      \
	({                                                                            \
		__label__ out, on;                                                    \
		bool goes_on = true;                                                  \
		asm volatile goto("1: .byte 0xe5; .byte 0;"                           \
				  ".long ((%l[out] - 1b - 8) / 8) & 0xffff; .short 0" \
				  :                                                   \
				  :                                                   \
				  :                                                   \
				  : out);                                             \
		goto on;                                                              \
out:                                                                                  \
		goes_on = false;                                                      \
on:;                                                                                  \
		goes_on;                                                              \
	})

/* What the compiler is not to look behind: it would undo bounds that the verifier is to see. */
#define hide(value) asm volatile("" : "+r"(value))

/* An index below a power of two, less one. Without a branch, each of which the verifier follows. */
static __always_inline __u64 within(__u64 index, __u64 mask)
{
	hide(index);
	index &= mask;
	hide(index);
	return index;
}

/* The beginning of the kernel's interface to programs of tc; it never changes. */
struct __sk_buff {
	__u32 len;
	__u32 pkt_type;
	__u32 mark;
	__u32 queue_mapping;
	__u32 protocol;
	__u32 vlan_present;
	__u32 vlan_tci;
	__u32 vlan_proto;
	__u32 priority;
	__u32 ingress_ifindex;
	__u32 ifindex;
	__u32 tc_index;
	__u32 cb[5];
	__u32 hash;
	__u32 tc_classid;
	__u32 data;
	__u32 data_end;
	__u32 napi_id;
	__u32 family;
	__u32 remote_ip4;
	__u32 local_ip4;
	__u32 remote_ip6[4];
	__u32 local_ip6[4];
	__u32 remote_port;
	__u32 local_port;
	__u32 data_meta;
	__u64 flow_keys __attribute__((aligned(8)));
	__u64 tstamp;
	__u32 wire_len;
	__u32 gso_segs;
};

#define SKB_GSO_TCPV4 (1 << 0)
#define SKB_GSO_TCPV6 (1 << 4)

#define CORE __attribute__((preserve_access_index))

struct ns_common {
	unsigned int inum;
} CORE;

struct net {
	struct ns_common ns;
} CORE;

typedef struct {
	struct net *net;
} CORE possible_net_t;

struct net_device {
	int ifindex;
	unsigned char addr_len;
	unsigned short hard_header_len;
	unsigned short type;
	possible_net_t nd_net;
} CORE;

struct sk_buff {
	struct net_device *dev;
	unsigned int len;
	unsigned int data_len;
	__be16 protocol;
	__be16 vlan_proto;
	__u16 vlan_tci;
	__u16 transport_header;
	__u16 network_header;
	__u16 mac_header;
	char cb[48];
	unsigned int tail;
	unsigned int end;
	unsigned char *head;
	unsigned char *data;
} CORE;

struct skb_shared_info {
	unsigned short gso_size;
	unsigned short gso_segs;
	unsigned int gso_type;
} CORE;

struct qdisc_skb_cb {
	unsigned int pkt_len;
	unsigned char data[20];
} CORE;

struct gnet_stats_queue {
	__u32 qlen;
	__u32 backlog;
	__u32 drops;
	__u32 requeues;
	__u32 overlimits;
} CORE;

struct qdisc_skb_head {
	__u32 qlen;
} CORE;

struct netdev_queue {
	struct net_device *dev;
} CORE;

struct Qdisc {
	u32 limit;
	u32 handle;
	u32 parent;
	struct netdev_queue *dev_queue;
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
} CORE;

struct nlattr {
	__u16 nla_len;
	__u16 nla_type;
} CORE;

struct netlink_ext_ack;
struct bpf_sk_buff_ptr {
	struct sk_buff *skb;
} CORE;

struct Qdisc_ops {
	char id[16];
	int (*enqueue)(struct sk_buff *, struct Qdisc *, struct sk_buff **);
	struct sk_buff *(*dequeue)(struct Qdisc *);
	int (*init)(struct Qdisc *, struct nlattr *, struct netlink_ext_ack *);
	void (*reset)(struct Qdisc *);
	void (*destroy)(struct Qdisc *);
};

struct iphdr {
	__be16 tot_len;
	__be16 frag_off;
	__u8 protocol;
	__be32 saddr;
	__be32 daddr;
} CORE;

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
} CORE;

struct ipv6hdr {
	__be16 payload_len;
	__u8 nexthdr;
	struct in6_addr saddr;
	struct in6_addr daddr;
} CORE;

struct udphdr {
	__be16 source;
	__be16 dest;
} CORE;

void bpf_kfree_skb(struct sk_buff *skb) __ksym;
void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free) __ksym;
void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire, u64 delta_ns) __ksym;
void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) __ksym;
void *bpf_cast_to_kern_ctx(void *context) __ksym;
void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym;
int bpf_dynptr_from_skb(struct sk_buff *skb, u64 flags, struct bpf_dynptr *ptr) __ksym;
void *bpf_dynptr_slice(const struct bpf_dynptr *ptr, u32 offset, void *buffer, u32 size) __ksym;

/* A view of the kernel's memory at `address` as a type of the kernel; reads never fault. */
#define VIEW(type, address) ((type *)bpf_rdonly_cast((address), bpf_core_type_id_kernel(type)))

#endif
