/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Paravirtual ticket lock (seed 001): a ticket lock whose waiters halt after some
 * spinning, and are kicked by the unlocker whose release makes it their turn.
 *
 * Two things differ from the seed's figures 3 and 4, for each of the two can lose
 * a wake-up:
 *
 * - A waiter looks at head once more after it has set the flag. A release between
 *   its last look and the flag would kick nobody, and it would sleep for ever.
 * - No unlocker clears the flag. The seed's looks whether head == tail and then
 *   clears: preempted between the two, it wipes out the flag of a waiter that came
 *   and went to sleep since. Here the flag is cleared by one who *holds* the lock
 *   and by a compare-and-exchange of head, tail and flag together, so it goes only
 *   if nobody is queued at that very moment.
 *
 * The whole argument: a waiter publishes (lock, ticket), sets the flag, then reads
 * head. The release is one atomic addition that raises head and returns the flag,
 * in the same word, so either it comes second, sees the flag and finds the waiter
 * in the table, or it comes first and the waiter sees its turn. And the flag cannot
 * go in between: the waiter's own ticket keeps tail away from what a clearer needs.
 *
 * That one addition is also the unlocker's last touch of the lock, so the next
 * owner may free it at once.
 */
#ifndef CORUN_LOCKS_PV_TICKET_H
#define CORUN_LOCKS_PV_TICKET_H

#include "env.h"

/* In tail: somebody may be halted. Tickets count in steps of two above it. */
#define CORUN_PV_SLOW 1u
#define CORUN_PV_TICKET 2u

/*
 * Little endian: tail is the low half of word. Head is the high one, so that it
 * wraps without a carry into tail; tail has its own 32-bit additions for that.
 */
struct corun_pv_ticket_lock {
	union {
		u64 word;
		struct {
			u32 tail;
			u32 head;
		};
	};
};

/* What one CPU waits for while it is halted; on a cache line of its own. */
struct corun_pv_waiting {
	/* NULL: it waits for nothing. */
	const void *lock;
	u32 want;
} __attribute__((aligned(64)));

struct corun_pv {
	/* By CPU. */
	struct corun_pv_waiting *waiting;
	u32 cpus;
	/* Looks at head before halting; the seed has 8192. At least 1. */
	u32 spin_threshold;
};

LK_INLINE u64 corun_pv_word(u32 head, u32 tail)
{
	return (u64)head << 32 | tail;
}

LK_INLINE bool corun_pv_spin(struct corun_pv_ticket_lock *lock, u32 ticket,
			     u32 looks)
{
	while (lk_load(&lock->head) != ticket) {
		if (!--looks)
			return false;
		lk_relax();
	}
	return true;
}

LK_INLINE void corun_pv_publish(struct corun_pv_waiting *w, const void *lock,
				u32 ticket)
{
	lk_store(&w->want, ticket);
	lk_store_ptr(&w->lock, lock);
}

/* Halts unless it is @ticket's turn. May return without it being so. */
LK_INLINE void corun_pv_sleep(struct corun_pv_ticket_lock *lock, u32 ticket,
			      const struct corun_pv *pv,
			      struct corun_lock_stats *stats)
{
	/* A handler that waited for another such lock would use our cell. */
	unsigned long irqs = lk_irq_save();
	struct corun_pv_waiting *w = &pv->waiting[lk_cpu()];

	corun_pv_publish(w, lock, ticket);
	lk_fetch_or(&lock->tail, CORUN_PV_SLOW);
	if (lk_load(&lock->head) != ticket) {
		stats->halts++;
		lk_halt(irqs);
	}
	lk_store_ptr(&w->lock, NULL);
	lk_irq_restore(irqs);
}

/* The holder of @ticket: takes the flag away if nobody is queued. */
LK_INLINE void corun_pv_clear(struct corun_pv_ticket_lock *lock, u32 ticket)
{
	u32 last = ticket + CORUN_PV_TICKET;

	if (lk_load(&lock->tail) == (last | CORUN_PV_SLOW))
		lk_cmpxchg64(&lock->word,
			     corun_pv_word(ticket, last | CORUN_PV_SLOW),
			     corun_pv_word(ticket, last));
}

LK_INLINE void corun_pv_ticket_acquire(struct corun_pv_ticket_lock *lock,
				       const struct corun_pv *pv,
				       struct corun_lock_stats *stats)
{
	u32 ticket = lk_fetch_add(&lock->tail, CORUN_PV_TICKET) &
		     ~CORUN_PV_SLOW;

	while (!corun_pv_spin(lock, ticket, pv->spin_threshold))
		corun_pv_sleep(lock, ticket, pv, stats);
	corun_pv_clear(lock, ticket);
}

/* Kicks the CPU that is halted for @ticket, if any is. */
LK_INLINE void corun_pv_kick(const void *lock, u32 ticket,
			     const struct corun_pv *pv,
			     struct corun_lock_stats *stats)
{
	u32 cpu;

	for (cpu = 0; cpu < pv->cpus; cpu++) {
		struct corun_pv_waiting *w = &pv->waiting[cpu];

		if (lk_load_ptr(&w->lock) == lock &&
		    lk_load(&w->want) == ticket) {
			stats->kicks++;
			lk_kick(cpu);
			return;
		}
	}
	/* It spins still, or again. */
	stats->kicks_vain++;
}

LK_INLINE void corun_pv_ticket_release(struct corun_pv_ticket_lock *lock,
				       const struct corun_pv *pv,
				       struct corun_lock_stats *stats)
{
	u64 old =
		lk_fetch_add64(&lock->word, corun_pv_word(CORUN_PV_TICKET, 0));
	u32 head = (u32)(old >> 32) + CORUN_PV_TICKET;
	u32 tail = (u32)old;

	/* Whoever queues from now on sees its turn before it can sleep. */
	if (!(tail & CORUN_PV_SLOW) || head == (tail & ~CORUN_PV_SLOW))
		return;
	corun_pv_kick(lock, head, pv, stats);
}

#endif /* CORUN_LOCKS_PV_TICKET_H */
