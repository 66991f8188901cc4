/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What fq-lanes credits for idle time, from any state that its own steps keep: no factor, and so no
 * product, is too large for 64 bits; no more than 4.3 s is credited at once, and nothing where nothing
 * may be; a pace is that of a stretch of at least 4.2 ms.
 *
 * Bounds: a credit below 2^62; of what is credited the value at a pace of 2^30 only
 */
#include "kernel.h"

#include "fq_lanes/idle.h"
#include "queue.h"

struct fql_block nondet_block(void);

int main(void)
{
	struct fql_block block = nondet_block();
	struct fql_idle *idle = &block.idle, before;
	u64 now = nondet_u64(), time, stretch;
	u32 size = nondet_u32();

	__CPROVER_assume(idle->sent <= MOST_SENT && idle->pace <= MOST_PACE);
	__CPROVER_assume(idle->credit < 1ULL << 62);
	before = *idle;
	if (nondet_u8()) {
		time = minus(now, idle->since);
		if (time > MOST_IDLE)
			time = MOST_IDLE;
		idle_ends(&block, now);
		__CPROVER_assert(time <= 1ULL << 32 && before.pace < 1ULL << 31, "factors");
		if (without(FQL_IDLE) || parts.common)
			__CPROVER_assert(idle->credit == before.credit, "nothing here");
		else if (before.pace == 1 << 30)
			__CPROVER_assert(idle->credit - before.credit == time << 8,
					 "the time at its pace");
		__CPROVER_assert(!idle->sent, "a stretch ends");
		return 0;
	}
	if (nondet_u8()) {
		idle_sends(&block, size);
		__CPROVER_assert(idle->sent == before.sent + size || idle->sent == MOST_SENT,
				 "what was sent");
	} else {
		idle_asked(&block, now);
		stretch = minus(now, before.began);
		__CPROVER_assert(before.sent < 1ULL << 32, "34 bits are left of 64");
		if (!before.sent || stretch < 1 << STRETCH_BITS)
			__CPROVER_assert(idle->pace == before.pace, "no shorter stretch counts");
	}
	__CPROVER_assert(idle->sent <= MOST_SENT && idle->pace <= MOST_PACE, "what it keeps");
	__CPROVER_assert(idle->credit == before.credit, "credit only of idle time");
	return 0;
}
