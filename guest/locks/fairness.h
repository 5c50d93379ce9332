/* SPDX-License-Identifier: GPL-2.0-only */
/* How evenly threads were served, in whole numbers. */
#ifndef CORUN_LOCKS_FAIRNESS_H
#define CORUN_LOCKS_FAIRNESS_H

struct corun_fairness {
	u64 min;
	u64 max;
	u64 sum;
	u32 threads;
};

static inline void corun_fairness_add(struct corun_fairness *f, u64 served)
{
	if (!f->threads || served < f->min)
		f->min = served;
	if (served > f->max)
		f->max = served;
	f->sum += served;
	f->threads++;
}

/*
 * Jain's index is sum^2 / (threads * sum of squares): 1 when all are served alike,
 * 1/threads when one is alone. The sum of squares is what a second pass adds up, of
 * values scaled to 16 bits so that no product of up to 1024 threads overflows.
 */
static inline u32 corun_fairness_shift(const struct corun_fairness *f)
{
	u32 shift = 0;

	while (f->max >> shift > 0xffff)
		shift++;
	return shift;
}

/* @sum, @squares: of the scaled values. In thousandths; 0 without any service. */
static inline u32 corun_fairness_jain(u64 sum, u64 squares, u32 threads)
{
	if (!squares)
		return 0;
	return (u32)(sum * sum * 1000 / (squares * threads));
}

#endif /* CORUN_LOCKS_FAIRNESS_H */
