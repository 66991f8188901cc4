/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What `tc` gives: accepted only if it is of this version, within its bounds, and something that the
 * discipline has; what is not given stays; what is refused changes nothing; the short lane's part is
 * never more than the limit.
 *
 * Bounds: none on what is given; limits below 2^40, a share of 5 % where none is given
 */
#define bpf_probe_read_kernel(to, size, from) read_kernel(to, size, from)
int read_kernel(void *to, unsigned int size, const void *from);
#include "options.h"
#include "queue.h"

static struct sl_tc_options given;
static bool fails;

struct sl_tc_options nondet_options(void);
bool nondet_bool(void);

int read_kernel(void *to, u32 size, const void *from)
{
	*(struct sl_tc_options *)to = given;
	return fails ? -1 : 0;
}

int main(void)
{
	struct sl_config before;
	struct nlattr attribute = { .nla_len = nondet_u16() };
	u32 flags;

	any_queue();
	__CPROVER_assume(config.limit < 1ULL << 40);
	config.low_share = SL_BILLION / 20;
	before = config;
	given = nondet_options();
	fails = nondet_bool();
	__CPROVER_assume(given.limit < 1ULL << 40);
	given.low_share = nondet_bool() ? SL_TC_MOST_LOW_SHARE : SL_TC_MOST_LOW_SHARE + 1;
	flags = given.given;
	if (apply_options(&config, &attribute)) {
		__CPROVER_assert(config.rate == before.rate && config.limit == before.limit &&
					 config.threshold == before.threshold &&
					 config.overhead == before.overhead &&
					 config.low_share == before.low_share &&
					 config.high_limit == before.high_limit,
				 "what is refused changes nothing");
		return 0;
	}
	__CPROVER_assert(!fails && given.version == SL_TC_VERSION, "read, and of this version");
	__CPROVER_assert(attribute.nla_len == 4 + sizeof(given), "of this length");
	__CPROVER_assert(!(flags & ~SL_TC_ALL), "nothing unknown");
	__CPROVER_assert(config.rate == (flags & SL_TC_RATE ? given.rate : before.rate),
			 "the rate");
	__CPROVER_assert(!(flags & SL_TC_RATE) || config.rate, "no rate of zero");
	__CPROVER_assert(!(flags & SL_TC_LIMIT) || config.limit, "no limit of zero");
	__CPROVER_assert(!(flags & SL_TC_LIMIT) || config.limit_in_bytes ||
				 config.limit <= parts.ring_mask + 1,
			 "there are slots for the limit");
	__CPROVER_assert(!(flags & SL_TC_OVERHEAD) || (config.overhead >= SL_TC_LEAST_OVERHEAD &&
						       config.overhead <= SL_TC_MOST_OVERHEAD),
			 "overhead within bounds");
	__CPROVER_assert(!(flags & SL_TC_THRESHOLD) ||
				 (before.has_threshold && config.threshold >= given.threshold),
			 "a threshold does not wrap");
	__CPROVER_assert(!(flags & SL_TC_LOW_SHARE) || before.has_low_share,
			 "a share only if it has one");
	__CPROVER_assert(config.low_share <= SL_TC_MOST_LOW_SHARE, "a share within bounds");
	__CPROVER_assert(config.high_limit <= config.limit, "the short lane's part");
	return 0;
}
