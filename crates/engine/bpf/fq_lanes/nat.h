/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hosts behind NAT on this machine: a qdisc may not ask conntrack. The program at the device's egress,
 * which sees each packet just before the qdisc does, asks, and leaves the answer with the packet.
 */
#ifndef SHORTLANE_FQ_LANES_NAT_H
#define SHORTLANE_FQ_LANES_NAT_H

#include "../fq_lanes.h"
#include "../nat.h"
#include "../qdisc.h"

/* Set by the loader: enum fql_nat. */
const volatile u32 fql_nat = FQL_NO_NAT;

/* What tells an answer from what others left there: as secret as the fingerprints' key. */
static __always_inline u32 tag(void)
{
	return (u32)parts.host_key[0] | 1;
}

static __always_inline void tell_client(struct __sk_buff *frame)
{
	struct translated found;
	__be32 client = find_client(frame, fql_nat == FQL_LEAVES, &found) ? found.client : 0;

	frame->cb[0] = client ? tag() : 0;
	frame->cb[1] = client;
}

/* The client of a packet; 0 if nobody has said. */
static __always_inline __be32 told_client(struct sk_buff *skb)
{
	const u32 *told = (const u32 *)((struct qdisc_skb_cb *)skb->cb)->data;

	return fql_nat != FQL_NO_NAT && told[0] == tag() ? told[1] : 0;
}

#endif
