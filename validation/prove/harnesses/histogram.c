/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A sojourn time is counted once, in the bucket that shortlane.h names, and in no memory beside it.
 *
 * Bounds: none: every time, every lane
 */
#include "qdisc.h"
#include "queue.h"

int main(void)
{
	u64 time = nondet_u64();
	u32 lane = nondet_u32(), i = nondet_u32(), log;

	__CPROVER_assume(lane < SL_MOST_LANES && i < SL_BUCKETS);
	observe_sojourn(&queue, lane, time);
	if (histogram.bucket[lane][i]) {
		if (i > 0)
			__CPROVER_assert(time >= 1ULL << (i + 9), "not below its bucket");
		if (i < SL_BUCKETS - 1)
			__CPROVER_assert(time < 1ULL << (i + 10), "not above its bucket");
	}
	if ((i == 0 || time >= 1ULL << (i + 9)) && (i == SL_BUCKETS - 1 || time < 1ULL << (i + 10)))
		__CPROVER_assert(histogram.bucket[lane][i] == 1, "counted once in its bucket");
	log = log2_of(time);
	if (time)
		__CPROVER_assert(time >> log == 1, "the highest bit");
	__CPROVER_assert(histogram.sum[lane] == time, "the sum has it");
	return 0;
}
