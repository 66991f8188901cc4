/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The filter at a device's ingress: a packet matches, and so goes to the ifb device, if that is
 * there, whatever the packet's size, and else passes as if no filter were here.
 *
 * Bounds: none
 */
#include "kernel.h"

int the_check(void *skb, u32 ifindex, u32 *mtu, s32 difference, u64 flags);
#define bpf_check_mtu the_check
#include "ingress.bpf.c"

static int answer;

int nondet_int(void);
u32 nondet_u32(void);

int the_check(void *skb, u32 ifindex, u32 *mtu, s32 difference, u64 flags)
{
	__CPROVER_assert(ifindex == target && !flags, "asks for the ifb");
	return answer;
}

int main(void)
{
	int verdict;

	*(u32 *)&target = nondet_u32();
	answer = nondet_int();
	verdict = shortlane_in(0);
	__CPROVER_assert(verdict == (answer == -ENODEV ? NO_MATCH : MATCH),
			 "matches if and only if it is there");
	return 0;
}
