// SPDX-License-Identifier: GPL-2.0
/*
 * Disciplines with a short and a long lane as a queueing discipline of the Linux kernel.
 *
 * Put together from the same three parts as outside the kernel: accounting (accounting.h), service
 * (service.h), buffer (lanes.h), and a shaper of its own, since a BPF qdisc can have no parent that
 * shapes. Packets and flows lie in arrays that belong to one qdisc and that its lock protects;
 * nothing is allocated.
 */
#include "framing.h"
#include "service.h"
#include "parse.h"

char LICENSE[] SEC("license") = "GPL";

/* The watchdog may be this late, so that it shares interrupts with others: never more than the
 * shaper can make up for. */
#define TIMER_SLACK 10000
/* The watchdog looks at least this often whether another configuration is in force. */
#define LONGEST_SLEEP 100000000

/* Takes over another configuration. */
static __always_inline void changed(const struct queue *q, u64 generation)
{
	q->in->generation = generation;
	if (q->in->paced_at != q->config->rate) {
		q->in->paced_at = q->config->rate;
		q->in->next_tx = 0;
	}
	q->in->next_sweep = 0;
	q->in->last_size = 0;
	q->in->last_miss = ~0ULL;
	service_changed(q);
}

static __always_inline struct sl_qdisc *qdisc_at(u32 index)
{
	return &sl_shared.qdisc[index & (SL_INSTANCES - 1)];
}

/*
 * A qdisc's number is kept in its limit, which a BPF qdisc has no other use for. A kernel may drop
 * packets of more senders at once than the limit says: the lowest number is far above that.
 */
#define FIRST_NUMBER (1u << 20)

/* Finds what belongs to a qdisc. */
static __always_inline bool open_queue(struct Qdisc *sch, struct queue *q)
{
	u32 index = sch->limit - FIRST_NUMBER;
	struct sl_qdisc *qdisc = qdisc_at(index);
	u64 generation = *(volatile u64 *)&qdisc->generation;

	if (index >= SL_INSTANCES)
		return false;
	q->index = index;
	q->in = &qdisc->instance;
	q->config = &qdisc->config[generation & 1];
	q->histogram = &qdisc->histogram;
	if (unlikely(generation != q->in->generation))
		changed(q, generation);
	return true;
}

/* From an untrusted source (a virtual machine, a raw socket) the number of segments is not known
 * before segmentation; as the kernel's own estimate of the bytes, this goes by the headers. */
static __noinline u32 estimate_segments(struct sk_buff *skb, u32 size, u32 type)
{
	void *transport = skb->head + skb->transport_header;
	u32 headers = skb->transport_header - (u32)(skb->data - skb->head);

	if (type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6)) /* the upper half byte of the offset */
		headers += (bpf_ntohs(VIEW(struct udphdr, transport + 12)->source) >> 12) * 4;
	else
		headers += 8;
	if (headers >= skb->len || !size)
		return 1;
	return (skb->len - headers + size - 1) / size;
}

static __always_inline u32 segments_of(struct sk_buff *skb)
{
	struct skb_shared_info *info = VIEW(struct skb_shared_info, skb->head + skb->end);
	u32 size = info->gso_size, segments = info->gso_segs;

	if (likely(!size))
		return 1;
	return segments ? segments : estimate_segments(skb, size, info->gso_type);
}

static __always_inline u32 size_of(struct sk_buff *skb)
{
	return ((struct qdisc_skb_cb *)skb->cb)->pkt_len;
}

static __always_inline void read_headers(const struct queue *q, struct Qdisc *sch,
					 struct sk_buff *skb, struct parsed *parsed)
{
	parse(skb, sch, parsed, &parts);
	if (unlikely(parsed->fragment))
		q->in->counters.fragments++;
	if (unlikely(parsed->not_ip))
		q->in->counters.not_ip++;
}

/* A second packet has come: which flow is the first one of? */
static __noinline int know_alone(const struct queue *q, struct Qdisc *sch)
{
	u32 lane = lane_is_empty(q, SL_HIGH) ? SL_LOW : SL_HIGH;
	struct sl_slot *slot = head_of(q, lane);
	struct parsed parsed;
	struct sk_buff *skb;

	if (!slot)
		return 0;
	skb = bpf_kptr_xchg(&slot->skb, 0);
	if (!skb)
		return 0;
	read_headers(q, sch, skb, &parsed);
	skb = bpf_kptr_xchg(&slot->skb, skb);
	if (skb)
		bpf_kfree_skb(skb);
	take_up_alone(q, parsed.flow, lane, slot);
	return 0;
}

SEC("struct_ops/enqueue")
int BPF_PROG(enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	struct sl_slot packet = {}, *slot;
	struct arrival arrival;
	struct parsed parsed = {};
	struct queue q;
	struct sk_buff *old;
	bool alone;
	u64 now;

	if (!open_queue(sch, &q))
		goto drop;
	now = bpf_ktime_get_ns();
	packet.size = size_of(skb);
	packet.segments = segments_of(skb);
	if (packet.segments > 1)
		q.in->counters.super_packets++;
	if (parts.tested) {
		u32 at = q.index * SL_TEST_EVENTS + (q.in->arrivals & (SL_TEST_EVENTS - 1));
		u32 *release;

		packet.packet = q.in->arrivals++;
		release = bpf_map_lookup_elem(&sl_release, &at);
		q.in->released = release ? *release : 0;
	}
	alone = meets_empty_queue(sch);
	if (!HAS_LIFETIME && q.in->alone)
		know_alone(&q, sch);
	if (!alone || parts.tested)
		read_headers(&q, sch, skb, &parsed);
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

static __always_inline u32 log2_of(u64 x)
{
	u32 log = 0;

	if (x >> 32) {
		x >>= 32;
		log = 32;
	}
	if (x >> 16) {
		x >>= 16;
		log += 16;
	}
	if (x >> 8) {
		x >>= 8;
		log += 8;
	}
	if (x >> 4) {
		x >>= 4;
		log += 4;
	}
	if (x >> 2) {
		x >>= 2;
		log += 2;
	}
	return log + (x >> 1);
}

static __always_inline void observe_sojourn(const struct queue *q, u32 lane, u64 time)
{
	u32 bucket = log2_of(time >> 9);

	if (bucket >= SL_BUCKETS)
		bucket = SL_BUCKETS - 1;
	q->histogram->bucket[lane & 1][bucket]++;
	q->histogram->sum[lane & 1] += time;
}

/* Asks to be called again at a time, or a while before it. */
static __always_inline void sleep_until(struct Qdisc *sch, u64 now, u64 time)
{
	u64 latest = now + LONGEST_SLEEP;

	bpf_qdisc_watchdog_schedule(sch, time < latest ? time : latest, TIMER_SLACK);
}

/* Whether the link is free; if not, asks to be called again when it is. */
static __always_inline bool link_is_free(const struct queue *q, struct Qdisc *sch, u64 now)
{
	u64 catch_up = q->config->burst;

	if (!q->config->rate)
		return true;
	if (now < q->in->next_tx) {
		sch->qstats.overlimits++;
		q->in->counters.paced++;
		sleep_until(sch, now, q->in->next_tx);
		return false;
	}
	if (now - q->in->next_tx > catch_up)
		q->in->next_tx = now > catch_up ? now - catch_up : 0;
	return true;
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

	if (!sch->q.qlen || !open_queue(sch, &q))
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
	bpf_qdisc_bstats_update(sch, skb);
	if (q.config->rate)
		q.in->next_tx += on_link(q.config, skb, size, slot->segments) * 8 * SL_BILLION /
				 q.config->rate;
	observe_sojourn(&q, lane, now - slot->enqueued_at);
	q.in->counters.sent[lane & 1]++;
	q.in->counters.sent_bytes[lane & 1] += size;
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
	in->next_tx = 0;
	in->high_again = 0;
	in->credit = 0;
}

SEC("struct_ops/reset")
void BPF_PROG(reset, struct Qdisc *sch)
{
	struct queue q;

	if (open_queue(sch, &q))
		empty_queue(&q);
}

SEC("struct_ops/destroy")
void BPF_PROG(destroy, struct Qdisc *sch)
{
	struct queue q;

	if (!open_queue(sch, &q))
		return;
	empty_queue(&q);
	q.in->used = 0;
	sch->limit = 0;
}

/* Whether what was given is within bounds, and is something that the discipline has. */
static __always_inline int check_options(const struct sl_config *config,
					 const struct sl_tc_options *options)
{
	u32 given = options->given;

	if (given & ~SL_TC_ALL)
		return -EINVAL;
	if ((given & SL_TC_THRESHOLD && !config->has_threshold) ||
	    (given & SL_TC_LOW_SHARE && !config->has_low_share))
		return -EOPNOTSUPP;
	if (given & SL_TC_RATE && !options->rate)
		return -EINVAL;
	if (given & SL_TC_LIMIT && !options->limit)
		return -EINVAL;
	if (given & SL_TC_LIMIT && !options->limit_in_bytes && options->limit > parts.ring_mask + 1)
		return -ENOSPC;
	if (given & SL_TC_THRESHOLD && !options->threshold_in_bytes != !config->threshold_in_bytes)
		return -EINVAL;
	if (given & SL_TC_OVERHEAD && (options->overhead < SL_TC_LEAST_OVERHEAD ||
				       options->overhead > SL_TC_MOST_OVERHEAD))
		return -EINVAL;
	if (given & SL_TC_LOW_SHARE && options->low_share > SL_TC_MOST_LOW_SHARE)
		return -EINVAL;
	return 0;
}

static __always_inline u64 part_of(u64 whole, u32 share)
{
	return whole / SL_BILLION * share + whole % SL_BILLION * share / SL_BILLION;
}

/* Applies what `tc` was given to the configuration that the load came with. */
static __always_inline int apply_options(struct sl_config *config, struct nlattr *attribute)
{
	struct sl_tc_options options;
	int error;

	if (attribute->nla_len != sizeof(struct nlattr) + sizeof(options) ||
	    bpf_probe_read_kernel(&options, sizeof(options), (void *)attribute + 4) ||
	    options.version != SL_TC_VERSION)
		return -EINVAL;
	error = check_options(config, &options);
	if (error)
		return error;
	if (options.given & SL_TC_RATE)
		config->rate = options.rate;
	if (options.given & SL_TC_LIMIT) {
		config->limit = options.limit;
		config->limit_in_bytes = options.limit_in_bytes;
	}
	if (options.given & SL_TC_THRESHOLD) {
		config->threshold = options.threshold + config->boundary_adds;
		if (config->threshold < options.threshold)
			config->threshold = SL_UNLIMITED;
	}
	if (options.given & SL_TC_BURST)
		config->burst = options.burst;
	if (options.given & SL_TC_OVERHEAD) {
		config->overhead = options.overhead;
		config->overhead_text[0] = 0;
	}
	if (options.given & SL_TC_LOW_SHARE)
		config->low_share = options.low_share;
	config->high_limit = config->limit - part_of(config->limit, config->low_share);
	return 0;
}

/* The first qdisc that nobody uses; RTNL keeps others from looking at the same time. */
static __always_inline u32 free_index(void)
{
	u32 i;

	for (i = 0; i < SL_INSTANCES; i++) {
		if (i >= parts.instances || !sl_shared.qdisc[i].instance.used)
			break;
	}
	return i;
}

static __always_inline void clear_counters(struct sl_qdisc *qdisc)
{
	struct sl_instance *in = &qdisc->instance;

	__builtin_memset(&in->counters, 0, sizeof(in->counters));
	__builtin_memset(&qdisc->histogram, 0, sizeof(qdisc->histogram));
	in->most_flows = 0;
	in->most_packets = 0;
}

SEC("struct_ops/init")
int BPF_PROG(init, struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct net_device *dev = sch->dev_queue->dev;
	u32 index = free_index();
	struct sl_qdisc *qdisc = qdisc_at(index);
	struct sl_instance *in = &qdisc->instance;
	struct sl_config *config = &qdisc->config[0];

	if (index >= parts.instances)
		return -ENOSPC;
	__builtin_memcpy(config, &sl_shared.template, sizeof(*config));
	qdisc->generation = 0;
	if (options) {
		int error = apply_options(config, options);

		if (error)
			return error;
		config->origin = SL_FROM_TC;
	}
	/* As children of mq there would be several, each with the whole rate. */
	if (config->rate && sch->parent != TC_H_ROOT)
		return -EOPNOTSUPP;
	clear_counters(qdisc);
	in->generation = 0;
	in->slots = parts.ring_mask + 1;
	in->first_slot = index * SL_LANES * (parts.ring_mask + 1);
	in->first_bucket = index * (parts.bucket_mask + 1);
	in->before_flows = index * parts.flows - 1;
	in->next_tx = 0;
	in->paced_at = config->rate;
	in->last_size = 0;
	in->last_miss = ~0ULL;
	for (int i = 0; i < 4; i++) {
		in->sampler[i] = parts.sampler_seed[i];
		in->coin[i] = parts.coin_seed[i];
	}
	in->attached_at = bpf_ktime_get_ns();
	in->ifindex = dev->ifindex;
	in->netns = dev->nd_net.net->ns.inum;
	in->handle = sch->handle;
	in->used = 1;
	sch->limit = FIRST_NUMBER + index;
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
