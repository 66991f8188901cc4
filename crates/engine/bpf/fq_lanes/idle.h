/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the link could have sent while nothing was queued: it adds to the fair share of everybody.
 *
 * The link's rate is measured while packets are queued. Of several queues of one device none knows
 * whether the link is idle: there nothing is credited.
 */
#ifndef SHORTLANE_FQ_LANES_IDLE_H
#define SHORTLANE_FQ_LANES_IDLE_H

#include "rules.h"

/* A stretch over which the rate is measured is at least 2^22 ns long, 4.2 ms. */
#define STRETCH_BITS 22
/* Of idle time more than 4.3 s does not count at once, and no rate above 16 Gbit/s. */
#define MOST_IDLE (1ULL << 32)
#define MOST_PACE ((1ULL << 31) - 1)
#define MOST_SENT 0xffffffffULL

/* The link asks for a packet, and there is one. */
static __always_inline void idle_asked(struct fql_block *block, u64 now)
{
	struct fql_idle *idle = &block->idle;
	u64 stretch = minus(now, idle->began), pace;

	idle->since = now;
	if (!idle->sent) {
		idle->began = now;
	} else if (stretch >> STRETCH_BITS) {
		pace = (idle->sent << (FQL_BITS + STRETCH_BITS)) / stretch;
		idle->pace = pace < MOST_PACE ? pace : MOST_PACE;
		idle->began = now;
		idle->sent = 0;
	}
}

/* A packet leaves. */
static __always_inline void idle_sends(struct fql_block *block, u32 size)
{
	u64 sent = block->idle.sent + size;

	block->idle.sent = sent < MOST_SENT ? sent : MOST_SENT;
}

/* A packet comes, and nothing is queued. */
static __always_inline void idle_ends(struct fql_block *block, u64 now)
{
	struct fql_idle *idle = &block->idle;
	u64 time = minus(now, idle->since);

	idle->sent = 0;
	if (without(FQL_IDLE) || parts.common)
		return;
	idle->credit += (time < MOST_IDLE ? time : MOST_IDLE) * idle->pace >> STRETCH_BITS;
}

#endif
