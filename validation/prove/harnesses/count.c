/* SPDX-License-Identifier: GPL-2.0 */
/*
 * EFD's count: a flow is short as long as it is below its threshold, never short again while it has
 * packets queued, one more packet of it is queued, and its count neither wraps nor grows once it is
 * long.
 *
 * Bounds: none on states; fewer than 2^31 - 1 packets queued
 */
#include "accounting.h"
#include "queue.h"

struct sl_slot nondet_slot(void);
struct sl_flow nondet_flow(void);

int main(void)
{
	struct sl_slot packet = nondet_slot();
	struct sl_flow flow = nondet_flow(), before = flow;
	u64 seen, cost;
	u32 lane;

	any_queue();
	__CPROVER_assume(queued_packets(&flow) < SL_DEMOTED_FLAG - 1);
	cost = config.threshold_in_bytes ? packet.size : packet.segments;
	seen = (u64)flow.count + (config.inclusive ? cost : 0);
	lane = classify(&queue, &flow, &packet);
	__CPROVER_assert(queued_packets(&flow) == queued_packets(&before) + 1,
			 "one more is queued");
	__CPROVER_assert(is_demoted(&flow) == (lane == SL_LOW), "the lane is the flow's");
	if (is_demoted(&before)) {
		__CPROVER_assert(lane == SL_LOW, "long stays long");
		__CPROVER_assert(flow.mark == before.mark, "demoted once");
	} else {
		__CPROVER_assert((lane == SL_HIGH) == (seen < config.threshold),
				 "short below the threshold");
	}
	if (lane == SL_HIGH)
		__CPROVER_assert(flow.count >= before.count &&
					 (flow.count == before.count + cost || flow.count == ~0u),
				 "counted, without wrapping");
	else
		__CPROVER_assert(flow.count == before.count, "a long flow is not counted");
	return 0;
}
