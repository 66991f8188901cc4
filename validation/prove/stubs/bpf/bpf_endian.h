/* SPDX-License-Identifier: GPL-2.0 */
#define bpf_ntohs(x) ((unsigned short)((unsigned short)(x) << 8 | (unsigned short)(x) >> 8))
#define bpf_htons(x) bpf_ntohs(x)
