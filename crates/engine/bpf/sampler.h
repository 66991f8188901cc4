/* SPDX-License-Identifier: GPL-2.0 */
/* Which flows does the flow table take up? The same draws from the same seed as in userspace. */
#ifndef SHORTLANE_SAMPLER_H
#define SHORTLANE_SAMPLER_H

#include "maps.h"
#include "siphash.h"

/* Xoshiro256++ (Blackman and Vigna 2018). */
static __always_inline u64 draw(u64 *state)
{
	u64 result = rotate(state[0] + state[3], 23) + state[0];
	u64 shifted = state[1] << 17;

	state[2] ^= state[0];
	state[3] ^= state[1];
	state[1] ^= state[2];
	state[0] ^= state[3];
	state[2] ^= shifted;
	state[3] = rotate(state[3], 45);
	return result;
}

/* The upper half of a product of 64-bit numbers. */
static __always_inline u64 times(u64 a, u64 b)
{
	u64 a0 = (u32)a, a1 = a >> 32, b0 = (u32)b, b1 = b >> 32;
	u64 low = a0 * b0, middle = a1 * b0 + (low >> 32);
	u64 other = a0 * b1 + (u32)middle;

	return a1 * b1 + (middle >> 32) + (other >> 32);
}

/* base^exponent in 0.64 fixed point; all ones stand for 1. */
static __always_inline u64 power(u64 base, u32 exponent)
{
	u64 result = ~0ULL, square = base;
	u32 i;

	if (base == ~0ULL)
		return base;
	bpf_for(i, 0, 32) {
		if (!exponent)
			break;
		if (exponent & 1)
			result = times(result, square);
		square = times(square, square);
		exponent >>= 1;
	}
	return result;
}

/* Whether a packet brings its flow into the table. */
static __always_inline bool takes_up(const struct queue *q, u32 size)
{
	struct sl_instance *in = q->in;

	if (parts.accounting == SL_EVERY_FLOW || q->config->always)
		return true;
	if (parts.accounting == SL_PER_PACKET)
		return draw(in->sampler) < q->config->draw;
	/* By bytes: `draw` is the chance that one is missed. Most packets have one of two sizes. */
	if (size != in->last_size) {
		in->last_size = size;
		in->last_miss = power(q->config->draw, size);
	}
	return draw(in->sampler) > in->last_miss;
}

#endif
