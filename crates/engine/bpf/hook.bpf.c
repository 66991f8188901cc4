// SPDX-License-Identifier: GPL-2.0
/*
 * The way of packets through the userspace engine on a single interface, and past it when it does
 * not answer.
 *
 *   leaving:  device's egress -> TAP -> engine -> packet socket of the engine -> device
 *   arriving: device's ingress -> TAP -> engine -> the same TAP's ingress -> device's ingress
 *
 * Each direction has a TAP of its own, or none. A direction of the engine writes a heartbeat with
 * every step it takes; packets pass as if nothing were here when the last one is too old: the
 * process is stopped, stuck or gone. For the rest the kernel sees to it: links and TAPs go with
 * the process that holds them.
 *
 * For any kernel since 5.15: no types of the kernel, no kernel functions.
 */
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed int __s32;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0

enum {
	BPF_MAP_TYPE_ARRAY = 2,
};

/* The beginning of the kernel's interface to programs of these kinds; it never changes. */
struct __sk_buff {
	__u32 len;
	__u32 pkt_type;
	__u32 mark;
	__u32 queue_mapping;
	__u32 protocol;
};

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

char LICENSE[] SEC("license") = "GPL";

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define BPF_F_INGRESS 1
#define BPF_F_MMAPABLE (1U << 10)

/* TCX_NEXT and TC_ACT_UNSPEC: whoever comes next decides, as if this program were not here. */
#define NEXT (-1)

/* Fixed when the object is loaded. */
struct sl_hook {
	__u64 cookie; /* of the socket that sends what the engine lets out */
	__u64 patience; /* age in ns from which on a heartbeat counts for nothing */
	__u32 token; /* a mark that packets carry between the device and a TAP */
	__u32 device;
	__u32 egress_tap;
	__u32 ingress_tap;
	__u32 only_ip; /* the device has no link header: what is not IP passes */
};

/* What a direction tells, and what is counted for it. On a cache line of its own. */
struct sl_pulse {
	__u64 heartbeat; /* CLOCK_MONOTONIC in ns; 0 before the first one */
	__u64 passed; /* packets that passed as the heartbeat was too old */
	__u64 passed_bytes;
	__u64 unused[5];
};

const volatile struct sl_hook hook;

struct sl_pulses {
	struct sl_pulse egress;
	struct sl_pulse ingress;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sl_pulses);
} sl_pulses SEC(".maps");

static __always_inline struct sl_pulses *pulses(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&sl_pulses, &zero);
}

/* Whether the engine will take care of the packet. */
static __always_inline bool takes(struct __sk_buff *skb, struct sl_pulse *pulse)
{
	__u64 beat = *(volatile __u64 *)&pulse->heartbeat;

	/* The engine may have looked at the clock after this processor did. */
	if (beat && (__s64)(bpf_ktime_get_ns() - beat) <= (__s64)hook.patience)
		return true;
	if (beat) {
		__sync_fetch_and_add(&pulse->passed, 1);
		__sync_fetch_and_add(&pulse->passed_bytes, skb->len);
	}
	return false;
}

static __always_inline bool concerns(struct __sk_buff *skb)
{
	return !hook.only_ip || skb->protocol == bpf_htons(ETH_P_IP) ||
	       skb->protocol == bpf_htons(ETH_P_IPV6);
}

/* On the device: a packet leaves. */
SEC("tc")
int shortlane_out(struct __sk_buff *skb)
{
	struct sl_pulses *pulse = pulses();

	if (bpf_get_socket_cookie(skb) == hook.cookie || !concerns(skb))
		return NEXT;
	if (!pulse || !takes(skb, &pulse->egress))
		return NEXT;
	skb->mark = hook.token;
	return bpf_redirect(hook.egress_tap, 0);
}

/* On the device: a packet has arrived, for the first time or out of the engine. */
SEC("tc")
int shortlane_in(struct __sk_buff *skb)
{
	struct sl_pulses *pulse = pulses();

	if (skb->mark == hook.token) {
		skb->mark = 0;
		return NEXT;
	}
	if (!concerns(skb) || !pulse || !takes(skb, &pulse->ingress))
		return NEXT;
	skb->mark = hook.token;
	return bpf_redirect(hook.ingress_tap, 0);
}

/* On the TAP of arriving packets: the engine lets one out. The mark is for the program on the
 * device, which takes it off; when everything passes that may be gone already. */
SEC("tc")
int shortlane_back(struct __sk_buff *skb)
{
	struct sl_pulses *pulse = pulses();
	bool passing = pulse && !*(volatile __u64 *)&pulse->ingress.heartbeat;

	skb->mark = passing ? 0 : hook.token;
	return bpf_redirect(hook.device, BPF_F_INGRESS);
}

/* What a TAP hands to the engine: nothing that somebody else has sent there. */
SEC("socket")
int shortlane_only(struct __sk_buff *skb)
{
	return skb->mark == hook.token ? (int)skb->len : 0;
}
