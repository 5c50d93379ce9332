/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sets of a VM's vCPUs as bitmaps, by vCPU id (which is the APIC id under QEMU).
 * vCPUs with larger ids are in no set: they are scheduled, but never boosted.
 */
#ifndef CORUN_VCPUSET_H
#define CORUN_VCPUSET_H

#include "types.h"

/* Largest number of vCPUs of one VM that can be told apart. */
#define CORUN_MAX_VCPUS 256
#define CORUN_VCPUSET_WORDS (CORUN_MAX_VCPUS / 64)

struct corun_vcpuset {
	u64 word[CORUN_VCPUSET_WORDS];
};

/* Index of the word that holds vCPU @id, always within bounds. */
CORUN_INLINE u32 corun_vcpuset_index(u32 id)
{
	u32 index = id / 64;

	CORUN_OPAQUE(index);
	return index & (CORUN_VCPUSET_WORDS - 1);
}

/* Bit of vCPU @id within its word. */
CORUN_INLINE u64 corun_vcpuset_bit(u32 id)
{
	return 1ULL << (id & 63);
}

CORUN_INLINE bool corun_vcpuset_has(const struct corun_vcpuset *set, u32 id)
{
	return id < CORUN_MAX_VCPUS &&
	       (set->word[corun_vcpuset_index(id)] & corun_vcpuset_bit(id));
}

#endif /* CORUN_VCPUSET_H */
