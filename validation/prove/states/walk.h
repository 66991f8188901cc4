/* SPDX-License-Identifier: GPL-2.0 */
/* The operations on a qdisc, and the walk through all sequences of them. Included behind the qdisc. */
#ifndef WALK_H
#define WALK_H

#include "explore.h"

/* A limit that is changed to, and back; a rate, if there is any. */
static u64 limits[2], rates[2];
/* Whether packets of a flow leave in order, and whether what is queued may wait for no link. */
static bool keeps_order = true, may_idle;

static struct {
	void *at;
	u64 size;
	char *saved[MOST_DEPTH + 1];
} areas[MOST_AREAS];
static u32 area_count;
static u64 states, steps;

/* States that were met, and how many operations were left: open addressing. */
static struct {
	u64 hash;
	u64 left;
} *met;
static u64 met_mask = (1 << 16) - 1, met_count;

static void area(void *at, u64 size)
{
	areas[area_count].at = at;
	areas[area_count].size = size;
	for (u32 i = 0; i <= MOST_DEPTH; i++)
		areas[area_count].saved[i] = malloc(size);
	area_count++;
}

static void save(u32 level)
{
	for (u32 i = 0; i < area_count; i++)
		memcpy(areas[i].saved[level], areas[i].at, areas[i].size);
}

static void restore(u32 level)
{
	for (u32 i = 0; i < area_count; i++)
		memcpy(areas[i].at, areas[i].saved[level], areas[i].size);
}

static u64 hash_state(void)
{
	u64 hash = 0x9e3779b97f4a7c15ULL, word;

	for (u32 i = 0; i < area_count; i++) {
		char *at = areas[i].at;

		for (u64 done = 0; done < areas[i].size; done += sizeof(word)) {
			u64 size = areas[i].size - done;

			word = 0;
			memcpy(&word, at + done, size < sizeof(word) ? size : sizeof(word));
			hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
			hash ^= hash >> 32;
		}
	}
	return hash ? hash : 1;
}

static void grow(void)
{
	typeof(met) before = met;
	u64 mask = met_mask;

	met_mask = met_mask * 2 + 1;
	met = calloc(met_mask + 1, sizeof(*met));
	for (u64 i = 0; i <= mask; i++) {
		u64 at = before[i].hash & met_mask;

		if (!before[i].hash)
			continue;
		while (met[at].hash)
			at = (at + 1) & met_mask;
		met[at] = before[i];
	}
	free(before);
}

/* Whether nobody has walked from here with so many operations left. */
static bool is_new(u64 left)
{
	u64 hash = hash_state(), at = hash & met_mask;

	while (met[at].hash && met[at].hash != hash)
		at = (at + 1) & met_mask;
	if (met[at].hash == hash && met[at].left >= left)
		return false;
	if (!met[at].hash) {
		states++;
		if (++met_count * 2 > met_mask)
			grow();
		at = hash & met_mask;
		while (met[at].hash && met[at].hash != hash)
			at = (at + 1) & met_mask;
	}
	met[at].hash = hash;
	met[at].left = left;
	return true;
}

static struct sl_config *in_force(void)
{
	return &sl_shared.qdisc[0].config[sl_shared.qdisc[0].generation & 1];
}

/* What every operation must leave behind. */
static void check(void)
{
	struct sl_qdisc *qdisc = &sl_shared.qdisc[0];
	struct sl_counters *counters = &qdisc->instance.counters;

	must(sch.q.qlen == ledger.held, "the kernel's count of packets is another");
	must(sch.qstats.backlog == held_bytes(), "the kernel's backlog is another");
	must(!counters->lost, "a packet is lost");
	must(!counters->no_slots || in_force()->limit_in_bytes, "there is no slot below the limit");
	check_structure();
	/* Once a configuration is known, nothing of its number counts but the last bit. */
	if (qdisc->generation == qdisc->instance.generation)
		qdisc->generation = qdisc->instance.generation &= 1;
	/* Nothing depends on what was counted. */
	memset(counters, 0, sizeof(*counters));
	memset(&qdisc->histogram, 0, sizeof(qdisc->histogram));
	qdisc->instance.most_flows = 0;
	qdisc->instance.most_packets = 0;
	memset(&sch.qstats.drops, 0, sizeof(sch.qstats) - offsetof(struct gnet_stats_queue, drops));
}

/* Of the qdisc's file: what it thinks of an arrival before it comes, and where it should be then. */
static u32 expected_lane(struct kind *kind, u8 *of_the_table);

static u64 in_unit(u64 bytes, u64 segments)
{
	return in_force()->limit_in_bytes ? bytes : segments;
}

/* The qdisc comes to know of another rate: what is left of a transmission goes on at it. */
static void rate_is_known(void)
{
	u64 rate = in_force()->rate, before = ledger.paced_at;

	if (rate != before && ledger.free_at > ledger.now)
		ledger.free_at = ledger.now + (ledger.free_at - ledger.now) * before / rate;
	ledger.paced_at = rate;
}

static bool arrive_one(u32 which)
{
	struct sl_counters *counters = &sl_shared.qdisc[0].instance.counters;
	struct held held = { .kind = which };
	struct bpf_sk_buff_ptr to_free;
	u32 lane, joined, verdict;

	if (ledger.held == MOST_HELD)
		return false;
	while (place_of(skb_of(&held)) < MOST_HELD)
		held.index++;
	lane = expected_lane(&kinds[which], &held.of_the_table);
	arriving = skb_of(&held);
	arrivals_dropped = 0;
	rate_is_known();
	/* What was not sent while there was nothing to send is not made up for. */
	if (!ledger.held && in_force()->rate && ledger.free_at < ledger.now)
		ledger.free_at = ledger.now;
	verdict = enqueue(arriving, &sch, &to_free);
	arriving = 0;
	must(arrivals_dropped == (verdict == NET_XMIT_DROP), "dropped if and only if it says so");
	if (verdict == NET_XMIT_DROP)
		return true;
	for (joined = 0; joined < SL_MOST_LANES && !counters->enqueued[joined]; joined++)
		;
	must(lane == SL_MOST_LANES || lane == joined, "it joins another lane than it should");
	held.lane = joined;
	ledger.packet[ledger.held++] = held;
	must(in_unit(held_bytes(), held_segments()) <= in_force()->limit, "beyond the limit");
	return true;
}

/* Of the qdisc's file: whether what leaves is what should. */
static void check_departure(u32 at);

static bool depart(void)
{
	struct sl_config *config = in_force();
	struct sk_buff *skb;
	bool is_free;
	u32 at;

	if (ledger.held)
		rate_is_known();
	is_free = !config->rate || ledger.now >= ledger.free_at;
	woken_at = 0;
	skb = dequeue(&sch);
	if (!skb) {
		if (!ledger.held)
			return true;
		must(!is_free || may_idle, "the link is free, and nothing leaves");
		must(woken_at > ledger.now, "nobody will ask again");
		must(may_idle || woken_at <= ledger.free_at, "it sleeps for too long");
		return true;
	}
	must(is_free, "sent before the link is free");
	at = place_of(skb);
	must(at < MOST_HELD, "a packet is sent that is not queued");
	must(!keeps_order || first_of_its_flow(at), "a flow's packets are reordered");
	check_departure(at);
	if (config->rate) {
		if (ledger.now - ledger.free_at > config->burst)
			ledger.free_at = ledger.now > config->burst ? ledger.now - config->burst
								    : 0;
		ledger.free_at += kind_of(&ledger.packet[at])->size * 8 * SL_BILLION / config->rate;
	}
	release(at);
	return true;
}

static bool change_limit(u32 which)
{
	struct sl_qdisc *qdisc = &sl_shared.qdisc[0];
	struct sl_config *next = &qdisc->config[(qdisc->generation + 1) & 1];

	if (in_force()->limit == limits[which])
		return false;
	*next = *in_force();
	next->limit = limits[which];
	next->high_limit = next->limit - part_of(next->limit, next->low_share);
	qdisc->generation++;
	return true;
}

static bool change_rate(u64 which)
{
	struct sl_qdisc *qdisc = &sl_shared.qdisc[0];
	struct sl_config *next = &qdisc->config[(qdisc->generation + 1) & 1];

	if (in_force()->rate == rates[which])
		return false;
	*next = *in_force();
	next->rate = rates[which];
	qdisc->generation++;
	return true;
}

static bool is_reset;

/* As qdisc_reset() of the kernel. */
static bool reset_all(void)
{
	is_reset = true;
	reset(&sch);
	is_reset = false;
	must(!ledger.held, "packets are left behind");
	sch.q.qlen = 0;
	sch.qstats.backlog = 0;
	ledger.free_at = 0;
	return true;
}

static bool pass(u64 time)
{
	ledger.now += time;
	return true;
}

static struct {
	char *name;
	bool (*does)(u64 with);
	u64 with;
} operations[KINDS + 8];
static u32 operation_count;

static void operation(char *name, void *does, u64 with)
{
	operations[operation_count].name = name;
	operations[operation_count].does = does;
	operations[operation_count++].with = with;
}

static bool arrival_operation(u64 which)
{
	return arrive_one(which);
}

static bool departure_operation(u64 with)
{
	return depart();
}

static bool limit_operation(u64 which)
{
	return change_limit(which);
}

static bool reset_operation(u64 with)
{
	return ledger.held ? reset_all() : false;
}

static void all_operations(void)
{
	for (u64 kind = 0; kind < KINDS; kind++)
		operation(kinds[kind].name, arrival_operation, kind);
	operation("a departure", departure_operation, 0);
	operation("20 ms", pass, 20 * MS);
	operation("3 s", pass, 3000 * MS);
	operation("the first limit", limit_operation, 0);
	operation("the second limit", limit_operation, 1);
	operation("a reset", reset_operation, 0);
	operation("the first rate", change_rate, 0);
	operation("the second rate", change_rate, 1);
}

static void walk(void)
{
	u32 here = depth;

	for (u32 i = 0; i < operation_count; i++) {
		restore(here);
		path[here] = operations[i].name;
		depth = here + 1;
		loops = 0;
		if (operations[i].does(operations[i].with)) {
			steps++;
			check();
			if (depth < most_depth && is_new(most_depth - depth)) {
				save(depth);
				walk();
			}
		}
		depth = here;
	}
}

/* Begins a qdisc anew with the template that is set, and walks from what was `before`. */
static void walk_all(char *name, void (*before)(void), u32 operations_in_all)
{
	variant = name;
	most_depth = operations_in_all;
	states = steps = met_count = 0;
	free(met);
	met = calloc(met_mask + 1, sizeof(*met));
	memset(&ledger, 0, sizeof(ledger));
	memset(sl_shared.qdisc, 0, sizeof(sl_shared.qdisc));
	ledger.now = 10000 * MS;
	device.type = ARPHRD_ETHER;
	device.nd_net.net = &net;
	tx_queue.dev = &device;
	sch = (struct Qdisc){ .parent = TC_H_ROOT, .dev_queue = &tx_queue };
	sl_shared.template.high_limit =
		limits[0] - part_of(limits[0], sl_shared.template.low_share);
	sl_shared.template.limit = limits[0];
	sl_shared.template.rate = rates[0];
	ledger.paced_at = rates[0];
	must(!init(&sch, 0, 0), "it does not begin");
	depth = 0;
	check();
	if (before)
		before();
	save(0);
	walk();
	restore(0);
	printf("| %s | %u | %llu | %llu |\n", name, most_depth, states, steps);
	fflush(stdout);
}

#endif
