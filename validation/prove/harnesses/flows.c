/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The flow table: a flow is found if and only if it was taken up and not removed, by an entry that is
 * its own, and the table knows how many it has.
 *
 * Bounds: any 4 operations on 3 flows, of which 2 share a chain
 * Options: --unwind 17
 */
#include "flows.h"
#include "queue.h"

#define FLOWS 3
#define STEPS 4

static u32 buckets[4];
static struct sl_flow flows[FLOWS];

void *bpf_map_lookup_elem(const void *map, const void *key)
{
	u32 at = *(const u32 *)key;

	if (map == &sl_buckets)
		return at < 4 ? &buckets[at] : 0;
	return at < FLOWS ? &flows[at] : 0;
}

int main(void)
{
	static const u64 ids[FLOWS] = { 1, 1025, 2 };
	bool present[FLOWS] = {};
	u32 many = 0;

	instance.before_flows = ~0u;
	config.flow_bound = FLOWS;
	for (u32 step = 0; step < STEPS; step++) {
		u32 which = nondet_u32(), at, *bucket;
		struct sl_flow *flow;

		__CPROVER_assume(which < FLOWS);
		bucket = bucket_of(&queue, ids[which]);
		at = find_flow(&queue, &bucket, ids[which], &flow);
		__CPROVER_assert(!!at == present[which], "found if it is there");
		__CPROVER_assert(!at == !flow, "an index with each entry");
		if (at) {
			__CPROVER_assert(flow->id == ids[which], "the entry is its own");
			remove_flow(&queue, flow, at);
			many--;
		} else {
			at = add_flow(&queue, bucket, ids[which], &flow);
			__CPROVER_assert(at && flow, "there is room");
			many++;
		}
		present[which] = !present[which];
		__CPROVER_assert(instance.flows == many, "counted");
	}
	return 0;
}
