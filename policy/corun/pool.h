/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many pCPUs may serve urgent vCPUs at once: the micro-sliced pool of seed
 * 004, whose profiler looks at a window's events and moves the size by one.
 *
 * The pool has a size, not members. A fixed member could be running the very VM
 * whose vCPU is urgent, which is no place to take; a free choice among all pCPUs
 * finds another VM's. With size 0 nobody is preempted for an urgent vCPU.
 */
#ifndef CORUN_POOL_H
#define CORUN_POOL_H

#include "types.h"

/* Calm windows in a row before the pool shrinks. */
#define CORUN_POOL_CALM 4

struct corun_pool {
	/* pCPUs that may serve at once. */
	u32 size;
	/* Windows in a row in which fewer would have done. */
	u32 calm;
};

/* What happened in a window. */
struct corun_pool_window {
	/* Its length. */
	u64 window_ns;
	/* CPU time of urgent slices. */
	u64 busy_ns;
	/* Time from event to start, summed over those that started. */
	u64 waited_ns;
	/* vCPUs that became urgent. */
	u64 events;
	/* Urgent slices that started. */
	u64 served;
	/* pCPUs of the host. */
	u64 nr_cpus;
};

/* Most pCPUs that may serve at once: half of the host, but one. */
CORUN_INLINE u32 corun_pool_max(u64 nr_cpus)
{
	return nr_cpus < 2 ? (u32)nr_cpus : (u32)(nr_cpus / 2);
}

/* True when one pCPU fewer would have served the window half idle. */
CORUN_INLINE bool corun_pool_spare(const struct corun_pool *pool,
				   const struct corun_pool_window *w)
{
	if (!w->events)
		return true;
	return pool->size > 1 &&
	       w->busy_ns * 2 < (u64)(pool->size - 1) * w->window_ns;
}

/*
 * The pool for the next window. It grows at once when urgent vCPUs came and were
 * not served, or waited for more than two slices on average; it shrinks after
 * CORUN_POOL_CALM windows that needed less.
 */
CORUN_INLINE struct corun_pool
corun_pool_next(struct corun_pool pool, const struct corun_pool_window *w,
		const struct corun_tunables *tun)
{
	bool late = w->served &&
		    w->waited_ns > 2 * tun->urgent_slice_ns * w->served;
	bool unserved = w->events > w->served;

	if (w->events && (!pool.size || late || unserved)) {
		pool.calm = 0;
		if (pool.size < corun_pool_max(w->nr_cpus))
			pool.size++;
		return pool;
	}
	if (!pool.size || !corun_pool_spare(&pool, w)) {
		pool.calm = 0;
		return pool;
	}
	if (++pool.calm >= CORUN_POOL_CALM) {
		pool.calm = 0;
		pool.size--;
	}
	return pool;
}

#endif /* CORUN_POOL_H */
