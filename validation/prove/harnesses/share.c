/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The long lane's guaranteed share: its credit grows by its share of each packet sent while both
 * lanes are backlogged and falls by what it sends, its head is due once the credit covers it and
 * then only if the short lane may go first for its order's sake, and an empty lane has no credit.
 *
 * Bounds: none on states; packets to 255 bytes, credit below 2^60, a share of 5 %
 */
#include "service.h"
#include "queue.h"

static struct sl_slot head;
static struct sl_flow flow;
struct sl_slot nondet_slot(void);
struct sl_flow nondet_flow(void);

void *bpf_map_lookup_elem(const void *map, const void *key)
{
	return map == &sl_slots ? (void *)&head : map == &sl_flows ? (void *)&flow : 0;
}

int main(void)
{
	u32 size = nondet_u32(), lane = nondet_u32();
	bool both, due;
	u64 before, gained;

	any_queue();
	((struct sl_parts *)&parts)->service = SL_GUARANTEED;
	head = nondet_slot();
	flow = nondet_flow();
	__CPROVER_assume(size <= 255 && head.size <= 255 && lane < SL_LANES);
	__CPROVER_assume(instance.credit < 1ULL << 60);
	config.low_share = SL_BILLION / 20;
	__CPROVER_assume(instance.slots && !(instance.slots & (instance.slots - 1)));
	both = instance.lane[SL_HIGH].head != instance.lane[SL_HIGH].tail &&
	       instance.lane[SL_LOW].head != instance.lane[SL_LOW].tail;
	before = instance.credit;
	due = low_is_due(&queue);
	if (due)
		__CPROVER_assert(both && before >= (u64)(u64)head.size * SL_BILLION,
				 "due only if it is covered");
	else if (both && before >= (u64)head.size * SL_BILLION)
		__CPROVER_assert(head.flow && flow.queued & SL_DEMOTED_FLAG &&
					 flow.mark != instance.lane[SL_HIGH].head,
				 "held back for the order of a flow only");
	service_sent(&queue, lane, size, 0);
	gained = before + (u64)size * config.low_share;
	if (!both)
		__CPROVER_assert(!instance.credit, "no credit without a rival");
	else if (lane == SL_HIGH)
		__CPROVER_assert(instance.credit == gained, "its share of what others send");
	else if (gained >= (u64)size * SL_BILLION)
		__CPROVER_assert(instance.credit == gained - (u64)size * SL_BILLION,
				 "pays for what it sends");
	else
		__CPROVER_assert(!instance.credit, "never in debt");
	return 0;
}
