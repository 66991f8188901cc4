/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Marks by a qdisc, which can write to no packet. Where CoDel would drop a packet that can carry a
 * mark, the packet leaves, and its flow is owed one. A program at the device's egress, which sees each
 * packet just before the qdisc does, marks the next one of the flow: the signal is as late as that
 * packet then waits.
 *
 * The program may be gone, so it shows with every packet that it is there. If it does not, or nothing
 * comes of the flow that it can mark, packets are dropped.
 */
#ifndef SHORTLANE_FQ_LANES_ECN_H
#define SHORTLANE_FQ_LANES_ECN_H

#include "../parse.h"
#include "nat.h"
#include "rules.h"

/* The field of an IP header. */
#define NOT_ECT 0
#define CE 3

/* Places for what flows are owed; a power of two. Of two flows with one place the later one has it. */
#define DEBTS 1024
/* Looked at with every new debt, so that old ones go. */
#define OLD_DEBTS 16
/* A flow that is owed so many marks sends nothing that can be marked. */
#define MOST_MARKS 4
#define OWED_FOR SL_BILLION
/* The program is there if it saw a packet no longer before the qdisc's latest one: a busy virtual
 * processor may stand still between the two. */
#define PRESENT_FOR (SL_BILLION / 10)

/* Of a debt: how many marks, beside the rest of the flow's fingerprint. */
#define MARKS 0xffULL

struct fql_debt {
	u64 owed;
	u64 since;
};

struct fql_debts {
	u64 seen; /* when the program saw the latest packet, by a clock of some ms */
	u64 until; /* when all debts are forgotten */
	u32 marks; /* owed in all */
	u32 hand; /* where old debts are looked for */
	struct fql_debt debt[DEBTS];
};

/* Of the first qdisc of a load; only those that have a device to themselves have a program. */
struct fql_debts fql_debts SEC(".data.ecn");

static __always_inline struct fql_debt *debt_at(u32 place)
{
	return &fql_debts.debt[within(place, DEBTS - 1)];
}

static __always_inline struct fql_debt *debt_of(u64 flow)
{
	return debt_at(flow >> 8);
}

static __always_inline u64 owed_now(const struct fql_debt *debt)
{
	return *(volatile u64 *)&debt->owed;
}

/* What of this a flow is owed. */
static __always_inline u32 marks_in(u64 owed, u64 flow)
{
	return (owed ^ flow) & ~MARKS ? 0 : owed & MARKS;
}

/* The qdisc and the program, on several processors, change debts at the same time. */
static __always_inline bool change_debt(struct fql_debt *debt, u64 before, u64 after)
{
	if (__sync_val_compare_and_swap(&debt->owed, before, after) != before)
		return false;
	__sync_fetch_and_add(&fql_debts.marks, (u32)(after & MARKS) - (u32)(before & MARKS));
	return true;
}

static __always_inline bool is_forgotten(const struct fql_debt *debt, u64 now)
{
	return minus(now, debt->since) >= OWED_FOR;
}

/* A flow is owed one more mark; false if that would be too many. */
static __noinline bool owe(u64 flow, u64 now)
{
	struct fql_debt *debt = debt_of(flow);
	u64 owed = owed_now(debt);
	u32 marks = is_forgotten(debt, now) ? 0 : marks_in(owed, flow);

	if (marks >= MOST_MARKS)
		return false;
	/* If it fails the flow has been marked this moment. */
	change_debt(debt, owed, (flow & ~MARKS) | (marks + 1));
	debt->since = now;
	fql_debts.until = now + OWED_FOR;
	for (int i = 0; i < OLD_DEBTS; i++) {
		struct fql_debt *old = debt_at(fql_debts.hand++);

		owed = owed_now(old);
		if (owed && is_forgotten(old, now))
			change_debt(old, owed, 0);
	}
	return true;
}

/* By headers in the place where the program's call looks for them; anything else is not capable. */
static __always_inline u32 ecn_of(struct sk_buff *skb)
{
	u32 first = bpf_ntohs(VIEW(struct udphdr, skb->head + skb->network_header)->source);

	if (skb->protocol == bpf_htons(ETH_P_IP))
		return first & 3;
	return skb->protocol == bpf_htons(ETH_P_IPV6) ? first >> 4 & 3 : NOT_ECT;
}

static __always_inline u32 ecn_of_queued(struct fql_packet *packet)
{
	struct sk_buff *skb = bpf_kptr_xchg(&packet->skb, 0);
	u32 ecn;

	if (!skb)
		return NOT_ECT;
	ecn = ecn_of(skb);
	skb = bpf_kptr_xchg(&packet->skb, skb);
	if (skb)
		bpf_kfree_skb(skb);
	return ecn;
}

/* Whether a packet that is to be dropped leaves, since a mark takes the place of its loss. */
static __noinline bool is_spared(const struct fq_lanes *fq, const struct fql_flow *flow,
				 struct fql_packet *head, u64 now)
{
	u32 ecn;

	if (!fql_parts.ecn || !flow->id ||
	    fq->block->arrival.now >= *(volatile u64 *)&fql_debts.seen + PRESENT_FOR)
		return false;
	ecn = ecn_of_queued(head);
	return ecn == CE || (ecn != NOT_ECT && owe(flow->id, now));
}

/* What the program does: TC_ACT_UNSPEC, whoever comes next decides. */
#define NEXT (-1)

/* Marks a packet, if its flow is owed that. While nobody is owed a mark it costs two looks. */
static __always_inline int mark_owed(struct __sk_buff *frame)
{
	u64 now = bpf_ktime_get_coarse_ns();
	volatile struct fql_debts *debts = &fql_debts;
	struct fql_debt *debt;
	struct parsed parsed;
	struct sk_buff *skb;
	u64 owed;

	if (!fql_parts.ecn)
		return NEXT;
	if (debts->seen != now)
		debts->seen = now;
	if (likely(!debts->marks || now >= debts->until))
		return NEXT;
	skb = bpf_cast_to_kern_ctx(frame);
	if (ecn_of(skb) == NOT_ECT)
		return NEXT;
	parse(skb, frame, &parsed);
	debt = debt_of(parsed.flow);
	owed = owed_now(debt);
	if (!marks_in(owed, parsed.flow) || bpf_skb_ecn_set_ce(frame) <= 0)
		return NEXT;
	change_debt(debt, owed, owed - 1);
	__sync_fetch_and_add(&sl_shared.qdisc[0].instance.counters.marked, 1);
	return NEXT;
}

#endif
