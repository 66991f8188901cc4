/* SPDX-License-Identifier: GPL-2.0 */
/* In place of libbpf's: what the model checker is to take for the kernel. */
#ifndef STUB_BPF_HELPERS_H
#define STUB_BPF_HELPERS_H

#define SEC(name)
#define __always_inline inline
#define __noinline
#define __kptr
#define __ksym
#define __weak __attribute__((weak))
#define likely(x) (x)
#define unlikely(x) (x)
#define __uint(name, val) int (*name)[val]
#define __type(name, val) typeof(val) *name
#define bpf_for(i, from, to) for ((i) = (from); (i) < (to); (i)++)

/* Harnesses say what is in a map. */
void *bpf_map_lookup_elem(const void *map, const void *key);
#define bpf_kptr_xchg(at, with)               \
	({                                    \
		typeof(*(at)) before = *(at); \
		*(at) = (with);               \
		before;                       \
	})

#endif
