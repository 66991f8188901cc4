/* SPDX-License-Identifier: GPL-2.0 */
/* Two FIFO lanes in one buffer, and who is dropped when it is full. */
#ifndef SHORTLANE_LANES_H
#define SHORTLANE_LANES_H

#include "accounting.h"

static __always_inline u32 lane_length(const struct queue *q, u32 lane)
{
	return q->in->lane[lane].tail - q->in->lane[lane].head;
}

static __always_inline bool lane_is_empty(const struct queue *q, u32 lane)
{
	return q->in->lane[lane].tail == q->in->lane[lane].head;
}

/* The packet that a lane would send next; 0 if it is empty. */
static __always_inline struct sl_slot *head_of(const struct queue *q, u32 lane)
{
	return lane_is_empty(q, lane) ? 0 : slot_at(q, lane, q->in->lane[lane].head);
}

/* Whether every packet that was in the short lane at `mark` has left it. */
static __always_inline bool has_passed(const struct queue *q, u32 mark)
{
	u32 ahead = mark - q->in->lane[SL_HIGH].head;

	return ahead == 0 || ahead > lane_length(q, SL_HIGH);
}

static __always_inline u64 limit_cost(const struct queue *q, const struct sl_slot *packet)
{
	return in_unit_of_limit(q, packet->size, packet->segments);
}

static __always_inline bool has_room(const struct queue *q, const struct sl_slot *packet)
{
	return used(q, SL_HIGH) + used(q, SL_LOW) + limit_cost(q, packet) <= q->config->limit;
}

/* Whether it would fit into the lane if the other one were empty. An empty short lane takes any
 * packet that the whole buffer can hold. */
static __always_inline bool has_room_in_lane(const struct queue *q, u32 lane,
					     const struct sl_slot *packet)
{
	u64 in_lane = used(q, lane & 1);
	u64 most = lane == SL_HIGH && in_lane ? q->config->high_limit : q->config->limit;

	return in_lane + limit_cost(q, packet) <= most;
}

static __always_inline void lane_joined(const struct queue *q, u32 lane,
					const struct sl_slot *packet)
{
	struct sl_lane *l = &q->in->lane[lane];

	l->tail++;
	l->bytes += packet->size;
	l->segments += packet->segments;
}

static __always_inline void lane_left(const struct queue *q, u32 lane, const struct sl_slot *packet)
{
	struct sl_lane *l = &q->in->lane[lane];

	l->bytes -= packet->size;
	l->segments -= packet->segments;
}

/* Drops the tail of the long lane; false if there is none. */
static __always_inline bool push_out(const struct queue *q, struct Qdisc *sch, u64 now,
				     struct bpf_sk_buff_ptr *to_free)
{
	struct sl_lane *low = &q->in->lane[SL_LOW];
	struct sl_slot *slot;
	struct sk_buff *victim;

	if (lane_is_empty(q, SL_LOW))
		return false;
	slot = slot_at(q, SL_LOW, low->tail - 1);
	if (!slot)
		return false;
	low->tail--;
	lane_left(q, SL_LOW, slot);
	qdisc_left(sch, slot->size);
	sch->qstats.drops++;
	q->in->counters.pushed_out[SL_LOW]++;
	left(q, slot->flow);
	record(q, SL_EVENT_PUSHED_OUT, now, 0, SL_LOW, slot);
	victim = bpf_kptr_xchg(&slot->skb, 0);
	if (victim)
		bpf_qdisc_skb_drop(victim, to_free);
	return true;
}

/* Makes room for a packet that is to join `lane`; false if it is the one to be dropped. */
static __always_inline bool make_room_for(const struct queue *q, struct Qdisc *sch, u32 lane,
					  const struct sl_slot *packet, u64 now,
					  struct bpf_sk_buff_ptr *to_free)
{
	u32 i;

	/* Slots are what is missing where the limit would have let it in. */
	if (lane_length(q, lane) > parts.ring_mask) {
		bool fits = has_room_in_lane(q, lane, packet) && has_room(q, packet);

		q->in->counters.no_slots += fits;
		return false;
	}
	/* What fits here fits anywhere. */
	if (likely(used(q, SL_HIGH) + used(q, SL_LOW) + limit_cost(q, packet) <=
		   q->config->high_limit))
		return true;
	if (!has_room_in_lane(q, lane, packet))
		return false;
	if (has_room(q, packet))
		return true;
	if (parts.buffer != SL_KNOCKOUT || lane != SL_HIGH)
		return false;
	bpf_for(i, 0, parts.ring_mask + 1) {
		if (has_room(q, packet))
			break;
		if (!push_out(q, sch, now, to_free))
			break;
	}
	return has_room(q, packet);
}

#endif
