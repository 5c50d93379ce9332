/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ticket lock: strict order of arrival. In a VM the next in line may be preempted,
 * and then all wait for its host (the seeds' "lock waiter preemption").
 */
#ifndef CORUN_LOCKS_TICKET_H
#define CORUN_LOCKS_TICKET_H

#include "env.h"

struct corun_ticket_lock {
	/* Ticket that is served, and the next one to be drawn; both wrap. */
	u32 head;
	u32 tail;
};

LK_INLINE void corun_ticket_acquire(struct corun_ticket_lock *lock)
{
	u32 ticket = lk_fetch_add(&lock->tail, 1);

	while (lk_load(&lock->head) != ticket)
		lk_relax();
}

LK_INLINE void corun_ticket_release(struct corun_ticket_lock *lock)
{
	/* Only the holder writes head. */
	lk_store(&lock->head, lk_load(&lock->head) + 1);
}

#endif /* CORUN_LOCKS_TICKET_H */
