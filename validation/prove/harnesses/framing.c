/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a frame takes on the link: at least its bytes, the overhead and the least; whole cells of ATM
 * and no more than are needed; of PTM a byte for each 64 that are begun.
 *
 * Bounds: frames to 256 KiB, overhead -64 to 1024, least 1 to 4096
 */
#include "framing.h"

struct sl_config nondet_config(void);
u32 nondet_u32(void);

int main(void)
{
	struct sl_config config = nondet_config();
	u32 frame = nondet_u32();
	s64 bytes = (s64)frame + config.overhead;
	u64 got;

	__CPROVER_assume(frame <= 256 * 1024);
	__CPROVER_assume(config.overhead >= SL_TC_LEAST_OVERHEAD &&
			 config.overhead <= SL_TC_MOST_OVERHEAD);
	__CPROVER_assume(config.mpu >= 1 && config.mpu <= 4096);
	__CPROVER_assume(config.cells <= SL_PTM);
	got = frame_on_link(&config, frame);
	if (bytes < (s64)config.mpu)
		bytes = config.mpu;
	if (config.cells == SL_NO_CELLS)
		__CPROVER_assert(got == (u64)bytes, "the bytes, the overhead, the least");
	if (config.cells == SL_ATM) {
		__CPROVER_assert(got % 53 == 0, "whole cells");
		__CPROVER_assert(got / 53 * 48 >= (u64)bytes, "it fits");
		__CPROVER_assert(got / 53 * 48 < (u64)bytes + 48, "no cell too many");
	}
	if (config.cells == SL_PTM) {
		__CPROVER_assert((got - bytes) * 64 >= (u64)bytes, "a byte for each 64");
		__CPROVER_assert((got - bytes) * 64 < (u64)bytes + 64, "no byte too many");
	}
	return 0;
}
