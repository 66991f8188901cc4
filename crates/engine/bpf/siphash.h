/* SPDX-License-Identifier: GPL-2.0 */
/*
 * SipHash-1-3 (Aumasson and Bernstein 2012): a keyed hash, so that nobody without the key can
 * choose packets whose flows collide. The same function, key and bytes as the userspace
 * fingerprints have.
 */
#ifndef SHORTLANE_SIPHASH_H
#define SHORTLANE_SIPHASH_H

#include "kernel.h"

struct siphash {
	u64 v0, v1, v2, v3;
};

static __always_inline u64 rotate(u64 x, u32 by)
{
	return x << by | x >> (64 - by);
}

static __always_inline void sip_round(struct siphash *s)
{
	s->v0 += s->v1;
	s->v1 = rotate(s->v1, 13) ^ s->v0;
	s->v0 = rotate(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = rotate(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = rotate(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = rotate(s->v1, 17) ^ s->v2;
	s->v2 = rotate(s->v2, 32);
}

static __always_inline void sip_start(struct siphash *s, const volatile u64 *key)
{
	u64 k0 = key[0], k1 = key[1];

	s->v0 = k0 ^ 0x736f6d6570736575ULL;
	s->v1 = k1 ^ 0x646f72616e646f6dULL;
	s->v2 = k0 ^ 0x6c7967656e657261ULL;
	s->v3 = k1 ^ 0x7465646279746573ULL;
}

static __always_inline void sip_word(struct siphash *s, u64 word)
{
	s->v3 ^= word;
	sip_round(s);
	s->v0 ^= word;
}

/* `last` holds the bytes behind the last whole word, below the length of all in the top byte. */
static __always_inline u64 sip_finish(struct siphash *s, u64 last)
{
	sip_word(s, last);
	s->v2 ^= 0xff;
	sip_round(s);
	sip_round(s);
	sip_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

#endif
