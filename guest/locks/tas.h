/* SPDX-License-Identifier: GPL-2.0-only */
/* Test-and-set: no order, so nobody waits for a preempted waiter. */
#ifndef CORUN_LOCKS_TAS_H
#define CORUN_LOCKS_TAS_H

#include "env.h"

struct corun_tas_lock {
	u32 locked;
};

LK_INLINE void corun_tas_acquire(struct corun_tas_lock *lock)
{
	/* Waits on a shared cache line; writes only when that may succeed. */
	while (lk_load(&lock->locked) || lk_xchg(&lock->locked, 1))
		lk_relax();
}

LK_INLINE void corun_tas_release(struct corun_tas_lock *lock)
{
	lk_store(&lock->locked, 0);
}

/*
 * The negative control: looks and takes in two steps, so that two can hold it.
 * What counts violations must count some here, or its silence means nothing.
 */
LK_INLINE void corun_broken_acquire(struct corun_tas_lock *lock)
{
	while (lk_load(&lock->locked))
		lk_relax();
	lk_relax();
	lk_store(&lock->locked, 1);
}

#endif /* CORUN_LOCKS_TAS_H */
