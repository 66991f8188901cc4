/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory of the two-lane qdiscs, and how each finds its part of it.
 *
 * Packets and flows lie in arrays: nothing allocates, locks or hashes. Each qdisc has ranges of its
 * own, which its lock protects. The loader sets the arrays' numbers of entries.
 */
#ifndef SHORTLANE_MAPS_H
#define SHORTLANE_MAPS_H

#include "qdisc.h"

/* A queued packet. */
struct sl_slot {
	struct sk_buff __kptr *skb;
	u64 enqueued_at;
	u32 size;
	u32 segments;
	u32 flow; /* index of its entry; 0 if it is not counted */
	u32 mark; /* the short lane as it stood when the packet arrived */
	u32 packet; /* tests only: number of its arrival */
	u32 padding;
};

SL_ARRAY(sl_slots, struct sl_slot);
SL_ARRAY(sl_buckets, u32);
SL_ARRAY(sl_flows, struct sl_flow);

static __always_inline struct sl_slot *slot_at(const struct queue *q, u32 lane, u32 position)
{
	u32 at = q->in->first_slot + ((position & (q->in->slots - 1)) * SL_LANES + lane);

	return bpf_map_lookup_elem(&sl_slots, &at);
}

/* By index, which is one more than the place. */
static __always_inline struct sl_flow *flow_at(const struct queue *q, u32 index)
{
	u32 at = q->in->before_flows + index;

	return index ? bpf_map_lookup_elem(&sl_flows, &at) : 0;
}

static __always_inline u32 *bucket_of(const struct queue *q, u64 flow)
{
	u32 at = q->in->first_bucket + ((u32)flow & parts.bucket_mask);

	return bpf_map_lookup_elem(&sl_buckets, &at);
}

/* Tests only. */
static __always_inline void record(const struct queue *q, enum sl_event_kind kind, u64 now,
				   u64 flow, u32 lane, const struct sl_slot *packet)
{
	struct sl_event *event = parts.tested ? new_record(q, kind, now) : 0;

	if (!event)
		return;
	event->flow = flow;
	event->packet = packet->packet;
	event->lane = lane;
	event->size = packet->size;
	event->segments = packet->segments;
}

#endif
