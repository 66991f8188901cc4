/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every sequence of a few operations on the very C that the kernel runs, compiled for this machine.
 *
 * A file that includes this includes a qdisc next, then says with `areas` what its state is, and with
 * check_structure() what must hold of it. A state that was met before, with as many operations left
 * or more, is not walked on from: equal by 64 bits of a hash.
 *
 * What must hold of every qdisc is checked here, after each operation, against a ledger of its own:
 * each packet is stored, then sent or dropped, exactly once; the kernel's counts are the ledger's;
 * the limit holds; a flow's packets leave in order; nothing leaves before the link is free; and
 * what could leave does.
 */
#ifndef EXPLORE_H
#define EXPLORE_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the loader sets before it loads, a harness sets here. */
#define const
#undef __always_inline
#include "kernel.h"
#undef can_loop
#define can_loop (++loops < 100000 || failed("a loop does not end"))

#define MOST_HELD 12
#define MOST_DEPTH 16
#define MOST_AREAS 8
#define MS 1000000ULL

/* What can arrive. */
enum { FLOW_A, FLOW_B, FLOW_C, FLOWS };
static struct kind {
	char *name;
	u32 flow;
	u32 size;
	u32 segments;
} kinds[] = {
	{ "1000 bytes of A", FLOW_A, 1000, 1 },
	{ "1000 bytes of B", FLOW_B, 1000, 1 },
	{ "100 bytes of C", FLOW_C, 100, 1 },
	{ "2000 bytes of A in 2 segments", FLOW_A, 2000, 2 },
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* The UDP port that makes a packet one of this flow, chosen by the harness; and its host. */
static u32 ports_of[FLOWS] = { 1, 2, 3 };
static u32 hosts_of[FLOWS] = { 1, 1, 2 };

/* Each packet that there can be. */
static struct packet {
	struct sk_buff skb;
	unsigned char bytes[64 + sizeof(struct skb_shared_info)] __attribute__((aligned(64)));
} packets[KINDS][MOST_HELD];

/* A packet that is queued, in the order of arrival. */
struct held {
	u8 kind;
	u8 index;
	u8 lane;
	u8 of_the_table; /* for the harness */
};

/* What the world beside the qdisc knows. */
static struct ledger {
	u64 now;
	u64 free_at; /* the link's next free moment */
	u64 paced_at; /* the rate that the qdisc knew of when it was last called */
	u32 held;
	struct held packet[MOST_HELD];
} ledger;

static struct netdev_queue tx_queue;
static struct net_device device;
static struct net net;
static struct Qdisc sch;

/* What happened in the call under way. */
static struct sk_buff *arriving;
static u32 arrivals_dropped;
static u64 woken_at;
static u32 loops;

/* What is being walked. */
static char *path[MOST_DEPTH];
static u32 depth, most_depth;
static char *variant = "";

static int failed(char *what)
{
	printf("%s: %s, after:\n", variant, what);
	for (u32 i = 0; i < depth; i++)
		printf("  %s\n", path[i]);
	exit(10);
}

#define must(condition, what) ((condition) || failed(what))

/* Of the qdisc's file. */
static void check_structure(void);
/* A queued packet is dropped; whether this one may be. */
static bool may_drop_held(u32 at);

/* The kernel's functions. */

u64 bpf_ktime_get_ns(void)
{
	return ledger.now;
}

/* Of the program that marks, which is not run: nothing can carry a mark. */
u64 bpf_ktime_get_coarse_ns(void)
{
	return ledger.now;
}

struct __sk_buff;

void *bpf_cast_to_kern_ctx(void *context)
{
	return context;
}

long bpf_skb_ecn_set_ce(struct __sk_buff *frame)
{
	return 0;
}

/* Nor is the one that asks conntrack. */
long bpf_skb_load_bytes_relative(const void *frame, u32 offset, void *to, u32 size, u32 start)
{
	return -1;
}

long bpf_probe_read_kernel(void *to, u32 size, void *from)
{
	memcpy(to, from, size);
	return 0;
}

void *bpf_rdonly_cast(void *object, u32 type)
{
	return object;
}

int bpf_dynptr_from_skb(struct sk_buff *skb, u64 flags, struct bpf_dynptr *dynptr)
{
	dynptr->opaque[0] = (u64)skb;
	return 0;
}

void *bpf_dynptr_slice(struct bpf_dynptr *dynptr, u32 offset, void *buffer, u32 size)
{
	struct sk_buff *skb = (struct sk_buff *)dynptr->opaque[0];

	return offset + size <= skb->tail - (u32)(skb->data - skb->head) ? skb->data + offset : 0;
}

void bpf_qdisc_watchdog_schedule(struct Qdisc *qdisc, u64 expire, u64 delta_ns)
{
	woken_at = expire;
}

void bpf_qdisc_bstats_update(struct Qdisc *qdisc, struct sk_buff *skb)
{
}

static void release(u32 at)
{
	ledger.held--;
	memmove(&ledger.packet[at], &ledger.packet[at + 1],
		(ledger.held - at) * sizeof(struct held));
	memset(&ledger.packet[ledger.held], 0, sizeof(struct held));
}

static struct sk_buff *skb_of(struct held *held)
{
	return &packets[held->kind][held->index].skb;
}

static u32 place_of(struct sk_buff *skb)
{
	for (u32 at = 0; at < ledger.held; at++)
		if (skb_of(&ledger.packet[at]) == skb)
			return at;
	return MOST_HELD;
}

void bpf_kfree_skb(struct sk_buff *skb)
{
	u32 at = place_of(skb);

	if (skb == arriving) {
		must(!arrivals_dropped++, "the arrival is dropped twice");
		return;
	}
	must(at < MOST_HELD, "a packet is dropped that is not queued");
	must(may_drop_held(at), "a packet is dropped that should not be");
	release(at);
}

void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free)
{
	bpf_kfree_skb(skb);
}

/* An array's element, which must be one of the qdisc's own: the null check behind a look-up is for
 * the verifier. */
static void *element(void *array, u32 size, u32 at, u32 from, u32 below)
{
	must(at >= from && at < below, "a look-up outside of the qdisc's own part");
	return (char *)array + (u64)size * (at - from);
}

/* Packets. */

static void put16(unsigned char *at, u32 value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static void make_packet(struct packet *packet, struct kind *kind)
{
	struct skb_shared_info info = { .gso_size = 0 };
	struct qdisc_skb_cb cb = { .pkt_len = kind->size };
	unsigned char *frame = packet->bytes + 2, *ip = frame + 14;

	memset(packet, 0, sizeof(*packet));
	put16(frame + 12, 0x0800);
	ip[0] = 0x45;
	put16(ip + 2, 28);
	ip[9] = 17;
	put16(ip + 12, 0x0a01);
	put16(ip + 14, 1);
	put16(ip + 16, 0x0a02);
	put16(ip + 18, hosts_of[kind->flow]);
	put16(ip + 20, 9);
	put16(ip + 22, ports_of[kind->flow]);
	if (kind->segments > 1) {
		info.gso_size = kind->size / kind->segments;
		info.gso_segs = kind->segments;
	}
	memcpy(packet->bytes + 64, &info, sizeof(info));
	packet->skb = (struct sk_buff){
		.dev = &device,
		.len = kind->size,
		.protocol = bpf_htons(0x0800),
		.mac_header = 2,
		.network_header = 16,
		.transport_header = 36,
		.tail = 64,
		.end = 64,
		.head = packet->bytes,
		.data = frame,
	};
	memcpy(packet->skb.cb, &cb, sizeof(cb));
}

static void make_packets(void)
{
	for (u32 kind = 0; kind < KINDS; kind++)
		for (u32 i = 0; i < MOST_HELD; i++)
			make_packet(&packets[kind][i], &kinds[kind]);
}

static struct kind *kind_of(struct held *held)
{
	return &kinds[held->kind];
}

/* Whether no packet of its flow came before it. */
static bool first_of_its_flow(u32 at)
{
	for (u32 i = 0; i < at; i++)
		if (kind_of(&ledger.packet[i])->flow == kind_of(&ledger.packet[at])->flow)
			return false;
	return true;
}

static u64 held_bytes(void)
{
	u64 bytes = 0;

	for (u32 i = 0; i < ledger.held; i++)
		bytes += kind_of(&ledger.packet[i])->size;
	return bytes;
}

static u64 held_segments(void)
{
	u64 segments = 0;

	for (u32 i = 0; i < ledger.held; i++)
		segments += kind_of(&ledger.packet[i])->segments;
	return segments;
}

#endif
