/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the program that marks packets and its loader share, and its rules: `sched`'s `marks.rs` has
 * the same, and a test holds the two to each other.
 *
 * Sizes are in bytes, times in nanoseconds of CLOCK_MONOTONIC. A cost is the time that a bucket takes
 * to drain a byte, in 2^-8 ns.
 */
#ifndef SHORTLANE_MARKS_H
#define SHORTLANE_MARKS_H

#define SL_MARKS_SHORT 0
#define SL_MARKS_LONG 1
#define SL_MARKS_CLASSES 2
/* Flows that are remembered, whether they are idle or not. */
#define SL_MARKS_FLOWS 32768

/* What can change while packets pass. A packet that comes in the middle of a change goes by a part of
 * either, which does no harm. */
struct sl_marks_config {
	__u64 flow_cost; /* of a flow's bucket, which drains at the allowance of a flow */
	__u64 class_cost; /* of the bucket of all short flows, which drains at their share */
	__u64 threshold; /* level at which a flow becomes long while short flows keep to their share */
	__u64 least; /* the same once their bucket is full */
	__u64 depth; /* of the bucket of all short flows; half of it is free */
	__u64 idle; /* a flow without a packet for this long starts afresh */
	__u64 priority[SL_MARKS_CLASSES]; /* of packets, by class; 0: as it is */
	__u64 test_now; /* tests only: what the clock says */
};

struct sl_marks_counters {
	__u64 packets[SL_MARKS_CLASSES];
	__u64 bytes[SL_MARKS_CLASSES];
	__u64 flows_created; /* entries of the table; those of flows that started afresh are not */
	__u64 flows_untracked; /* packets whose flow the table would not take: served as short */
	__u64 demoted;
	__u64 renewed; /* long flows that started afresh */
	__u64 fragments;
	__u64 not_ip;
	__u64 super_packets;
};

/* Long flows whose names are kept: more than are told, since each processor keeps free entries. */
#define SL_MARKS_NAMES 4096
/* Of a second in which a long flow is counted: 2^30 ns. */
#define SL_MARKS_SECOND 30

/* A flow. */
struct sl_marks_flow {
	__u64 until; /* when its bucket will be empty */
	__u64 last;
	__u64 since; /* when it became long; from then on bytes and packets are counted */
	__u64 bytes;
	__u32 packets;
	__u32 is_long;
	__u32 second; /* which one it was counted in last, as a long flow */
	__u32 in_second; /* bytes in that one, and in the one before */
	__u32 in_former;
	__u32 padding;
};

/* What changes with every packet. */
struct sl_marks_state {
	__u64 class_until; /* when the bucket of all short flows will be empty */
	struct sl_marks_counters counters;
};

/* Fixed when the object is loaded. */
struct sl_marks_parts {
	__u64 key[2]; /* of SipHash-1-3 for flows' fingerprints */
	__u32 ethernet; /* packets have an Ethernet header */
	__u32 tested; /* tests only: the clock is `test_now` */
};

#endif
