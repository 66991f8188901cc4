/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The userspace engine's programs: a packet is led to the engine if and only if its heartbeat is young
 * and the packet is neither the engine's own nor one that does not concern it; every other one passes
 * as if no program were here, its mark untouched, and those that an old heartbeat let pass are counted.
 *
 * Bounds: none
 */
int the_redirect(unsigned int ifindex, unsigned long long flags);
unsigned long long the_time(void);
unsigned long long the_cookie(void *packet);
#define bpf_ktime_get_ns the_time
#define bpf_redirect the_redirect
#define bpf_get_socket_cookie the_cookie
#include "hook.bpf.c"

#define REDIRECTED 7

static struct sl_pulses shared;
static __u64 now, cookie;
static __u32 led_to;

struct sl_pulses nondet_pulses(void);
struct sl_hook nondet_hook(void);
struct __sk_buff nondet_skb(void);
__u64 nondet_u64(void);

void *bpf_map_lookup_elem(const void *map, const void *key)
{
	return &shared;
}

__u64 the_time(void)
{
	return now;
}

__u64 the_cookie(void *packet)
{
	return cookie;
}

int the_redirect(__u32 ifindex, __u64 flags)
{
	led_to = ifindex;
	return REDIRECTED;
}

/* What a program did with a packet of a direction that it concerns. */
static void check(int verdict, const struct __sk_buff *skb, const struct __sk_buff *was,
		  const struct sl_pulse *pulse, const struct sl_pulse *before, __u32 tap, bool asks)
{
	bool young = before->heartbeat && (__s64)(now - before->heartbeat) <= (__s64)hook.patience;

	if (asks && young) {
		__CPROVER_assert(verdict == REDIRECTED && led_to == tap, "led to the engine");
		__CPROVER_assert(skb->mark == hook.token, "and known there");
	} else {
		__CPROVER_assert(verdict == NEXT, "passes");
		__CPROVER_assert(skb->mark == was->mark, "untouched");
	}
	__CPROVER_assert(pulse->passed == before->passed + (asks && before->heartbeat && !young),
			 "counted if it passed as the heartbeat was old");
	__CPROVER_assert(pulse->heartbeat == before->heartbeat, "the heartbeat is the engine's");
}

int main(void)
{
	struct __sk_buff skb = nondet_skb(), was = skb;
	struct sl_pulses before;
	bool ours, is_ip = skb.protocol == bpf_htons(ETH_P_IP) ||
			   skb.protocol == bpf_htons(ETH_P_IPV6);
	int verdict;

	shared = before = nondet_pulses();
	*(struct sl_hook *)&hook = nondet_hook();
	now = nondet_u64();
	cookie = nondet_u64();
	ours = cookie == hook.cookie;
	verdict = shortlane_out(&skb);
	check(verdict, &skb, &was, &shared.egress, &before.egress, hook.egress_tap,
	      !ours && (!hook.only_ip || is_ip));
	skb = was;
	shared = before;
	verdict = shortlane_in(&skb);
	if (was.mark == hook.token) {
		__CPROVER_assert(verdict == NEXT && !skb.mark, "what comes back passes, unmarked");
		__CPROVER_assert(shared.ingress.passed == before.ingress.passed,
				 "and is not counted");
	} else {
		check(verdict, &skb, &was, &shared.ingress, &before.ingress, hook.ingress_tap,
		      !hook.only_ip || is_ip);
	}
	skb = was;
	shared = before;
	verdict = shortlane_back(&skb);
	__CPROVER_assert(verdict == REDIRECTED && led_to == hook.device, "given back");
	__CPROVER_assert(skb.mark == (before.ingress.heartbeat ? hook.token : 0),
			 "and not led again");
	skb = was;
	__CPROVER_assert(shortlane_only(&skb) == (was.mark == hook.token ? (int)was.len : 0),
			 "the engine takes only what was led to it");
	return 0;
}
