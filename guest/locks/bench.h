/* SPDX-License-Identifier: GPL-2.0-only */
/* The benchmark: one run at a time. */
#ifndef CORUN_LOCKS_BENCH_H
#define CORUN_LOCKS_BENCH_H

#include <linux/spinlock.h>
#include <linux/types.h>

#include "../histogram.h"
#include "locks.h"
#include "settings.h"

/* One thread; written by it alone, and read by anybody at any time. */
struct corun_bench_thread {
	struct corun_bench *bench;
	struct task_struct *task;
	u32 cpu;
	u64 acquisitions;
	struct corun_lock_stats stats;
	/* From asking for the lock to having it, ns. */
	struct corun_hist wait;
} ____cacheline_aligned_in_smp;

/* What the threads fight over: each part on cache lines of its own. */
struct corun_bench_shared {
	union corun_lock lock __aligned(128);
	raw_spinlock_t qspin __aligned(128);
	/* Guarded by the lock: the holder's number + 1, and a count. */
	u32 owner __aligned(128);
	u64 counter;
	/* Times at which a holder was not alone. */
	atomic64_t overlaps __aligned(128);
};

/* The last run, or the one that is going on. */
struct corun_bench {
	struct corun_settings set;
	struct corun_lock_tunables tun;
	u64 calibration_ns;
	u64 hold_loops;
	u64 think_loops;
	u64 begin_ns;
	/* 0 while it is going on. */
	u64 end_ns;
	/* Threads do no more work. */
	bool stopping;
	struct corun_bench_thread *threads;
	struct corun_bench_shared shared;
};

/* Begins a run: 0, or an error that corun_bench_refusal() explains. */
int corun_bench_start(void);

/* Ends the run, if one is going on, and waits for its threads. */
void corun_bench_stop(void);

/* Waits for the run's end: 0, or -EINTR after a signal, and then it is ended. */
int corun_bench_wait(void);

/*
 * The last run for reading, until corun_bench_put(); NULL when there was none.
 * No run begins or ends meanwhile.
 */
const struct corun_bench *corun_bench_get(void);
void corun_bench_put(void);

/* Why the last start failed; NULL when it did not. Between get and put. */
const char *corun_bench_refusal(void);

/* Forgets everything. No run may be started any more. */
void corun_bench_exit(void);

#endif /* CORUN_LOCKS_BENCH_H */
