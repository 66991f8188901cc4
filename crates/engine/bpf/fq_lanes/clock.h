/* SPDX-License-Identifier: GPL-2.0 */
/* What a packet is stamped with when it arrives: the lane of its flow, and the time by two clocks. */
#ifndef SHORTLANE_FQ_LANES_CLOCK_H
#define SHORTLANE_FQ_LANES_CLOCK_H

#include "rules.h"

/* From the lowest bits on real time, in ns, which wraps after 18 minutes; the time that the clock of
 * the oldest stood, in units of 2^16 ns, which wraps after 4 1/2; the lane. */
#define REAL_BITS 40
#define STOOD_BITS 22
#define REAL_MASK ((1ULL << REAL_BITS) - 1)
#define STOOD_MASK ((1ULL << STOOD_BITS) - 1)
#define COARSE 16

/* Lists as lanes: new, young (every tier but the last), old. */
static __always_inline u32 lane_of_list(u32 list)
{
	/* Two bits for each list: a table takes no branch. */
	return 0x254 >> (2 * (list & 7)) & 3;
}

static __always_inline u32 lane_of(u64 stamp)
{
	return within(stamp >> (REAL_BITS + STOOD_BITS), SL_LANE_MASK);
}

static __always_inline u64 stamp_of(const struct fql_block *block, u64 now, u64 lane)
{
	u64 stood = block->stood >> COARSE & STOOD_MASK;

	return (now & REAL_MASK) | stood << REAL_BITS | lane << (REAL_BITS + STOOD_BITS);
}

/* How long a packet has waited, by the clock of the oldest or by the real one. */
static __always_inline u64 sojourn(const struct fql_block *block, u64 stamp, u64 now, bool oldest)
{
	u64 waited = (now - stamp) & REAL_MASK, stood;

	if (!oldest)
		return waited;
	stood = ((block->stood >> COARSE) - (stamp >> REAL_BITS)) & STOOD_MASK;
	return minus(waited, stood << COARSE);
}

/* The link asks for a packet. */
static __always_inline void clock_asked(struct fql_block *block, u64 now)
{
	if (block->younger)
		block->stood += minus(now, block->last);
	block->last = now;
	block->younger = 0;
}

/* A packet is sent from now on. */
static __always_inline void clock_sends(struct fql_block *block, bool oldest)
{
	block->younger = !without(FQL_CLOCK) && !oldest;
}

#endif
