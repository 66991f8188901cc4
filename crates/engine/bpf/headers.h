/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From the bytes of a frame to its flow's fingerprint, however they are read: whoever includes this
 * says so by `struct reader` (with `length`) and READ(reader, at, size, buffer), which copies or
 * points to `size` bytes at `at` from the link-layer header on, and is NULL beyond the frame's end.
 *
 * The key is that of the userspace engine: addresses, protocol, what tells flows between two
 * addresses apart (ports, echo id, SPI, GRE key), and VLAN ids. All fragments between two hosts
 * are one flow. What carries no readable IP packet is keyed by MAC addresses and ethertype.
 */
#ifndef SHORTLANE_HEADERS_H
#define SHORTLANE_HEADERS_H

#include "kernel.h"
#include "siphash.h"

#define ETH_P_IPV6 0x86dd
#define ETH_P_8021Q 0x8100
#define ETH_P_8021AD 0x88a8
#define ETH_P_QINQ1 0x9100
#define ETH_P_QINQ2 0x9200
#define ETH_P_PPP_SES 0x8864
#define ETH_P_802_3_MIN 0x0600
#define ETH_HLEN 14
#define ETH_ALEN 6

#define MAX_TAGS 8
#define MAX_EXTENSIONS 8

enum selector {
	SELECT_NONE,
	SELECT_PORTS,
	SELECT_ID,
	SELECT_FRAGMENT,
};

enum endpoints {
	ENDPOINTS_V4,
	ENDPOINTS_V6,
	ENDPOINTS_MAC,
};

struct flow_key {
	u32 selector; /* the value: ports or an id */
	u32 protocol; /* and the kind of selector, from bit 16 */
	u32 vlans; /* innermost id in the low half, the one around it in the high half */
	u32 kind; /* enum endpoints */
	u8 ends[32]; /* source, destination, as on the wire */
	u32 ends_at; /* where they are in the frame; no part of the key */
};

static __always_inline u32 with_kind(u32 protocol, enum selector kind)
{
	return protocol | kind << 16;
}

/* The bytes of a key in the order of its hash, eight at a time. */
static __always_inline u64 fingerprint(const struct flow_key *key, const volatile u64 *secret)
{
	const u32 *ends = (const u32 *)key->ends;
	struct siphash s;
	u64 hash;

	sip_start(&s, secret);
	sip_word(&s, key->selector | (u64)key->protocol << 32);
	sip_word(&s, key->vlans | (u64)ends[0] << 32);
	if (key->kind == ENDPOINTS_V4) {
		hash = sip_finish(&s, ends[1] | 20ULL << 56);
	} else if (key->kind == ENDPOINTS_MAC) {
		sip_word(&s, ends[1] | (u64)ends[2] << 32);
		hash = sip_finish(&s, 24ULL << 56);
	} else {
		sip_word(&s, ends[1] | (u64)ends[2] << 32);
		sip_word(&s, ends[3] | (u64)ends[4] << 32);
		sip_word(&s, ends[5] | (u64)ends[6] << 32);
		hash = sip_finish(&s, ends[7] | 44ULL << 56);
	}
	return hash ? hash : 1;
}

/* The fingerprint of a host, by its address as on the wire. */
static __always_inline u32 host_fingerprint(const u8 *address, u32 kind, const volatile u64 *secret)
{
	const u32 *words = (const u32 *)address;
	struct siphash s;

	sip_start(&s, secret);
	if (kind == ENDPOINTS_V4)
		return sip_finish(&s, words[0] | 4ULL << 56);
	if (kind == ENDPOINTS_MAC)
		return sip_finish(&s, words[0] | (u64)(words[1] & 0xffff) << 32 | 6ULL << 56);
	sip_word(&s, words[0] | (u64)words[1] << 32);
	sip_word(&s, words[2] | (u64)words[3] << 32);
	return sip_finish(&s, 16ULL << 56);
}

static __always_inline bool has_ports(u32 protocol)
{
	/* TCP, UDP, DCCP, SCTP, UDP-Lite */
	return protocol == 6 || protocol == 17 || protocol == 33 || protocol == 132 ||
	       protocol == 136;
}

static __always_inline bool read16(struct reader *r, u32 at, u32 *value)
{
	u8 buffer[2];
	u8 *b = READ(r, at, sizeof(buffer), buffer);

	if (!b)
		return false;
	*value = (u32)b[0] << 8 | b[1];
	return true;
}

static __always_inline bool read32(struct reader *r, u32 at, u32 *value)
{
	u8 buffer[4];
	u8 *b = READ(r, at, sizeof(buffer), buffer);

	if (!b)
		return false;
	*value = (u32)b[0] << 24 | (u32)b[1] << 16 | (u32)b[2] << 8 | b[3];
	return true;
}

static __always_inline bool is_tag(u32 ethertype)
{
	return ethertype == ETH_P_8021Q || ethertype == ETH_P_8021AD || ethertype == ETH_P_QINQ1 ||
	       ethertype == ETH_P_QINQ2;
}

/* What follows the network headers, and up to where it goes. */
struct transport {
	u32 at;
	u32 end;
};

static __always_inline bool fits(const struct transport *t, u32 bytes)
{
	return t->at + bytes <= t->end;
}

/* Reads what tells flows of a protocol apart; leaves the key without where there is nothing. */
static __always_inline void select_flow(struct reader *r, const struct transport *t, u32 protocol,
					struct flow_key *key)
{
	u32 value, type, at = t->at;

	key->selector = 0;
	key->protocol = with_kind(protocol, SELECT_NONE);
	if (has_ports(protocol)) {
		if (fits(t, 4) && read32(r, at, &value)) {
			key->selector = value;
			key->protocol = with_kind(protocol, SELECT_PORTS);
		}
		return;
	}
	switch (protocol) {
	case 1: /* ICMP: echo and its reply */
	case 58: /* ICMPv6 */
		if (!fits(t, 6) || !read16(r, at, &type) || !read16(r, at + 4, &value))
			return;
		type >>= 8;
		if (protocol == 1 ? type != 0 && type != 8 : type != 128 && type != 129)
			return;
		break;
	case 50: /* ESP: the SPI */
		if (!fits(t, 4) || !read32(r, at, &value))
			return;
		break;
	case 51: /* AH that is cut off: the SPI */
		if (!fits(t, 8) || !read32(r, at + 4, &value))
			return;
		break;
	case 47: /* GRE: its key; of PPTP's the call id */
		if (!fits(t, 4) || !read16(r, at, &type) || !(type & 0x2000))
			return;
		at += type & 0x8000 ? 8 : 4;
		if (at + 4 > t->end || !read32(r, at, &value))
			return;
		if ((type & 7) == 1)
			value &= 0xffff;
		break;
	default:
		return;
	}
	key->selector = value;
	key->protocol = with_kind(protocol, SELECT_ID);
}

/* Passes over an authentication header at the front of the transport, if it is whole. */
static __always_inline bool skip_ah(struct reader *r, struct transport *t, u32 *protocol)
{
	u32 head, length;

	if (!fits(t, 12) || !read16(r, t->at, &head))
		return false;
	length = ((head & 0xff) + 2) * 4;
	if (length < 12 || !fits(t, length))
		return false;
	*protocol = head >> 8;
	t->at += length;
	return true;
}

static __always_inline bool read_ipv4(struct reader *r, u32 at, struct flow_key *key)
{
	u8 buffer[20];
	u8 *ip = READ(r, at, sizeof(buffer), buffer);
	struct transport t;
	u32 header, total, protocol, fragment;

	if (!ip || ip[0] >> 4 != 4)
		return false;
	header = (ip[0] & 15) * 4;
	total = (u32)ip[2] << 8 | ip[3];
	if (header < 20 || at + header > r->length)
		return false;
	/* A total length of 0 is TSO's; one that is too short or too long is not to be believed. */
	t.at = at + header;
	t.end = total >= header && at + total <= r->length ? at + total : r->length;
	protocol = ip[9];
	fragment = ((u32)ip[6] << 8 | ip[7]) & 0x3fff;
	__builtin_memcpy(key->ends, ip + 12, 8);
	key->ends_at = at + 12;
	key->kind = ENDPOINTS_V4;
	if (fragment) {
		key->selector = 0;
		key->protocol = with_kind(protocol, SELECT_FRAGMENT);
		return true;
	}
	if (protocol == 51)
		skip_ah(r, &t, &protocol);
	select_flow(r, &t, protocol, key);
	return true;
}

static __always_inline bool read_ipv6(struct reader *r, u32 at, struct flow_key *key)
{
	u8 buffer[40];
	u8 *ip = READ(r, at, sizeof(buffer), buffer);
	struct transport t;
	u32 protocol, payload, head, length, offset, fragmented = 0;

	if (!ip || ip[0] >> 4 != 6)
		return false;
	payload = (u32)ip[4] << 8 | ip[5];
	protocol = ip[6];
	__builtin_memcpy(key->ends, ip + 8, 32);
	key->ends_at = at + 8;
	key->kind = ENDPOINTS_V6;
	t.at = at + 40;
	/* A payload length of 0 is a jumbogram's, or TSO's. */
	t.end = payload && t.at + payload <= r->length ? t.at + payload : r->length;
	for (int i = 0; i < MAX_EXTENSIONS; i++) {
		switch (protocol) {
		case 0: /* hop by hop: the first one or none */
			if (i > 0)
				goto out;
			fallthrough;
		case 43: /* routing */
		case 60: /* destination options */
			if (!fits(&t, 8) || !read16(r, t.at, &head))
				goto out;
			length = ((head & 0xff) + 1) * 8;
			if (!fits(&t, length))
				goto out;
			protocol = head >> 8;
			t.at += length;
			continue;
		case 44: /* fragment */
			if (!fits(&t, 8) || !read16(r, t.at, &head) ||
			    !read16(r, t.at + 2, &offset))
				goto out;
			protocol = head >> 8;
			/* The first one names the protocol, which its bit keeps apart from none. */
			if (!fragmented)
				fragmented = protocol | 0x100;
			if (offset & 0xfff9) {
				key->selector = 0;
				key->protocol = with_kind(fragmented & 0xff, SELECT_FRAGMENT);
				return true;
			}
			t.at += 8;
			continue;
		case 51:
			if (!skip_ah(r, &t, &protocol))
				goto out;
			continue;
		}
		break;
	}
out:
	select_flow(r, &t, protocol, key);
	return true;
}

/* A PPP protocol field (one byte if compressed) that announces IP; 0 if it does not. */
static __always_inline u32 ppp_payload(struct reader *r, u32 *at)
{
	u32 protocol, length = 2;
	u8 buffer[1];
	u8 *first = READ(r, *at, sizeof(buffer), buffer);

	if (!first)
		return 0;
	if (first[0] & 1) {
		protocol = first[0];
		length = 1;
	} else if (!read16(r, *at, &protocol)) {
		return 0;
	}
	*at += length;
	return protocol == 0x21 ? ETH_P_IP : protocol == 0x57 ? ETH_P_IPV6 : 0;
}

/*
 * The key of a frame whose headers may be in any place and of any kind: tags, PPPoE, IP. `at` is
 * what `ethertype` names; false if that is no readable IP packet.
 */
static __always_inline bool read_frame(struct reader *r, u32 ethertype, u32 at, u32 ethernet,
				       struct flow_key *key)
{
	bool is_ip = false;
	u32 tag, next;

	for (int i = 0; i < MAX_TAGS && is_tag(ethertype); i++) {
		if (!read16(r, at, &tag) || !read16(r, at + 2, &next))
			break;
		if (tag & 0xfff)
			key->vlans = key->vlans << 16 | (tag & 0xfff);
		ethertype = next;
		at += 4;
	}
	if (ethertype == ETH_P_PPP_SES) {
		u32 inner = at + 6, found = ppp_payload(r, &inner);

		if (found) {
			ethertype = found;
			at = inner;
		}
	}
	if (ethertype == ETH_P_IP)
		is_ip = read_ipv4(r, at, key);
	else if (ethertype == ETH_P_IPV6)
		is_ip = read_ipv6(r, at, key);
	if (!is_ip) {
		u8 buffer[12];
		u8 *mac = ethernet ? READ(r, 0, sizeof(buffer), buffer) : 0;

		if (mac) { /* the destination comes first */
			__builtin_memcpy(key->ends, mac + 6, 6);
			__builtin_memcpy(key->ends + 6, mac, 6);
		}
		key->kind = ENDPOINTS_MAC;
		key->selector = 0;
		key->protocol = ethertype < ETH_P_802_3_MIN ? 0 : ethertype;
	}
	return is_ip;
}

static __always_inline bool is_fragment(const struct flow_key *key)
{
	return key->protocol >> 16 == SELECT_FRAGMENT;
}

#endif
