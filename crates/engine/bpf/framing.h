/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a packet takes up on the link: see `framing.rs`, which is the same outside the kernel.
 */
#ifndef SHORTLANE_FRAMING_H
#define SHORTLANE_FRAMING_H

#include "kernel.h"
#include "shortlane.h"

static __always_inline u64 frame_on_link(const struct sl_config *config, u32 frame)
{
	s64 bytes = (s64)frame + config->overhead;

	if (bytes < config->mpu)
		bytes = config->mpu;
	if (likely(config->cells == SL_NO_CELLS))
		return bytes;
	if (config->cells == SL_ATM)
		return ((u64)bytes + 47) / 48 * 53;
	return (u64)bytes + ((u64)bytes + 63) / 64;
}

/* The kernel counts a super-packet with the headers that its segments will have. */
static __noinline u64 segments_on_link(const struct sl_config *config, struct sk_buff *skb,
				       u32 size, u32 segments)
{
	struct skb_shared_info *info = VIEW(struct skb_shared_info, skb->head + skb->end);
	u32 others = segments - 1, full;

	full = info->gso_size + (size - skb->len) / others;
	/* No super-packet is like that: all the same size then. */
	if ((u64)full * others >= size)
		full = size / segments;
	return others * frame_on_link(config, full) + frame_on_link(config, size - others * full);
}

static __always_inline u64 on_link(const struct sl_config *config, struct sk_buff *skb, u32 size,
				   u32 segments)
{
	if (likely(segments == 1))
		return frame_on_link(config, size);
	return segments_on_link(config, skb, size, segments);
}

#endif
