// SPDX-License-Identifier: GPL-2.0
/*
 * What a device receives, to the ifb device whose qdisc shapes it: a filter at the ingress of the
 * device, whose action (mirred) takes what matches there. Nothing does where the ifb is gone.
 */
#include "kernel.h"

#define ENODEV 19
/* Of a classifier without an action of its own. */
#define NO_MATCH 0
#define MATCH (-1)

char LICENSE[] SEC("license") = "GPL";

/* The ifb device; set before the program is loaded. */
const volatile u32 target = 0;

SEC("tc")
int shortlane_in(struct __sk_buff *skb)
{
	u32 mtu = 0;

	/* Asks for the device; whether the packet fits is not of interest. */
	if (bpf_check_mtu(skb, target, &mtu, 0, 0) == -ENODEV)
		return NO_MATCH;
	return MATCH;
}
