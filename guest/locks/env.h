/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the lock algorithms need of the place where they run, so that one text
 * compiles into the module and into the tests (crates/corun-locks), where the
 * same functions are defined before the algorithms are included.
 *
 *   lk_load, lk_load_ptr		load with acquire order
 *   lk_store, lk_store_ptr		store with release order
 *   lk_fetch_add, lk_fetch_or, lk_xchg, lk_fetch_add64
 *					old value; full barriers
 *   lk_cmpxchg64(p, old, new)		whether *p was old; full barrier
 *   lk_relax()				one turn of a spin loop
 *   lk_cpu()				this CPU's number; the caller cannot move
 *   lk_irq_save(), lk_irq_restore(s)	no interrupt handler between the two
 *   lk_halt(s)				between the two: sleep until kicked, or for
 *					less. A kick that came earlier ends it at
 *					once: kicks are kept until they are used.
 *					May let interrupts in, if they were before
 *   lk_kick(cpu)			end the present or the next halt of a CPU
 */
#ifndef CORUN_LOCKS_ENV_H
#define CORUN_LOCKS_ENV_H

#ifdef __KERNEL__
#include "env_kernel.h"
#endif

#define LK_INLINE static inline __attribute__((always_inline))

/* What the waiters and holders of one thread went through. */
struct corun_lock_stats {
	/* Waits given up for a halt; kicks sent to halted ones. */
	u64 halts;
	u64 kicks;
	/* Unlocks that met the slow-path flag but nobody asleep. */
	u64 kicks_vain;
	/* Waits of a preemptable ticket lock that left the order. */
	u64 timeouts;
};

#endif /* CORUN_LOCKS_ENV_H */
