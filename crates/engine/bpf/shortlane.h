/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the qdisc and its loader share: the parts it is composed of, its configuration, what it
 * counts. The loader takes these types from the object file's own type information.
 *
 * Sizes are in bytes, times in nanoseconds of CLOCK_MONOTONIC, rates in bits per second, shares in
 * parts per billion.
 */
#ifndef SHORTLANE_H
#define SHORTLANE_H

#define SL_HIGH 0
#define SL_LOW 1
#define SL_LANES 2
/* Of any discipline; fq-lanes has the new, the young and the old. A power of two. */
#define SL_MOST_LANES 4
#define SL_LANE_MASK (SL_MOST_LANES - 1)
#define SL_BILLION 1000000000ULL
/* "Never" for times, "unlimited" for amounts. */
#define SL_UNLIMITED (~0ULL)

/* Whose packet is long? */
enum sl_accounting {
	SL_WHILE_QUEUED, /* flows with a packet queued (EFD) */
	SL_EVERY_FLOW, /* every flow (Run2C, SB) */
	SL_PER_PACKET, /* flows found by sampling packets (SIFT, X-Protect) */
	SL_PER_BYTE, /* flows found by sampling bytes (sample and hold, SB-SH) */
};

/* How do the lanes share the link? */
enum sl_service {
	SL_STRICT,
	SL_GUARANTEED, /* strict, with a least share for the long lane */
	SL_WEIGHTED, /* two-class self-clocked fair queueing */
	SL_COIN, /* weighted, by a coin at each packet */
};

/* Who is dropped when it is full? */
enum sl_buffer {
	SL_DROP_TAIL,
	SL_KNOCKOUT,
};

/* The lane of the packet that brought its flow into the table. */
enum sl_sampled_to {
	SL_TO_HIGH,
	SL_TO_LOW,
	SL_BY_RULE,
};

/* Fixed when the object is loaded: the verifier drops the code of parts that are not chosen. */
struct sl_parts {
	enum sl_accounting accounting;
	enum sl_service service;
	enum sl_buffer buffer;
	/* Qdiscs that this load can serve; each has ranges of its own in all maps. */
	__u32 instances;
	/* Whether these are the transmit queues of one device, with one rate. */
	__u32 common;
	/* Powers of two, less one: packets of a lane, chains of the flow table. */
	__u32 ring_mask;
	__u32 bucket_mask;
	/* Entries of a flow table. */
	__u32 flows;
	/* Keys of SipHash-1-3 for flows' fingerprints, and for hosts'. */
	__u64 key[2];
	__u64 host_key[2];
	/* Seeds of the generators for sampling and for the coin. */
	__u64 sampler_seed[4];
	__u64 coin_seed[4];
	/* Tests only: see struct sl_event. */
	__u32 tested;
	/* Tests only: take the way for unusual packets for all of them. */
	__u32 only_slow_parser;
};

/*
 * What can change while packets are queued. A qdisc has two of these; whoever changes it fills the
 * one that is not in use, then moves the generation on by one.
 */
struct sl_config {
	__u64 rate; /* 0: as fast as the device takes packets */
	__u64 burst; /* how far a late pacer may catch up */
	__u64 limit;
	__u64 high_limit; /* what of it the short lane may take */
	__u64 threshold; /* short iff what is looked at is below this */
	__u64 idle;
	__u64 sweep;
	__u64 draw; /* sampling: a draw below this (or, by bytes, above its power) is a hit */
	__u64 high_cap; /* rate that the short lane may take alone */
	__u64 coin; /* a draw below this serves the short lane */
	__u64 target; /* CoDel's; SL_UNLIMITED never drops */
	__u64 interval;
	__u32 weight; /* share of the short lane */
	__u32 low_share;
	__s32 overhead; /* of a packet on the link, beside its bytes */
	__u32 mpu; /* what it counts there at least; not 0 */
	__u32 flow_bound;
	__u8 limit_in_bytes;
	__u8 threshold_in_bytes;
	__u8 inclusive; /* the count that is looked at includes the arrival */
	__u8 always; /* sampling: every packet is a hit */
	__u8 count_sampled;
	__u8 sampled_to; /* enum sl_sampled_to */
	__u8 coin_always;
	__u8 origin; /* enum sl_origin */
	/* Of the options of `tc`: those that not every discipline has. */
	__u8 has_threshold;
	__u8 has_low_share;
	__u8 boundary_adds; /* `threshold` is the one that was written and this much more */
	__u8 cells; /* enum sl_cells */
	/* For `show`; the qdisc does not read these. */
	__u8 link_header; /* what of a packet's bytes the overhead does not count on */
	char overhead_text[24]; /* as it was given; empty if by `tc` */
	char spec[183];
};

enum sl_origin {
	SL_FROM_LOADER,
	SL_FROM_TC,
};

/* What packets are cut into on the link. */
enum sl_cells {
	SL_NO_CELLS,
	SL_ATM, /* 53 bytes for each 48 */
	SL_PTM, /* a byte for each 64 */
};

/* What `tc qdisc add ... shortlane_* [options]` sends as TCA_OPTIONS. */
struct sl_tc_options {
	__u32 version; /* SL_TC_VERSION */
	__u32 given; /* which of the rest: SL_TC_* */
	__u64 rate;
	__u64 limit;
	__u64 threshold; /* as written; the boundary is applied by the qdisc */
	__u64 burst;
	__s32 overhead;
	__u32 low_share;
	__u8 limit_in_bytes;
	__u8 threshold_in_bytes;
	__u8 reserved[6];
};

#define SL_TC_VERSION 1
#define SL_TC_LEAST_OVERHEAD (-64)
#define SL_TC_MOST_OVERHEAD 1024
#define SL_TC_MOST_LOW_SHARE 900000000u
#define SL_TC_RATE (1u << 0)
#define SL_TC_LIMIT (1u << 1)
#define SL_TC_THRESHOLD (1u << 2)
#define SL_TC_BURST (1u << 3)
#define SL_TC_OVERHEAD (1u << 4)
#define SL_TC_LOW_SHARE (1u << 5)
#define SL_TC_ALL ((1u << 6) - 1)

/* What the qdisc counts. Packets are as the kernel hands them over: a super-packet is one. Arrays are
 * by lane: the short one and the low one, or those of fq-lanes. */
struct sl_counters {
	__u64 enqueued[SL_MOST_LANES];
	__u64 sent[SL_MOST_LANES];
	__u64 sent_bytes[SL_MOST_LANES];
	__u64 full
		[SL_MOST_LANES]; /* arrivals dropped at a full queue, by the lane they were to join */
	__u64 pushed_out[SL_MOST_LANES]; /* queued packets dropped for an arrival */
	__u64 congested[SL_MOST_LANES]; /* by CoDel */
	__u64 marked; /* by the program in front of the qdisc */
	__u64 flushed; /* queued when the interface went down or lost its carrier */
	/* Entries of the table that were made, and that went. A packet that meets an empty queue needs
	 * none unless a second one comes while it is queued. */
	__u64 flows_created;
	__u64 flows_removed;
	__u64 flows_untracked; /* arrivals that found no room for their flow: served as short */
	__u64 demoted; /* flows that became long */
	__u64 fragments; /* this and the next of packets whose headers had to be read */
	__u64 not_ip; /* frames keyed by their MAC addresses; malformed IP is among them */
	__u64 super_packets;
	__u64 paced; /* times that the link's rate made a packet wait */
	__u64 lost; /* packets that a ring had no slot for; more than 0 is a bug */
	__u64 no_slots; /* arrivals dropped since a lane had no slot left, below a limit in bytes */
};

/* Sojourn times, by lane: bucket b counts those in [2^(b+9), 2^(b+10)) ns; the first and the last
 * one also what is below and above. */
#define SL_BUCKETS 28
struct sl_histogram {
	__u64 bucket[SL_MOST_LANES][SL_BUCKETS];
	__u64 sum[SL_MOST_LANES];
};

struct sl_lane {
	__u32 head; /* packets that ever left at the head, modulo 2^32 */
	__u32 tail; /* packets that ever joined, less those that left at the tail */
	__u64 bytes;
	__u64 segments;
};

/* When the link is free. */
struct sl_pacer {
	__u64 next_tx; /* when it is again */
	__u64 paced_at; /* the rate that this was reckoned at */
};

/* What a qdisc knows and counts. */
struct sl_instance {
	__u64 generation; /* of the configuration in use */
	__u64 attached_at;
	__u32 used;
	/* Where its ranges of the maps begin; for flows less one, since an index is one more. */
	__u32 first_slot;
	__u32 first_bucket;
	__u32 before_flows;
	__u32 slots; /* of a lane */
	__u32 ifindex;
	__u32 netns; /* inode of the network namespace */
	__u32 handle;
	struct sl_lane lane[SL_MOST_LANES];
	struct sl_pacer pacer;
	__u64 turn; /* how far this queue has come: see pacer.h */
	/* Service. */
	__u64 credit; /* bytes, in parts per billion */
	__u64 high_tag;
	__u64 low_tag;
	__u64 high_again;
	/* Sampling. */
	__u64 sampler[4];
	__u64 coin[4];
	__u64 last_miss;
	__u32 last_size;
	/* The flow table. */
	__u32 alone; /* the one packet in the queue has no entry yet: see accounting.h */
	__u32 flows;
	__u32 most_flows;
	__u32 free; /* first of the entries that were used and are free */
	__u32 fresh; /* entries from here on were never used */
	__u32 hand; /* where the search for idle entries goes on */
	__u32 sweeps;
	__u64 next_sweep;
	__u64 last_sweep;
	__u64 most_packets;
	struct sl_counters counters;
	/* Tests only. */
	__u64 arrivals;
	__u64 events;
	__u64 released;
};

/* A qdisc. */
struct sl_qdisc {
	struct sl_instance instance;
	__u64 generation; /* of the configuration that is wanted: its last bit names which */
	struct sl_config config[2];
	struct sl_histogram histogram;
};

/* Qdiscs that a load can serve at most. */
#define SL_INSTANCES 16

/* What the qdiscs of a device's transmit queues have in common: see pacer.h. */
struct sl_link {
	struct sl_pacer pacer;
	__u64 served; /* how far the queue had come that sent last */
	__u64 turn[SL_INSTANCES]; /* how far each has come; 0 while it is empty */
};

/* To be changed whenever anything in sl_shared is: a qdisc may outlive the program that loaded it. */
#define SL_LAYOUT 6

/* What a load shares with whoever looks at it. */
struct sl_shared {
	__u64 layout; /* SL_LAYOUT: which version of this header it is laid out by */
	struct sl_config template; /* what a new qdisc starts with */
	__u64 instances; /* as in struct sl_parts */
	struct sl_link link;
	struct sl_qdisc qdisc[SL_INSTANCES];
};

/* An entry of the flow table. Indices are one more than the place they name; 0 is none. */
struct sl_flow {
	__u64 id;
	__u32 next;
	__u32 prev;
	__u32 count; /* in the threshold's unit */
	__u32 queued; /* packets, and SL_DEMOTED_FLAG */
	__u32 mark; /* the short lane as it stood when the flow was demoted */
	__u32 last_seen; /* in steps of 2^20 ns */
	__u32 emptied; /* sweeps there had been when its last packet left */
	__u32 padding;
};

#define SL_DEMOTED_FLAG (1u << 31)

/*
 * Tests only (sl_parts.tested): what happened, one record each, in order, for the comparison with
 * the same discipline outside the kernel; and how many packets may leave once arrival n is in.
 */
enum sl_event_kind {
	SL_EVENT_ARRIVED,
	SL_EVENT_SENT,
	SL_EVENT_FULL,
	SL_EVENT_PUSHED_OUT,
	SL_EVENT_CONGESTED, /* dropped by CoDel */
};

struct sl_event {
	__u64 now;
	__u64 flow; /* fingerprint */
	__u32 kind;
	__u32 packet; /* number of its arrival */
	__u32 lane;
	__u32 size;
	__u32 segments;
	__u32 flows; /* entries in the table after it */
};

#define SL_TEST_EVENTS 4096

#endif
