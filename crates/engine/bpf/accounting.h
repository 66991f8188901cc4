/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whose packet is long? See enum sl_accounting.
 *
 * While-queued accounting (EFD) forgets a flow with its last queued packet. The others remember
 * flows for as long as they are not idle: a sweep every `sweep` forgets those that were idle for
 * longer than `idle`. Here a sweep only takes note of the time; an entry that it would have
 * removed is treated as gone when it is next looked at, and every arrival looks at a few.
 *
 * While-queued accounting knows no flow when the queue is empty. So the lane of a packet that meets
 * an empty queue follows from its size alone, and if it leaves before a second one comes, nobody
 * will ask which flow it was of: its headers are not read and no entry is made until then. On
 * a link that is not full that is nearly every packet.
 */
#ifndef SHORTLANE_ACCOUNTING_H
#define SHORTLANE_ACCOUNTING_H

#include "flows.h"
#include "sampler.h"

/* Entries that an arrival looks at to reclaim idle ones, and that are looked at for room. */
#define SL_RECLAIM 2
#define SL_LOOK_AT 16

#define HAS_LIFETIME (parts.accounting != SL_WHILE_QUEUED)

struct arrival {
	u32 lane;
	u32 flow; /* index of the entry that counts the packet; 0 if none does */
};

static __always_inline u32 tick(u64 now)
{
	return now >> 20;
}

static __always_inline u64 age(const struct sl_flow *flow, u64 now)
{
	return (u64)(u32)(tick(now) - flow->last_seen) << 20;
}

static __always_inline u32 flow_cost(const struct queue *q, const struct sl_slot *packet)
{
	return q->config->threshold_in_bytes ? packet->size : packet->segments;
}

static __always_inline bool is_short(const struct queue *q, u32 seen, u32 cost)
{
	return (u64)seen + (q->config->inclusive ? cost : 0) < q->config->threshold;
}

static __always_inline u32 saturating_add(u32 a, u32 b)
{
	return a + b < a ? ~0u : a + b;
}

static __always_inline u32 demote(const struct queue *q, struct sl_flow *flow)
{
	flow->queued |= SL_DEMOTED_FLAG;
	flow->mark = q->in->lane[SL_HIGH].tail;
	q->in->counters.demoted++;
	return SL_LOW;
}

/* The lane of a packet of a flow in the table, and its part of the flow's count. */
static __always_inline u32 classify(const struct queue *q, struct sl_flow *flow,
				    const struct sl_slot *packet)
{
	u32 cost = flow_cost(q, packet), seen = flow->count;

	flow->queued++;
	if (is_demoted(flow)) {
		if (HAS_LIFETIME)
			flow->count = saturating_add(seen, cost);
		return SL_LOW;
	}
	if (is_short(q, seen, cost)) {
		flow->count = saturating_add(seen, cost);
		return SL_HIGH;
	}
	if (HAS_LIFETIME)
		flow->count = saturating_add(seen, cost);
	return demote(q, flow);
}

/* Whether the last sweep has forgotten a flow. */
static __always_inline bool is_swept(const struct queue *q, const struct sl_flow *flow)
{
	const struct sl_instance *in = q->in;

	return !queued_packets(flow) && in->sweeps != flow->emptied &&
	       age(flow, in->last_sweep) > q->config->idle;
}

/* Moves the hand on; 0 if there is no entry under it. Read back from memory, so that the verifier
 * takes it for any number and need not follow the hand all the way. */
static __always_inline struct sl_flow *next_under_hand(const struct queue *q, u32 *at)
{
	volatile u32 *hand = &q->in->hand;
	struct sl_flow *flow;

	*hand = *hand < q->in->fresh ? *hand + 1 : 1;
	*at = *hand;
	flow = flow_at(q, *at);
	return flow && flow->id ? flow : 0;
}

/* Removes the entry under the hand if it is swept, and moves the hand on. */
static __always_inline void reclaim_one(const struct queue *q)
{
	u32 at;
	struct sl_flow *flow = next_under_hand(q, &at);

	if (flow && is_swept(q, flow))
		remove_flow(q, flow, at);
}

static __always_inline void keep_up(const struct queue *q, u64 now)
{
	struct sl_instance *in = q->in;

	if (q->config->idle == SL_UNLIMITED)
		return;
	if (now >= in->next_sweep) {
		in->next_sweep = q->config->sweep < SL_UNLIMITED - now ? now + q->config->sweep
								       : SL_UNLIMITED;
		in->last_sweep = now;
		in->sweeps++;
	}
	if (!in->flows)
		return;
	for (int i = 0; i < SL_RECLAIM; i++)
		reclaim_one(q);
}

/* At the bound: the longest idle of a few entries makes room; false if all have packets queued. */
static __noinline u32 oldest_near_hand(const struct queue *q, u64 now)
{
	u32 found = 0, at, i;
	u64 oldest = 0;

	bpf_for(i, 0, SL_LOOK_AT) {
		struct sl_flow *flow = next_under_hand(q, &at);

		if (flow && !queued_packets(flow) && age(flow, now) + 1 > oldest) {
			oldest = age(flow, now) + 1;
			found = at;
		}
	}
	return found;
}

static __always_inline void make_room(const struct queue *q, u64 now)
{
	u32 at;
	struct sl_flow *flow;

	if (q->in->flows < q->config->flow_bound)
		return;
	at = oldest_near_hand(q, now);
	flow = flow_at(q, at);
	if (flow)
		remove_flow(q, flow, at);
}

static __always_inline struct arrival untracked(const struct queue *q)
{
	q->in->counters.flows_untracked++;
	return (struct arrival){ SL_HIGH, 0 };
}

/* A packet of a flow that the table does not remember. */
static __always_inline struct arrival unknown(const struct queue *q, u32 *bucket, u64 id,
					      const struct sl_slot *packet, u64 now)
{
	struct arrival arrival = { SL_HIGH, 0 };
	struct sl_flow *flow;
	u32 cost;

	if (!takes_up(q, packet->size))
		return arrival;
	make_room(q, now);
	arrival.flow = add_flow(q, bucket, id, &flow);
	if (!flow)
		return untracked(q);
	cost = flow_cost(q, packet);
	flow->queued = 1;
	flow->last_seen = tick(now);
	if (q->config->count_sampled)
		flow->count = cost;
	if (q->config->sampled_to == SL_TO_LOW ||
	    (q->config->sampled_to == SL_BY_RULE && !is_short(q, 0, cost)))
		arrival.lane = demote(q, flow);
	return arrival;
}

/* Counts an arrival, whether the buffer will accept it or not, and says which lane it joins. */
static __always_inline struct arrival arrived(const struct queue *q, u64 id,
					      const struct sl_slot *packet, u64 now)
{
	struct arrival arrival;
	struct sl_flow *flow;
	u32 *bucket;

	if (HAS_LIFETIME)
		keep_up(q, now);
	bucket = bucket_of(q, id);
	arrival.flow = find_flow(q, &bucket, id, &flow);
	if (HAS_LIFETIME) {
		if (flow && is_swept(q, flow)) {
			remove_flow(q, flow, arrival.flow);
			flow = 0;
		}
		if (!flow)
			return unknown(q, bucket, id, packet, now);
		flow->last_seen = tick(now);
	} else if (!flow) {
		arrival.flow = add_flow(q, bucket, id, &flow);
		if (!flow)
			return untracked(q);
	}
	arrival.lane = classify(q, flow, packet);
	return arrival;
}

static __always_inline bool meets_empty_queue(const struct Qdisc *sch)
{
	return !HAS_LIFETIME && !sch->q.qlen;
}

/* The lane of a packet that meets an empty queue. */
static __always_inline u32 lane_alone(const struct queue *q, const struct sl_slot *packet)
{
	if (is_short(q, 0, flow_cost(q, packet)))
		return SL_HIGH;
	q->in->counters.demoted++;
	return SL_LOW;
}

/* Makes up for the entry of a packet that met an empty queue, now that its flow is known. */
static __always_inline void take_up_alone(const struct queue *q, u64 id, u32 lane,
					  struct sl_slot *packet)
{
	struct sl_flow *flow;

	q->in->alone = 0;
	packet->flow = add_flow(q, bucket_of(q, id), id, &flow);
	if (!flow)
		return;
	flow->queued = 1;
	if (lane == SL_HIGH) {
		flow->count = flow_cost(q, packet);
	} else {
		flow->queued |= SL_DEMOTED_FLAG;
		flow->mark = packet->mark;
	}
}

/* A packet that was counted is no longer queued: sent, pushed out, or never accepted. */
static __always_inline void left(const struct queue *q, u32 index)
{
	struct sl_flow *flow = flow_at(q, index);

	if (!flow)
		return;
	flow->queued--;
	if (queued_packets(flow))
		return;
	if (HAS_LIFETIME)
		flow->emptied = q->in->sweeps;
	else
		remove_flow(q, flow, index);
}

#endif
