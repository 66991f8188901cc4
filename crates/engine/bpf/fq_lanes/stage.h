/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A stage: members that take turns by deficit round robin, the younger before the older.
 *
 * There is one stage of hosts, and in every host one of flows; both are this file. A member is
 * listed from the time it becomes backlogged until its turn finds it empty.
 */
#ifndef SHORTLANE_FQ_LANES_STAGE_H
#define SHORTLANE_FQ_LANES_STAGE_H

#include "common.h"
#include "idle.h"

static __always_inline struct fql_member *member_at(const struct fq_lanes *fq, enum members of,
						    u32 index)
{
	return of == OF_HOSTS ? &host_at(fq, index)->member : &flow_at(fq, index)->member;
}

static __always_inline bool is_empty(const struct fq_lanes *fq, enum members of, u32 index)
{
	return of == OF_HOSTS ? !host_at(fq, index)->packets : !flow_at(fq, index)->head;
}

static __always_inline struct fql_list *list_at(struct fql_stage *stage, u32 list)
{
	struct fql_list *ends = &stage->lists[within(list, FQL_LIST_MASK)];

	hide(ends);
	return ends;
}

/* Bytes that one more member would have been served since a reading of the virtual time; none since
 * one that was taken before this stage was made anew. */
static __always_inline u64 share_since(const struct fql_stage *stage, u64 reading)
{
	return minus(stage->virtual_time, reading) >> FQL_BITS;
}

static __always_inline bool is_one_list(const struct fql_stage *stage)
{
	return !(stage->occupied & (stage->occupied - 1));
}

static __always_inline u32 first_list(const struct fql_stage *stage)
{
	u64 lowest = stage->occupied & -stage->occupied;

	/* Three bits at three times 1, 2, 4, 8, 16: a table takes no branch. */
	return (1ULL << 6 | 2ULL << 12 | 3ULL << 24 | 4ULL << 48) >> (3 * lowest & 63) & 7;
}

static __always_inline void append(const struct fq_lanes *fq, struct fql_stage *stage,
				   enum members of, u32 index, u32 list)
{
	struct fql_member *member = member_at(fq, of, index);
	struct fql_list *ends = list_at(stage, list);

	member->list = list + 1;
	member->next = FQL_NONE;
	ends->members++;
	if (ends->last) {
		member_at(fq, of, ends->last)->next = index;
	} else {
		ends->first = index;
		stage->occupied |= 1 << (list & 7);
	}
	ends->last = index;
}

static __always_inline void remove_first(const struct fq_lanes *fq, struct fql_stage *stage,
					 enum members of, u32 list)
{
	struct fql_list *ends = list_at(stage, list);

	ends->members--;
	ends->first = member_at(fq, of, ends->first)->next;
	if (!ends->first) {
		ends->last = FQL_NONE;
		ends->owed = 0;
		stage->occupied &= ~(1 << (list & 7));
	}
}

/* Takes all flows of a host from their lists; they are empty. */
static __noinline int clear(const struct fq_lanes *fq, struct fql_stage *stage)
{
	while (stage->occupied && can_loop) {
		u32 list = first_list(stage), index = list_at(stage, list)->first;

		remove_first(fq, stage, OF_FLOWS, list);
		flow_at(fq, index)->member.list = FQL_UNLISTED;
	}
	stage->listed = 0;
	return 0;
}

/* A member becomes backlogged: it is forgiven its fair share of the time since it was served, and
 * what is credited of idle time in it. It joins a list unless it still stands in one. Returns
 * whether it joined the new. */
static __always_inline bool arrive(const struct fq_lanes *fq, struct fql_stage *stage,
				   enum members of, u32 index, u64 now)
{
	struct fql_member *member = member_at(fq, of, index);
	u64 age, time;
	bool is_new = true;

	if (know_ages(of)) {
		time = stage->virtual_time + fq->block->idle.credit;
		age = minus(member->age, minus(time, member->virtual_served) >> FQL_BITS);
		member->age = faded(of, age, minus(now, member->served));
		member->virtual_served = time;
		member->served = now;
	}
	if (member->list != FQL_UNLISTED)
		return false;
	/* A host has what was left of its last quantum: with a whole one each time, who sends two
	 * packets at a time would have twice its share. */
	if (of == OF_FLOWS || member->deficit <= 0)
		member->deficit = FQL_QUANTUM;
	if (know_ages(of))
		is_new = is_young(member->age);
	stage->listed++;
	append(fq, stage, of, index, is_new ? FQL_NEW : 1 + tier_of(member->age));
	return is_new;
}

/* The list that is owed most, if that is due, or else the first. No static function, so that the
 * verifier looks at it only once. */
__noinline u32 list_owed_most(struct fql_stage *stage)
{
	s64 due = (s64)FQL_QUANTUM << FQL_BITS;
	u32 chosen;

	if (!stage)
		return 0;
	chosen = first_list(stage);
	if (chosen == FQL_NEW && !without(FQL_PATIENCE))
		due *= PATIENCE;
	due--;
	/* Lists before the first one are owed nothing. */
	for (u32 list = 1; list < FQL_LISTS; list++) {
		if (list != chosen && stage->lists[list].owed > due) {
			chosen = list;
			due = stage->lists[list].owed;
		}
	}
	return chosen;
}

static __always_inline u32 list_in_turn(struct fql_stage *stage, enum members of)
{
	if (is_one_list(stage) || !know_ages(of))
		return first_list(stage);
	return list_owed_most(stage);
}

/*
 * Takes an empty member from the front of its list. As in RFC 8290 a new one passes through a tier
 * while there are others in one, lest it be new again each time its queue runs empty; but where ages
 * are known, one that is still young enough cannot gain by that.
 */
static __always_inline void pass_on_empty(const struct fq_lanes *fq, struct fql_stage *stage,
					  enum members of, u32 index, u32 list)
{
	struct fql_member *member = member_at(fq, of, index);
	bool would_gain = !know_ages(of) || !is_young(member->age);

	remove_first(fq, stage, of, list);
	if (list == FQL_NEW && would_gain && stage->occupied & ~1) {
		append(fq, stage, of, index, 1 + tier_of(member->age));
		return;
	}
	member->list = FQL_UNLISTED;
	stage->listed--;
	/* A host's flows' turns are over as well, although none of them came to see it. */
	if (of == OF_HOSTS)
		clear(fq, &host_at(fq, index)->stage);
}

/* The first member of `list` if it may send; otherwise it is passed on. */
static __always_inline u32 ready(const struct fq_lanes *fq, struct fql_stage *stage,
				 enum members of, u32 list)
{
	u32 index = list_at(stage, list)->first;
	struct fql_member *member = member_at(fq, of, index);

	if (member->deficit <= 0) {
		u32 tier = 1 + tier_of(member->age);

		member->deficit += of == OF_HOSTS ? quantum_of(fq, host_at(fq, index))
						  : FQL_QUANTUM;
		/* Alone in its tier, it keeps what the tier is owed. */
		if (tier != list || list_at(stage, list)->members > 1) {
			remove_first(fq, stage, of, list);
			append(fq, stage, of, index, tier);
		}
		return FQL_NONE;
	}
	if (likely(!is_empty(fq, of, index)))
		return index;
	pass_on_empty(fq, stage, of, index, list);
	return FQL_NONE;
}

/* The member whose turn it is, and its list. */
static __always_inline u32 next_member(const struct fq_lanes *fq, struct fql_stage *stage,
				       enum members of, u32 *list)
{
	while (stage->occupied && can_loop) {
		u32 index;

		*list = list_in_turn(stage, of);
		index = ready(fq, stage, of, *list);
		if (index)
			return index;
	}
	return FQL_NONE;
}

/* The new flow whose turn it is among the new. */
static __noinline u32 next_new(const struct fq_lanes *fq, struct fql_stage *stage)
{
	while (stage->lists[FQL_NEW].members && can_loop) {
		u32 index = ready(fq, stage, OF_FLOWS, FQL_NEW);

		if (index)
			return index;
	}
	return FQL_NONE;
}

/* The flow whose turn it is in the first list, whatever older ones are owed. */
static __noinline u32 next_of_youngest(const struct fq_lanes *fq, struct fql_stage *stage)
{
	while (stage->occupied && can_loop) {
		u32 index = ready(fq, stage, OF_FLOWS, first_list(stage));

		if (index)
			return index;
	}
	return FQL_NONE;
}

/* The list that was served is owed less, and every older one more. No static function: see above. */
__noinline int settle(struct fql_stage *stage, u32 list, u32 bytes, u64 share)
{
	s64 size = (u64)bytes << FQL_BITS, most = (s64)MOST_OWED * FQL_QUANTUM << FQL_BITS;

	if (!stage)
		return 0;
	for (u32 i = 0; i < FQL_LISTS; i++) {
		struct fql_list *ends = &stage->lists[i];

		if (i == list) {
			ends->owed -= size;
			if (list == first_list(stage) && ends->owed < 0)
				ends->owed = 0;
		} else if (i > list && ends->members) {
			s64 sum = ends->owed + owed(share, ends->members, size);

			ends->owed = sum < most ? sum : most;
		}
	}
	return 0;
}

/* `size` bytes of a member of `list` left: of this host, or of a flow of its. */
static __always_inline void served(const struct fq_lanes *fq, struct fql_stage *stage,
				   enum members of, struct fql_host *host,
				   struct fql_member *member, u32 list, u32 size, u64 now)
{
	u64 share = ((u64)size << FQL_BITS) / (stage->listed + 1);

	if (of == OF_FLOWS)
		pass_time(host, size, share);
	else
		stage->virtual_time += share;
	member->deficit -= size;
	if (!know_ages(of))
		return;
	member->age = aged(member->age, size);
	member->virtual_served = stage->virtual_time + fq->block->idle.credit;
	member->served = now;
	if (!is_one_list(stage))
		settle(stage, list, size, share);
}

#endif
