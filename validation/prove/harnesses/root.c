/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CoDel's control law takes the square root rounded down; the square of the longest interval fits.
 *
 * Bounds: squares below 2^20
 * Options: --unwind 33
 */
#include "kernel.h"

#include "fq_lanes/codel.h"
#include "queue.h"

int main(void)
{
	u64 square = nondet_u64(), root;

	__CPROVER_assume(square < 1ULL << 20);
	root = square_root(square);
	__CPROVER_assert(root * root <= square, "not too great");
	__CPROVER_assert((root + 1) * (root + 1) > square, "not too small");
	__CPROVER_assert(FQL_MOST_INTERVAL * FQL_MOST_INTERVAL < 1ULL << 63,
			 "the highest interval's");
	return 0;
}
