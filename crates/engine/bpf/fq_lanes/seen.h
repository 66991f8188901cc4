/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is told of a flow, to people: nothing here decides anything.
 *
 * An entry belongs to the flow with the same index, and stays when that is forgotten, until another
 * flow has its place. A packet counts when it has left, or is dropped.
 */
#ifndef SHORTLANE_FQ_LANES_SEEN_H
#define SHORTLANE_FQ_LANES_SEEN_H

#include "../parse.h"
#include "nat.h"
#include "rules.h"

struct fql_seen {
	u64 since; /* when the flow was taken up; 0 if none has been here */
	u64 last; /* when its latest packet left */
	u64 sent_bytes;
	u64 sent_packets;
	u64 dropped_bytes;
	u32 dropped_packets;
	u32 second; /* which one its latest packet left in: of 2^FQL_SECOND ns */
	u32 in_second; /* bytes that left in that one, and in the one before */
	u32 in_former;
	u32 age; /* the flow's age since then */
	__be32 client; /* behind NAT, as on the wire; 0 if it has the address that packets show */
	struct flow_key key;
};

/* Readers map it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fql_seen);
} fql_seen SEC(".maps");

static __always_inline struct fql_seen *seen_at(const struct fq_lanes *fq, u32 index)
{
	u32 at = fq->q.index * fql_parts.seen + index;

	return bpf_map_lookup_elem(&fql_seen, &at);
}

/* A flow is taken up, with this packet. Returns its entry if that still needs a name. */
static __noinline struct fql_seen *seen_begins(const struct fq_lanes *fq, u32 index,
					       struct sk_buff *skb)
{
	struct fql_seen *seen = seen_at(fq, index);

	if (!seen)
		return 0;
	__builtin_memset(seen, 0, sizeof(*seen));
	seen->since = fq->block->arrival.now;
	seen->client = told_client(skb);
	return is_in_place(skb) && plain_key(skb, &seen->key) ? 0 : seen;
}

/* The name of a flow with unusual headers. Not with the above, whose stack has no room for it. */
static __noinline int name_any(struct fql_seen *seen, struct sk_buff *skb, u32 ethernet)
{
	__builtin_memset(&seen->key, 0, sizeof(seen->key));
	return any_key(skb, skb, ethernet, &seen->key);
}

/* `size` bytes of a flow left for the link. */
static __always_inline void seen_sent(const struct fq_lanes *fq, u32 index, u32 size, u64 now)
{
	struct fql_seen *seen = seen_at(fq, index);
	u32 second = now >> FQL_SECOND;

	if (!seen)
		return;
	if (second != seen->second) {
		seen->in_former = second == seen->second + 1 ? seen->in_second : 0;
		seen->in_second = 0;
		seen->second = second;
	}
	seen->in_second += size;
	seen->sent_bytes += size;
	seen->sent_packets++;
	seen->last = now;
	seen->age = flow_at(fq, index)->member.age;
}

static __always_inline void seen_dropped(const struct fq_lanes *fq, u32 index, u32 size)
{
	struct fql_seen *seen = seen_at(fq, index);

	if (!seen)
		return;
	seen->dropped_bytes += size;
	seen->dropped_packets++;
}

#endif
