/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The shaper: when the link is free for the next packet.
 *
 * A qdisc at the root has a pacer to itself. Those of a device's transmit queues have one in common,
 * so that they have the rate together. No qdisc can wake another one: each sleeps until the link is
 * free, and which one comes first then is chance. So the one that is ahead of others comes a moment
 * later than they do; that costs nothing of the rate, since it is less than the pacer catches up by.
 */
#ifndef SHORTLANE_PACER_H
#define SHORTLANE_PACER_H

/* The watchdog may be this late, so that it shares interrupts with others: never more than the
 * shaper can make up for. */
#define TIMER_SLACK 10000
/* The watchdog looks at least this often whether another configuration is in force. */
#define LONGEST_SLEEP 100000000
/* By how much later than others a queue comes that is ahead of them: longer than they may be late. */
#define GRACE 50000

/* What is left of a transmission, in bits times 10^9: no super-packet is longer than a MiB. */
#define MOST_LEFT ((8ULL << 20) * SL_BILLION)

/* How far a queue has come is in bytes for each of its hosts, with so many fractional bits. */
#define TURN_BITS 8
/* By more than this a queue is ahead: a full Ethernet frame. */
#define LEAD (1514ULL << TURN_BITS)
/* It falls behind by this at most, whatever its device kept from leaving: two super-packets. */
#define MOST_BEHIND (131072ULL << TURN_BITS)

/* Asks to be called again at a time, or a while before it. */
static __always_inline void sleep_until(struct Qdisc *sch, u64 now, u64 time)
{
	u64 latest = now + LONGEST_SLEEP;

	bpf_qdisc_watchdog_schedule(sch, time < latest ? time : latest, TIMER_SLACK);
}

static __always_inline struct sl_pacer *pacer_of(struct sl_instance *in)
{
	return parts.common ? &sl_shared.link.pacer : &in->pacer;
}

/* What takes so long at one rate takes so long at another. The product wraps around only if what is
 * owed is of a former rate, far lower, that other transmit queues still had. */
static __always_inline u64 time_at(u64 rate, u64 time, u64 before)
{
	u64 owed = time * before;

	return rate ? (owed < MOST_LEFT ? owed : MOST_LEFT) / rate : 0;
}

/* A rate is in force: what is left of the transmission under way goes on at it. Who changes the rate
 * often must not be given the burst each time. */
static __always_inline void pace_at(struct sl_instance *in, u64 rate, u64 now)
{
	struct sl_pacer *pacer = pacer_of(in);
	u64 before = pacer->paced_at, next_tx = *(volatile u64 *)&pacer->next_tx;

	/* Of the qdisc of each transmit queue that comes to know of it, the first one. */
	if (before == rate || __sync_val_compare_and_swap(&pacer->paced_at, before, rate) != before)
		return;
	if (next_tx > now)
		__sync_val_compare_and_swap(&pacer->next_tx, next_tx,
					    now + time_at(rate, next_tx - now, before));
}

/* How far a queue has come; 0 while it is empty. */
static __always_inline volatile u64 *turn_at(u32 index)
{
	return &sl_shared.link.turn[within(index, SL_INSTANCES - 1)];
}

/* Whether another queue has come less far than this one. */
static __always_inline bool is_ahead(const struct queue *q)
{
	u64 least = *turn_at(q->index);
	u64 most = least > LEAD ? least - LEAD : 0;

	for (u32 i = 0; i < SL_INSTANCES && i < parts.instances; i++) {
		u64 turn = *turn_at(i);

		if (turn && turn < most)
			return true;
	}
	return false;
}

static __always_inline bool wait_until(const struct queue *q, struct Qdisc *sch, u64 now, u64 due)
{
	sch->qstats.overlimits++;
	q->in->counters.paced++;
	sleep_until(sch, now, due);
	return false;
}

static __always_inline u64 latest_by(u64 now, u64 catch_up)
{
	return now > catch_up ? now - catch_up : 0;
}

/* The same for a pacer that others move on at the same time. */
static __always_inline bool common_is_free(const struct queue *q, struct Qdisc *sch, u64 now)
{
	u64 *next_tx = &sl_shared.link.pacer.next_tx, free = *(volatile u64 *)next_tx, due = free;
	u64 catch_up = q->config->burst;

	if (is_ahead(q))
		due += catch_up < GRACE ? catch_up : GRACE;
	if (now < due)
		return wait_until(q, sch, now, due);
	if (now - free > catch_up)
		__sync_val_compare_and_swap(next_tx, free, latest_by(now, catch_up));
	return true;
}

/* Whether the link is free; if not, asks to be called again when it is. */
static __always_inline bool link_is_free(const struct queue *q, struct Qdisc *sch, u64 now)
{
	u64 catch_up = q->config->burst;

	if (!q->config->rate)
		return true;
	if (parts.common)
		return common_is_free(q, sch, now);
	if (now < q->in->pacer.next_tx)
		return wait_until(q, sch, now, q->in->pacer.next_tx);
	if (now - q->in->pacer.next_tx > catch_up)
		q->in->pacer.next_tx = latest_by(now, catch_up);
	return true;
}

/* Whether a packet waits in the qdisc of any transmit queue. */
static __always_inline bool any_waits(void)
{
	for (u32 i = 0; i < SL_INSTANCES && i < parts.instances; i++) {
		if (*turn_at(i))
			return true;
	}
	return false;
}

/* A packet comes to an empty queue. That the link was idle is not made up for: whoever sends a burst
 * would fill the queue behind the link with it. */
static __always_inline void link_wakes(const struct queue *q, u64 now)
{
	u64 *next_tx = &pacer_of(q->in)->next_tx, free = *(volatile u64 *)next_tx;

	if (!q->config->rate || free >= now)
		return;
	if (!parts.common)
		*next_tx = now;
	else if (!any_waits())
		__sync_val_compare_and_swap(next_tx, free, now);
}

/* The link is taken for so long. */
static __always_inline void occupy_link(const struct queue *q, u64 time)
{
	if (parts.common)
		__sync_fetch_and_add(&sl_shared.link.pacer.next_tx, time);
	else
		q->in->pacer.next_tx += time;
}

/* A queue gets its first packet: what it missed while it was empty is not made up for. */
static __always_inline void queue_begins(const struct queue *q)
{
	u64 served;

	if (!parts.common || *turn_at(q->index))
		return;
	served = *(volatile u64 *)&sl_shared.link.served;
	if (q->in->turn < served)
		q->in->turn = served;
	*turn_at(q->index) = q->in->turn ? q->in->turn : 1;
}

/* So many bytes, in units of TURN_BITS and for each of its hosts, left a queue. */
static __always_inline void queue_served(const struct queue *q, u64 bytes, bool is_empty)
{
	u64 served;

	if (!parts.common)
		return;
	served = *(volatile u64 *)&sl_shared.link.served;
	if (q->in->turn + MOST_BEHIND < served)
		q->in->turn = served - MOST_BEHIND;
	q->in->turn += bytes;
	*turn_at(q->index) = is_empty ? 0 : q->in->turn;
	*(volatile u64 *)&sl_shared.link.served = q->in->turn;
}

#endif
