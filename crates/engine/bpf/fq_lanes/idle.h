/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the link could have sent while nothing was queued: everybody's fair share of that time.
 *
 * The link's rate is measured while packets are queued. Of several queues of one device none knows
 * whether the link is idle: there nothing is credited.
 */
#ifndef SHORTLANE_FQ_LANES_IDLE_H
#define SHORTLANE_FQ_LANES_IDLE_H

#include "rules.h"

/* A stretch over which the rate is measured is at least 2^23 ns long. It does not begin in the first
 * 2^24 ns after nothing was queued, when the shaper may catch up. */
#define STRETCH_BITS 23
#define SETTLING (1ULL << 24)
/* Of idle time more than 4.3 s does not count at once, and no rate above 8 Gbit/s. */
#define MOST_IDLE (1ULL << 32)
#define MOST_PACE ((1ULL << 31) - 1)
#define MOST_SENT 0xffffffffULL

/* The link takes a packet. */
static __always_inline void idle_takes(struct fql_block *block, u32 size, u64 now)
{
	struct fql_idle *idle = &block->idle;
	u64 stretch, pace;

	idle->taken = now;
	idle->last = size;
	if (now < idle->settled)
		return;
	stretch = minus(now, idle->began);
	if (!idle->began) {
		idle->began = now;
		idle->sent = 0;
	} else if (stretch >> STRETCH_BITS) {
		pace = (idle->sent << (FQL_BITS + STRETCH_BITS)) / stretch;
		idle->pace = pace < MOST_PACE ? pace : MOST_PACE;
		idle->began = now;
		idle->sent = 0;
	}
	idle->sent += size;
	if (idle->sent > MOST_SENT)
		idle->sent = MOST_SENT;
}

/* A packet comes, and nothing is queued. The link was idle once it had sent its last one. */
static __always_inline void idle_ends(struct fql_block *block, u64 now)
{
	struct fql_idle *idle = &block->idle;
	u64 time = minus(now, idle->taken), could;

	idle->settled = now + SETTLING;
	idle->began = 0;
	if (without(FQL_IDLE) || parts.common)
		return;
	could = (time < MOST_IDLE ? time : MOST_IDLE) * idle->pace >> STRETCH_BITS;
	idle->credit += minus(could, (u64)idle->last << FQL_BITS);
}

#endif
