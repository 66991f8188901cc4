/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory of the qdiscs, and how each finds its part of it.
 *
 * Its state and configuration are in a data section, packets and flows in arrays: nothing
 * allocates, locks or hashes. Each qdisc has ranges of its own, which its lock protects. The
 * loader sets the arrays' numbers of entries.
 */
#ifndef SHORTLANE_MAPS_H
#define SHORTLANE_MAPS_H

#include "kernel.h"
#include "shortlane.h"

const volatile struct sl_parts parts = {
	.instances = 1,
	.ring_mask = 1023,
	.bucket_mask = 1023,
	.flows = 1024,
};

struct sl_shared sl_shared SEC(".data.shortlane") = { .layout = SL_LAYOUT };

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

#define SL_ARRAY(name, value_type)                \
	struct {                                  \
		__uint(type, BPF_MAP_TYPE_ARRAY); \
		__uint(max_entries, 1);           \
		__type(key, u32);                 \
		__type(value, value_type);        \
	} name SEC(".maps")

SL_ARRAY(sl_slots, struct sl_slot);
SL_ARRAY(sl_buckets, u32);
SL_ARRAY(sl_flows, struct sl_flow);
/* Tests only. */
SL_ARRAY(sl_release, u32);
SL_ARRAY(sl_log, struct sl_event);

/* A qdisc at work: where its things are. */
struct queue {
	struct sl_instance *in;
	struct sl_config *config;
	struct sl_histogram *histogram;
	u32 index;
};

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
static __always_inline void record(const struct queue *q, enum sl_event_kind kind, u64 now, u64 flow,
				   u32 lane, const struct sl_slot *packet)
{
	u32 at;
	struct sl_event *event;

	if (!parts.tested)
		return;
	at = q->index * SL_TEST_EVENTS + (q->in->events++ & (SL_TEST_EVENTS - 1));
	event = bpf_map_lookup_elem(&sl_log, &at);
	if (!event)
		return;
	event->now = now;
	event->flow = flow;
	event->kind = kind;
	event->packet = packet->packet;
	event->lane = lane;
	event->size = packet->size;
	event->segments = packet->segments;
	event->flows = q->in->flows + q->in->alone;
}

#endif
