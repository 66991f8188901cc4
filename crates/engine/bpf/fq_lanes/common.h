/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the transmit queues of a device know in common of a host with flows in several of them.
 *
 * Each of these queues gives the host a part of its share of the link, lest it have as many shares as
 * queues; and what a flow's fair share is goes by all flows of its host, wherever they are. Hosts are
 * told apart here by a few bits of their keys: two with the same bits have less of the link than they
 * should, and their flows are forgiven more.
 */
#ifndef SHORTLANE_FQ_LANES_COMMON_H
#define SHORTLANE_FQ_LANES_COMMON_H

#include "clock.h"

/* How many hosts are told apart; a power of two. */
#define FQL_COMMON 4096
#define WHOLE_PART 256

/* Of the hosts with the same bits. */
struct fql_common {
	u64 virtual_time; /* bytes that one more flow would have been served, in units of 2^-FQL_BITS */
	u32 queues; /* in which one is backlogged */
	u32 flows; /* that are backlogged, in all of these */
};

struct {
	struct fql_common host[FQL_COMMON];
} fql_common SEC(".data.common");

static __always_inline struct fql_common *common_of(const struct fql_host *host)
{
	return &fql_common.host[within(host->key, FQL_COMMON - 1)];
}

static __always_inline void set_part(const struct fq_lanes *fq, struct fql_host *host, u32 part)
{
	fq->block->parts += part - host->part;
	host->part = part;
}

static __always_inline u32 part_now(const struct fql_host *host)
{
	u32 queues = *(volatile u32 *)&common_of(host)->queues;

	return queues > 1 && queues <= SL_INSTANCES ? WHOLE_PART / queues : WHOLE_PART;
}

/* A flow becomes backlogged, and its host unless that is. */
static __always_inline void common_begins(const struct fq_lanes *fq, struct fql_host *host)
{
	if (!parts.common)
		return;
	host->stage.virtual_time = *(volatile u64 *)&common_of(host)->virtual_time;
	__sync_fetch_and_add(&common_of(host)->flows, 1);
	host->flows++;
	if (host->part)
		return;
	__sync_fetch_and_add(&common_of(host)->queues, 1);
	set_part(fq, host, part_now(host));
}

/* So many flows of a host have nothing queued any more, and the host neither if these were all. */
static __always_inline void common_ends(const struct fq_lanes *fq, struct fql_host *host, u32 flows)
{
	if (!parts.common || !flows)
		return;
	__sync_fetch_and_add(&common_of(host)->flows, -flows);
	host->flows -= flows;
	if (host->flows)
		return;
	__sync_fetch_and_add(&common_of(host)->queues, -1);
	set_part(fq, host, 0);
}

/* Bytes of a host's next turn: by its part, and a quantum for all hosts of this queue on average, so
 * that small parts do not make many turns of a packet. */
static __always_inline u32 quantum_of(const struct fq_lanes *fq, struct fql_host *host)
{
	u64 all = (u64)FQL_QUANTUM * fq->block->root.listed;

	if (!parts.common || !host->part)
		return FQL_QUANTUM;
	set_part(fq, host, part_now(host));
	return all * host->part / fq->block->parts;
}

/* How much further a queue comes by so many bytes. */
static __always_inline u64 turn_of(const struct fq_lanes *fq, u32 size)
{
	u64 whole = ((u64)size << TURN_BITS) * WHOLE_PART;

	return whole / (fq->block->parts ? fq->block->parts : WHOLE_PART);
}

/* `size` bytes of a host's flows left, of which `share` would have been another one's in this queue. */
static __always_inline void pass_time(struct fql_host *host, u32 size, u64 share)
{
	struct fql_common *common = common_of(host);
	u64 flows = *(volatile u32 *)&common->flows;

	if (!parts.common) {
		host->stage.virtual_time += share;
		return;
	}
	share = ((u64)size << FQL_BITS) / (flows + 1);
	host->stage.virtual_time = __sync_fetch_and_add(&common->virtual_time, share) + share;
}

#endif
