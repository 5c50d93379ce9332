/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Log-linear histogram: exact below 32, then 32 buckets for each power of two, so
 * that a bucket is at most 1/32 of its values wide. Compiles in the kernel and in
 * tests; recording takes no lock and has one writer.
 */
#ifndef CORUN_GUEST_HISTOGRAM_H
#define CORUN_GUEST_HISTOGRAM_H

#define CORUN_HIST_SUB_BITS 5
#define CORUN_HIST_SUB (1u << CORUN_HIST_SUB_BITS)
/* Values of 2^40 and more (18 minutes, in ns) count in the last bucket. */
#define CORUN_HIST_MAX_BITS 40
#define CORUN_HIST_BUCKETS                                                     \
	((CORUN_HIST_MAX_BITS - CORUN_HIST_SUB_BITS + 1) * CORUN_HIST_SUB)

struct corun_hist {
	u64 count;
	u64 sum;
	u64 max;
	u64 buckets[CORUN_HIST_BUCKETS];
};

static inline u32 corun_hist_index(u64 value)
{
	u32 shift;

	if (value >> CORUN_HIST_MAX_BITS)
		return CORUN_HIST_BUCKETS - 1;
	if (value < CORUN_HIST_SUB)
		return (u32)value;
	shift = 63 - __builtin_clzll(value) - CORUN_HIST_SUB_BITS;
	return (shift << CORUN_HIST_SUB_BITS) + (u32)(value >> shift);
}

/* Least value of a bucket. */
static inline u64 corun_hist_lower(u32 index)
{
	u32 shift;

	if (index < 2 * CORUN_HIST_SUB)
		return index;
	shift = (index >> CORUN_HIST_SUB_BITS) - 1;
	return (u64)(index - (shift << CORUN_HIST_SUB_BITS)) << shift;
}

static inline void corun_hist_add(struct corun_hist *h, u64 value)
{
	h->count++;
	h->sum += value;
	if (value > h->max)
		h->max = value;
	h->buckets[corun_hist_index(value)]++;
}

static inline void corun_hist_merge(struct corun_hist *to,
				    const struct corun_hist *from)
{
	u32 i;

	to->count += from->count;
	to->sum += from->sum;
	if (from->max > to->max)
		to->max = from->max;
	for (i = 0; i < CORUN_HIST_BUCKETS; i++)
		to->buckets[i] += from->buckets[i];
}

/*
 * The value that @permille of all values are not above, as the lower end of its
 * bucket; the maximum itself for the last one. 0 when there are none.
 */
static inline u64 corun_hist_quantile(const struct corun_hist *h, u32 permille)
{
	u64 rank = (h->count * permille + 999) / 1000;
	u64 seen = 0;
	u32 i;

	if (permille >= 1000)
		return h->max;
	for (i = 0; i < CORUN_HIST_BUCKETS; i++) {
		seen += h->buckets[i];
		if (seen && seen >= rank)
			return corun_hist_lower(i);
	}
	return 0;
}

#endif /* CORUN_GUEST_HISTOGRAM_H */
