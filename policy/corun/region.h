/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a preempted vCPU was doing, told by its instruction pointer.
 *
 * The classes are those of the micro-sliced cores paper's table of critical
 * guest components (seed 004: sched, mm, irq, spinlock), split where the
 * decision differs: a vCPU that waits for a lock is stopped at no cost, one that
 * holds it is not. Which function is of which class is data (corun-symbols).
 *
 * A guest's instruction pointer is the guest's to choose. It may decide *which*
 * sibling runs, and earn time that the VM pays for, never more.
 */
#ifndef CORUN_REGION_H
#define CORUN_REGION_H

#include "types.h"

/* Class of the code at an instruction pointer. Stable: maps and traces carry it. */
enum corun_region {
	/* Nothing is known: no symbols, or no instruction pointer. */
	CORUN_REGION_UNKNOWN = 0,
	/* User mode. */
	CORUN_REGION_USER = 1,
	/* Kernel code that nobody is known to wait for. */
	CORUN_REGION_KERNEL = 2,
	/* The idle loop, on its way to HLT. */
	CORUN_REGION_IDLE = 3,
	/* Spins for a lock that another vCPU holds. */
	CORUN_REGION_LOCK_WAIT = 4,
	/* Spins for the acknowledgement of an IPI. */
	CORUN_REGION_ACK_WAIT = 5,
	/* Wakes or picks tasks: sched. */
	CORUN_REGION_SCHED = 6,
	/* The page allocator and page freeing: mm. */
	CORUN_REGION_MM = 7,
	/* Interrupt entry, exit and handlers: irq. */
	CORUN_REGION_IRQ = 8,
	/* Executes a TLB flush that another vCPU asked for: mm. */
	CORUN_REGION_TLB = 9,
	/* Holds or hands on a spinlock: spinlock. */
	CORUN_REGION_LOCK_HELD = 10,
	CORUN_REGION_NR = 11,
};

/* True when siblings are likely to wait for a vCPU that was stopped here. */
CORUN_INLINE bool corun_region_critical(u32 region)
{
	return region >= CORUN_REGION_SCHED && region < CORUN_REGION_NR;
}

/*
 * How much a sibling that spins gains when a vCPU stopped here runs: 0 nothing,
 * it would spin as well or go to sleep; more is better.
 */
CORUN_INLINE u32 corun_region_rank(u32 region)
{
	switch (region) {
	case CORUN_REGION_LOCK_HELD:
		return 4;
	case CORUN_REGION_TLB:
	case CORUN_REGION_IRQ:
		return 3;
	case CORUN_REGION_SCHED:
	case CORUN_REGION_MM:
		return 2;
	case CORUN_REGION_KERNEL:
	case CORUN_REGION_UNKNOWN:
		return 1;
	default:
		return 0;
	}
}

#endif /* CORUN_REGION_H */
