// SPDX-License-Identifier: GPL-2.0
/*
 * Behind which address of a device is whom: where this machine translates addresses (NAT), packets
 * on the device have its address in place of the client's. Conntrack knows the client, and these
 * programs, which look at every packet and decide nothing, write down for the engine what it says.
 *
 * For kernels with TCX (6.6) and conntrack: a kernel function, and types of the kernel.
 */
#include "kernel.h"

/* The beginning of the kernel's interface to programs of this kind; it never changes. */
struct __sk_buff {
	__u32 len;
	__u32 pkt_type;
	__u32 mark;
	__u32 queue_mapping;
	__u32 protocol;
};

union nf_inet_addr {
	__be32 ip;
} CORE;

struct nf_conntrack_man {
	union nf_inet_addr u3;
} CORE;

struct nf_conntrack_tuple {
	struct nf_conntrack_man src;
} CORE;

struct nf_conntrack_tuple_hash {
	struct nf_conntrack_tuple tuple;
} CORE;

struct nf_conn {
	struct nf_conntrack_tuple_hash tuplehash[2];
} CORE;

/* The first layout, which later kernels still take. */
struct bpf_ct_opts {
	s32 netns_id;
	s32 error;
	u8 l4proto;
	u8 dir;
	u8 reserved[2];
};

/* That of IPv4, which its length tells. */
struct bpf_sock_tuple {
	__be32 saddr;
	__be32 daddr;
	__be16 sport;
	__be16 dport;
};

struct nf_conn *bpf_skb_ct_lookup(struct __sk_buff *skb, struct bpf_sock_tuple *tuple,
				  u32 tuple__sz, struct bpf_ct_opts *opts, u32 opts__sz) __ksym;
void bpf_ct_release(struct nf_conn *ct) __ksym;

char LICENSE[] SEC("license") = "GPL";

#define ETH_P_IP 0x0800
#define NEXT (-1)
#define BPF_F_MMAPABLE (1U << 10)
#define BPF_HDR_START_NET 1
#define CURRENT_NETNS (-1)
/* A power of two. */
#define SLOTS (1 << 14)

/* So that nobody can choose connections that share a slot. */
const volatile u64 secret;

/* In the upper half what tells connections in a slot apart, in the lower the client's address. */
struct sl_clients {
	u64 slots[SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sl_clients);
} sl_clients SEC(".maps");

struct ipv4_with_ports {
	u8 version;
	u8 unused;
	__be16 length, id, fragment;
	u8 ttl, protocol;
	__be16 checksum;
	__be32 source, destination;
	__be16 source_port, destination_port;
};

/* Where a connection is written down, and what tells it from others there: as in nat.rs. */
static __always_inline u64 connection_hash(const struct bpf_sock_tuple *tuple, u32 protocol)
{
	u64 hash = (u64)tuple->saddr << 32 | (u32)tuple->sport << 16 | tuple->dport;

	hash = (hash ^ secret) * 0x9e3779b97f4a7c15ULL;
	hash ^= hash >> 32;
	hash = (hash ^ ((u64)tuple->daddr << 8 | protocol)) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

static __always_inline int note_client(struct __sk_buff *skb, bool leaves)
{
	struct bpf_ct_opts opts = { .netns_id = CURRENT_NETNS };
	struct bpf_sock_tuple tuple;
	struct sl_clients *clients;
	struct ipv4_with_ports ip;
	struct nf_conn *connection;
	u32 client, zero = 0;
	u64 hash;

	if (skb->protocol != bpf_htons(ETH_P_IP) ||
	    bpf_skb_load_bytes_relative(skb, 0, &ip, sizeof(ip), BPF_HDR_START_NET))
		return NEXT;
	if (ip.version != 0x45 || ip.fragment & bpf_htons(0x3fff) ||
	    (ip.protocol != 6 && ip.protocol != 17))
		return NEXT;
	/* What arrives of the connection: of what leaves, conntrack knows no translated packet. */
	tuple.saddr = leaves ? ip.destination : ip.source;
	tuple.daddr = leaves ? ip.source : ip.destination;
	tuple.sport = leaves ? ip.destination_port : ip.source_port;
	tuple.dport = leaves ? ip.source_port : ip.destination_port;
	opts.l4proto = ip.protocol;
	connection = bpf_skb_ct_lookup(skb, &tuple, sizeof(tuple), &opts, sizeof(opts));
	if (!connection)
		return NEXT;
	/* Who answers to what arrives. */
	client = opts.dir ? connection->tuplehash[0].tuple.src.u3.ip
			  : connection->tuplehash[1].tuple.src.u3.ip;
	bpf_ct_release(connection);
	clients = bpf_map_lookup_elem(&sl_clients, &zero);
	hash = connection_hash(&tuple, ip.protocol);
	if (clients)
		*(volatile u64 *)&clients->slots[hash % SLOTS] = hash >> 32 << 32 | client;
	return NEXT;
}

SEC("tc")
int shortlane_nat_o(struct __sk_buff *skb)
{
	return note_client(skb, true);
}

SEC("tc")
int shortlane_nat_i(struct __sk_buff *skb)
{
	return note_client(skb, false);
}
