/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What every qdisc of ours has, whatever its discipline: its place in what the load shares, its
 * configuration, counters and a shaper of its own, since a BPF qdisc can have no parent that shapes.
 */
#ifndef SHORTLANE_QDISC_H
#define SHORTLANE_QDISC_H

#include "framing.h"

const volatile struct sl_parts parts = {
	.instances = 1,
	.ring_mask = 1023,
	.bucket_mask = 1023,
	.flows = 1024,
};

struct sl_shared sl_shared SEC(".data.shortlane") = { .layout = SL_LAYOUT };

#define SL_ARRAY(name, value_type)                \
	struct {                                  \
		__uint(type, BPF_MAP_TYPE_ARRAY); \
		__uint(max_entries, 1);           \
		__type(key, u32);                 \
		__type(value, value_type);        \
	} name SEC(".maps")

/* Tests only. */
SL_ARRAY(sl_release, u32);
SL_ARRAY(sl_log, struct sl_event);

/* A qdisc at work: where its things are. */
struct queue {
	struct sl_instance *in;
	struct sl_config *config;
	struct sl_histogram *histogram;
	u32 index;
	bool changed; /* the configuration is in force since this call */
};

static __always_inline struct sl_qdisc *qdisc_at(u32 index)
{
	return &sl_shared.qdisc[index & (SL_INSTANCES - 1)];
}

#include "pacer.h"

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
	q->changed = generation != q->in->generation;
	if (unlikely(q->changed)) {
		q->in->generation = generation;
		pace_at(q->in, q->config->rate, bpf_ktime_get_ns());
	}
	return true;
}

/* Tests only: the number of an arrival, with which some packets may leave. */
static __always_inline u32 number_arrival(const struct queue *q)
{
	u32 at = q->index * SL_TEST_EVENTS + (q->in->arrivals & (SL_TEST_EVENTS - 1));
	u32 *release = bpf_map_lookup_elem(&sl_release, &at);

	q->in->released = release ? *release : 0;
	return q->in->arrivals++;
}

/* Tests only: place for a record of what happens now. */
static __always_inline struct sl_event *new_record(const struct queue *q, enum sl_event_kind kind,
						   u64 now)
{
	u32 at = q->index * SL_TEST_EVENTS + (q->in->events++ & (SL_TEST_EVENTS - 1));
	struct sl_event *event = bpf_map_lookup_elem(&sl_log, &at);

	if (!event)
		return 0;
	event->now = now;
	event->kind = kind;
	event->flows = q->in->flows + q->in->alone;
	return event;
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

static __always_inline u64 in_unit_of_limit(const struct queue *q, u64 bytes, u64 segments)
{
	return q->config->limit_in_bytes ? bytes : segments;
}

/* What a lane takes of the limit. */
static __always_inline u64 used(const struct queue *q, u32 lane)
{
	return in_unit_of_limit(q, q->in->lane[lane].bytes, q->in->lane[lane].segments);
}

static __always_inline void qdisc_joined(struct Qdisc *sch, u32 size)
{
	sch->q.qlen++;
	sch->qstats.backlog += size;
}

static __always_inline void qdisc_left(struct Qdisc *sch, u32 size)
{
	sch->q.qlen--;
	sch->qstats.backlog -= size;
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
	q->histogram->bucket[lane][bucket]++;
	q->histogram->sum[lane] += time;
}

/* A packet of `lane` is sent, after so long in the queue. */
static __always_inline void count_sent(const struct queue *q, struct Qdisc *sch,
				       struct sk_buff *skb, u32 lane, u32 size, u32 segments,
				       u64 sojourn)
{
	bpf_qdisc_bstats_update(sch, skb);
	if (q->config->rate)
		occupy_link(q, on_link(q->config, skb, size, segments) * 8 * SL_BILLION /
				       q->config->rate);
	observe_sojourn(q, lane, sojourn);
	q->in->counters.sent[lane]++;
	q->in->counters.sent_bytes[lane] += size;
}

#endif
