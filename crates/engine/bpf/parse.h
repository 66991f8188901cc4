/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From a packet to its flow's fingerprint, in a qdisc, or in a program that sees it just before.
 *
 * TCP and UDP over plain IPv4 or IPv6, with their headers in the linear part, take the short way;
 * everything else is read through a dynptr, which copies where it must.
 */
#ifndef SHORTLANE_PARSE_H
#define SHORTLANE_PARSE_H

#include "qdisc.h"

struct reader {
	struct bpf_dynptr *packet;
	u32 length;
};

#define READ(reader, at, size, buffer) \
	((at) > 0xffff ? (void *)0 : bpf_dynptr_slice((reader)->packet, (at), (buffer), (size)))

#include "headers.h"

#define ARPHRD_ETHER 1

/* Whether anybody asks for hosts. */
#ifndef KNOWS_HOSTS
#define KNOWS_HOSTS false
#endif

/* What a packet turned out to be. */
struct parsed {
	u64 flow; /* fingerprint, never 0 */
	u32 kind; /* if KNOWS_HOSTS, enum endpoints: what addresses it has, and where */
	u32 ends_at;
	u32 fragment;
	u32 not_ip;
};

/* Reads headers in any place and of any kind; false if they are not of IP. `frame` is what a program
 * of this type has a dynptr of: in a qdisc, the packet itself. */
static __always_inline bool any_key(struct sk_buff *skb, void *frame, u32 ethernet,
				    struct flow_key *key)
{
	struct bpf_dynptr packet;
	struct reader r = { &packet, skb->len };
	u32 ethertype = bpf_ntohs(skb->protocol), at = 0;

	if (bpf_dynptr_from_skb(frame, 0, &packet))
		return false;
	if (skb->vlan_proto)
		key->vlans = skb->vlan_tci & 0xfff;
	if (ethernet) {
		if (!read16(&r, 12, &ethertype))
			ethertype = 0;
		at = ETH_HLEN;
	} else {
		at = skb->network_header - (u32)(skb->data - skb->head);
	}
	return read_frame(&r, ethertype, at, ethernet, key);
}

/* Everything. */
static __noinline u64 parse_any(struct sk_buff *skb, void *frame, struct parsed *parsed,
				const volatile u64 *secret, u32 ethernet)
{
	struct flow_key key = {};

	parsed->not_ip = !any_key(skb, frame, ethernet, &key);
	parsed->fragment = is_fragment(&key);
	parsed->flow = fingerprint(&key, secret);
	if (KNOWS_HOSTS) {
		parsed->kind = key.kind;
		parsed->ends_at = key.ends_at;
	}
	return 0;
}

/*
 * Whether what lies in front of the network header says what skb->protocol says. It does not in a
 * frame that a raw socket sends with a tag of its own through a VLAN interface: the kernel then gives
 * the protocol behind the tag, but the place of the tag.
 */
static __always_inline bool is_in_place(struct sk_buff *skb)
{
	void *header = skb->head + skb->network_header;

	return likely(VIEW(struct udphdr, header - 2)->source == skb->protocol) ||
	       skb->dev->type != ARPHRD_ETHER;
}

/* TCP or UDP over plain IP with all headers at hand; false if it is anything else. */
static __always_inline bool plain_key(struct sk_buff *skb, struct flow_key *key)
{
	u32 at = skb->network_header, linear = skb->tail - at, protocol, length;
	void *header = skb->head + at;
	u32 *ends = (u32 *)key->ends;
	struct udphdr *ports;
	/* Not a port: the first two bytes, of which one is version and header length. */
	u32 first = bpf_ntohs(VIEW(struct udphdr, header)->source) >> 8;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = VIEW(struct iphdr, header);

		length = bpf_ntohs(ip->tot_len);
		if (linear < 24 || first != 0x45 || ip->frag_off & bpf_htons(0x3fff) ||
		    (length && length < 24))
			return false;
		protocol = ip->protocol;
		ends[0] = ip->saddr;
		ends[1] = ip->daddr;
		ports = VIEW(struct udphdr, header + 20);
		key->kind = ENDPOINTS_V4;
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = VIEW(struct ipv6hdr, header);

		length = bpf_ntohs(ip->payload_len);
		if (linear < 44 || first >> 4 != 6 || (length && length < 4))
			return false;
		protocol = ip->nexthdr;
		for (int i = 0; i < 4; i++) {
			ends[i] = ip->saddr.in6_u.u6_addr32[i];
			ends[i + 4] = ip->daddr.in6_u.u6_addr32[i];
		}
		ports = VIEW(struct udphdr, header + 40);
		key->kind = ENDPOINTS_V6;
	} else {
		return false;
	}
	if (protocol != 6 && protocol != 17)
		return false;
	key->selector = (u32)bpf_ntohs(ports->source) << 16 | bpf_ntohs(ports->dest);
	key->protocol = with_kind(protocol, SELECT_PORTS);
	if (skb->vlan_proto)
		key->vlans = skb->vlan_tci & 0xfff;
	return true;
}

static __always_inline bool parse_plain(struct sk_buff *skb, struct parsed *parsed,
					const volatile u64 *secret)
{
	struct flow_key key = {};

	if (!plain_key(skb, &key))
		return false;
	parsed->flow = fingerprint(&key, secret);
	if (KNOWS_HOSTS) {
		u32 at = skb->network_header - (u32)(skb->data - skb->head);

		parsed->kind = key.kind;
		parsed->ends_at = at + (key.kind == ENDPOINTS_V4 ? 12 : 8);
	}
	return true;
}

static __always_inline void parse(struct sk_buff *skb, void *frame, struct parsed *parsed)
{
	parsed->fragment = 0;
	parsed->not_ip = 0;
	if (unlikely(parts.only_slow_parser) || !is_in_place(skb) ||
	    !parse_plain(skb, parsed, parts.key))
		parse_any(skb, frame, parsed, parts.key, skb->dev->type == ARPHRD_ETHER);
}

#endif
