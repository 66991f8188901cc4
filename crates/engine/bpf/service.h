/* SPDX-License-Identifier: GPL-2.0 */
/* How do the lanes share the link? See enum sl_service. */
#ifndef SHORTLANE_SERVICE_H
#define SHORTLANE_SERVICE_H

#include "lanes.h"
#include "sampler.h"

static __always_inline u64 rest(u32 share)
{
	return SL_BILLION - share;
}

/* Virtual time that a packet takes in its lane: L(1-w) in the high one, L*w in the low one. */
static __always_inline u64 tag_of(const struct queue *q, u32 lane, u32 size)
{
	u64 bytes = size ? size : 1;

	return bytes * (lane == SL_HIGH ? rest(q->config->weight) : q->config->weight);
}

static __always_inline u64 tag_of_head(const struct queue *q, u32 lane)
{
	struct sl_slot *head = head_of(q, lane);

	return head ? tag_of(q, lane, head->size) : 0;
}

static __always_inline u64 minus(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

static __always_inline bool is_weighted(void)
{
	return parts.service == SL_WEIGHTED || parts.service == SL_COIN;
}

/* With both lanes backlogged. */
static __always_inline u32 fair_lane(const struct queue *q)
{
	struct sl_instance *in = q->in;
	struct sl_slot *low;

	if (parts.service == SL_COIN)
		return q->config->coin_always || draw(in->coin) < q->config->coin ? SL_HIGH
										  : SL_LOW;
	if (in->low_tag != in->high_tag)
		return in->low_tag < in->high_tag ? SL_LOW : SL_HIGH;
	/* The earlier arrival: the low head iff all that was in the short lane then has left. */
	low = head_of(q, SL_LOW);
	return low && has_passed(q, low->mark) ? SL_LOW : SL_HIGH;
}

/* Whether the long lane's head is due by the long lane's share, and overtakes nothing of its flow. */
static __always_inline bool low_is_due(const struct queue *q)
{
	struct sl_slot *low;
	struct sl_flow *flow;

	if (!q->config->low_share || lane_is_empty(q, SL_HIGH) || lane_is_empty(q, SL_LOW))
		return false;
	low = head_of(q, SL_LOW);
	if (!low || q->in->credit < (u64)low->size * SL_BILLION)
		return false;
	flow = flow_at(q, low->flow);
	return !flow || !is_demoted(flow) || has_passed(q, flow->mark);
}

/* The lane to serve; `*wait` is set to the time before which nobody is served, or left alone. */
static __always_inline u32 pick(const struct queue *q, u64 now, u64 *wait)
{
	if (parts.service == SL_GUARANTEED && low_is_due(q))
		return SL_LOW;
	if (lane_is_empty(q, SL_HIGH))
		return SL_LOW;
	if (!is_weighted())
		return SL_HIGH;
	if (!lane_is_empty(q, SL_LOW))
		return fair_lane(q);
	if (now < q->in->high_again)
		*wait = q->in->high_again;
	return SL_HIGH;
}

/* A packet is about to join a lane. */
static __always_inline void service_arrived(const struct queue *q, u32 lane, u32 size)
{
	if (!is_weighted() || !lane_is_empty(q, lane))
		return;
	if (lane == SL_HIGH)
		q->in->high_tag = tag_of(q, lane, size);
	else
		q->in->low_tag = tag_of(q, lane, size);
}

/* A packet has just left a lane for transmission. */
static __always_inline void service_sent(const struct queue *q, u32 lane, u32 size, u64 now)
{
	struct sl_instance *in = q->in;

	if (parts.service == SL_GUARANTEED && q->config->low_share) {
		if (lane_is_empty(q, SL_HIGH) || lane_is_empty(q, SL_LOW)) {
			in->credit = 0;
			return;
		}
		in->credit += (u64)size * q->config->low_share;
		if (lane == SL_LOW)
			in->credit = minus(in->credit, (u64)size * SL_BILLION);
	}
	if (!is_weighted())
		return;
	if (lane == SL_HIGH) {
		in->low_tag = minus(in->low_tag, in->high_tag);
		in->high_tag = tag_of_head(q, SL_HIGH);
		if (q->config->high_cap != SL_UNLIMITED)
			in->high_again = now + (u64)size * 8 * SL_BILLION / q->config->high_cap;
	} else {
		in->high_tag = minus(in->high_tag, in->low_tag);
		in->low_tag = tag_of_head(q, SL_LOW);
	}
}

/* Another configuration is in force: both heads start anew under it. */
static __always_inline void service_changed(const struct queue *q)
{
	struct sl_instance *in = q->in;

	in->credit = 0;
	if (!is_weighted())
		return;
	in->high_tag = tag_of_head(q, SL_HIGH);
	in->low_tag = tag_of_head(q, SL_LOW);
}

#endif
