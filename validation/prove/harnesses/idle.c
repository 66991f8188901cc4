/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What fq-lanes credits for idle time, from any state that its own steps keep: no factor, and so no
 * product, is too large for 64 bits; no more than 4.3 s is credited at once, what the link needed
 * for its last packet is not, and nothing where nothing may be; a pace is that of a stretch of at
 * least 8.4 ms which began when the queue had been busy for a while.
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
	u64 now = nondet_u64(), time, stretch, could;
	u32 size = nondet_u32();

	__CPROVER_assume(idle->sent <= MOST_SENT && idle->pace <= MOST_PACE);
	__CPROVER_assume(idle->credit < 1ULL << 62 && now < 1ULL << 63);
	before = *idle;
	if (nondet_u8()) {
		time = minus(now, idle->taken);
		if (time > MOST_IDLE)
			time = MOST_IDLE;
		idle_ends(&block, now);
		__CPROVER_assert(time <= 1ULL << 32 && before.pace < 1ULL << 31, "factors");
		could = time << 7;
		if (without(FQL_IDLE) || parts.common)
			__CPROVER_assert(idle->credit == before.credit, "nothing here");
		else if (before.pace == 1 << 30)
			__CPROVER_assert(idle->credit - before.credit ==
						 minus(could, (u64)before.last << FQL_BITS),
					 "the time at its pace");
		__CPROVER_assert(!idle->began && idle->settled > now, "a stretch ends");
		return 0;
	}
	idle_takes(&block, size, now);
	stretch = minus(now, before.began);
	__CPROVER_assert(before.sent < 1ULL << 32, "33 bits are left of 64");
	if (now < before.settled || !before.began || stretch < 1 << STRETCH_BITS)
		__CPROVER_assert(idle->pace == before.pace, "no shorter stretch counts");
	if (now < before.settled)
		__CPROVER_assert(idle->began == before.began && idle->sent == before.sent,
				 "nothing is measured yet");
	__CPROVER_assert(idle->taken == now && idle->last == size, "the last packet");
	__CPROVER_assert(idle->sent <= MOST_SENT && idle->pace <= MOST_PACE, "what it keeps");
	__CPROVER_assert(idle->credit == before.credit, "credit only of idle time");
	return 0;
}
