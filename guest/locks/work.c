// SPDX-License-Identifier: GPL-2.0-only
/* How fast this CPU works. */
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/preempt.h>
#include <linux/sched.h>

#include "work.h"

#define LOOPS_BITS 20
/* A try is short, so that some meet neither an interrupt nor a preemption. */
#define TRY_BITS 14
#define TRIES 64

u64 corun_work_calibrate_ns(void)
{
	u64 best = U64_MAX;
	u32 i;

	for (i = 0; i < TRIES; i++) {
		u64 begin, took;

		preempt_disable();
		begin = ktime_get_ns();
		corun_work(1u << TRY_BITS);
		took = ktime_get_ns() - begin;
		preempt_enable();
		if (took < best)
			best = took;
		cond_resched();
	}
	return max(best, 1ULL) << (LOOPS_BITS - TRY_BITS);
}

u64 corun_work_loops(u64 ns, u64 calibration_ns)
{
	return div64_u64(ns << LOOPS_BITS, calibration_ns);
}
