// SPDX-License-Identifier: GPL-2.0
/*
 * Marks packets of long flows, for the queues behind to tell them from short ones: by
 * skb->priority, which names a class of theirs. A packet whose class is not there is treated as if
 * it had no mark.
 *
 * For any kernel since 5.15: no types of the kernel, no kernel functions.
 */
#include "kernel.h"
#include "marks.h"

struct reader {
	struct __sk_buff *packet;
	u32 length;
};

#define READ(reader, at, size, buffer)                                            \
	(bpf_skb_load_bytes((reader)->packet, (at), (buffer), (size)) ? (void *)0 \
								      : (void *)(buffer))

#include "headers.h"

char LICENSE[] SEC("license") = "GPL";

/* TCX_NEXT and TC_ACT_UNSPEC: whoever comes next decides, as if this program were not here. */
#define NEXT (-1)
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_LRU_HASH 9
/* Fingerprints that each processor keeps at hand; a power of two. */
#define AT_HAND 256

const volatile struct sl_marks_parts parts = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sl_marks_config);
} sl_marks_config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sl_marks_state);
} sl_marks_state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, SL_MARKS_FLOWS);
	__type(key, u64);
	__type(value, struct sl_marks_flow);
} sl_marked SEC(".maps");

/* What long flows are called. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, SL_MARKS_NAMES);
	__type(key, u64);
	__type(value, struct flow_key);
} sl_marks_names SEC(".maps");

/* A key and its fingerprint. */
struct hashed {
	u64 key[6];
	u64 id;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AT_HAND);
	__type(key, u32);
	__type(value, struct hashed);
} sl_marks_hashed SEC(".maps");

#define COUNT(state, counter, by) __sync_fetch_and_add(&(state)->counters.counter, (by))

/* TCP or UDP over plain IP with all headers at hand; false if it is anything else. */
static __always_inline bool plain_key(struct __sk_buff *skb, struct flow_key *key)
{
	void *frame = (void *)(long)skb->data, *end = (void *)(long)skb->data_end, *ip = frame;
	u32 *ends = (u32 *)key->ends, protocol, length;
	u8 *byte;
	u16 *two;
	u32 *four;

	if (parts.ethernet) {
		ip = frame + ETH_HLEN;
		if (ip > end || *(u16 *)(frame + 12) != (u16)skb->protocol)
			return false;
	}
	byte = ip;
	two = ip;
	four = ip;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (ip + 24 > end || byte[0] != 0x45 || two[3] & bpf_htons(0x3fff))
			return false;
		length = bpf_ntohs(two[1]);
		if (length && length < 24)
			return false;
		protocol = byte[9];
		ends[0] = four[3];
		ends[1] = four[4];
		key->selector = bpf_ntohl(four[5]);
		key->kind = ENDPOINTS_V4;
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		if (ip + 44 > end || byte[0] >> 4 != 6)
			return false;
		length = bpf_ntohs(two[2]);
		if (length && length < 4)
			return false;
		protocol = byte[6];
		for (int i = 0; i < 8; i++)
			ends[i] = four[2 + i];
		key->selector = bpf_ntohl(four[10]);
		key->kind = ENDPOINTS_V6;
	} else {
		return false;
	}
	if (protocol != 6 && protocol != 17)
		return false;
	key->protocol = with_kind(protocol, SELECT_PORTS);
	if (skb->vlan_present)
		key->vlans = skb->vlan_tci & 0xfff;
	return true;
}

/* Everything, headers in any place and of any kind. */
static __noinline u64 any_fingerprint(struct __sk_buff *skb, struct sl_marks_state *state,
				      struct flow_key *key)
{
	struct reader r = { skb, skb->len };
	u32 ethertype = bpf_ntohs((u16)skb->protocol), at = 0;

	__builtin_memset(key, 0, sizeof(*key));
	if (skb->vlan_present)
		key->vlans = skb->vlan_tci & 0xfff;
	if (parts.ethernet) {
		if (!read16(&r, 12, &ethertype))
			ethertype = 0;
		at = ETH_HLEN;
	}
	if (!read_frame(&r, ethertype, at, parts.ethernet, key))
		COUNT(state, not_ip, 1);
	if (is_fragment(key))
		COUNT(state, fragments, 1);
	return fingerprint(key, parts.key);
}

/* The fingerprint of a key. Packets of a flow come close together, and the keyed hash takes longer
 * than all else here: what was hashed lately is looked up, by bits that anybody may make collide,
 * which costs them the look. */
static __always_inline u64 known_fingerprint(const struct flow_key *key)
{
	const u32 *ends = (const u32 *)key->ends;
	const u64 *words = (const u64 *)key;
	u32 at = key->selector ^ ends[0] ^ ends[1] ^ ends[3] ^ ends[7];
	struct hashed *known;
	u64 id;

	at ^= at >> 16;
	at = (at ^ at >> 8) & (AT_HAND - 1);
	known = bpf_map_lookup_elem(&sl_marks_hashed, &at);
	if (known && known->key[0] == words[0] && known->key[1] == words[1] &&
	    known->key[2] == words[2] && known->key[3] == words[3] && known->key[4] == words[4] &&
	    known->key[5] == words[5])
		return known->id;
	id = fingerprint(key, parts.key);
	if (known) {
		for (int i = 0; i < 6; i++)
			known->key[i] = words[i];
		known->id = id;
	}
	return id;
}

static __always_inline u64 fingerprint_of(struct __sk_buff *skb, struct sl_marks_state *state,
					  struct flow_key *key)
{
	if (likely(plain_key(skb, key)))
		return known_fingerprint(key);
	return any_fingerprint(skb, state, key);
}

/* How full a bucket is that will be empty at `until`. */
static __always_inline u64 level(u64 until, u64 now)
{
	return until > now ? until - now : 0;
}

static __always_inline u64 drain_time(u64 bytes, u64 cost)
{
	return bytes * cost >> 8;
}

/* The level at which a flow becomes long: lower, the further short flows are beyond their share and
 * half the depth. */
static __always_inline u64 threshold(const struct sl_marks_config *config,
				     const struct sl_marks_state *state, u64 now)
{
	u64 half = config->depth >> 11, beyond = level(state->class_until, now) >> 10;
	u64 most = config->threshold, range = most - config->least;

	if (!half || beyond <= half)
		return most;
	beyond -= half;
	if (beyond > half)
		beyond = half;
	return most - ((range >> 10) * beyond / half << 10);
}

/* Counts a packet of a long flow. Processors may miss each other's. */
static __always_inline void count_long(struct sl_marks_flow *flow, u64 bytes, u64 now)
{
	u32 second = now >> SL_MARKS_SECOND;

	if (second != flow->second) {
		flow->in_former = second == flow->second + 1 ? flow->in_second : 0;
		flow->in_second = 0;
		flow->second = second;
	}
	flow->in_second += bytes;
	flow->bytes += bytes;
	flow->packets++;
}

/* A flow has become long: from now on it is counted, and has a name. */
static __always_inline void name_long(u64 id, const struct flow_key *key,
				      struct sl_marks_flow *flow, u64 now)
{
	flow->since = now;
	flow->bytes = 0;
	flow->packets = 0;
	bpf_map_update_elem(&sl_marks_names, &id, key, 0);
}

/* Whether a packet of a flow is long, and the flow from here on. */
static __always_inline u32 classify(const struct sl_marks_config *config,
				    struct sl_marks_state *state, u64 id,
				    const struct flow_key *key, struct sl_marks_flow *flow,
				    u64 bytes, u64 now)
{
	/* Another processor may have looked at the clock later. */
	if ((s64)(now - flow->last) >= (s64)config->idle) {
		if (flow->is_long)
			COUNT(state, renewed, 1);
		flow->is_long = 0;
		flow->until = 0;
	}
	flow->last = now;
	if (flow->is_long) {
		count_long(flow, bytes, now);
		return SL_MARKS_LONG;
	}
	flow->until = now + level(flow->until, now) + drain_time(bytes, config->flow_cost);
	if (level(flow->until, now) > threshold(config, state, now)) {
		flow->is_long = 1;
		COUNT(state, demoted, 1);
		name_long(id, key, flow, now);
		count_long(flow, bytes, now);
		return SL_MARKS_LONG;
	}
	return SL_MARKS_SHORT;
}

/* Counts what short flows have used of their share. Processors may miss each other's packets. */
static __always_inline void share_used(const struct sl_marks_config *config,
				       struct sl_marks_state *state, u64 bytes, u64 now)
{
	u64 filled = level(state->class_until, now) + drain_time(bytes, config->class_cost);

	if (filled > config->depth)
		filled = config->depth;
	state->class_until = now + filled;
}

SEC("tc")
int shortlane_marks(struct __sk_buff *skb)
{
	u32 zero = 0, class = SL_MARKS_SHORT, priority;
	struct sl_marks_config *config = bpf_map_lookup_elem(&sl_marks_config, &zero);
	struct sl_marks_state *state = bpf_map_lookup_elem(&sl_marks_state, &zero);
	struct sl_marks_flow *flow, fresh = {};
	u64 now, id, bytes = skb->wire_len;
	struct flow_key key = {};

	if (!config || !state)
		return NEXT;
	now = parts.tested ? config->test_now : bpf_ktime_get_ns();
	id = fingerprint_of(skb, state, &key);
	if (skb->gso_segs > 1)
		COUNT(state, super_packets, 1);
	flow = bpf_map_lookup_elem(&sl_marked, &id);
	if (flow) {
		class = classify(config, state, id, &key, flow, bytes, now);
	} else {
		fresh.last = now;
		class = classify(config, state, id, &key, &fresh, bytes, now);
		if (bpf_map_update_elem(&sl_marked, &id, &fresh, 0))
			COUNT(state, flows_untracked, 1);
		else
			COUNT(state, flows_created, 1);
	}
	if (class == SL_MARKS_SHORT)
		share_used(config, state, bytes, now);
	COUNT(state, packets[class & 1], 1);
	COUNT(state, bytes[class & 1], bytes);
	priority = config->priority[class & 1];
	if (priority)
		skb->priority = priority;
	return NEXT;
}
