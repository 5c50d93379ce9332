/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fair share by VM.
 *
 * Two levels of virtual time. The upper one divides the host between VMs by
 * weight, whatever their number of vCPUs; the lower one divides a VM's time
 * between its vCPUs. A party is charged when it stops running, for what it ran,
 * so two pCPUs that choose at about the same time choose the same VM: siblings
 * tend to run together (a relaxed gang), and a VM can be ahead by at most one
 * slice a pCPU.
 */
#ifndef CORUN_SHARE_H
#define CORUN_SHARE_H

#include "types.h"

/* @weight, forced into its range; 0 (not known yet) means the default. */
CORUN_INLINE u32 corun_share_weight(u32 weight)
{
	if (!weight)
		return CORUN_WEIGHT_DEFAULT;
	return weight > CORUN_WEIGHT_MAX ? CORUN_WEIGHT_MAX : weight;
}

/* CPU time @delta_ns as vtime of a party of @weight. */
CORUN_INLINE u64 corun_share_vtime(u64 delta_ns, u32 weight)
{
	return delta_ns * CORUN_WEIGHT_DEFAULT / corun_share_weight(weight);
}

/* More vtime than parties are ever apart, 13 days: times any weight it fits 64 bits. */
#define CORUN_SHARE_FAR_NS (1ULL << 50)

/*
 * The least CPU time that is at least @vtime_ns for a party of @weight; of more
 * vtime than CORUN_SHARE_FAR_NS, that one's.
 */
CORUN_INLINE u64 corun_share_cpu_ns(u64 vtime_ns, u32 weight)
{
	if (vtime_ns > CORUN_SHARE_FAR_NS)
		vtime_ns = CORUN_SHARE_FAR_NS;
	return (vtime_ns * corun_share_weight(weight) + CORUN_WEIGHT_DEFAULT -
		1) /
	       CORUN_WEIGHT_DEFAULT;
}

/*
 * Charges @delta_ns of CPU time to a vCPU. Its VM is charged by the caller with
 * corun_share_vtime(), atomically where several pCPUs do it at once.
 */
CORUN_INLINE void corun_share_charge_vcpu(struct corun_vcpu *vcpu, u64 delta_ns)
{
	vcpu->vtime_ns += corun_share_vtime(delta_ns, vcpu->weight);
	vcpu->used_ns += delta_ns;
}

/*
 * A party becomes runnable: it keeps what it is behind, but no more than the
 * credit of a sleeper for each of its @lanes, the pCPUs that it can use at once
 * (0 is 1; a vCPU has one). vtimes of VMs move as many times as fast, and one of
 * a VM's vCPUs nearly always wakes: with a single credit such a VM would lose
 * nearly all that it is owed. @now_ns is the vtime of the party that runs now.
 */
CORUN_INLINE u64 corun_share_wake(u64 vtime_ns, u64 now_ns, u32 lanes,
				  const struct corun_tunables *tun)
{
	u64 credit_ns = tun->sleeper_credit_ns * (lanes ? lanes : 1);

	return corun_later(vtime_ns, now_ns - credit_ns);
}

/* True when VM @a has the better claim to a pCPU than VM @b. */
CORUN_INLINE bool corun_share_first(const struct corun_vm *a,
				    const struct corun_vm *b)
{
	return corun_before(a->vtime_ns, b->vtime_ns);
}

/* What a task that wakes has to do with the one that runs where it could. */
enum corun_wakeup {
	/* They are of different VMs. */
	CORUN_WAKEUP_STRANGER = 0,
	/* Of one VM; a timer, a device or a task of the host woke it. */
	CORUN_WAKEUP_SIBLING = 1,
	/* Of one VM, a vCPU of which woke it. */
	CORUN_WAKEUP_BY_SIBLING = 2,
};

/* No time is long enough. */
#define CORUN_SHARE_NEVER (~0ULL)

/*
 * After how much more CPU time of the running vCPU does a waking one preempt it, ns;
 * 0: now. @ran_ns is what the running one has not been charged for yet. Within one
 * VM the lower level decides. A pCPU that only looked at the moment of the wake-up
 * would make who comes a moment too early wait for the end of a slice.
 *
 * Whom a vCPU wakes does not preempt its siblings: the guest hands work over while it
 * holds what the woken one wants next, and the sooner that runs, the longer both wait.
 * The sibling sleeps when there is nothing left to do, or its slice ends.
 */
CORUN_INLINE u64 corun_share_preempts_in(const struct corun_vm *waking_vm,
					 const struct corun_vcpu *waking,
					 const struct corun_vm *running_vm,
					 const struct corun_vcpu *running,
					 enum corun_wakeup wakeup, u64 ran_ns,
					 const struct corun_tunables *tun)
{
	bool same_vm = wakeup != CORUN_WAKEUP_STRANGER;
	u64 wake_vtime = same_vm ? waking->vtime_ns : waking_vm->vtime_ns;
	u64 run_vtime = same_vm ? running->vtime_ns : running_vm->vtime_ns;
	u32 weight = same_vm ? running->weight : running_vm->weight;
	u64 due_vtime = wake_vtime + tun->wakeup_gran_ns + 1;

	if (wakeup == CORUN_WAKEUP_BY_SIBLING)
		return CORUN_SHARE_NEVER;
	run_vtime += corun_share_vtime(ran_ns, weight);
	if (!corun_before(run_vtime, due_vtime))
		return 0;
	return corun_share_cpu_ns(due_vtime - run_vtime, weight);
}

/*
 * Does the vCPU whose slice ended go on? @vm is its VM, @best the best other
 * VM with a vCPU waiting (NULL: none), @head_vtime_ns the vtime of the first
 * waiting sibling (@has_head: there is one).
 */
CORUN_INLINE bool corun_share_keeps(const struct corun_vm *vm,
				    const struct corun_vcpu *vcpu,
				    const struct corun_vm *best, bool has_head,
				    u64 head_vtime_ns)
{
	if (best && corun_share_first(best, vm))
		return false;
	return !has_head || !corun_before(head_vtime_ns, vcpu->vtime_ns);
}

/*
 * A vCPU of @vm was interrupted in its turn, by tasks of the host, a short slice or a
 * vCPU that woke, with @left_ns of it left. Does the turn go on when the pCPU is free?
 * @other: who waits there with the best claim and may go before (NULL: nobody): the
 * host's party, or any if the turn was lost to a better claim. Nothing is won by it: the
 * turn was given before, and ends when it would have.
 */
CORUN_INLINE bool corun_share_resumes(const struct corun_vm *vm,
				      const struct corun_vm *other, u64 left_ns,
				      const struct corun_tunables *tun)
{
	if (other && corun_share_first(other, vm))
		return false;
	return left_ns >= tun->urgent_slice_ns;
}

#endif /* CORUN_SHARE_H */
