/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory of fq-lanes: hosts and flows in one block for each qdisc, packets in an array.
 *
 * Everything refers to everything by index; 0 is none. The loader sets the size of a block and the
 * number of blocks and packets. A qdisc's lock protects what is its own.
 */
#ifndef SHORTLANE_FQ_LANES_MEMORY_H
#define SHORTLANE_FQ_LANES_MEMORY_H

#include "../fq_lanes.h"
#include "../qdisc.h"

/* What a stage knows of a member: a host, or a flow. */
struct fql_member {
	u32 age; /* bytes that it was served in excess of its fair share, as of `served` */
	s32 deficit; /* bytes that it may still send in its turn */
	u64 virtual_served; /* the stage's virtual time at `served`, and the credit for idle time */
	u64 served; /* when it was served last */
	u32 next; /* the next member of the same list */
	u32 list; /* FQL_UNLISTED, or one more than that of the list */
};

struct fql_list {
	u32 first;
	u32 last;
	u32 members;
	u32 padding;
	s64 owed; /* bytes in units of 2^-FQL_BITS; below 0 after a packet larger than what was owed */
};

/* The lists of a stage, and what each is owed. */
struct fql_stage {
	struct fql_list lists[FQL_LISTS];
	u32 listed; /* members in a list */
	u32 occupied; /* a bit for each list with a member */
	u64 virtual_time; /* bytes that one more member would have been served */
};

/* The flow with most bytes, as far as arrivals tell. */
struct fql_fattest {
	u64 bytes;
	u32 index;
	u32 padding;
};

/* What a host sent ahead of its turn. */
struct fql_ahead {
	u64 bytes; /* less its fair share of the time since, as of `reading` */
	u64 reading; /* the virtual time of hosts */
	u32 next; /* the next host in the line of those with new flows */
	u32 waits; /* whether it stands in that line */
};

struct fql_host {
	struct fql_member member;
	struct fql_stage stage; /* its flows */
	struct fql_fattest fattest;
	struct fql_ahead ahead;
	u64 bytes;
	u64 key; /* 0 if there is none here */
	u32 packets;
	u32 segments;
	u32 chain; /* the next host of the same bucket; of a free one, the next free one */
	/* Only if it may have flows in other queues: see common.h. */
	u32 part; /* of its share of the link, that this queue gives it while it is backlogged */
	u32 flows; /* that are backlogged */
	u32 padding;
};

/* CoDel's state for one queue. */
struct fql_control {
	u64 first_above; /* when packets will have been above target for an interval; or FQL_NEVER */
	u64 drop_next;
	u32 count;
	u32 last_count;
};

/* A flow, or a spill queue. */
struct fql_flow {
	struct fql_member member;
	u64 id; /* fingerprint; 0 if there is none here */
	u64 bytes;
	struct fql_control control;
	u32 dropping;
	u32 head; /* packets */
	u32 tail;
	u32 host; /* whose it is while it is backlogged or listed, and whose it was before */
	u32 host_id; /* fingerprint of its host */
	u32 chain; /* the next flow of the same bucket; of a free one, the next free one */
	u32 bucket; /* of no flow: the first one of the bucket of this number */
	u32 padding;
};

/* A queued packet. */
struct fql_packet {
	struct sk_buff __kptr *skb;
	u64 stamp; /* see clock.h */
	u32 next; /* towards the tail; in a free one, the next free one */
	u32 previous; /* the tail that there was when it came */
	u32 size;
	u32 segments;
	u32 number; /* tests only: of its arrival */
	u32 padding;
};

/* The packet that has just come. Here, not on the stack, where the verifier would follow each value
 * that there can be. */
struct fql_arrival {
	u64 now;
	u64 id; /* its flow's fingerprint */
	u32 flow; /* and place */
	u32 kind; /* as in struct parsed */
	u32 ends_at;
	u32 crowded; /* whether its flow's chain in the table is too long */
	u32 survived;
	u32 padding;
};

/* What the link could have sent while nothing was queued: see idle.h. */
struct fql_idle {
	u64 taken; /* when the link took its last packet */
	u64 settled; /* until when nothing is measured */
	u64 began; /* when the present stretch did; 0 if there is none */
	u64 sent; /* bytes in that */
	u64 pace; /* bytes in 2^STRETCH_BITS ns of the last stretch, in units of 2^-FQL_BITS */
	u64 credit; /* bytes that are credited, in all, in the same units */
	u32 last; /* bytes of the last packet */
	u32 padding;
};

/* All of a qdisc but its packets. */
struct fql_block {
	struct fql_stage root; /* the hosts */
	u32 ahead_first; /* the line of hosts with new flows */
	u32 ahead_last;
	u32 fattest; /* the host that has most of what the limit counts, as far as arrivals tell */
	u32 hosts;
	/* Clock. */
	u64 last; /* when the link was last asked for a packet */
	u64 stood; /* for how long the clock of the oldest stood, in all */
	struct fql_idle idle;
	u32 younger; /* whether younger packets are being sent since `last` */
	u32 parts; /* of all hosts */
	/* Entries that were used and are free, entries that were never used, and where the search for
	 * room goes on. */
	u32 free_packet;
	u32 fresh_packet;
	u32 free_flow;
	u32 fresh_flow;
	u32 flow_hand;
	u32 free_host;
	u32 fresh_host;
	u32 host_hand;
	struct fql_arrival arrival;
	u32 host_buckets[FQL_HOST_BUCKETS];
	struct fql_host host[FQL_HOSTS];
	struct fql_flow flow[];
};

const volatile struct fql_parts fql_parts = {
	.flow_mask = 2047,
	.bucket_mask = 1023,
	.slots = 1024,
	.block_size = sizeof(struct fql_block),
	.flow_size = sizeof(struct fql_flow),
};

/* The loader says how large a block is: without types, which have one size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct fql_block) + 2048 * sizeof(struct fql_flow));
} fql_blocks SEC(".maps");

SL_ARRAY(fql_packets, struct fql_packet);

/* A qdisc at work. */
struct fq_lanes {
	struct queue q;
	struct fql_block *block;
};

static __always_inline struct fql_host *host_at(const struct fq_lanes *fq, u32 index)
{
	struct fql_host *host = &fq->block->host[within(index, FQL_HOSTS - 1)];

	hide(host);
	return host;
}

static __always_inline struct fql_flow *flow_at(const struct fq_lanes *fq, u32 index)
{
	struct fql_flow *flow = &fq->block->flow[within(index, fql_parts.flow_mask)];

	hide(flow);
	return flow;
}

/* The entry that bucket number `at` has its first flow in. */
static __always_inline u32 *flow_bucket(const struct fq_lanes *fq, u64 flow)
{
	return &flow_at(fq, flow & fql_parts.bucket_mask)->bucket;
}

static __always_inline u32 *host_bucket(const struct fq_lanes *fq, u64 key)
{
	return &fq->block->host_buckets[key & (FQL_HOST_BUCKETS - 1)];
}

static __always_inline struct fql_packet *packet_at(const struct fq_lanes *fq, u32 index)
{
	u32 at = fq->q.index * fql_parts.slots + index;

	return bpf_map_lookup_elem(&fql_packets, &at);
}

static __always_inline void record(const struct fq_lanes *fq, enum sl_event_kind kind, u64 now,
				   u64 flow, u32 lane, const struct fql_packet *packet)
{
	struct sl_event *event = parts.tested ? new_record(&fq->q, kind, now) : 0;

	if (!event)
		return;
	event->flow = flow;
	event->packet = packet->number;
	event->lane = lane;
	event->size = packet->size;
	event->segments = packet->segments;
}

#endif
