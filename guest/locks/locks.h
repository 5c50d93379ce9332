/* SPDX-License-Identifier: GPL-2.0-only */
/* All algorithms behind one pair of calls, chosen at run time. */
#ifndef CORUN_LOCKS_LOCKS_H
#define CORUN_LOCKS_LOCKS_H

#include "pmt.h"
#include "pv_ticket.h"
#include "tas.h"
#include "ticket.h"

/* Stable: tests and results carry it. */
enum corun_lock_kind {
	CORUN_LOCK_TAS = 0,
	CORUN_LOCK_TICKET = 1,
	CORUN_LOCK_PV_TICKET = 2,
	CORUN_LOCK_PMT = 3,
	/* Excludes nobody: the negative control. */
	CORUN_LOCK_BROKEN = 4,
	/* The kernel's own; in the module alone. */
	CORUN_LOCK_QSPIN = 5,
	CORUN_LOCK_NR = 6,
};

/* One lock of any kind; all zeros is unlocked. */
union corun_lock {
	struct corun_tas_lock tas;
	struct corun_ticket_lock ticket;
	struct corun_pv_ticket_lock pv_ticket;
	struct corun_pmt_lock pmt;
};

struct corun_lock_tunables {
	struct corun_pv pv;
	/*
	 * Looks at the line for each waiter ahead before a preemptable ticket
	 * lock's waiter leaves it. Range 0 to 2^20.
	 */
	u32 pmt_timeout;
};

LK_INLINE void corun_lock_acquire(u32 kind, union corun_lock *lock,
				  const struct corun_lock_tunables *tun,
				  struct corun_lock_stats *stats)
{
	switch (kind) {
	case CORUN_LOCK_TAS:
		corun_tas_acquire(&lock->tas);
		break;
	case CORUN_LOCK_TICKET:
		corun_ticket_acquire(&lock->ticket);
		break;
	case CORUN_LOCK_PV_TICKET:
		corun_pv_ticket_acquire(&lock->pv_ticket, &tun->pv, stats);
		break;
	case CORUN_LOCK_PMT:
		corun_pmt_acquire(&lock->pmt, tun->pmt_timeout, stats);
		break;
	case CORUN_LOCK_BROKEN:
		corun_broken_acquire(&lock->tas);
		break;
	}
}

LK_INLINE void corun_lock_release(u32 kind, union corun_lock *lock,
				  const struct corun_lock_tunables *tun,
				  struct corun_lock_stats *stats)
{
	switch (kind) {
	case CORUN_LOCK_TICKET:
		corun_ticket_release(&lock->ticket);
		break;
	case CORUN_LOCK_PV_TICKET:
		corun_pv_ticket_release(&lock->pv_ticket, &tun->pv, stats);
		break;
	case CORUN_LOCK_PMT:
		corun_pmt_release(&lock->pmt);
		break;
	case CORUN_LOCK_TAS:
	case CORUN_LOCK_BROKEN:
		corun_tas_release(&lock->tas);
		break;
	}
}

#endif /* CORUN_LOCKS_LOCKS_H */
