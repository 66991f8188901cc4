/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The maps, and how an instance finds its part of them.
 *
 * All are arrays: no map allocates, locks or hashes. Each instance has ranges of its own, which
 * only that qdisc's lock protects. The loader sets the numbers of entries.
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

/* A queued packet. */
struct sl_slot {
	struct sk_buff __kptr *skb;
	u64 enqueued_at;
	u32 size;
	u32 segments;
	u32 flow; /* index of its entry; 0 if it is not counted */
	u32 mark; /* the high lane as it stood when the packet arrived */
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

SL_ARRAY(sl_instances, struct sl_instance);
SL_ARRAY(sl_generation, u64);
SL_ARRAY(sl_configs, struct sl_config); /* two for each instance, and the first one of new qdiscs */
SL_ARRAY(sl_histograms, struct sl_histogram);
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
	u32 index;
};

static __always_inline struct sl_slot *slot_at(const struct queue *q, u32 lane, u32 position)
{
	u32 at = (q->index * SL_LANES + lane) * (parts.ring_mask + 1) + (position & parts.ring_mask);

	return bpf_map_lookup_elem(&sl_slots, &at);
}

/* By index, which is one more than the place. */
static __always_inline struct sl_flow *flow_at(const struct queue *q, u32 index)
{
	u32 at = q->index * parts.flows + index - 1;

	return index ? bpf_map_lookup_elem(&sl_flows, &at) : 0;
}

static __always_inline u32 *bucket_of(const struct queue *q, u64 flow)
{
	u32 at = q->index * (parts.bucket_mask + 1) + ((u32)flow & parts.bucket_mask);

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
	event->flows = q->in->flows;
}

#endif
