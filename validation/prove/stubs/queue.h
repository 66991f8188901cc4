/* SPDX-License-Identifier: GPL-2.0 */
/* A qdisc with nothing known of it: every field has any value until a harness assumes something. */
#ifndef STUB_QUEUE_H
#define STUB_QUEUE_H

static struct sl_instance instance;
static struct sl_config config;
static struct sl_histogram histogram;
static struct Qdisc sch;
static struct queue queue = { .in = &instance, .config = &config, .histogram = &histogram };

struct sl_instance nondet_instance(void);
struct sl_config nondet_config(void);
struct Qdisc nondet_qdisc(void);
u64 nondet_u64(void);
u32 nondet_u32(void);
u16 nondet_u16(void);
s32 nondet_s32(void);
u8 nondet_u8(void);

static void any_queue(void)
{
	instance = nondet_instance();
	config = nondet_config();
	sch = nondet_qdisc();
}

#endif
