/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Any frame: no byte beyond its end is read, the addresses of the key are those that lie in the frame
 * where the key says, and a frame that is no IP is keyed by its MAC addresses.
 *
 * Bounds: frames of 0 to 72 bytes, Ethernet or none, any ethertype
 * Options: --unwind 9
 */
#include <string.h>

#include "kernel.h"

/* Clang has it inline. */
#define __builtin_memcpy memcpy

#define MOST 72

struct reader {
	u32 length;
};

static u8 frame[MOST];
u32 nondet_u32(void);
struct bytes {
	u8 at[MOST];
} nondet_bytes(void);

static void *part(const struct reader *r, u32 at, u32 size)
{
	return at <= r->length && size <= r->length - at ? frame + at : 0;
}

#define READ(reader, at, size, buffer) ((void)(buffer), part(reader, at, size))

#include "headers.h"

int main(void)
{
	struct bytes bytes = nondet_bytes();
	struct reader r = { nondet_u32() };
	struct flow_key key = {};
	u32 ethernet = nondet_u32() & 1, i = nondet_u32();
	bool is_ip;

	__CPROVER_assume(r.length <= MOST);
	memcpy(frame, bytes.at, MOST);
	is_ip = read_frame(&r, nondet_u32() & 0xffff, ethernet ? ETH_HLEN : 0, ethernet, &key);
	__CPROVER_assert(is_ip == (key.kind != ENDPOINTS_MAC), "IP or MAC addresses");
	if (is_ip) {
		u32 size = key.kind == ENDPOINTS_V4 ? 8 : 32;

		__CPROVER_assert(key.ends_at + size <= r.length, "addresses lie in the frame");
		if (i < size)
			__CPROVER_assert(key.ends[i] == frame[key.ends_at + i],
					 "they are the frame's");
	} else {
		__CPROVER_assert(!key.selector && key.protocol <= 0xffff, "no ports without IP");
	}
	return 0;
}
