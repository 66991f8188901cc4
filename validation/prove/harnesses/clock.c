/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fq-lanes' stamps: the lane comes back; the real wait is exact up to 18 minutes, over the wrap of its
 * bits; by the clock of the oldest it is never longer than the real one, and shorter by what the clock
 * stood, to 2^16 ns, however that wraps.
 *
 * Bounds: waits below 2^40 ns, a clock that stood for less than 2^37 ns meanwhile
 */
#include "kernel.h"

#include "fq_lanes/clock.h"
#include "queue.h"

struct fql_block nondet_block(void);

int main(void)
{
	struct fql_block block = nondet_block();
	u64 then = nondet_u64(), wait = nondet_u64(), stood = nondet_u64(), lane = nondet_u64(),
	    stamp;
	u64 real, oldest, rounded;

	__CPROVER_assume(then < 1ULL << 62 && wait < 1ULL << REAL_BITS && lane <= SL_LANE_MASK);
	__CPROVER_assume(stood <= wait && stood < 1ULL << 37 && block.stood < 1ULL << 62);
	stamp = stamp_of(&block, then, lane);
	rounded = block.stood;
	block.stood += stood;
	rounded = (block.stood >> COARSE << COARSE) - (rounded >> COARSE << COARSE);
	real = sojourn(&block, stamp, then + wait, false);
	oldest = sojourn(&block, stamp, then + wait, true);
	__CPROVER_assert(lane_of(stamp) == lane, "the lane");
	__CPROVER_assert(real == wait, "the real wait");
	__CPROVER_assert(oldest <= wait, "not longer by the clock that stands");
	__CPROVER_assert(oldest == (wait > rounded ? wait - rounded : 0),
			 "shorter by what it stood");
	return 0;
}
