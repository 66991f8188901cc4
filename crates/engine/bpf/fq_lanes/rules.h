/* SPDX-License-Identifier: GPL-2.0 */
/* The numbers of fq-lanes: which age makes which tier, how an age fades, what a tier is owed. */
#ifndef SHORTLANE_FQ_LANES_RULES_H
#define SHORTLANE_FQ_LANES_RULES_H

#include "memory.h"

/* Ages at which the second, third and last tier begin. */
#define SECOND_TIER 30000
#define THIRD_TIER 150000
#define LAST_TIER 750000
#define MOST_AGE (2 * LAST_TIER)
/* An older tier is owed a half of the fair share of its members, and at least a 32nd of the link. */
#define PART_SHIFT 1
#define FLOOR_SHIFT 5
/* Quanta that a tier must be owed to go before the new ones, and that it is owed at most. */
#define PATIENCE 4
#define MOST_OWED 8
/* Below this age a member that becomes backlogged is new: two packets, for voice, DNS, a SYN. */
#define NEW_BELOW 3000
/* Idle, a member is forgiven half of its age in this time, beside its fair share. */
#define HALF_LIFE 2000000000ULL
/* Bytes that a host may send ahead of its turn, beyond its fair share. */
#define MOST_AHEAD 15000
/* The multiple of CoDel's target that the oldest may stand. */

static __always_inline bool without(enum fql_without what)
{
	return fql_parts.without == what;
}

/* Which stage: that of hosts, or one of flows. Hosts do not differ in rank: among them there is one
 * tier, and everybody is new. A constant wherever it is used. */
enum members {
	OF_HOSTS,
	OF_FLOWS,
};

static __always_inline bool know_ages(enum members of)
{
	return of == OF_FLOWS && !without(FQL_AGES);
}

/* 1 if it is at least `bound`. Without a branch, each of which the verifier would follow. */
static __always_inline u64 reaches(u64 age, u64 bound)
{
	u64 below = bound - 1 - age;

	hide(below);
	return below >> 63;
}

/* Whether who becomes backlogged at this age is new. */
static __always_inline bool is_young(u32 age)
{
	return !without(FQL_NEW_LIST) && age < NEW_BELOW;
}

static __always_inline u32 tier_of(u32 age)
{
	return reaches(age, SECOND_TIER) + reaches(age, THIRD_TIER) + reaches(age, LAST_TIER);
}

/* An age after `size` more bytes. It is bounded, so that the oldest are forgiven in time. */
static __always_inline u32 aged(u32 age, u32 size)
{
	u64 older = (u64)age + size;

	return older < MOST_AGE ? older : MOST_AGE;
}

/* An age after `idle` without service: half of it a half-life, in a straight line between. */
static __always_inline u32 faded(enum members of, u64 age, u64 idle)
{
	u64 halvings, rest;

	if (!know_ages(of) || without(FQL_HALF_LIFE) || !age)
		return age;
	halvings = idle / HALF_LIFE;
	rest = idle % HALF_LIFE;
	age >>= halvings < 63 ? halvings : 63;
	return age - age * rest / (2 * HALF_LIFE);
}

/* What a tier of `members` is owed when `size` bytes of younger ones left, of which `share` would
 * have been a member's. */
static __always_inline s64 owed(u64 share, u32 members, u64 size)
{
	u64 part = without(FQL_PART) ? 0 : share * members >> PART_SHIFT;
	u64 floor = without(FQL_FLOOR) ? 0 : size >> FLOOR_SHIFT;

	return part > floor ? part : floor;
}

static __always_inline u64 minus(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

#endif
