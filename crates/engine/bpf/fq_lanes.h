/* SPDX-License-Identifier: GPL-2.0 */
/* What fq-lanes and its loader share beside shortlane.h. */
#ifndef SHORTLANE_FQ_LANES_H
#define SHORTLANE_FQ_LANES_H

#define FQL_NONE 0
#define FQL_NEVER (~0ULL)
/* Bytes of a turn: a full Ethernet frame. */
#define FQL_QUANTUM 1514
#define FQL_TIERS 4
/* The list of the new; that of tier `t` is `t + 1`. */
#define FQL_NEW 0
#define FQL_LAST FQL_TIERS
#define FQL_LISTS (FQL_TIERS + 1)
#define FQL_UNLISTED 0
/* Fractional bits of bytes in virtual time and in what is owed. */
#define FQL_BITS 8
/* Queues for flows that find no room. Like the host that they belong to they come first, behind
 * the entry of nobody. */
#define FQL_SPILLS 64
#define FQL_SPILL_HOST 1
#define FQL_BEFORE_FLOWS (1 + FQL_SPILLS)
#define FQL_BEFORE_HOSTS (1 + FQL_SPILL_HOST)
#define FQL_MOST_HOSTS 1024
/* Powers of two: of entries for hosts, of buckets, and of lists. */
#define FQL_HOSTS 2048
#define FQL_HOST_BUCKETS 1024
#define FQL_LIST_MASK 7

/* Of a second in which what leaves is counted: 2^30 ns. */
#define FQL_SECOND 30

/* Of CoDel: its square is below 2^63. */
#define FQL_MOST_INTERVAL 3000000000ULL

enum fql_host_of {
	FQL_BY_DESTINATION,
	FQL_BY_SOURCE,
	FQL_BY_NOBODY,
};

/* What is left out, to see what it is good for: in the order of the parameter's words. */
enum fql_without {
	FQL_NOTHING,
	FQL_AGES,
	FQL_NEW_LIST,
	FQL_PATIENCE,
	FQL_PART,
	FQL_FLOOR,
	FQL_HALF_LIFE,
	FQL_CLOCK,
	FQL_AHEAD,
	FQL_IDLE,
};

/* Whose packets the qdisc has, where this machine translates addresses. */
enum fql_nat {
	FQL_NO_NAT,
	FQL_LEAVES, /* what clients send */
	FQL_ARRIVES, /* what is sent to them */
};

/* Fixed when the object is loaded. */
struct fql_parts {
	__u32 without; /* enum fql_without */
	__u32 host_of; /* enum fql_host_of */
	__u32 flow_bound;
	__u32 host_bound;
	/* Powers of two, less one: entries of flows, those of nobody and of spill queues among them;
	 * buckets. */
	__u32 flow_mask;
	__u32 bucket_mask;
	__u32 slots; /* packets, and one of nobody */
	__u32 ecn; /* whether marks take the place of drops */
	__u32 seen; /* flows that are told of: the bound, and what comes before */
	/* For the loader: bytes of a qdisc's block but for its flows, and of a flow. */
	__u32 block_size;
	__u32 flow_size;
};

#endif
