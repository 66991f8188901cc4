/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every sequence of operations on fq-lanes in the kernel, from an empty queue, from one where A has sent
 * 800 kB and B 60 kB (an old flow, a young and a new one), and from one where a flow found no room.
 *
 * Beside what holds of every qdisc: only heads of flows are dropped, and by CoDel none that is the
 * last of its flow; every flow and host with packets stands in one list, and is counted there;
 * their bytes and packets are the ledger's; the line of hosts, chains of both tables and the free
 * entries are whole. Memory beyond the entries that the bounds allow may not be touched.
 *
 * Options: 6
 */
#define KNOWS_HOSTS true
#include "explore.h"

#include <sanitizer/asan_interface.h>

#include "fq_lanes.bpf.c"

#include "walk.h"

#define SLOTS 7
#define MOST_FLOWS (FQL_BEFORE_FLOWS + FLOWS)
#define MOST_HOSTS (FQL_BEFORE_HOSTS + 2)

static struct {
	struct fql_block block;
	struct fql_flow flow[128];
} memory;
static struct fql_packet slots[SLOTS];
/* Decides nothing, so it is no part of a state. */
static struct fql_seen seen[MOST_FLOWS];

static struct fql_block *block = &memory.block;

void *bpf_map_lookup_elem(void *map, void *key)
{
	u32 at = *(u32 *)key;

	if (map == &fql_blocks)
		return element(&memory, sizeof(memory), at, 0, 1);
	if (map == &fql_seen)
		return element(seen, sizeof(*seen), at, 0, fql_parts.seen);
	must(map == &fql_packets, "an unknown map");
	return element(slots, sizeof(*slots), at, 1, fql_parts.slots) + sizeof(*slots);
}

static struct sl_instance *in = &sl_shared.qdisc[0].instance;
static struct fq_lanes fq = { .block = &memory.block };

static u32 expected_lane(struct kind *kind, u8 *of_the_table)
{
	return SL_MOST_LANES;
}

static void check_departure(u32 at)
{
}

static bool may_drop_held(u32 at)
{
	u32 flow = kind_of(&ledger.packet[at])->flow, others = 0;

	for (u32 i = 0; i < ledger.held; i++)
		others += i != at && kind_of(&ledger.packet[i])->flow == flow;
	return is_reset || (first_of_its_flow(at) && (arriving || others));
}

/* The lists of a stage. */
static void check_stage(struct fql_stage *stage, enum members of, bool *met)
{
	u32 listed = 0;

	for (u32 list = 0; list < FQL_LISTS; list++) {
		struct fql_list *ends = &stage->lists[list];
		u32 count = 0, last = 0;

		for (u32 at = ends->first; at; at = member_at(&fq, of, at)->next) {
			must(!met[at], "it stands in two lists");
			met[at] = true;
			must(member_at(&fq, of, at)->list == list + 1,
			     "it thinks it stands elsewhere");
			last = at;
			count++;
		}
		must(count == ends->members && last == ends->last, "a list is not what it counts");
		must(!count == !(stage->occupied & 1 << list), "a list's bit");
		must(count || !ends->owed, "an empty list is owed");
		listed += count;
	}
	must(listed == stage->listed, "a stage is not what it counts");
}

/* The queue of a flow. */
static void check_queue(u32 index, u32 *packets)
{
	struct fql_flow *flow = &memory.flow[index];
	u64 bytes = 0;
	u32 last = 0;

	for (u32 at = flow->head; at; at = slots[at].next) {
		must(slots[at].skb && place_of(slots[at].skb) < MOST_HELD, "a slot without packet");
		bytes += slots[at].size;
		last = at;
		(*packets)++;
	}
	must(last == flow->tail && bytes == flow->bytes, "a queue is not what it counts");
}

static void check_hosts(void)
{
	bool listed[FQL_HOSTS] = {}, member[128] = {};
	u32 all = 0, waiting = 0;

	check_stage(&block->root, OF_HOSTS, listed);
	for (u32 host = 1; host < block->fresh_host; host++) {
		struct fql_host *it = &block->host[host];
		u32 packets = 0;
		u64 bytes = 0;

		check_stage(&it->stage, OF_FLOWS, member);
		for (u32 flow = 1; flow < block->fresh_flow; flow++) {
			if (memory.flow[flow].host != host || !memory.flow[flow].head)
				continue;
			must(member[flow], "a flow with packets stands in no list");
			check_queue(flow, &packets);
			bytes += memory.flow[flow].bytes;
		}
		must(packets == it->packets && bytes == it->bytes, "a host is not what it counts");
		must(!packets || listed[host], "a host with packets stands in no list");
		must(listed[host] || !it->stage.listed, "flows of a host that is in no list");
		must(listed[host] == (it->member.list != FQL_UNLISTED), "a host is in no list");
		all += packets;
		waiting += it->ahead.waits;
	}
	must(all == ledger.held, "packets are in no queue");
	for (u32 flow = 1; flow < block->fresh_flow; flow++)
		must(member[flow] == (memory.flow[flow].member.list != FQL_UNLISTED),
		     "a flow is in no list");
	for (u32 at = block->ahead_first, last = 0; at; at = block->host[at].ahead.next) {
		must(block->host[at].ahead.waits && waiting--, "the line of hosts is broken");
		last = at;
		must(block->host[at].ahead.next || last == block->ahead_last, "the line's end");
	}
	must(!waiting, "a host waits in no line");
}

static void check_tables(void)
{
	u32 flows = 0, hosts = 0, free = 0;

	for (u32 bucket = 0; bucket <= fql_parts.bucket_mask; bucket++)
		for (u32 at = memory.flow[bucket].bucket; at; at = memory.flow[at].chain) {
			must((memory.flow[at].id & fql_parts.bucket_mask) == bucket,
			     "a flow's chain");
			must(++flows <= in->flows, "more flows in chains than there are");
		}
	for (u32 at = block->free_flow; at; at = memory.flow[at].chain)
		must(++free <= FLOWS, "free flows go round");
	must(flows == in->flows && flows <= fql_parts.flow_bound, "flows are not what is counted");
	must(flows + free == block->fresh_flow - FQL_BEFORE_FLOWS,
	     "a flow is neither used nor free");
	for (u32 bucket = 0; bucket < FQL_HOST_BUCKETS; bucket++)
		for (u32 at = block->host_buckets[bucket]; at; at = block->host[at].chain)
			must(++hosts <= block->hosts, "more hosts in chains than there are");
	must(hosts == block->hosts && hosts <= fql_parts.host_bound,
	     "hosts are not what is counted");
	free = 0;
	for (u32 at = block->free_packet; at; at = slots[at].next) {
		must(++free < SLOTS, "free slots go round");
		must(!slots[at].skb, "a free slot has a packet");
		/* What it held is nobody's. */
		slots[at] = (struct fql_packet){ .next = slots[at].next };
	}
	must(free + ledger.held == block->fresh_packet - 1, "a slot is neither used nor free");
}

static void check_structure(void)
{
	check_hosts();
	check_tables();
	memset(&block->arrival, 0, sizeof(block->arrival));
}

/* A flow sends so many packets of the largest size before the walk begins. */
static void has_sent(u32 which, u32 count)
{
	struct kind before = kinds[which];

	kinds[which].size = 64000;
	kinds[which].segments = 1;
	make_packet(&packets[which][0], &kinds[which]);
	for (u32 i = 0; i < count; i++) {
		arrive_one(which);
		check();
		depart();
		check();
	}
	kinds[which] = before;
	make_packet(&packets[which][0], &kinds[which]);
}

static void some_are_older(void)
{
	has_sent(FLOW_A, 13);
	has_sent(FLOW_B, 1);
	must(tier_of(memory.flow[find_flow(&fq, memory.flow[FQL_BEFORE_FLOWS].id)].member.age) == 3,
	     "A is not old");
}

/* B finds no room in the table, and waits in a spill queue; A has sent all it had. */
static void one_is_spilled(void)
{
	arrive_one(0);
	for (u32 i = 0; i < 4; i++)
		arrive_one(1);
	for (u32 i = 0; i < 3; i++)
		depart();
	check();
}

static void begin(u32 flow_bound, u32 host_bound)
{
	parts = (struct sl_parts){
		.instances = 1, .ring_mask = SLOTS - 2, .key = { 1, 2 }, .host_key = { 3, 4 }
	};
	fql_parts = (struct fql_parts){ .flow_bound = flow_bound,
					.host_bound = host_bound,
					.flow_mask = 127,
					.bucket_mask = 1,
					.slots = SLOTS,
					.seen = MOST_FLOWS };
	sl_shared.template = (struct sl_config){
		.target = 5 * MS, .interval = 100 * MS, .mpu = 1, .flow_bound = flow_bound
	};
	memset(block, 0, offsetof(struct fql_block, host));
	memset(block->host, 0, MOST_HOSTS * sizeof(struct fql_host));
	memset(memory.flow, 0, MOST_FLOWS * sizeof(struct fql_flow));
	memset(slots, 0, sizeof(slots));
	limits[0] = 5;
	limits[1] = 2;
	rates[0] = rates[1] = 0;
}

int main(int count, char **arguments)
{
	u32 most = count > 1 ? atoi(arguments[1]) : 1;
	struct sl_config *config = &sl_shared.template;

	make_packets();
	all_operations();
	area(&sl_shared.qdisc[0], sizeof(sl_shared.qdisc[0]));
	area(block, offsetof(struct fql_block, host));
	area(block->host, MOST_HOSTS * sizeof(struct fql_host));
	area(memory.flow, MOST_FLOWS * sizeof(struct fql_flow));
	area(slots, sizeof(slots));
	area(&sch, sizeof(sch));
	area(&ledger, sizeof(ledger));
	ASAN_POISON_MEMORY_REGION(&block->host[MOST_HOSTS],
				  (FQL_HOSTS - MOST_HOSTS) * sizeof(struct fql_host));
	ASAN_POISON_MEMORY_REGION(&memory.flow[MOST_FLOWS],
				  (128 - MOST_FLOWS) * sizeof(struct fql_flow));

	begin(FLOWS, 2);
	walk_all("`fq-lanes`", 0, most);

	begin(FLOWS, 2);
	walk_all("`fq-lanes`, one old and one young", some_are_older, most);

	begin(FLOWS, 2);
	rates[0] = 1000000;
	rates[1] = 300000;
	config->burst = 10 * MS;
	walk_all("`fq-lanes`, 1 Mbit/s", 0, most);

	begin(2, 1);
	walk_all("`fq-lanes`, 2 flows, 1 host", 0, most);

	begin(2, 1);
	walk_all("`fq-lanes`, 2 flows, 1 host, one old and one young", some_are_older, most);

	begin(1, 1);
	walk_all("`fq-lanes`, 1 flow, one spilled", one_is_spilled, most);

	begin(FLOWS, 2);
	config->limit_in_bytes = 1;
	limits[0] = 4500;
	limits[1] = 2000;
	walk_all("`fq-lanes`, bytes", 0, most);
	return 0;
}
