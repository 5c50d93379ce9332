/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's short names, and what both test beds tell the Rust side. */
#ifndef CORUN_LOCKS_TEST_TYPES_H
#define CORUN_LOCKS_TEST_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;

/* Most threads of a test; each is a CPU to the algorithms. */
#define MAX_THREADS 8

/* What a test came to. Stable: lib.rs has the same. */
enum verdict {
	VERDICT_PASSED = 0,
	/* Two held the lock, or an update under it was lost. */
	VERDICT_OVERLAP = 1,
	/* All that were left slept, and nobody was left to kick them. */
	VERDICT_LOST_WAKEUP = 2,
	/* The threads ran on and on without an end. */
	VERDICT_STUCK = 3,
	/* All was done, but the lock was not as it was in the beginning. */
	VERDICT_NOT_FREE = 4,
};

/* What is tested. The same in lib.rs. */
struct spec {
	/* enum corun_lock_kind, or one of flawed.h. */
	u32 kind;
	u32 threads;
	/* Acquisitions by each thread. */
	u32 rounds;
	/* Looks before a halt, and per waiter ahead before a time-out. */
	u32 spin_threshold;
	u32 pmt_timeout;
};

/* What came out. The same in lib.rs. */
struct outcome {
	u32 verdict;
	u32 reserved;
	/* Schedules that were tried. */
	u64 schedules;
	/* Sums of struct corun_lock_stats. */
	u64 halts;
	u64 kicks;
	u64 timeouts;
};

#endif /* CORUN_LOCKS_TEST_TYPES_H */
