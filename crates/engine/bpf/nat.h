/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who is behind this machine's address: where it translates addresses (NAT), packets on a device have
 * that in place of the client's. Conntrack knows the client.
 *
 * For programs of tc, which may ask it, with conntrack: a kernel function, and types of the kernel.
 */
#ifndef SHORTLANE_NAT_H
#define SHORTLANE_NAT_H

#include "kernel.h"

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
				  u32 tuple__sz, struct bpf_ct_opts *opts,
				  u32 opts__sz) __ksym __weak;
void bpf_ct_release(struct nf_conn *ct) __ksym __weak;

#define BPF_HDR_START_NET 1
#define CURRENT_NETNS (-1)

struct ipv4_with_ports {
	u8 version;
	u8 unused;
	__be16 length, id, fragment;
	u8 ttl, protocol;
	__be16 checksum;
	__be32 source, destination;
	__be16 source_port, destination_port;
};

/* A connection as conntrack knows what arrives of it, and its client, who answers to that. */
struct translated {
	struct bpf_sock_tuple arriving;
	u32 protocol;
	__be32 client;
};

/* What a packet that leaves the device, or arrives there, belongs to; false if conntrack does not know. */
static __always_inline bool find_client(struct __sk_buff *skb, bool leaves,
					struct translated *found)
{
	struct bpf_ct_opts opts = { .netns_id = CURRENT_NETNS };
	struct bpf_sock_tuple *tuple = &found->arriving;
	struct ipv4_with_ports ip;
	struct nf_conn *connection;

	if (skb->protocol != bpf_htons(ETH_P_IP) ||
	    bpf_skb_load_bytes_relative(skb, 0, &ip, sizeof(ip), BPF_HDR_START_NET))
		return false;
	if (ip.version != 0x45 || ip.fragment & bpf_htons(0x3fff) ||
	    (ip.protocol != 6 && ip.protocol != 17))
		return false;
	/* What arrives of the connection: of what leaves, conntrack knows no translated packet. */
	tuple->saddr = leaves ? ip.destination : ip.source;
	tuple->daddr = leaves ? ip.source : ip.destination;
	tuple->sport = leaves ? ip.destination_port : ip.source_port;
	tuple->dport = leaves ? ip.source_port : ip.destination_port;
	found->protocol = ip.protocol;
	opts.l4proto = ip.protocol;
	connection = bpf_skb_ct_lookup(skb, tuple, sizeof(*tuple), &opts, sizeof(opts));
	if (!connection)
		return false;
	found->client = opts.dir ? connection->tuplehash[0].tuple.src.u3.ip
				 : connection->tuplehash[1].tuple.src.u3.ip;
	bpf_ct_release(connection);
	return true;
}

#endif
