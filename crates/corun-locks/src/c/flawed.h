/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Locks with known faults. A test bed that finds nothing wrong with them is no
 * test of the others.
 */
#ifndef CORUN_LOCKS_TEST_FLAWED_H
#define CORUN_LOCKS_TEST_FLAWED_H

#include "locks.h"

enum flawed_kind {
	/* The seed's figure 4: the unlocker looks, then clears the flag. */
	FLAWED_SEED_UNLOCK = 16,
	/* The seed's figure 3: halts without looking at head once more. */
	FLAWED_NO_SECOND_LOOK = 17,
	/* The cell is filled after the flag is set. */
	FLAWED_LATE_CELL = 18,
	/* A preemptable ticket lock that trusts its turn. */
	FLAWED_TRUSTING_PMT = 19,
};

LK_INLINE void flawed_seed_release(struct corun_pv_ticket_lock *lock,
				   const struct corun_pv *pv,
				   struct corun_lock_stats *stats)
{
	u32 head = lk_load(&lock->head) + CORUN_PV_TICKET;

	lk_store(&lock->head, head);
	if (head == (lk_load(&lock->tail) & ~CORUN_PV_SLOW))
		lk_fetch_and(&lock->tail, ~CORUN_PV_SLOW);
	if (lk_load(&lock->tail) & CORUN_PV_SLOW)
		corun_pv_kick(lock, head, pv, stats);
}

/* Halts without a second look, or publishes only when that is done. */
LK_INLINE void flawed_sleep(u32 kind, struct corun_pv_ticket_lock *lock,
			    u32 ticket, const struct corun_pv *pv,
			    struct corun_lock_stats *stats)
{
	struct corun_pv_waiting *w = &pv->waiting[lk_cpu()];

	if (kind == FLAWED_NO_SECOND_LOOK)
		corun_pv_publish(w, lock, ticket);
	lk_fetch_or(&lock->tail, CORUN_PV_SLOW);
	if (kind == FLAWED_LATE_CELL) {
		if (lk_load(&lock->head) == ticket)
			return;
		corun_pv_publish(w, lock, ticket);
	}
	stats->halts++;
	lk_halt(0);
	lk_store_ptr(&w->lock, NULL);
}

/* The seed clears the flag when unlocking: its own waiters do not. */
LK_INLINE void flawed_pv_acquire(u32 kind, struct corun_pv_ticket_lock *lock,
				 const struct corun_pv *pv,
				 struct corun_lock_stats *stats)
{
	u32 ticket = lk_fetch_add(&lock->tail, CORUN_PV_TICKET) &
		     ~CORUN_PV_SLOW;

	while (!corun_pv_spin(lock, ticket, pv->spin_threshold)) {
		if (kind == FLAWED_SEED_UNLOCK)
			corun_pv_sleep(lock, ticket, pv, stats);
		else
			flawed_sleep(kind, lock, ticket, pv, stats);
	}
	if (kind != FLAWED_SEED_UNLOCK)
		corun_pv_clear(lock, ticket);
}

LK_INLINE void flawed_pmt_acquire(struct corun_pmt_lock *lock, u32 timeout)
{
	u32 ticket = lk_fetch_add(&lock->tail, 1);

	if (corun_pmt_turn(lock, ticket, timeout)) {
		while (lk_load(&lock->locked))
			lk_relax();
		lk_store(&lock->locked, 1);
		return;
	}
	while (lk_load(&lock->locked) || lk_xchg(&lock->locked, 1))
		lk_relax();
}

LK_INLINE void any_acquire(u32 kind, union corun_lock *lock,
			   const struct corun_lock_tunables *tun,
			   struct corun_lock_stats *stats)
{
	switch (kind) {
	case FLAWED_SEED_UNLOCK:
	case FLAWED_NO_SECOND_LOOK:
	case FLAWED_LATE_CELL:
		flawed_pv_acquire(kind, &lock->pv_ticket, &tun->pv, stats);
		break;
	case FLAWED_TRUSTING_PMT:
		flawed_pmt_acquire(&lock->pmt, tun->pmt_timeout);
		break;
	default:
		corun_lock_acquire(kind, lock, tun, stats);
		break;
	}
}

LK_INLINE void any_release(u32 kind, union corun_lock *lock,
			   const struct corun_lock_tunables *tun,
			   struct corun_lock_stats *stats)
{
	switch (kind) {
	case FLAWED_SEED_UNLOCK:
		flawed_seed_release(&lock->pv_ticket, &tun->pv, stats);
		break;
	case FLAWED_NO_SECOND_LOOK:
	case FLAWED_LATE_CELL:
		corun_pv_ticket_release(&lock->pv_ticket, &tun->pv, stats);
		break;
	case FLAWED_TRUSTING_PMT:
		corun_pmt_release(&lock->pmt);
		break;
	default:
		corun_lock_release(kind, lock, tun, stats);
		break;
	}
}

/* Nobody holds or waits, and no flag was forgotten. */
LK_INLINE bool any_is_free(u32 kind, const union corun_lock *lock)
{
	switch (kind) {
	case CORUN_LOCK_TICKET:
		return lock->ticket.head == lock->ticket.tail;
	case CORUN_LOCK_PV_TICKET:
		return lock->pv_ticket.head == lock->pv_ticket.tail;
	case CORUN_LOCK_PMT:
		return !lock->pmt.locked && lock->pmt.head == lock->pmt.tail;
	case CORUN_LOCK_TAS:
		return !lock->tas.locked;
	default:
		return true;
	}
}

#endif /* CORUN_LOCKS_TEST_FLAWED_H */
