/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The shaper lets nothing go before the link is free, asks to be called again no later than that,
 * and a late one catches up by the burst at most. That the time of each packet sent is added to
 * next_tx is not shown here: count_sent() multiplies by a reciprocal, which CBMC does not finish.
 *
 * Bounds: none: one call from any state at any time below 2^63 ns
 */
#include "qdisc.h"
#include "queue.h"

static u64 asked;

void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire, u64 delta_ns)
{
	asked = expire;
}

int main(void)
{
	u64 now = nondet_u64(), before;
	bool is_free;

	any_queue();
	__CPROVER_assume(now < 1ULL << 63 && config.rate);
	before = instance.pacer.next_tx;
	is_free = link_is_free(&queue, &sch, now);
	if (is_free) {
		__CPROVER_assert(before <= now, "not before the link is free");
		__CPROVER_assert(now - instance.pacer.next_tx <= config.burst,
				 "catches up by the burst at most");
		if (now - before > config.burst)
			__CPROVER_assert(instance.pacer.next_tx == now - config.burst,
					 "catches up by all of it");
		__CPROVER_assert(instance.pacer.next_tx >= before, "the link is not freed earlier");
		__CPROVER_assert(now - before > config.burst || instance.pacer.next_tx == before,
				 "what is owed is kept");
	} else {
		__CPROVER_assert(before > now, "waits for nothing else");
		__CPROVER_assert(instance.pacer.next_tx == before, "waiting costs nothing");
		__CPROVER_assert(asked > now && asked <= before, "called again, and in time");
		__CPROVER_assert(asked == before || asked == now + LONGEST_SLEEP,
				 "not sooner than need be");
	}
	return 0;
}
