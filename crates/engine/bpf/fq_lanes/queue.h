/* SPDX-License-Identifier: GPL-2.0 */
/* The queues of flows: packets joining and leaving, and who loses them when the limit is exceeded. */
#ifndef SHORTLANE_FQ_LANES_QUEUE_H
#define SHORTLANE_FQ_LANES_QUEUE_H

#include "clock.h"
#include "seen.h"
#include "stage.h"

/* A flow with no more quanta than this is not made to lose packets for another of its host. */
#define THIN 4
/* Most packets that a flow loses at once. */
#define DROP_BATCH 64
/* Most flows that are looked at for one with more than one packet. */
#define LOOK_AT_IN_TURN 64

static __always_inline void grown(struct fql_fattest *fattest, u32 index, u64 bytes)
{
	if (index == fattest->index || bytes > fattest->bytes) {
		fattest->index = index;
		fattest->bytes = bytes;
	}
}

static __always_inline void shrunk(struct fql_fattest *fattest, u32 index, u64 bytes)
{
	if (index == fattest->index)
		fattest->bytes = bytes;
}

/* What a host has queued, in the unit of the limit. */
static __always_inline u64 load(const struct fq_lanes *fq, const struct fql_host *host)
{
	return in_unit_of_limit(&fq->q, host->bytes, host->segments);
}

/* Place for a packet; FQL_NONE if there is none. */
static __always_inline u32 take_slot(const struct fq_lanes *fq, struct fql_packet **packet)
{
	struct fql_block *block = fq->block;
	u32 index = block->free_packet;

	if (index) {
		*packet = packet_at(fq, index);
		if (!*packet)
			return FQL_NONE;
		block->free_packet = (*packet)->next;
		return index;
	}
	index = block->fresh_packet;
	if (index >= fql_parts.slots)
		return FQL_NONE;
	block->fresh_packet = index + 1;
	*packet = packet_at(fq, index);
	return *packet ? index : FQL_NONE;
}

static __always_inline void push_back(const struct fq_lanes *fq, struct fql_flow *flow, u32 index,
				      struct fql_packet *packet)
{
	struct fql_packet *last;

	packet->next = FQL_NONE;
	packet->previous = flow->tail;
	last = flow->tail ? packet_at(fq, flow->tail) : 0;
	if (last)
		last->next = index;
	else
		flow->head = index;
	flow->tail = index;
}

static __always_inline void count_joined(const struct fq_lanes *fq, struct Qdisc *sch,
					 struct fql_flow *flow, u32 index, u32 lane,
					 const volatile struct fql_packet *packet)
{
	struct fql_host *host = host_at(fq, flow->host);
	struct sl_lane *l = &fq->q.in->lane[lane];
	u32 size = packet->size;

	l->tail++;
	l->bytes += size;
	l->segments += packet->segments;
	qdisc_joined(sch, size);
	flow->bytes += size;
	host->bytes += size;
	host->packets++;
	host->segments += packet->segments;
	grown(&host->fattest, index, flow->bytes);
	if (!fq->block->fattest || load(fq, host) > load(fq, host_at(fq, fq->block->fattest)))
		fq->block->fattest = flow->host;
}

/* Keeps account of a packet that left the queue of a flow, however it did, and frees its place. */
static __always_inline void left(const struct fq_lanes *fq, struct Qdisc *sch,
				 struct fql_flow *flow, u32 index, u32 place,
				 struct fql_packet *packet)
{
	struct fql_host *host = host_at(fq, flow->host);
	struct sl_lane *l = &fq->q.in->lane[lane_of(packet->stamp)];

	l->head++;
	l->bytes -= packet->size;
	l->segments -= packet->segments;
	qdisc_left(sch, packet->size);
	flow->bytes -= packet->size;
	host->bytes -= packet->size;
	host->packets--;
	host->segments -= packet->segments;
	common_ends(fq, host, !flow->head);
	shrunk(&host->fattest, index, flow->bytes);
	packet->next = fq->block->free_packet;
	fq->block->free_packet = place;
}

/* Takes the head from a flow's queue. */
static __always_inline void pop_front(const struct fq_lanes *fq, struct Qdisc *sch, u32 index,
				      struct fql_flow *flow, struct fql_packet *packet)
{
	u32 place = flow->head;

	flow->head = packet->next;
	if (!flow->head)
		flow->tail = FQL_NONE;
	left(fq, sch, flow, index, place, packet);
}

/* Takes the tail. What it came behind is the tail again, if it is still there. */
static __always_inline void pop_back(const struct fq_lanes *fq, struct Qdisc *sch, u32 index,
				     struct fql_flow *flow, struct fql_packet *packet)
{
	u32 place = flow->tail;

	if (place == flow->head) {
		flow->head = FQL_NONE;
		flow->tail = FQL_NONE;
	} else {
		struct fql_packet *before = packet_at(fq, packet->previous);

		flow->tail = packet->previous;
		if (before)
			before->next = FQL_NONE;
	}
	left(fq, sch, flow, index, place, packet);
}

static __always_inline u64 backlog(const struct fq_lanes *fq)
{
	const struct sl_lane *lane = fq->q.in->lane;

	return in_unit_of_limit(&fq->q, lane[0].bytes + lane[1].bytes + lane[2].bytes,
				lane[0].segments + lane[1].segments + lane[2].segments);
}

static __always_inline bool is_over(const struct fq_lanes *fq)
{
	return backlog(fq) > fq->q.config->limit;
}

/* Whether a packet is refused however willing others are to make room. */
static __always_inline bool must_refuse(const struct fq_lanes *fq, u32 size, u32 segments)
{
	return is_over(fq) || in_unit_of_limit(&fq->q, size, segments) > fq->q.config->limit;
}

static __always_inline void drop(const struct fq_lanes *fq, struct Qdisc *sch, u32 flow,
				 struct fql_packet *packet, enum sl_event_kind kind,
				 struct bpf_sk_buff_ptr *to_free)
{
	const struct fql_arrival *arrival = &fq->block->arrival;
	u32 lane = lane_of(packet->stamp);
	struct sk_buff *skb;

	sch->qstats.drops++;
	if (kind == SL_EVENT_FULL)
		fq->q.in->counters.full[lane]++;
	else
		fq->q.in->counters.pushed_out[lane]++;
	seen_dropped(fq, flow, packet->size);
	record(fq, kind, arrival->now, kind == SL_EVENT_FULL ? arrival->id : 0, lane, packet);
	skb = bpf_kptr_xchg(&packet->skb, 0);
	if (skb)
		bpf_qdisc_skb_drop(skb, to_free);
}

static __always_inline void refuse_arrival(const struct fq_lanes *fq, struct Qdisc *sch,
					   struct bpf_sk_buff_ptr *to_free)
{
	struct fql_arrival *arrival = &fq->block->arrival;
	struct fql_flow *flow = flow_at(fq, arrival->flow);
	struct fql_packet *packet = flow->tail ? packet_at(fq, flow->tail) : 0;

	arrival->survived = false;
	if (!packet)
		return;
	pop_back(fq, sch, arrival->flow, flow, packet);
	drop(fq, sch, arrival->flow, packet, SL_EVENT_FULL, to_free);
}

/* The flow of a host whose turn it is, and its list. */
static __always_inline u32 next_flow(const struct fq_lanes *fq, u32 host, u32 *list)
{
	return next_member(fq, &host_at(fq, host)->stage, OF_FLOWS, list);
}

static __always_inline bool is_thin(u64 bytes)
{
	return bytes <= THIN * FQL_QUANTUM;
}

/* Whether a flow has one packet or none. */
static __always_inline bool is_short(const struct fql_flow *flow)
{
	return flow->head == flow->tail;
}

/* The first flow in turn that has more than one packet, if it is among those looked at. */
static __noinline u32 first_with_several(const struct fq_lanes *fq, u32 host)
{
	struct fql_stage *stage = &host_at(fq, host)->stage;
	u32 left = LOOK_AT_IN_TURN, list;

	if (host_at(fq, host)->packets <= stage->listed)
		return FQL_NONE;
	bpf_for(list, 0, FQL_LISTS) {
		u32 index = list_at(stage, list)->first;

		while (index && left && can_loop) {
			struct fql_flow *flow = flow_at(fq, index);

			if (!is_short(flow))
				return index;
			index = flow->member.next;
			left--;
		}
	}
	return FQL_NONE;
}

/* The flow of a host that makes room: the fattest, unless that would take the last packet of a thin
 * flow. Then it is one with more, or the first of the youngest. */
static __noinline u32 fattest_of(const struct fq_lanes *fq, u32 host)
{
	struct fql_fattest *fattest = &host_at(fq, host)->fattest;

	if (!fattest->bytes || (is_thin(fattest->bytes) && is_short(flow_at(fq, fattest->index)))) {
		u32 index = first_with_several(fq, host);

		if (!index)
			index = next_of_youngest(fq, &host_at(fq, host)->stage);
		fattest->index = index;
		fattest->bytes = index ? flow_at(fq, index)->bytes : 0;
	}
	return fattest->index;
}

/* The fattest flow of the fattest host loses half of its bytes, or a batch, at its head; a host of
 * thin flows alone loses what arrives for it. */
static __noinline int make_room(const struct fq_lanes *fq, struct Qdisc *sch,
				struct bpf_sk_buff_ptr *to_free)
{
	struct fql_arrival *arrival = &fq->block->arrival;
	u32 host = fq->block->fattest, index = FQL_NONE, i;
	struct fql_fattest *fattest = &host_at(fq, host)->fattest;
	struct fql_flow *flow;
	u64 bytes;

	if (!is_thin(fattest->bytes) || host != flow_at(fq, arrival->flow)->host)
		index = fattest_of(fq, host);
	if (!index) {
		refuse_arrival(fq, sch, to_free);
		return 0;
	}
	bytes = fattest->bytes;
	flow = flow_at(fq, index);
	bpf_for(i, 0, DROP_BATCH) {
		struct fql_packet *packet = flow->head ? packet_at(fq, flow->head) : 0;
		bool is_arrival;

		if (!packet || flow->bytes <= bytes / 2 || (i && is_short(flow)))
			break;
		if (flow->control.count != ~0u)
			flow->control.count++;
		pop_front(fq, sch, index, flow, packet);
		is_arrival = index == arrival->flow && !flow->head;
		if (is_arrival)
			arrival->survived = false;
		drop(fq, sch, index, packet, is_arrival ? SL_EVENT_FULL : SL_EVENT_PUSHED_OUT,
		     to_free);
	}
	return 0;
}

#endif
