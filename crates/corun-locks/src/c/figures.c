// SPDX-License-Identifier: GPL-2.0-only
/* The benchmark's figures as linkable symbols. */
#include "types.h"

#include "../histogram.h"
#include "fairness.h"

u32 corun_figures_bucket(u64 value);
u64 corun_figures_lower(u32 bucket);
u64 corun_figures_quantile(const u64 *values, u32 n, u32 permille);
u32 corun_figures_jain(const u64 *served, u32 n);

u32 corun_figures_bucket(u64 value)
{
	return corun_hist_index(value);
}

u64 corun_figures_lower(u32 bucket)
{
	return corun_hist_lower(bucket);
}

/* Of two histograms merged, as the module does with its threads'. */
u64 corun_figures_quantile(const u64 *values, u32 n, u32 permille)
{
	struct corun_hist one = { 0 }, other = { 0 };
	u32 i;

	for (i = 0; i < n; i++)
		corun_hist_add(i % 2 ? &one : &other, values[i]);
	corun_hist_merge(&one, &other);
	return corun_hist_quantile(&one, permille);
}

u32 corun_figures_jain(const u64 *served, u32 n)
{
	struct corun_fairness f = { 0 };
	u64 sum = 0, squares = 0;
	u32 i, shift;

	for (i = 0; i < n; i++)
		corun_fairness_add(&f, served[i]);
	shift = corun_fairness_shift(&f);
	for (i = 0; i < n; i++) {
		sum += served[i] >> shift;
		squares += (served[i] >> shift) * (served[i] >> shift);
	}
	return corun_fairness_jain(sum, squares, f.threads);
}
