/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The shaper lets nothing go before the link is free, asks to be called again no later than that,
 * and a late one catches up by the burst at most. That the time of each packet sent is added to
 * next_tx is not shown here: count_sent() multiplies by a reciprocal, which CBMC does not finish.
 * Idle time gives nothing. Nor does another rate: the rest of a transmission goes on at it.
 *
 * Bounds: one call from any state before 2^63 ns; another rate: 0.3 instead of 1 Mbit/s, 512 ns left
 */
#include "qdisc.h"
#include "queue.h"

static u64 asked;

void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire, u64 delta_ns)
{
	asked = expire;
}

static void another_rate(void)
{
	u64 now = nondet_u64(), rate = 300000, before, left, paced_at = 1000000;

	any_queue();
	before = instance.pacer.next_tx;
	instance.pacer.paced_at = paced_at;
	__CPROVER_assume(now < 1ULL << 62 && before <= now + (1 << 9));
	pace_at(&instance, rate, now);
	__CPROVER_assert(instance.pacer.paced_at == rate, "the rate is in force");
	if (before <= now) {
		__CPROVER_assert(instance.pacer.next_tx == before, "nothing is given");
		return;
	}
	__CPROVER_assert(instance.pacer.next_tx >= now, "no more than the rest is given");
	left = instance.pacer.next_tx - now;
	__CPROVER_assert(left * rate <= (before - now) * paced_at &&
				 (left + 1) * rate > (before - now) * paced_at,
			 "as many bits as were left");
}

static void wakes(void)
{
	u64 now = nondet_u64(), before;

	any_queue();
	__CPROVER_assume(config.rate);
	before = instance.pacer.next_tx;
	link_wakes(&queue, now);
	__CPROVER_assert(instance.pacer.next_tx == (before < now ? now : before),
			 "idle time is not made up for, and what is on the link stays there");
}

static void asks(void)
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
}

int main(void)
{
	switch (nondet_u32()) {
	case 0:
		another_rate();
		break;
	case 1:
		wakes();
		break;
	default:
		asks();
	}
	return 0;
}
