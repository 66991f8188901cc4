// SPDX-License-Identifier: GPL-2.0
/*
 * Options of shortlane's qdiscs for `tc`, which loads q_KIND.so from TC_LIB_DIR (or /usr/lib/tc)
 * and takes KIND_qdisc_util from it. Compiled once for each kind, with -DKIND=shortlane_...
 *
 * Numbers read as everywhere in shortlane: `k` and `m` of a size are powers of 1024, those of a
 * rate powers of 1000.
 */
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../bpf/shortlane.h"

/* What `tc` expects and offers; it comes without a header. So from iproute2 2.4 to 6.15. */
struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(const struct qdisc_util *, int, char **, struct nlmsghdr *, const char *);
	int (*print_qopt)(const struct qdisc_util *, FILE *, struct rtattr *);
	int (*print_xstats)(const struct qdisc_util *, FILE *, struct rtattr *);
	int (*parse_copt)(const struct qdisc_util *, int, char **, struct nlmsghdr *, const char *);
	int (*print_copt)(const struct qdisc_util *, FILE *, struct rtattr *);
	int (*has_block)(const struct qdisc_util *, struct rtattr *, __u32, _Bool *);
};
int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data, int length);

#define TEXT_OF(x) #x
#define NAME(kind) TEXT_OF(kind)
#define UTIL_OF(kind) kind##_qdisc_util
#define UTIL(kind) UTIL_OF(kind)

struct unit {
	const char *name;
	long double factor;
};

/* Tables. */
/* clang-format off */
static const struct unit rates[] = {
	{ "bit", 1 }, { "kbit", 1e3 }, { "mbit", 1e6 }, { "gbit", 1e9 },
	{ "bps", 8 }, { "kbps", 8e3 }, { "mbps", 8e6 }, { "gbps", 8e9 }, {},
};
static const struct unit packets[] = {
	{ "", 1 }, { "packets", 1 }, { "packet", 1 }, { "p", 1 }, {},
};
static const struct unit bytes[] = {
	{ "b", 1 }, { "bytes", 1 }, { "k", 1 << 10 }, { "kb", 1 << 10 },
	{ "m", 1 << 20 }, { "mb", 1 << 20 }, { "g", 1 << 30 }, { "gb", 1 << 30 }, {},
};
static const struct unit times[] = {
	{ "s", 1e9 }, { "sec", 1e9 }, { "ms", 1e6 }, { "msec", 1e6 },
	{ "us", 1e3 }, { "usec", 1e3 }, { "ns", 1 }, {},
};
static const struct unit shares[] = { { "", 1e9 }, { "%", 1e7 }, {} };

static const struct option {
	const char *name;
	__u32 given;
} options[] = {
	{ "limit", SL_TC_LIMIT },   { "rate", SL_TC_RATE },	    { "threshold", SL_TC_THRESHOLD },
	{ "burst", SL_TC_BURST },   { "overhead", SL_TC_OVERHEAD }, { "low_share", SL_TC_LOW_SHARE },
	{},
};
/* clang-format on */

static int explain(void)
{
	fprintf(stderr,
		"Usage: ... " NAME(
			KIND) " [ limit AMOUNT ] [ rate RATE ] [ threshold AMOUNT ]\n"
			      "\t[ burst TIME ] [ overhead BYTES ] [ low_share SHARE ]\n"
			      "limit, threshold: 300 or 300packets, or bytes such as 64kb\n"
			      "rate: such as 10mbit; without it the device sets the pace\n"
			      "burst: how far a late pacer may catch up, such as 5ms\n"
			      "overhead: what a packet takes on the link beside its bytes, from %d to %d\n"
			      "low_share: least share of the link for long flows, from 0 to 0.9 or 90%%\n",
		SL_TC_LEAST_OVERHEAD, SL_TC_MOST_OVERHEAD);
	return -1;
}

/* A decimal number and its unit, as a whole number from `least` to `most`. */
static _Bool read_quantity(const char *text, const struct unit *unit, __u64 least, __u64 most,
			   __u64 *value)
{
	size_t digits = strspn(text, "0123456789.");
	char *end;
	long double number = strtold(text, &end);

	if (!digits || end != text + digits)
		return 0;
	while (unit->name && strcmp(unit->name, end))
		unit++;
	number *= unit->factor;
	if (!unit->name || number >= 18446744073709551615.0L)
		return 0;
	*value = (__u64)(number + 0.5L);
	return *value >= least && *value <= most;
}

static _Bool read_amount(const char *text, __u64 least, __u64 most, __u64 *value, __u8 *in_bytes)
{
	*in_bytes = !read_quantity(text, packets, least, most, value);
	return !*in_bytes || read_quantity(text, bytes, least, most, value);
}

static _Bool read_overhead(const char *text, __s32 *value)
{
	char *end;
	long number = strtol(text, &end, 10);

	*value = number;
	return end != text && !*end && number >= SL_TC_LEAST_OVERHEAD &&
	       number <= SL_TC_MOST_OVERHEAD;
}

static _Bool read_value(struct sl_tc_options *to, __u32 option, const char *text)
{
	__u64 share = 0;

	switch (option) {
	case SL_TC_LIMIT:
		return read_amount(text, 1, 1ULL << 32, &to->limit, &to->limit_in_bytes);
	case SL_TC_RATE:
		return read_quantity(text, rates, 1, SL_UNLIMITED - 1, &to->rate);
	case SL_TC_THRESHOLD:
		return read_amount(text, 0, 4000000000ULL, &to->threshold, &to->threshold_in_bytes);
	case SL_TC_BURST:
		return read_quantity(text, times, 0, SL_UNLIMITED - 1, &to->burst);
	case SL_TC_OVERHEAD:
		return read_overhead(text, &to->overhead);
	default:
		if (!read_quantity(text, shares, 0, SL_TC_MOST_LOW_SHARE, &share))
			return 0;
		to->low_share = share;
		return 1;
	}
}

static int refuse(const struct qdisc_util *util, const char *word, const char *what)
{
	fprintf(stderr, "%s: '%s' is %s\n", util->id, word, what);
	return explain();
}

static int parse_options(const struct qdisc_util *util, int argc, char **argv, struct nlmsghdr *n,
			 const char *dev)
{
	struct sl_tc_options given = { .version = SL_TC_VERSION };

	(void)dev;
	for (; argc > 0; argc -= 2, argv += 2) {
		const struct option *option = options;

		if (!strcmp(argv[0], "help"))
			return explain();
		while (option->name && strcmp(option->name, argv[0]))
			option++;
		if (!option->name)
			return refuse(util, argv[0], "no option");
		if (given.given & option->given)
			return refuse(util, argv[0], "given twice");
		if (argc < 2)
			return refuse(util, argv[0], "without a value");
		if (!read_value(&given, option->given, argv[1])) {
			fprintf(stderr, "%s: %s '%s' is not accepted\n", util->id, argv[0],
				argv[1]);
			return explain();
		}
		given.given |= option->given;
	}
	return given.given ? addattr_l(n, 1024, TCA_OPTIONS, &given, sizeof(given)) : 0;
}

/* A BPF qdisc gives no options back: `shortlane show` has them. */
static int print_options(const struct qdisc_util *util, FILE *out, struct rtattr *options)
{
	(void)util, (void)out, (void)options;
	return 0;
}

struct qdisc_util UTIL(KIND) = {
	.id = NAME(KIND),
	.parse_qopt = parse_options,
	.print_qopt = print_options,
};
