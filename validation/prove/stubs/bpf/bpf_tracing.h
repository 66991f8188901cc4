/* SPDX-License-Identifier: GPL-2.0 */
#define BPF_PROG(name, args...) name(args)
