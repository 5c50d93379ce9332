/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Preemptable ticket lock (Ouyang and Lange, VEE 2013): tickets say who should be
 * next, a test-and-set word says who is. A waiter that is n-th in line waits n
 * time-outs for the line to move; then it takes the next in line for preempted and
 * tries for the word out of order. The further back, the more patient, so those
 * that run still follow each other in the order of their tickets.
 *
 * head counts releases, not tickets: each release moves everybody up by one, also
 * past a waiter that was overtaken. Such a one finds head beyond its ticket, and
 * tries at once.
 *
 * The time-out begins anew when head moves: what has to be noticed is a line that
 * stands still. It is counted in looks at head, not in time: a preempted waiter's
 * does not go on.
 */
#ifndef CORUN_LOCKS_PMT_H
#define CORUN_LOCKS_PMT_H

#include "env.h"

struct corun_pmt_lock {
	u32 locked;
	/* Releases so far, and the next ticket; both wrap. */
	u32 head;
	u32 tail;
};

/* Waits for @ticket's turn; false: it gave up after its time-out. */
LK_INLINE bool corun_pmt_turn(struct corun_pmt_lock *lock, u32 ticket,
			      u32 timeout)
{
	u32 seen = lk_load(&lock->head);
	u64 looks = 0;

	for (;;) {
		s32 ahead = (s32)(ticket - seen);
		u32 head;

		if (ahead <= 0)
			return true;
		if (looks >= (u64)ahead * timeout)
			return false;
		lk_relax();
		looks++;
		head = lk_load(&lock->head);
		if (head != seen)
			looks = 0;
		seen = head;
	}
}

/* @timeout: looks per waiter ahead. */
LK_INLINE void corun_pmt_acquire(struct corun_pmt_lock *lock, u32 timeout,
				 struct corun_lock_stats *stats)
{
	u32 ticket = lk_fetch_add(&lock->tail, 1);

	if (!corun_pmt_turn(lock, ticket, timeout))
		stats->timeouts++;
	while (lk_load(&lock->locked) || lk_xchg(&lock->locked, 1))
		lk_relax();
}

LK_INLINE void corun_pmt_release(struct corun_pmt_lock *lock)
{
	/* Only the holder writes head. First, so that the next one is awake. */
	lk_store(&lock->head, lk_load(&lock->head) + 1);
	lk_store(&lock->locked, 0);
}

#endif /* CORUN_LOCKS_PMT_H */
