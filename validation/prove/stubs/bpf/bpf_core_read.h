/* SPDX-License-Identifier: GPL-2.0 */
#define bpf_core_type_id_kernel(type) 0
