/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A packet is let into a buffer that drops at the tail only if it then holds no more than its limit
 * and has a slot for it; into a short lane with packets only up to that lane's part. Nothing that
 * is queued is touched.
 *
 * Bounds: none on states; lanes below 2^62 bytes and segments
 */
#include "lanes.h"
#include "queue.h"

struct sl_slot nondet_slot(void);

int main(void)
{
	struct sl_slot packet = nondet_slot();
	struct bpf_sk_buff_ptr to_free;
	u32 lane = nondet_u32();
	u64 high, low, cost;

	any_queue();
	__CPROVER_assume(lane < SL_LANES && config.high_limit <= config.limit);
	high = config.limit_in_bytes ? instance.lane[SL_HIGH].bytes
				     : instance.lane[SL_HIGH].segments;
	low = config.limit_in_bytes ? instance.lane[SL_LOW].bytes : instance.lane[SL_LOW].segments;
	cost = config.limit_in_bytes ? packet.size : packet.segments;
	__CPROVER_assume(high < 1ULL << 62 && low < 1ULL << 62);
	if (make_room_for(&queue, &sch, lane, &packet, 0, &to_free)) {
		__CPROVER_assert(high + low + cost <= config.limit, "within the limit");
		__CPROVER_assert(instance.lane[lane].tail - instance.lane[lane].head <=
					 parts.ring_mask,
				 "there is a slot");
		if (lane == SL_HIGH && high)
			__CPROVER_assert(high + cost <= config.high_limit, "the short lane's part");
	} else if (instance.lane[lane].tail - instance.lane[lane].head <= parts.ring_mask) {
		__CPROVER_assert(high + low + cost > config.limit ||
					 (lane == SL_HIGH && high &&
					  high + cost > config.high_limit),
				 "what fits is not refused");
	}
	return 0;
}
