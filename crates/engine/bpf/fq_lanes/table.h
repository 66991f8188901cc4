/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who is remembered: flows and hosts, in bounded tables of chains.
 *
 * At the bound, the idle entry whose age has faded most among a few makes room. A flow that finds no
 * room has its packets in one of the spill queues, which belong to a host of their own. While such a
 * queue holds packets, no further flow of it gets an entry: so no flow is reordered.
 */
#ifndef SHORTLANE_FQ_LANES_TABLE_H
#define SHORTLANE_FQ_LANES_TABLE_H

#include "../parse.h"
#include "nat.h"
#include "queue.h"

/* Entries of a chain that are looked at: the keys are secret, so no chain is longer. */
#define MOST_IN_CHAIN 16
/* Entries that are looked at to make room for another. */
#define LOOK_AT 16

static __always_inline u32 find_flow(const struct fq_lanes *fq, u64 id)
{
	u32 at = *flow_bucket(fq, id);

	for (int i = 0; i < MOST_IN_CHAIN && at; i++) {
		struct fql_flow *flow = flow_at(fq, at);

		if (flow->id == id)
			return at;
		at = flow->chain;
	}
	fq->block->arrival.crowded = at;
	return FQL_NONE;
}

static __always_inline void reset_flow(struct fql_flow *flow, u64 id)
{
	flow->member.age = 0;
	flow->member.deficit = 0;
	flow->member.virtual_served = 0;
	flow->member.served = 0;
	flow->member.list = FQL_UNLISTED;
	flow->id = id;
	flow->bytes = 0;
	flow->control.first_above = FQL_NEVER;
	flow->control.drop_next = 0;
	flow->control.count = 0;
	flow->control.last_count = 0;
	flow->dropping = 0;
	flow->head = FQL_NONE;
	flow->tail = FQL_NONE;
	flow->host = FQL_NONE;
}

/* The fingerprint of a packet's host. It never changes, so that nobody asks again while the flow is
 * remembered. */
static __noinline u32 read_host(const struct fq_lanes *fq, struct sk_buff *skb, u32 ethernet)
{
	u32 at = fq->block->arrival.ends_at, kind = fq->block->arrival.kind;
	bool source = fql_parts.host_of == FQL_BY_SOURCE;
	u8 buffer[16], whole[16] = {}, *address;
	__be32 client = told_client(skb);
	struct bpf_dynptr packet;
	struct reader r = { &packet, skb->len };

	if (client) {
		__builtin_memcpy(whole, &client, 4);
		return host_fingerprint(whole, ENDPOINTS_V4, parts.host_key);
	}
	if (bpf_dynptr_from_skb(skb, 0, &packet))
		return 0;
	if (kind == ENDPOINTS_V4) {
		address = READ(&r, source ? at : at + 4, 4, buffer);
		if (address)
			__builtin_memcpy(whole, address, 4);
	} else if (kind == ENDPOINTS_V6) {
		address = READ(&r, source ? at : at + 16, 16, buffer);
		if (address)
			__builtin_memcpy(whole, address, 16);
	} else if (ethernet) {
		/* The destination comes first. */
		address = READ(&r, source ? ETH_ALEN : 0, 6, buffer);
		if (address)
			__builtin_memcpy(whole, address, 6);
	}
	return host_fingerprint(whole, kind, parts.host_key);
}

/* A flow may have come from another transmit queue: it is as old as it was there. That queue may be at
 * work on it: what is read is any age, at worst. */
static __noinline int remember(const struct fq_lanes *fq, struct fql_flow *flow)
{
	for (u32 i = 0; i < parts.instances && can_loop; i++) {
		u32 index = i, at;
		struct fq_lanes other = { .block = bpf_map_lookup_elem(&fql_blocks, &index) };

		if (!other.block || i == fq->q.index)
			continue;
		at = *flow_bucket(&other, flow->id);
		for (int k = 0; k < MOST_IN_CHAIN && at && can_loop; k++) {
			struct fql_flow *same = flow_at(&other, at);

			at = same->chain;
			if (same->id != flow->id || same->member.served <= flow->member.served)
				continue;
			flow->member.age = same->member.age;
			flow->member.virtual_served = same->member.virtual_served;
			flow->member.served = same->member.served;
		}
	}
	return 0;
}

/* An entry for a flow that has none; there is room. */
static __always_inline u32 add_flow(const struct fq_lanes *fq, u64 id, u32 host_id)
{
	u32 *bucket = flow_bucket(fq, id), at = fq->block->free_flow;
	struct sl_instance *in = fq->q.in;
	struct fql_flow *flow;

	if (at) {
		flow = flow_at(fq, at);
		fq->block->free_flow = flow->chain;
	} else {
		at = fq->block->fresh_flow++;
		flow = flow_at(fq, at);
	}
	reset_flow(flow, id);
	flow->host_id = host_id;
	if (parts.common)
		remember(fq, flow);
	flow->chain = *bucket;
	*bucket = at;
	if (++in->flows > in->most_flows)
		in->most_flows = in->flows;
	in->counters.flows_created++;
	return at;
}

static __noinline int remove_flow(const struct fq_lanes *fq, u32 index)
{
	struct fql_flow *flow = flow_at(fq, index);
	u32 *link = flow_bucket(fq, flow->id);

	while (*link && *link != index && can_loop)
		link = &flow_at(fq, *link)->chain;
	*link = flow->chain;
	flow->id = 0;
	flow->chain = fq->block->free_flow;
	fq->block->free_flow = index;
	fq->q.in->flows--;
	fq->q.in->counters.flows_removed++;
	return 0;
}

/* At the bound: the idle flow of least age among a few; FQL_NONE if none is idle. */
static __noinline u32 flow_to_forget(const struct fq_lanes *fq, u64 now)
{
	volatile u32 *hand = &fq->block->flow_hand;
	u64 least_id = 0;
	u32 found = FQL_NONE, least = 0, i;

	bpf_for(i, 0, LOOK_AT) {
		struct fql_flow *flow;
		u32 at, age;

		*hand = *hand + 1 < fq->block->fresh_flow ? *hand + 1 : FQL_BEFORE_FLOWS;
		at = *hand;
		flow = flow_at(fq, at);
		if (!flow->id || flow->head || flow->member.list != FQL_UNLISTED)
			continue;
		age = faded(OF_FLOWS, flow->member.age, minus(now, flow->member.served));
		if (!found || age < least || (age == least && flow->id < least_id)) {
			found = at;
			least = age;
			least_id = flow->id;
		}
	}
	return found;
}

static __always_inline u32 is_ethernet(const struct Qdisc *sch)
{
	return sch->dev_queue->dev->type == ARPHRD_ETHER;
}

/* The place of a flow that had none: a spill queue's if there is no room for it. */
static __noinline u32 take_up(const struct fq_lanes *fq, struct sk_buff *skb, struct Qdisc *sch)
{
	const struct fql_arrival *arrival = &fq->block->arrival;
	u32 spill = 1 + (u32)(arrival->id >> 32) % FQL_SPILLS, host = 0;

	if (arrival->crowded || flow_at(fq, spill)->head)
		goto spilled;
	if (fq->q.in->flows >= fql_parts.flow_bound) {
		u32 idle = flow_to_forget(fq, arrival->now);

		if (!idle)
			goto spilled;
		remove_flow(fq, idle);
	}
	if (fql_parts.host_of != FQL_BY_NOBODY)
		host = read_host(fq, skb, is_ethernet(sch));
	return add_flow(fq, arrival->id, host);
spilled:
	fq->q.in->counters.flows_untracked++;
	return spill;
}

/* The place of the arrival's flow. */
static __always_inline u32 flow_of(const struct fq_lanes *fq, struct sk_buff *skb,
				   struct Qdisc *sch)
{
	u32 index = find_flow(fq, fq->block->arrival.id);
	struct fql_seen *unnamed = 0;

	if (likely(index))
		return index;
	index = take_up(fq, skb, sch);
	if (index >= FQL_BEFORE_FLOWS)
		unnamed = seen_begins(fq, index, skb);
	if (unnamed)
		name_any(unnamed, skb, is_ethernet(sch));
	return index;
}

static __noinline int remove_host(const struct fq_lanes *fq, u32 index)
{
	struct fql_host *host = host_at(fq, index);
	u32 *link = host_bucket(fq, host->key);

	while (*link && *link != index && can_loop)
		link = &host_at(fq, *link)->chain;
	*link = host->chain;
	host->key = 0;
	host->chain = fq->block->free_host;
	fq->block->free_host = index;
	fq->block->hosts--;
	return 0;
}

/* At the bound: a host that nobody needs, of the least key among a few. */
static __noinline u32 host_to_forget(const struct fq_lanes *fq)
{
	volatile u32 *hand = &fq->block->host_hand;
	u32 found = FQL_NONE, i;
	u64 least = 0;

	bpf_for(i, 0, LOOK_AT) {
		struct fql_host *host;
		u32 at;

		*hand = *hand + 1 < fq->block->fresh_host ? *hand + 1 : FQL_BEFORE_HOSTS;
		at = *hand;
		host = host_at(fq, at);
		if (!host->key || host->member.list != FQL_UNLISTED || host->ahead.waits)
			continue;
		if (!found || host->key < least) {
			found = at;
			least = host->key;
		}
	}
	return found;
}

static __always_inline void reset_host(struct fql_host *host, u64 key)
{
	__builtin_memset(host, 0, sizeof(*host));
	host->key = key;
}

/* The place of a host that the flow did not belong to before. */
static __noinline u32 take_up_host(const struct fq_lanes *fq, u64 key)
{
	u32 *bucket = host_bucket(fq, key), at = *bucket, i;
	struct fql_host *host;

	for (i = 0; i < MOST_IN_CHAIN && at; i++) {
		host = host_at(fq, at);
		if (host->key == key)
			return at;
		at = host->chain;
	}
	if (at)
		return FQL_SPILL_HOST;
	if (fq->block->hosts >= fql_parts.host_bound) {
		u32 idle = host_to_forget(fq);

		if (!idle)
			return FQL_SPILL_HOST;
		remove_host(fq, idle);
	}
	at = fq->block->free_host;
	if (at)
		fq->block->free_host = host_at(fq, at)->chain;
	else
		at = fq->block->fresh_host++;
	host = host_at(fq, at);
	reset_host(host, key);
	host->chain = *bucket;
	*bucket = at;
	fq->block->hosts++;
	return at;
}

/* The place of a flow's host. */
static __always_inline u32 host_of(const struct fq_lanes *fq, const struct fql_flow *flow,
				   u32 index)
{
	u64 key;

	if (index < FQL_BEFORE_FLOWS)
		return FQL_SPILL_HOST;
	/* One-to-one, and scattered. */
	key = fql_parts.host_of == FQL_BY_NOBODY ? 0 : flow->host_id * 0x9e3779b97f4a7c15ULL;
	key ^= key >> 32;
	if (!key)
		key = 1;
	if (likely(flow->host && host_at(fq, flow->host)->key == key))
		return flow->host;
	return take_up_host(fq, key);
}

/* Finds its host for a flow that has nothing queued and stands in no list. */
static __always_inline void find_host(const struct fq_lanes *fq, struct fql_flow *flow, u32 index)
{
	u32 host = host_of(fq, flow, index);

	/* What it was served is reckoned by another stage's clock from now on. */
	if (unlikely((flow->host == FQL_SPILL_HOST) != (host == FQL_SPILL_HOST)))
		flow->member.virtual_served =
			host_at(fq, host)->stage.virtual_time + fq->block->idle.credit;
	flow->host = host;
}

#endif
