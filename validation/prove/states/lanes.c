/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every sequence of operations on the qdisc with a short and a long lane, as EFD and as others.
 *
 * Beside what holds of every qdisc: lanes are FIFO; strict service sends the short lane first; a packet
 * that is pushed out is the last of the long lane; EFD has an entry for each flow with packets, and
 * no other, and puts each packet where the paper says; chains of the table are whole both ways.
 *
 * Options: 7
 */
#include "explore.h"

#include "shortlane.bpf.c"

#include "walk.h"

#define RING 4
#define BUCKETS 2
#define ENTRIES 3

static struct sl_slot slots[RING * SL_LANES];
static u32 buckets[BUCKETS];
static struct sl_flow flows[ENTRIES];

/* EFD as its paper tells it: what was seen of a flow since it had nothing queued. */
static struct {
	u32 queued; /* packets that its entry counts */
	u32 seen;
	u32 is_long;
} seen[FLOWS];

void *bpf_map_lookup_elem(void *map, void *key)
{
	u32 at = *(u32 *)key;

	if (map == &sl_slots)
		return element(slots, sizeof(*slots), at, 0, RING * SL_LANES);
	if (map == &sl_buckets)
		return element(buckets, sizeof(*buckets), at, 0, BUCKETS);
	must(map == &sl_flows, "an unknown map");
	return element(flows, sizeof(*flows), at, 0, ENTRIES);
}

static struct sl_instance *in = &sl_shared.qdisc[0].instance;

static u32 entries_seen(void)
{
	u32 count = 0;

	for (u32 flow = 0; flow < FLOWS; flow++)
		count += seen[flow].queued > 0;
	return count;
}

static u32 expected_lane(struct kind *kind, u8 *of_the_table)
{
	typeof(*seen) *flow = &seen[kind->flow];
	u32 cost = in_force()->threshold_in_bytes ? kind->size : kind->segments;

	if (parts.accounting != SL_WHILE_QUEUED)
		return SL_MOST_LANES;
	if (!flow->queued) {
		if (entries_seen() == in_force()->flow_bound)
			return SL_HIGH;
		flow->seen = flow->is_long = 0;
	}
	*of_the_table = 1;
	if (!flow->is_long) {
		flow->is_long = flow->seen + (in_force()->inclusive ? cost : 0) >=
				in_force()->threshold;
		flow->seen += flow->is_long ? 0 : cost;
	}
	return flow->is_long ? SL_LOW : SL_HIGH;
}

static bool is_last_of_its_lane(u32 at)
{
	for (u32 i = at + 1; i < ledger.held; i++)
		if (ledger.packet[i].lane == ledger.packet[at].lane)
			return false;
	return true;
}

static bool may_drop_held(u32 at)
{
	return is_reset || (arriving && parts.buffer == SL_KNOCKOUT &&
			    ledger.packet[at].lane == SL_LOW && is_last_of_its_lane(at));
}

static void check_departure(u32 at)
{
	u32 lane = ledger.packet[at].lane;

	for (u32 i = 0; i < at; i++)
		must(ledger.packet[i].lane != lane, "a lane is no FIFO");
	for (u32 i = 0; i < ledger.held && parts.service == SL_STRICT; i++)
		must(lane == SL_HIGH || ledger.packet[i].lane == SL_LOW,
		     "the long lane goes first");
}

static void check_chain(u32 first, bool *met)
{
	for (u32 at = first, before = 0; at; before = at, at = flows[at - 1].next) {
		must(at <= ENTRIES && !met[at - 1], "a chain is broken");
		met[at - 1] = true;
		must(flows[at - 1].prev == before, "a chain is broken backwards");
	}
}

/* How many packets of the ledger each flow's entry counts. */
static void count_seen(void)
{
	for (u32 flow = 0; flow < FLOWS; flow++)
		seen[flow].queued = 0;
	for (u32 i = 0; i < ledger.held; i++)
		seen[kind_of(&ledger.packet[i])->flow].queued += ledger.packet[i].of_the_table;
	for (u32 flow = 0; flow < FLOWS; flow++)
		if (!seen[flow].queued)
			seen[flow].seen = seen[flow].is_long = 0;
}

static void check_structure(void)
{
	bool met[ENTRIES] = {};
	u32 entries = 0, free = 0;

	for (u32 i = 0; i < BUCKETS; i++)
		check_chain(buckets[i], met);
	for (u32 i = 0; i < ENTRIES; i++) {
		must(met[i] == (i < in->fresh && flows[i].id), "an entry is in no chain");
		entries += met[i];
	}
	for (u32 at = in->free; at && free <= ENTRIES; at = flows[at - 1].next)
		free++;
	must(entries == in->flows, "the table does not know how many entries it has");
	must(entries + free == in->fresh, "an entry is neither used nor free");
	must(entries <= in_force()->flow_bound, "more entries than the bound");
	count_seen();
	if (parts.accounting == SL_WHILE_QUEUED)
		must(in->flows + in->alone == entries_seen(), "entries for other than the flows");
	/* What a free slot held is nobody's. */
	for (u32 i = 0; i < RING * SL_LANES; i++)
		if (!slots[i].skb)
			memset(&slots[i], 0, sizeof(slots[i]));
	for (u32 i = 0; i < in->fresh; i++)
		if (!flows[i].id)
			flows[i] = (struct sl_flow){ .next = flows[i].next };
}

/* All flows share a chain. */
static void choose_ports(void)
{
	u64 ids[FLOWS];

	for (u32 flow = 0; flow < FLOWS; flow++) {
		do {
			struct packet packet;
			struct parsed parsed;

			ports_of[flow]++;
			make_packet(&packet,
				    &(struct kind){ .flow = flow, .size = 100, .segments = 1 });
			parse(&packet.skb, &packet.skb, &parsed);
			ids[flow] = parsed.flow;
		} while (ids[flow] & parts.bucket_mask);
	}
}

static void begin(enum sl_accounting accounting, enum sl_service service, enum sl_buffer buffer)
{
	parts = (struct sl_parts){ .accounting = accounting,
				   .service = service,
				   .buffer = buffer,
				   .instances = 1,
				   .ring_mask = RING - 1,
				   .bucket_mask = BUCKETS - 1,
				   .flows = ENTRIES,
				   .key = { 1, 2 } };
	sl_shared.template = (struct sl_config){ .threshold = 2,
						 .idle = 2000 * MS,
						 .sweep = 1000 * MS,
						 .high_cap = SL_UNLIMITED,
						 .always = 1,
						 .weight = SL_BILLION / 2,
						 .mpu = 1,
						 .flow_bound = ENTRIES };
	memset(slots, 0, sizeof(slots));
	memset(buckets, 0, sizeof(buckets));
	memset(flows, 0, sizeof(flows));
	memset(seen, 0, sizeof(seen));
	limits[0] = 4;
	limits[1] = 2;
	keeps_order = true;
	rates[0] = rates[1] = 0;
}

int main(int count, char **arguments)
{
	u32 most = count > 1 ? atoi(arguments[1]) : 1;
	struct sl_config *config = &sl_shared.template;

	device.type = ARPHRD_ETHER;
	tx_queue.dev = &device;
	sch.dev_queue = &tx_queue;
	begin(SL_WHILE_QUEUED, SL_STRICT, SL_DROP_TAIL);
	choose_ports();
	make_packets();
	all_operations();
	area(&sl_shared.qdisc[0], sizeof(sl_shared.qdisc[0]));
	area(slots, sizeof(slots));
	area(buckets, sizeof(buckets));
	area(flows, sizeof(flows));
	area(seen, sizeof(seen));
	area(&sch, sizeof(sch));
	area(&ledger, sizeof(ledger));

	walk_all("`efd`", 0, most);

	begin(SL_WHILE_QUEUED, SL_STRICT, SL_DROP_TAIL);
	config->threshold = 1100;
	config->threshold_in_bytes = config->limit_in_bytes = config->inclusive = 1;
	limits[0] = 3500;
	limits[1] = 2000;
	walk_all("`efd`, bytes, inclusive", 0, most);

	begin(SL_WHILE_QUEUED, SL_STRICT, SL_DROP_TAIL);
	rates[0] = 1000000;
	rates[1] = 300000;
	config->burst = 10 * MS;
	walk_all("`efd`, 1 Mbit/s", 0, most);

	begin(SL_WHILE_QUEUED, SL_STRICT, SL_DROP_TAIL);
	config->flow_bound = 2;
	walk_all("`efd`, 2 entries", 0, most);

	begin(SL_WHILE_QUEUED, SL_GUARANTEED, SL_DROP_TAIL);
	config->low_share = SL_BILLION / 4;
	walk_all("`efd`, a share of 1/4", 0, most);

	begin(SL_WHILE_QUEUED, SL_STRICT, SL_KNOCKOUT);
	walk_all("`efd`, pushing out", 0, most);

	begin(SL_EVERY_FLOW, SL_STRICT, SL_DROP_TAIL);
	config->flow_bound = 2;
	walk_all("`run2c`, 2 entries", 0, most);

	begin(SL_EVERY_FLOW, SL_WEIGHTED, SL_KNOCKOUT);
	keeps_order = false;
	walk_all("`sb-ko`", 0, most);
	return 0;
}
