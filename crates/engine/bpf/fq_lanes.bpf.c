// SPDX-License-Identifier: GPL-2.0
/*
 * fq-lanes as a queueing discipline of the Linux kernel: fair queueing over hosts and flows, CoDel
 * in each, the young first.
 *
 * The same discipline as outside the kernel, where its rules are explained: the files in fq_lanes/
 * have the names of those there. Equal event by event, but for marks: see fq_lanes/ecn.h.
 */
#define KNOWS_HOSTS true
#include "options.h"
#include "fq_lanes/codel.h"
#include "fq_lanes/table.h"

char LICENSE[] SEC("license") = "GPL";

static __always_inline bool open_block(struct Qdisc *sch, struct fq_lanes *fq)
{
	if (!open_queue(sch, &fq->q))
		return false;
	fq->block = bpf_map_lookup_elem(&fql_blocks, &fq->q.index);
	return fq->block;
}

/* A host with a new flow joins the line, unless it stands there. */
static __always_inline void join_line(const struct fq_lanes *fq, u32 index)
{
	struct fql_block *block = fq->block;
	struct fql_host *host = host_at(fq, index);

	if (host->ahead.waits)
		return;
	host->ahead.waits = 1;
	host->ahead.next = FQL_NONE;
	if (block->ahead_last)
		host_at(fq, block->ahead_last)->ahead.next = index;
	else
		block->ahead_first = index;
	block->ahead_last = index;
}

/* Takes the first host from the line. */
static __always_inline u32 leave_line(const struct fq_lanes *fq)
{
	struct fql_block *block = fq->block;
	u32 index = block->ahead_first;
	struct fql_host *host = host_at(fq, index);

	host->ahead.waits = 0;
	block->ahead_first = host->ahead.next;
	if (!block->ahead_first)
		block->ahead_last = FQL_NONE;
	return index;
}

/* A flow with nothing queued gets a packet. */
static __always_inline void becomes_backlogged(const struct fq_lanes *fq, u32 index, u64 now)
{
	struct fql_flow *flow = flow_at(fq, index);
	struct fql_host *host;

	if (flow->member.list == FQL_UNLISTED)
		find_host(fq, flow, index);
	host = host_at(fq, flow->host);
	common_begins(fq, host);
	if (!host->packets)
		arrive(fq, &fq->block->root, OF_HOSTS, flow->host, now);
	if (arrive(fq, &host->stage, OF_FLOWS, index, now) && !without(FQL_AHEAD))
		join_line(fq, flow->host);
}

/* A new flow goes ahead of the turns of hosts, while its own has not had more than its fair share in
 * this way: a packet of voice must not wait for the downloads of others. */
static __noinline bool turn_ahead(const struct fq_lanes *fq, struct turn *turn)
{
	const struct fql_stage *root = &fq->block->root;

	while (fq->block->ahead_first && can_loop) {
		u32 index = leave_line(fq);
		struct fql_host *host = host_at(fq, index);

		host->ahead.bytes =
			minus(host->ahead.bytes, share_since(root, host->ahead.reading));
		host->ahead.reading = root->virtual_time;
		if (!host->packets || host->ahead.bytes >= MOST_AHEAD)
			continue;
		turn->flow = next_new(fq, &host->stage);
		if (turn->flow) {
			turn->host = index;
			turn->host_list = host->member.list - 1;
			turn->list = FQL_NEW;
			join_line(fq, index);
			return true;
		}
	}
	return false;
}

/* Whose packet leaves. */
static __always_inline bool next_turn(const struct fq_lanes *fq, struct turn *turn)
{
	struct fql_block *block = fq->block;

	if (block->ahead_first) {
		if (block->root.listed > 1 && turn_ahead(fq, turn))
			return true;
		/* Who has nothing queued need not stand in the line, and could not be forgotten there. */
		while (block->ahead_first && !host_at(fq, block->ahead_first)->packets && can_loop)
			leave_line(fq);
	}
	turn->host = next_member(fq, &block->root, OF_HOSTS, &turn->host_list);
	if (!turn->host)
		return false;
	turn->flow = next_flow(fq, turn->host, &turn->list);
	return turn->flow;
}

/* Reads the headers of a packet that has come. */
static __always_inline void read_arrival(const struct fq_lanes *fq, struct sk_buff *skb)
{
	volatile struct fql_arrival *arrival = &fq->block->arrival;
	struct parsed parsed;

	parse(skb, skb, &parsed);
	if (unlikely(parsed.fragment))
		fq->q.in->counters.fragments++;
	if (unlikely(parsed.not_ip))
		fq->q.in->counters.not_ip++;
	arrival->now = bpf_ktime_get_ns();
	arrival->id = parsed.flow;
	arrival->kind = parsed.kind;
	arrival->ends_at = parsed.ends_at;
	arrival->survived = 1;
}

SEC("struct_ops/enqueue")
int BPF_PROG(enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	struct fql_packet *packet, refused = {};
	volatile struct fql_arrival *arrival;
	struct fql_flow *flow;
	struct fq_lanes fq;
	struct sk_buff *old;
	u32 place, lane;

	if (!open_block(sch, &fq))
		goto drop;
	arrival = &fq.block->arrival;
	refused.size = size_of(skb);
	refused.segments = segments_of(skb);
	if (refused.segments > 1)
		fq.q.in->counters.super_packets++;
	if (parts.tested)
		refused.number = number_arrival(&fq.q);
	read_arrival(&fq, skb);
	if (must_refuse(&fq, refused.size, refused.segments)) {
		fq.q.in->counters.full[0]++;
		record(&fq, SL_EVENT_FULL, arrival->now, arrival->id, 0, &refused);
		goto drop;
	}
	place = take_slot(&fq, &packet);
	if (!place) {
		fq.q.in->counters.no_slots++;
		goto drop;
	}
	packet->size = refused.size;
	packet->segments = refused.segments;
	if (parts.tested)
		packet->number = refused.number;
	arrival->flow = flow_of(&fq, skb, sch);
	flow = flow_at(&fq, arrival->flow);
	if (!sch->q.qlen) {
		idle_ends(fq.block, arrival->now);
		link_wakes(&fq.q, arrival->now);
	}
	if (!flow->head)
		becomes_backlogged(&fq, arrival->flow, arrival->now);
	packet->stamp = stamp_of(fq.block, arrival->now, lane_of_list(flow->member.list - 1));
	old = bpf_kptr_xchg(&packet->skb, skb);
	if (old) {
		fq.q.in->counters.lost++;
		bpf_qdisc_skb_drop(old, to_free);
	}
	push_back(&fq, flow, place, packet);
	lane = lane_of(packet->stamp);
	count_joined(&fq, sch, flow, arrival->flow, lane, packet);
	while (unlikely(is_over(&fq)) && can_loop)
		make_room(&fq, sch, to_free);
	if (!arrival->survived)
		return NET_XMIT_DROP;
	if (sch->q.qlen > fq.q.in->most_packets)
		fq.q.in->most_packets = sch->q.qlen;
	fq.q.in->counters.enqueued[lane]++;
	queue_begins(&fq.q);
	record(&fq, SL_EVENT_ARRIVED, arrival->now, arrival->id, lane, packet);
	return NET_XMIT_SUCCESS;
drop:
	sch->qstats.drops++;
	bpf_qdisc_skb_drop(skb, to_free);
	return NET_XMIT_DROP;
}

/* Keeps account of what leaves for the link. */
static __always_inline void sent(const struct fq_lanes *fq, struct Qdisc *sch,
				 const struct turn *turn, u32 size)
{
	struct fql_host *host = host_at(fq, turn->host);
	struct fql_flow *flow = flow_at(fq, turn->flow);

	if (parts.common)
		queue_served(&fq->q, turn_of(fq, size), !sch->q.qlen);
	served(fq, &host->stage, OF_FLOWS, host, &flow->member, turn->list, size, turn->now);
	if (turn->list == FQL_NEW)
		host->ahead.bytes += size;
	served(fq, &fq->block->root, OF_HOSTS, host, &host->member, turn->host_list, size,
	       turn->now);
	idle_takes(fq->block, size, turn->now);
	clock_sends(fq->block, is_oldest(turn));
	seen_sent(fq, turn->flow, size, turn->now);
}

SEC("struct_ops/dequeue")
struct sk_buff *BPF_PROG(dequeue, struct Qdisc *sch)
{
	struct fql_packet *packet;
	struct sk_buff *skb = 0;
	struct turn turn = {};
	struct fql_flow *flow;
	struct fq_lanes fq;
	u32 lane;

	if (!sch->q.qlen || !open_block(sch, &fq))
		return 0;
	if (parts.tested && !fq.q.in->released)
		return 0;
	turn.now = bpf_ktime_get_ns();
	if (!link_is_free(&fq.q, sch, turn.now))
		return 0;
	clock_asked(fq.block, turn.now);
	if (!next_turn(&fq, &turn))
		goto lost;
	before_departure(&fq, sch, &turn);
	flow = flow_at(&fq, turn.flow);
	packet = head_of(&fq, flow);
	if (!packet)
		goto lost;
	skb = bpf_kptr_xchg(&packet->skb, 0);
	if (!skb)
		goto lost;
	pop_front(&fq, sch, turn.flow, flow, packet);
	sent(&fq, sch, &turn, packet->size);
	lane = lane_of(packet->stamp);
	count_sent(&fq.q, sch, skb, lane, packet->size, packet->segments,
		   sojourn(fq.block, packet->stamp, turn.now, false));
	if (parts.tested) {
		fq.q.in->released--;
		record(&fq, SL_EVENT_SENT, turn.now, 0, lane, packet);
	}
	return skb;
lost:
	fq.q.in->counters.lost++;
	sleep_until(sch, turn.now, turn.now);
	return 0;
}

static __always_inline void clear_block(struct fql_block *block)
{
	__builtin_memset(&block->root, 0, sizeof(block->root));
	block->ahead_first = FQL_NONE;
	block->ahead_last = FQL_NONE;
	block->fattest = FQL_NONE;
	block->younger = 0;
	__builtin_memset(&block->idle, 0, sizeof(block->idle));
	block->parts = 0;
	block->free_packet = FQL_NONE;
	block->fresh_packet = 1;
	block->free_flow = FQL_NONE;
	block->fresh_flow = FQL_BEFORE_FLOWS;
	block->flow_hand = FQL_BEFORE_FLOWS - 1;
	block->free_host = FQL_NONE;
	block->fresh_host = FQL_BEFORE_HOSTS;
	block->host_hand = FQL_BEFORE_HOSTS - 1;
	block->hosts = 0;
}

/* Frees all packets and forgets all flows and hosts; counters stay. */
static __noinline int empty_queue(const struct fq_lanes *fq)
{
	struct sl_instance *in = fq->q.in;
	u32 i;

	bpf_for(i, 1, fql_parts.slots) {
		struct fql_packet *packet;
		struct sk_buff *skb;

		if (i >= fq->block->fresh_packet)
			break;
		packet = packet_at(fq, i);
		if (!packet)
			break;
		skb = bpf_kptr_xchg(&packet->skb, 0);
		if (!skb)
			continue;
		in->counters.flushed++;
		bpf_kfree_skb(skb);
	}
	bpf_for(i, 0, fql_parts.bucket_mask + 1)
		*flow_bucket(fq, i) = FQL_NONE;
	bpf_for(i, 0, FQL_HOST_BUCKETS)
		*host_bucket(fq, i) = FQL_NONE;
	bpf_for(i, 1, FQL_BEFORE_FLOWS)
		reset_flow(flow_at(fq, i), 0);
	bpf_for(i, FQL_SPILL_HOST, parts.common ? fq->block->fresh_host : 0) {
		struct fql_host *host = host_at(fq, i);

		common_ends(fq, host, host->flows);
	}
	reset_host(host_at(fq, FQL_SPILL_HOST), 0);
	clear_block(fq->block);
	for (i = 0; i < SL_MOST_LANES; i++) {
		in->lane[i].head = in->lane[i].tail;
		in->lane[i].bytes = 0;
		in->lane[i].segments = 0;
	}
	in->counters.flows_removed += in->flows;
	in->flows = 0;
	in->pacer.next_tx = 0;
	if (parts.common)
		*turn_at(fq->q.index) = 0;
	return 0;
}

SEC("struct_ops/reset")
void BPF_PROG(reset, struct Qdisc *sch)
{
	struct fq_lanes fq;

	if (open_block(sch, &fq))
		empty_queue(&fq);
}

SEC("struct_ops/destroy")
void BPF_PROG(destroy, struct Qdisc *sch)
{
	struct fq_lanes fq;

	if (!open_block(sch, &fq))
		return;
	empty_queue(&fq);
	fq.q.in->used = 0;
	sch->limit = 0;
}

SEC("struct_ops/init")
int BPF_PROG(init, struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	int error = take_place(sch, free_index(), options);
	struct fq_lanes fq;

	if (error)
		return error;
	if (open_block(sch, &fq))
		empty_queue(&fq);
	return 0;
}

/* At the egress of the qdisc's device. */
SEC("tc")
int shortlane_ecn(struct __sk_buff *frame)
{
	return mark_owed(frame);
}

/* The same where this machine translates addresses. */
SEC("tc")
int shortlane_ecn_nat(struct __sk_buff *frame)
{
	tell_client(frame);
	return mark_owed(frame);
}

/* The loader gives it the name that it is registered by. */
SEC(".struct_ops.link")
struct Qdisc_ops fq_lanes = {
	.enqueue = (void *)enqueue,
	.dequeue = (void *)dequeue,
	.init = (void *)init,
	.reset = (void *)reset,
	.destroy = (void *)destroy,
	.id = "shortlane",
};
