/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Work of a known length: what threads do with the lock and between two locks. It
 * is counted in loops, not in time, for the time during which a vCPU is preempted
 * is not work.
 */
#ifndef CORUN_LOCKS_WORK_H
#define CORUN_LOCKS_WORK_H

#include <linux/types.h>

/* Does @loops loops. */
static __always_inline void corun_work(u64 loops)
{
	for (; loops; loops--)
		asm volatile("" : : : "memory");
}

/* Time of 2^20 loops, the fastest of many tries. Takes some milliseconds. */
u64 corun_work_calibrate_ns(void);

/* Loops that take @ns, when 2^20 take @calibration_ns. */
u64 corun_work_loops(u64 ns, u64 calibration_ns);

#endif /* CORUN_LOCKS_WORK_H */
