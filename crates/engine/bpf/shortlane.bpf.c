// SPDX-License-Identifier: GPL-2.0
/*
 * Disciplines with a short and a long lane as a queueing discipline of the Linux kernel.
 *
 * Put together from the same three parts as outside the kernel: accounting (accounting.h), service
 * (service.h), buffer (lanes.h). Packets and flows lie in arrays that belong to one qdisc and that
 * its lock protects; nothing is allocated.
 */
#include "options.h"
#include "parse.h"
#include "service.h"

char LICENSE[] SEC("license") = "GPL";

/* Takes over another configuration. */
static __always_inline void changed(const struct queue *q)
{
	q->in->next_sweep = 0;
	q->in->last_size = 0;
	q->in->last_miss = ~0ULL;
	service_changed(q);
}

static __always_inline bool open_lanes(struct Qdisc *sch, struct queue *q)
{
	if (!open_queue(sch, q))
		return false;
	if (unlikely(q->changed))
		changed(q);
	return true;
}

static __always_inline void read_headers(const struct queue *q, struct sk_buff *skb,
					 struct parsed *parsed)
{
	parse(skb, skb, parsed);
	if (unlikely(parsed->fragment))
		q->in->counters.fragments++;
	if (unlikely(parsed->not_ip))
		q->in->counters.not_ip++;
}

/* A second packet has come: which flow is the first one of? */
static __noinline int know_alone(const struct queue *q, struct parsed *parsed)
{
	u32 lane = lane_is_empty(q, SL_HIGH) ? SL_LOW : SL_HIGH;
	struct sl_slot *slot = head_of(q, lane);
	struct sk_buff *skb;

	if (!slot)
		return 0;
	skb = bpf_kptr_xchg(&slot->skb, 0);
	if (!skb)
		return 0;
	read_headers(q, skb, parsed);
	skb = bpf_kptr_xchg(&slot->skb, skb);
	if (skb)
		bpf_kfree_skb(skb);
	take_up_alone(q, parsed->flow, lane, slot);
	return 0;
}

SEC("struct_ops/enqueue")
int BPF_PROG(enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	struct sl_slot packet = {}, *slot;
	struct arrival arrival;
	struct parsed parsed;
	struct queue q;
	struct sk_buff *old;
	bool alone;
	u64 now;

	if (!open_lanes(sch, &q))
		goto drop;
	now = bpf_ktime_get_ns();
	packet.size = size_of(skb);
	packet.segments = segments_of(skb);
	if (packet.segments > 1)
		q.in->counters.super_packets++;
	if (parts.tested)
		packet.packet = number_arrival(&q);
	if (!sch->q.qlen)
		link_wakes(&q, now);
	alone = meets_empty_queue(sch);
	if (!HAS_LIFETIME && q.in->alone)
		know_alone(&q, &parsed);
	parsed.flow = 0;
	if (!alone || parts.tested)
		read_headers(&q, skb, &parsed);
	if (alone)
		arrival = (struct arrival){ lane_alone(&q, &packet), 0 };
	else
		arrival = arrived(&q, parsed.flow, &packet, now);
	packet.flow = arrival.flow;
	packet.mark = q.in->lane[SL_HIGH].tail;
	if (!make_room_for(&q, sch, arrival.lane, &packet, now, to_free)) {
		left(&q, arrival.flow);
		q.in->counters.full[arrival.lane & 1]++;
		record(&q, SL_EVENT_FULL, now, parsed.flow, arrival.lane, &packet);
		goto drop;
	}
	slot = slot_at(&q, arrival.lane, q.in->lane[arrival.lane & 1].tail);
	if (!slot) {
		left(&q, arrival.flow);
		q.in->counters.lost++;
		goto drop;
	}
	service_arrived(&q, arrival.lane, packet.size);
	slot->enqueued_at = now;
	slot->size = packet.size;
	slot->segments = packet.segments;
	slot->flow = packet.flow;
	slot->mark = packet.mark;
	if (parts.tested)
		slot->packet = packet.packet;
	old = bpf_kptr_xchg(&slot->skb, skb);
	if (old) {
		q.in->counters.lost++;
		bpf_qdisc_skb_drop(old, to_free);
	}
	q.in->alone = alone;
	lane_joined(&q, arrival.lane & 1, &packet);
	qdisc_joined(sch, packet.size);
	if (sch->q.qlen > q.in->most_packets)
		q.in->most_packets = sch->q.qlen;
	q.in->counters.enqueued[arrival.lane & 1]++;
	record(&q, SL_EVENT_ARRIVED, now, parsed.flow, arrival.lane, &packet);
	return NET_XMIT_SUCCESS;
drop:
	sch->qstats.drops++;
	bpf_qdisc_skb_drop(skb, to_free);
	return NET_XMIT_DROP;
}

SEC("struct_ops/dequeue")
struct sk_buff *BPF_PROG(dequeue, struct Qdisc *sch)
{
	struct sk_buff *skb = 0;
	struct sl_slot *slot;
	struct sl_lane *queue;
	struct queue q;
	u64 now, wait = 0;
	u32 lane, size;

	if (!sch->q.qlen || !open_lanes(sch, &q))
		return 0;
	if (parts.tested && !q.in->released)
		return 0;
	now = bpf_ktime_get_ns();
	if (!link_is_free(&q, sch, now))
		return 0;
	lane = pick(&q, now, &wait);
	if (wait) {
		sleep_until(sch, now, wait);
		return 0;
	}
	queue = &q.in->lane[lane & 1];
	slot = slot_at(&q, lane, queue->head);
	if (!slot)
		return 0;
	skb = bpf_kptr_xchg(&slot->skb, 0);
	if (!skb) {
		q.in->counters.lost++;
		return 0;
	}
	queue->head++;
	size = slot->size;
	lane_left(&q, lane & 1, slot);
	service_sent(&q, lane, size, now);
	left(&q, slot->flow);
	q.in->alone = 0;
	qdisc_left(sch, size);
	count_sent(&q, sch, skb, lane & 1, size, slot->segments, now - slot->enqueued_at);
	if (parts.tested) {
		q.in->released--;
		record(&q, SL_EVENT_SENT, now, 0, lane, slot);
	}
	return skb;
}

/* Frees what a lane holds. */
static __always_inline void empty_lane(const struct queue *q, u32 lane)
{
	struct sl_lane *l = &q->in->lane[lane];
	u32 i;

	q->in->counters.flushed += lane_length(q, lane);
	bpf_for(i, 0, parts.ring_mask + 1) {
		struct sl_slot *slot;
		struct sk_buff *skb;

		if (l->head == l->tail)
			break;
		slot = slot_at(q, lane, l->head++);
		if (!slot)
			break;
		skb = bpf_kptr_xchg(&slot->skb, 0);
		if (skb)
			bpf_kfree_skb(skb);
	}
	l->head = l->tail;
	l->bytes = 0;
	l->segments = 0;
}

/* Frees all packets and forgets all flows; counters stay. */
static __always_inline void empty_queue(const struct queue *q)
{
	struct sl_instance *in = q->in;
	u32 i;

	empty_lane(q, SL_HIGH);
	empty_lane(q, SL_LOW);
	bpf_for(i, 0, parts.bucket_mask + 1) {
		u32 *bucket = bucket_of(q, i);

		if (bucket)
			*bucket = 0;
	}
	in->alone = 0;
	in->counters.flows_removed += in->flows;
	in->flows = 0;
	in->free = 0;
	in->fresh = 0;
	in->hand = 0;
	in->next_sweep = 0;
	in->pacer.next_tx = 0;
	in->high_again = 0;
	in->credit = 0;
}

SEC("struct_ops/reset")
void BPF_PROG(reset, struct Qdisc *sch)
{
	struct queue q;

	if (open_lanes(sch, &q))
		empty_queue(&q);
}

SEC("struct_ops/destroy")
void BPF_PROG(destroy, struct Qdisc *sch)
{
	struct queue q;

	if (!open_lanes(sch, &q))
		return;
	empty_queue(&q);
	q.in->used = 0;
	sch->limit = 0;
}

SEC("struct_ops/init")
int BPF_PROG(init, struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	u32 index = free_index();
	struct sl_instance *in = &qdisc_at(index)->instance;
	int error = take_place(sch, index, options);

	if (error)
		return error;
	in->first_slot = index * SL_LANES * (parts.ring_mask + 1);
	in->first_bucket = index * (parts.bucket_mask + 1);
	in->before_flows = index * parts.flows - 1;
	in->last_size = 0;
	in->last_miss = ~0ULL;
	for (int i = 0; i < 4; i++) {
		in->sampler[i] = parts.sampler_seed[i];
		in->coin[i] = parts.coin_seed[i];
	}
	return 0;
}

/* The loader gives it the name that it is registered by. */
SEC(".struct_ops.link")
struct Qdisc_ops shortlane = {
	.enqueue = (void *)enqueue,
	.dequeue = (void *)dequeue,
	.init = (void *)init,
	.reset = (void *)reset,
	.destroy = (void *)destroy,
	.id = "shortlane",
};
