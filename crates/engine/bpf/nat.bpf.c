// SPDX-License-Identifier: GPL-2.0
/*
 * Who is behind this machine's address (nat.h), for the userspace engine. These programs, which look at
 * every packet and decide nothing, write down what conntrack says.
 *
 * For kernels with TCX (6.6) and conntrack: a kernel function, and types of the kernel.
 */
#include "nat.h"

char LICENSE[] SEC("license") = "GPL";

#define NEXT (-1)
#define BPF_F_MMAPABLE (1U << 10)
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
	struct sl_clients *clients;
	struct translated found;
	u32 zero = 0;
	u64 hash;

	if (!find_client(skb, leaves, &found))
		return NEXT;
	clients = bpf_map_lookup_elem(&sl_clients, &zero);
	hash = connection_hash(&found.arriving, found.protocol);
	if (clients)
		*(volatile u64 *)&clients->slots[hash % SLOTS] = hash >> 32 << 32 | found.client;
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
