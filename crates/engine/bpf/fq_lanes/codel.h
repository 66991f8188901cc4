/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CoDel on the queue of a flow: RFC 8289, section 5. What is left when a packet leaves must exceed
 * a quantum, or it is not dropped: so a drop is always followed by another packet.
 */
#ifndef SHORTLANE_FQ_LANES_CODEL_H
#define SHORTLANE_FQ_LANES_CODEL_H

#include "ecn.h"
#include "queue.h"

/* A flow's turn, and its queue as the control law sees it. */
struct turn {
	u32 host;
	u32 host_list;
	u32 flow;
	u32 list;
	u64 now;
};

static __always_inline bool is_oldest(const struct turn *turn)
{
	return turn->list == FQL_LAST && !without(FQL_AGES);
}

/* Of a square below 2^63. Without a branch, each of which the verifier would follow. */
static __always_inline u64 square_root(u64 square)
{
	u64 root = 0;

	for (int bit = 31; bit >= 0; bit--) {
		u64 greater = root | 1ULL << bit;
		s64 left_over = square - greater * greater;

		root |= (u64) ~(left_over >> 63) & 1ULL << bit;
	}
	return root;
}

/* interval / sqrt(count): the time between two signals. The interval is at most FQL_MOST_INTERVAL. */
__noinline u64 spacing(u64 interval, u32 count)
{
	return square_root(interval * interval / (count ? count : 1));
}

/* Has delay been above target for an interval? */
static __always_inline bool may_drop(const struct fq_lanes *fq, struct fql_flow *flow,
				     const struct fql_packet *head, const struct turn *turn)
{
	const struct sl_config *config = fq->q.config;
	bool oldest = is_oldest(turn);

	if (sojourn(fq->block, head->stamp, turn->now, oldest) < config->target ||
	    flow->bytes - head->size <= FQL_QUANTUM) {
		flow->control.first_above = FQL_NEVER;
		return false;
	}
	if (flow->control.first_above == FQL_NEVER) {
		flow->control.first_above = turn->now + config->interval;
		return false;
	}
	return turn->now >= flow->control.first_above;
}

static __always_inline struct fql_packet *head_of(const struct fq_lanes *fq,
						  const struct fql_flow *flow)
{
	return flow->head ? packet_at(fq, flow->head) : 0;
}

static __always_inline void drop_head(const struct fq_lanes *fq, struct Qdisc *sch,
				      struct fql_flow *flow, struct fql_packet *head,
				      const struct turn *turn)
{
	u32 lane = lane_of(head->stamp);
	struct sk_buff *skb;

	pop_front(fq, sch, turn->flow, flow, head);
	sch->qstats.drops++;
	fq->q.in->counters.congested[lane]++;
	seen_dropped(fq, turn->flow, head->size);
	record(fq, SL_EVENT_CONGESTED, turn->now, 0, lane, head);
	skb = bpf_kptr_xchg(&head->skb, 0);
	if (skb)
		bpf_kfree_skb(skb);
}

/* Begins a run of drops. If the last one ended not long ago, the rate at which it controlled the
 * queue is where this one starts. */
static __always_inline void start_dropping(const struct fq_lanes *fq, struct fql_flow *flow,
					   u64 now)
{
	struct fql_control *control = &flow->control;
	u32 grown = minus(control->count, control->last_count);
	u64 interval = fq->q.config->interval;
	bool is_recent = minus(now, control->drop_next) < interval * 16;

	flow->dropping = 1;
	control->count = grown > 1 && is_recent ? grown : 1;
	control->last_count = control->count;
	control->drop_next = now + spacing(interval, control->count);
}

/* Drops what must go once a packet may be dropped, or the last ones could. Where a mark takes the
 * place of a drop, the packet leaves and there is no further drop. */
static __noinline int act(const struct fq_lanes *fq, struct Qdisc *sch, const struct turn *turn,
			  u32 may)
{
	struct fql_flow *flow = flow_at(fq, turn->flow);
	struct fql_control *control = &flow->control;
	struct fql_packet *head;

	if (!flow->dropping) {
		head = head_of(fq, flow);
		if (!head)
			return 0;
		if (!is_spared(fq, flow, head, turn->now)) {
			drop_head(fq, sch, flow, head, turn);
			head = head_of(fq, flow);
			if (!head)
				return 0;
			may_drop(fq, flow, head, turn);
		}
		start_dropping(fq, flow, turn->now);
		return 0;
	}
	flow->dropping = may;
	while (flow->dropping && turn->now >= control->drop_next && can_loop) {
		head = head_of(fq, flow);
		if (!head)
			return 0;
		if (control->count != ~0u)
			control->count++;
		if (is_spared(fq, flow, head, turn->now)) {
			control->drop_next += spacing(fq->q.config->interval, control->count);
			return 0;
		}
		drop_head(fq, sch, flow, head, turn);
		head = head_of(fq, flow);
		if (!head)
			return 0;
		flow->dropping = may_drop(fq, flow, head, turn);
		if (flow->dropping)
			control->drop_next += spacing(fq->q.config->interval, control->count);
	}
	return 0;
}

/* Drops what must go before the next packet of a flow leaves; that packet is then the head. */
static __always_inline void before_departure(const struct fq_lanes *fq, struct Qdisc *sch,
					     const struct turn *turn)
{
	struct fql_flow *flow = flow_at(fq, turn->flow);
	struct fql_packet *head = head_of(fq, flow);
	bool may;

	if (!head)
		return;
	may = may_drop(fq, flow, head, turn);
	if (unlikely(may || flow->dropping))
		act(fq, sch, turn, may);
}

#endif
