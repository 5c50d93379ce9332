/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Urgent vCPUs: others wait for them, so they run soon, for a short slice, in
 * the place of another VM's vCPU (micro-sliced cores, seed 004).
 *
 * Three rules keep the host whole. The VM pays: all time is charged, plus the
 * price of the switches, and a VM that is too far ahead gets nothing. Nobody of
 * the own VM gives way: evicting the one that waits gains nothing. And no pCPU
 * and no vCPU is used for it more often than once in urgent_gap_ns.
 */
#ifndef CORUN_URGENT_H
#define CORUN_URGENT_H

#include "region.h"
#include "share.h"
#include "types.h"

/* Why a vCPU is urgent. Stable: counters and traces carry it. */
enum corun_urgent_event {
	/* A sibling sent it an IPI. */
	CORUN_URGENT_IPI = 0,
	/* A device's interrupt came for it. */
	CORUN_URGENT_IO = 1,
	/* A sibling spins, and this one was stopped in a critical section. */
	CORUN_URGENT_LOCK = 2,
	CORUN_URGENT_EVENTS = 3,
};

/* May a vCPU become urgent now? */
enum corun_urgent_verdict {
	CORUN_URGENT_YES = 0,
	/* It runs already, or sleeps: nothing to gain. */
	CORUN_URGENT_NOT_WAITING = 1,
	/* It had an urgent slice less than urgent_gap_ns ago. */
	CORUN_URGENT_TOO_SOON = 2,
	/* It is urgent already. */
	CORUN_URGENT_AGAIN = 3,
};

/*
 * May the vCPU that waits since @waits_since_ns (0: it does not wait), was made
 * urgent at @urgent_ns (0: it is not) and had its last urgent slice at
 * @boosted_ns (0: never) become urgent?
 */
CORUN_INLINE enum corun_urgent_verdict
corun_urgent_decide(u64 waits_since_ns, u64 urgent_ns, u64 boosted_ns,
		    u64 now_ns, const struct corun_tunables *tun)
{
	if (!waits_since_ns)
		return CORUN_URGENT_NOT_WAITING;
	if (urgent_ns)
		return CORUN_URGENT_AGAIN;
	if (boosted_ns && (s64)(now_ns - boosted_ns) < (s64)tun->urgent_gap_ns)
		return CORUN_URGENT_TOO_SOON;
	return CORUN_URGENT_YES;
}

/* A pCPU and what runs there, as a boost sees it. */
struct corun_victim {
	/* vtime of its VM, with what the vCPU has run since it was charged. */
	u64 vm_vtime_ns;
	/* End of the last urgent slice here; 0: there was none. */
	u64 urgent_end_ns;
	/* A vCPU of the urgent one's VM, or a host task: never gives way. */
	bool sibling_or_host;
	/* A kick is on its way, or an urgent vCPU runs: it is taken. */
	bool taken;
};

/* May the urgent vCPU of @vm have that pCPU? */
CORUN_INLINE bool corun_urgent_takes(const struct corun_vm *vm,
				     const struct corun_victim *victim,
				     u64 now_ns,
				     const struct corun_tunables *tun)
{
	if (victim->sibling_or_host || victim->taken)
		return false;
	if (victim->urgent_end_ns &&
	    (s64)(now_ns - victim->urgent_end_ns) < (s64)tun->urgent_gap_ns)
		return false;
	return !corun_before(victim->vm_vtime_ns + tun->boost_debt_ns,
			     vm->vtime_ns);
}

/*
 * Does a vCPU whose slice is over run on for defer_ns, because it was stopped in
 * @region and siblings are likely to wait for what it holds? @done: how often it
 * did so in a row. @best: the VM that waits with the best claim.
 */
CORUN_INLINE bool corun_urgent_defers(u32 region, u64 done,
				      const struct corun_vm *vm,
				      const struct corun_vm *best,
				      const struct corun_tunables *tun)
{
	if (!corun_region_critical(region) || done >= tun->defer_max ||
	    !tun->defer_ns)
		return false;
	return !corun_before(best->vtime_ns + tun->boost_debt_ns, vm->vtime_ns);
}

#endif /* CORUN_URGENT_H */
