/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The pacer that the transmit queues of a device have in common: none sends before the link is free,
 * and there always is one that comes as soon as it is: a queue waits for others that have packets
 * only, and for a moment only. What a queue missed it makes up for within a bound.
 *
 * Bounds: 3 queues; one call from any state at any time below 2^63 ns, with turns below 2^62
 * Options: --unwind 17
 */
#include "qdisc.h"
#include "queue.h"

#define QUEUES 3

static u64 asked;

void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire, u64 delta_ns)
{
	asked = expire;
}

struct sl_link nondet_link(void);

static void any_link(void)
{
	struct sl_parts *fixed = (struct sl_parts *)&parts;

	any_queue();
	fixed->common = 1;
	fixed->instances = QUEUES;
	sl_shared.link = nondet_link();
	for (u32 i = 0; i < SL_INSTANCES; i++)
		__CPROVER_assume(sl_shared.link.turn[i] < 1ULL << 62);
	/* They do not differ but in what is said of each. */
	queue.index = 1;
	__CPROVER_assume(sl_shared.link.served < 1ULL << 62 && instance.turn < 1ULL << 62);
}

/* The one that has come least far of those with packets. */
static bool is_least(u32 index)
{
	for (u32 i = 0; i < QUEUES; i++) {
		if (sl_shared.link.turn[i] && sl_shared.link.turn[i] < sl_shared.link.turn[index])
			return false;
	}
	return sl_shared.link.turn[index];
}

static void asks(void)
{
	u64 now = nondet_u64(), before;
	u64 *next_tx = &sl_shared.link.pacer.next_tx;

	any_link();
	__CPROVER_assume(now < 1ULL << 63 && config.rate && config.burst < 1ULL << 62);
	__CPROVER_assume(*next_tx < 1ULL << 62);
	before = *next_tx;
	if (link_is_free(&queue, &sch, now)) {
		__CPROVER_assert(before <= now, "not before the link is free");
		__CPROVER_assert(now - *next_tx <= config.burst, "catches up by the burst at most");
		__CPROVER_assert(*next_tx >= before, "the link is not freed earlier");
	} else {
		__CPROVER_assert(before + GRACE > now, "waits for a moment at most");
		__CPROVER_assert(!is_least(queue.index) || before > now,
				 "the one that has come least far waits for nobody");
		__CPROVER_assert(before + config.burst > now || before > now,
				 "no longer than it can catch up by");
		__CPROVER_assert(*next_tx == before, "waiting costs nothing");
		__CPROVER_assert(asked > now && asked <= before + GRACE,
				 "called again, and in time");
	}
}

static void moves(void)
{
	u64 served, bytes = nondet_u64(), before;

	any_link();
	served = sl_shared.link.served;
	before = instance.turn;
	__CPROVER_assume(bytes < 1ULL << 32);
	if (nondet_u32()) {
		bool was_empty = !sl_shared.link.turn[queue.index];

		queue_begins(&queue);
		__CPROVER_assert(sl_shared.link.turn[queue.index],
				 "others see that it has packets");
		__CPROVER_assert(!was_empty || instance.turn >= served, "nothing is made up for");
	} else {
		bool is_empty = nondet_u32();

		queue_served(&queue, bytes, is_empty);
		__CPROVER_assert(instance.turn + MOST_BEHIND >= served,
				 "made up for within a bound");
		__CPROVER_assert(instance.turn >= before + bytes, "what is sent counts");
		__CPROVER_assert(!sl_shared.link.turn[queue.index] == is_empty || !instance.turn,
				 "others see whether it has packets");
	}
	__CPROVER_assert(instance.turn >= before, "never goes back");
}

int main(void)
{
	if (nondet_u32())
		asks();
	else
		moves();
	return 0;
}
