/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Turns: what a vCPU was given, however often tasks of the host, short slices of
 * urgent vCPUs or vCPUs that wake and sleep again come in between. Without this the
 * pCPU would choose anew after each, so that slices were as long as the host is quiet,
 * and the vCPUs of a VM would hardly ever run at the same time.
 */
#ifndef CORUN_TURN_BPF_H
#define CORUN_TURN_BPF_H

#include "state.bpf.h"

/*
 * Can all vCPUs of the VM in @slot run at the same time? One with more of them than there
 * are pCPUs for it gains nothing by long turns that begin and end together: its vCPUs wait
 * for siblings that have no pCPU, and the sooner others are chosen the better.
 */
static bool fits_host(u32 slot)
{
	return info_of(slot)->nr_vcpus <= pcpus_of(slot);
}

/* A vCPU's turn on the pCPU of @c begins, and with it any other's has ended. */
static void turn_begins(struct cpu_ctx *c, u64 end_ns)
{
	c->turn_end_ns = end_ns;
	c->turn_pid = 0;
}

/*
 * Slice of a vCPU of the VM in @slot whose turn begins: it ends with its siblings', or
 * is short where they cannot run together.
 */
static u64 aligned_slice(u32 slot, u64 now_ns)
{
	struct vm_state *s = state_of(slot);
	u64 slice_ns;

	if (!has(CORUN_MECHANISM_GANG))
		return tun.slice_ns;
	if (!fits_host(slot))
		return corun_gang_crowded(s->coupled, info_of(slot)->nr_vcpus,
					  pcpus_of(slot), tunables());
	slice_ns = corun_gang_align(
		s->coupled, elapsed_ns(now_ns, s->turn_end_ns), tunables());
	s->turn_end_ns = now_ns + slice_ns;
	return slice_ns;
}

/*
 * vCPU @t of the VM in @slot comes to run on the pCPU of @c, not out of turn, until
 * @end_ns.
 */
static void turn_starts(struct cpu_ctx *c, const struct task_ctx *t, u32 slot,
			u64 end_ns)
{
	/*
	 * Who woke may sleep soon, and whom it preempted then goes on; but not a
	 * sibling, or their VM would have the pCPU for both turns.
	 */
	if (t->woken && slot != c->turn_slot) {
		c->turn_end_ns = end_ns;
		c->turn_lost = 1;
	} else {
		turn_begins(c, end_ns);
	}
}

/* The turn on the pCPU of @c does not end before @end_ns. */
static void turn_lasts(struct cpu_ctx *c, u64 end_ns)
{
	if (elapsed_ns(c->turn_end_ns, end_ns))
		c->turn_end_ns = end_ns;
}

/*
 * Slice of a vCPU of the VM in @slot that keeps its pCPU: what is left of its turn,
 * if it was stopped within @its_turn, or a new one.
 */
static u64 kept_slice(struct cpu_ctx *c, u32 slot, bool its_turn, u64 now_ns)
{
	u64 slice_ns = elapsed_ns(now_ns, c->turn_end_ns);

	if (its_turn &&
	    corun_share_resumes(vm_of(slot), NULL, slice_ns, tunables()))
		return slice_ns;
	slice_ns = aligned_slice(slot, now_ns);
	turn_begins(c, now_ns + slice_ns);
	c->cut_end_ns = 0;
	return slice_ns;
}

/* A timer may be early by the clocks' difference. */
#define TIMER_SLACK_NS 1000

/*
 * Which VM comes next on the pCPU of @c, where a turn of the VM in @slot has run its
 * time: the one that a sibling's pCPU has just chosen, or -1: choose. @best is the
 * other VM that waits with the best claim, -1: none; who chooses may be followed.
 */
static s32 chosen_by_leader(struct cpu_ctx *c, u32 slot, s32 best, u64 now_ns)
{
	struct vm_state *s = state_of(slot);

	if (!has(CORUN_MECHANISM_GANG) || !fits_host(slot) || !c->turn_end_ns ||
	    elapsed_ns(now_ns, c->turn_end_ns) > TIMER_SLACK_NS)
		return -1;
	if (corun_gang_follows(s->coupled, elapsed_ns(s->chosen_ns, now_ns),
			       tunables()))
		return (s32)s->chosen_slot;
	if (best == CORUN_HOST_SLOT)
		return -1;
	s->chosen_slot = slot;
	if (best > 0 && corun_share_first(vm_of(best), vm_of(slot)))
		s->chosen_slot = (u32)best;
	s->chosen_ns = now_ns;
	return -1;
}

/* @p, vCPU @t, is stopped although it could run on. */
static void turn_stops(struct cpu_ctx *c, struct task_struct *p,
		       const struct task_ctx *t, u64 now_ns)
{
	c->turn_left_ns = elapsed_ns(now_ns, c->turn_end_ns);
	c->turn_stopped_ns = now_ns;
	c->turn_pid = c->turn_left_ns ? p->pid : 0;
	c->turn_slot = t->slot;
	c->turn_id = t->vcpu_id;
	c->turn_lost = 0;
}

/* Who was to give way on the pCPU of @c at the latest by now has not been asked yet. */
static bool cut_is_due(const struct cpu_ctx *c, u64 now_ns)
{
	return c->cut_end_ns && !elapsed_ns(now_ns, c->cut_end_ns);
}

/*
 * Does the turn that was interrupted on the pCPU of @c go on, now that it is free?
 * @best is the slot with the best claim, -1: none. Tasks of the host go before it with a
 * better claim, and VMs do if such a one has interrupted it or was to.
 */
static bool turn_resumes(struct cpu_ctx *c, s32 best, u64 now_ns)
{
	struct vcpu_rec *r = rec_of(c->turn_slot, c->turn_id);
	const struct corun_vm *other = NULL;

	/* It has waited ever since, or it had another turn elsewhere. */
	if (!r || !fits_host(c->turn_slot) ||
	    elapsed_ns(c->turn_stopped_ns, r->waits_since_ns) >
		    tun.urgent_slice_ns)
		return false;
	if (best == CORUN_HOST_SLOT ||
	    (best > 0 && (c->turn_lost || cut_is_due(c, now_ns))))
		other = vm_of((u32)best);
	return corun_share_resumes(vm_of(c->turn_slot), other, c->turn_left_ns,
				   tunables());
}

#endif /* CORUN_TURN_BPF_H */
