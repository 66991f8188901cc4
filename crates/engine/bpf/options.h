/* SPDX-License-Identifier: GPL-2.0 */
/* A qdisc begins: with the configuration that its load came with, and what `tc` was given. */
#ifndef SHORTLANE_OPTIONS_H
#define SHORTLANE_OPTIONS_H

#include "qdisc.h"

/* Whether what was given is within bounds, and is something that the discipline has. */
static __always_inline int check_options(const struct sl_config *config,
					 const struct sl_tc_options *options)
{
	u32 given = options->given;

	if (given & ~SL_TC_ALL)
		return -EINVAL;
	if ((given & SL_TC_THRESHOLD && !config->has_threshold) ||
	    (given & SL_TC_LOW_SHARE && !config->has_low_share))
		return -EOPNOTSUPP;
	if (given & SL_TC_RATE && !options->rate)
		return -EINVAL;
	if (given & SL_TC_LIMIT && !options->limit)
		return -EINVAL;
	if (given & SL_TC_LIMIT && !options->limit_in_bytes && options->limit > parts.ring_mask + 1)
		return -ENOSPC;
	if (given & SL_TC_THRESHOLD && !options->threshold_in_bytes != !config->threshold_in_bytes)
		return -EINVAL;
	if (given & SL_TC_OVERHEAD &&
	    (options->overhead < SL_TC_LEAST_OVERHEAD || options->overhead > SL_TC_MOST_OVERHEAD))
		return -EINVAL;
	if (given & SL_TC_LOW_SHARE && options->low_share > SL_TC_MOST_LOW_SHARE)
		return -EINVAL;
	return 0;
}

static __always_inline u64 part_of(u64 whole, u32 share)
{
	return whole / SL_BILLION * share + whole % SL_BILLION * share / SL_BILLION;
}

/* Applies what `tc` was given to the configuration that the load came with. */
static __always_inline int apply_options(struct sl_config *config, struct nlattr *attribute)
{
	struct sl_tc_options options;
	int error;

	if (attribute->nla_len != sizeof(struct nlattr) + sizeof(options) ||
	    bpf_probe_read_kernel(&options, sizeof(options), (void *)attribute + 4) ||
	    options.version != SL_TC_VERSION)
		return -EINVAL;
	error = check_options(config, &options);
	if (error)
		return error;
	if (options.given & SL_TC_RATE)
		config->rate = options.rate;
	if (options.given & SL_TC_LIMIT) {
		config->limit = options.limit;
		config->limit_in_bytes = options.limit_in_bytes;
	}
	if (options.given & SL_TC_THRESHOLD) {
		config->threshold = options.threshold + config->boundary_adds;
		if (config->threshold < options.threshold)
			config->threshold = SL_UNLIMITED;
	}
	if (options.given & SL_TC_BURST)
		config->burst = options.burst;
	if (options.given & SL_TC_OVERHEAD) {
		config->overhead = options.overhead;
		config->overhead_text[0] = 0;
	}
	if (options.given & SL_TC_LOW_SHARE)
		config->low_share = options.low_share;
	config->high_limit = config->limit - part_of(config->limit, config->low_share);
	return 0;
}

/* The first qdisc that nobody uses; RTNL keeps others from looking at the same time. */
static __always_inline u32 free_index(void)
{
	u32 i;

	for (i = 0; i < SL_INSTANCES; i++) {
		if (i >= parts.instances || !sl_shared.qdisc[i].instance.used)
			break;
	}
	return i;
}

static __always_inline void clear_counters(struct sl_qdisc *qdisc)
{
	struct sl_instance *in = &qdisc->instance;

	__builtin_memset(&in->counters, 0, sizeof(in->counters));
	__builtin_memset(&qdisc->histogram, 0, sizeof(qdisc->histogram));
	in->most_flows = 0;
	in->most_packets = 0;
}

/* Gives a qdisc the place of `index`, which is free; an error if it may not be. */
static __always_inline int take_place(struct Qdisc *sch, u32 index, struct nlattr *options)
{
	struct net_device *dev = sch->dev_queue->dev;
	struct sl_qdisc *qdisc = qdisc_at(index);
	struct sl_instance *in = &qdisc->instance;
	struct sl_config *config = &qdisc->config[0];

	if (index >= parts.instances)
		return -ENOSPC;
	__builtin_memcpy(config, &sl_shared.template, sizeof(*config));
	qdisc->generation = 0;
	if (options) {
		int error = apply_options(config, options);

		if (error)
			return error;
		config->origin = SL_FROM_TC;
	}
	/* As children of mq there would be several, each with the whole rate. */
	if (config->rate && sch->parent != TC_H_ROOT && !parts.common)
		return -EOPNOTSUPP;
	clear_counters(qdisc);
	in->generation = 0;
	in->slots = parts.ring_mask + 1;
	in->turn = 0;
	in->pacer.next_tx = 0;
	in->attached_at = bpf_ktime_get_ns();
	pace_at(in, config->rate, in->attached_at);
	in->ifindex = dev->ifindex;
	in->netns = dev->nd_net.net->ns.inum;
	in->handle = sch->handle;
	in->used = 1;
	sch->limit = FIRST_NUMBER + index;
	return 0;
}

#endif
