/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Distributions of times, counted in the kernel: buckets that grow with the
 * value, 8 to each power of two, so that a bucket is at most 1/8 of its value
 * wide. User space knows the same layout (corun-events, account/histogram.rs).
 */
#ifndef CORUN_DISTRIBUTION_BPF_H
#define CORUN_DISTRIBUTION_BPF_H

#define DISTRIBUTION_SUB_BITS 3
/* Longest time told apart from longer ones: 2^40 ns, 18 minutes. */
#define DISTRIBUTION_TOP_BIT 40
#define DISTRIBUTION_BUCKETS                                                   \
	((DISTRIBUTION_TOP_BIT - DISTRIBUTION_SUB_BITS + 1)                    \
	 << DISTRIBUTION_SUB_BITS)

struct distribution {
	u64 count;
	u64 sum_ns;
	u64 max_ns;
	u64 buckets[DISTRIBUTION_BUCKETS];
};

/*
 * Values below 8 have a bucket each; above, the power of two chooses a group of
 * 8 and the 3 bits below the leading one a bucket of it.
 */
static __always_inline u32 distribution_bucket(u64 value)
{
	u32 top, shift;

	if (value >> DISTRIBUTION_TOP_BIT)
		return DISTRIBUTION_BUCKETS - 1;
	if (!(value >> DISTRIBUTION_SUB_BITS))
		return value;
	top = 63 - __builtin_clzll(value);
	shift = top - DISTRIBUTION_SUB_BITS;
	return (shift << DISTRIBUTION_SUB_BITS) + (value >> shift);
}

static __always_inline void distribution_add(struct distribution *d, u64 ns)
{
	u32 bucket = distribution_bucket(ns);

	__sync_fetch_and_add(&d->count, 1);
	__sync_fetch_and_add(&d->sum_ns, ns);
	if (bucket < DISTRIBUTION_BUCKETS)
		__sync_fetch_and_add(&d->buckets[bucket], 1);
	/* Two at once may keep the smaller one: a rare, small loss. */
	if (ns > d->max_ns)
		d->max_ns = ns;
}

#endif /* CORUN_DISTRIBUTION_BPF_H */
