/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The flow table: chains of entries, found by the fingerprint's low bits. The fingerprint is a
 * keyed hash, so chains stay short whatever is sent; one of SL_CHAIN entries all the same counts as
 * full.
 */
#ifndef SHORTLANE_FLOWS_H
#define SHORTLANE_FLOWS_H

#include "maps.h"

#define SL_CHAIN 16

static __always_inline u32 queued_packets(const struct sl_flow *flow)
{
	return flow->queued & ~SL_DEMOTED_FLAG;
}

static __always_inline bool is_demoted(const struct sl_flow *flow)
{
	return flow->queued & SL_DEMOTED_FLAG;
}

/* The index of a flow's entry, 0 if it has none; `*entry` is the entry itself. A bucket that has no
 * room for another is set to 0. */
static __always_inline u32 find_flow(const struct queue *q, u32 **bucket, u64 id,
				     struct sl_flow **entry)
{
	u32 at = *bucket ? **bucket : 0;
	int i;

	for (i = 0; i < SL_CHAIN && at; i++) {
		struct sl_flow *flow = flow_at(q, at);

		if (!flow)
			break;
		if (flow->id == id) {
			*entry = flow;
			return at;
		}
		at = flow->next;
	}
	if (i == SL_CHAIN)
		*bucket = 0;
	*entry = 0;
	return 0;
}

/* Takes up a flow that is not in the table; 0 if there is no room. */
static __always_inline u32 add_flow(const struct queue *q, u32 *bucket, u64 id,
				    struct sl_flow **entry)
{
	struct sl_instance *in = q->in;
	struct sl_flow *flow, *second;
	u32 at = in->free;

	*entry = 0;
	if (!bucket || in->flows >= q->config->flow_bound)
		return 0;
	if (at) {
		flow = flow_at(q, at);
		if (!flow)
			return 0;
		in->free = flow->next;
	} else {
		if (in->fresh >= parts.flows)
			return 0;
		at = ++in->fresh;
		flow = flow_at(q, at);
		if (!flow)
			return 0;
	}
	flow->id = id;
	flow->next = *bucket;
	flow->prev = 0;
	flow->count = 0;
	flow->queued = 0;
	second = flow_at(q, *bucket);
	if (second)
		second->prev = at;
	*bucket = at;
	if (++in->flows > in->most_flows)
		in->most_flows = in->flows;
	q->in->counters.flows_created++;
	*entry = flow;
	return at;
}

static __always_inline void remove_flow(const struct queue *q, struct sl_flow *flow, u32 at)
{
	struct sl_flow *next = flow_at(q, flow->next);

	if (next)
		next->prev = flow->prev;
	if (flow->prev) {
		struct sl_flow *prev = flow_at(q, flow->prev);

		if (prev)
			prev->next = flow->next;
	} else {
		u32 *bucket = bucket_of(q, flow->id);

		if (bucket)
			*bucket = flow->next;
	}
	flow->id = 0;
	flow->next = q->in->free;
	q->in->free = at;
	q->in->flows--;
	q->in->counters.flows_removed++;
}

#endif
