/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a pCPU runs next: whom it was kicked for, the rest of a turn, or a task of the
 * VM with the best claim.
 */
#ifndef CORUN_DISPATCH_BPF_H
#define CORUN_DISPATCH_BPF_H

#include "share.bpf.h"
#include "boost.bpf.h"
#include "gang.bpf.h"
#include "guest.bpf.h"
#include "queue.bpf.h"
#include "slices.bpf.h"
#include "turn.bpf.h"

/*
 * True when @p may be moved to @cpu's local queue; an illegal move is fatal. @p
 * is never the current task, whose migration the BPF prologue may disable.
 */
static bool may_run_on(struct task_struct *p, s32 cpu)
{
	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
	       (!p->migration_disabled || scx_bpf_task_cpu(p) == cpu);
}

/* Moves @p from its VM's queue to this pCPU; false when it is not there. */
static bool take(struct task_struct *p, u32 slot, u64 slice_ns)
{
	struct bpf_iter_scx_dsq it;
	bool moved = false;

	if (!bpf_iter_scx_dsq_new(&it, CORUN_DSQ(slot), 0)) {
		scx_bpf_dsq_move_set_slice(&it, slice_ns);
		moved = scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0);
	}
	bpf_iter_scx_dsq_destroy(&it);
	return moved;
}

/* Moves the task of @pid to this pCPU, if it still waits and may run here. */
static __noinline bool take_pid(u32 pid, s32 cpu, u64 slice_ns)
{
	struct task_struct *p = bpf_task_from_pid(pid);
	struct task_ctx *t;
	bool moved = false;

	if (!p)
		return false;
	t = task_ctx_of(p);
	if (t && is_vcpu(t) && may_run_on(p, cpu))
		moved = take(p, t->slot, slice_ns);
	bpf_task_release(p);
	return moved;
}

/* Was @slot's queue looked at on @c, and nothing in it can run there? */
static __always_inline bool has_tried(const struct cpu_ctx *c, u32 slot)
{
	return c->tried[(slot / 64) % (CORUN_MAX_SLOTS / 64)] &
	       (1ULL << (slot % 64));
}

/* Nothing in @slot's queue can run on @c. */
static __always_inline void note_tried(struct cpu_ctx *c, u32 slot)
{
	c->tried[(slot / 64) % (CORUN_MAX_SLOTS / 64)] |= 1ULL << (slot % 64);
}

/* Has @slot's queue a task for @cpu, the pCPU of @c, as far as a look tells? */
static __always_inline bool has_for(struct cpu_ctx *c, s32 cpu, u32 slot)
{
	u64 vtime_ns;

	if (!has_queued(slot) || has_tried(c, slot))
		return false;
	if (!state_of(slot)->bound || waits_for_cpu(slot, cpu, &vtime_ns))
		return true;
	note_tried(c, slot);
	return false;
}

/*
 * The slot with the best claim to @cpu among those with a task for it, leaving out
 * @except; -1 when there is none.
 */
static __noinline s32 best_slot(struct cpu_ctx *c, s32 cpu, s32 except)
{
	bool found = false;
	u32 best = 0;
	u32 slot;

	bpf_for(slot, 0, nr_slots) {
		if (slot == except ||
		    (found && !corun_share_first(vm_of(slot), vm_of(best))) ||
		    !has_for(c, cpu, slot))
			continue;
		best = slot;
		found = true;
	}
	return found ? (s32)best : -1;
}

/* The same, when @best is the best of all but @slot's (-1: there is none). */
static s32 best_with(struct cpu_ctx *c, s32 cpu, u32 slot, s32 best)
{
	s32 first = (s32)slot, second = best;

	if (!has_for(c, cpu, slot))
		return best;
	if (best < 0)
		return first;
	if (first > second) {
		first = best;
		second = (s32)slot;
	}
	return corun_share_first(vm_of(second), vm_of(first)) ? second : first;
}

/* Does @prev, whose slice is over, go on? @best: the other VM that waits. */
static __noinline bool keeps(struct task_ctx *t, s32 cpu, u32 slot, s32 best)
{
	const struct corun_vm *other = best < 0 ? NULL : vm_of(best);
	u64 head_vtime_ns = 0;
	bool has_head;

	if (!corun_share_keeps(vm_of(slot), &t->vcpu, other, false, 0))
		return false;
	/* Siblings are looked for when it is up to them. */
	if (!has_queued(slot))
		return true;
	has_head = waits_for_cpu(slot, cpu, &head_vtime_ns);
	/* A sibling is urgent: it goes before any other. */
	if (state_of(slot)->first_pid)
		head_vtime_ns = t->vcpu.vtime_ns - 1;
	return corun_share_keeps(vm_of(slot), &t->vcpu, other, has_head,
				 head_vtime_ns);
}

/* Takes the urgent vCPU of the VM in @slot, or its first task; false: none. */
static __noinline bool take_from(u32 slot, s32 cpu)
{
	struct vm_state *s = state_of(slot);
	u32 pid = s->first_pid;

	if (pid && __sync_val_compare_and_swap(&s->first_pid, pid, 0) == pid &&
	    take_pid(pid, cpu, tun.slice_ns)) {
		count(CORUN_COUNT_urgent_first);
		return true;
	}
	return scx_bpf_dsq_move_to_local(CORUN_DSQ(slot), 0);
}

/*
 * Takes the first task that may run here from the VM with the best claim, which is in
 * @slot, -1: there is none.
 */
static __noinline bool take_best(struct cpu_ctx *c, s32 cpu, s32 slot)
{
	u32 attempt, taken = 0;

	bpf_for(attempt, 0, CORUN_MAX_SLOTS) {
		if (slot < 0)
			break;
		if (take_from(slot, cpu)) {
			taken++;
			break;
		}
		/* All its tasks are bound to other pCPUs, or were just taken. */
		note_tried(c, (u32)slot);
		slot = best_slot(c, cpu, -1);
	}
	if (!taken)
		return false;
	count(CORUN_COUNT_dispatches);
	return true;
}

/* The urgent slice on the pCPU of @c ends. */
static void urgent_ends(struct cpu_ctx *c, u64 now_ns)
{
	u64 ran_ns = elapsed_ns(c->serve_start_ns, now_ns);
	u64 asked_ns = tun.urgent_slice_ns;

	c->serving_pid = 0;
	__sync_fetch_and_sub(&nr_serving, 1);
	c->urgent_end_ns = now_ns;
	__sync_fetch_and_add(&served.busy_ns, ran_ns);
	count_by(CORUN_COUNT_urgent_ns, ran_ns);
	if (ran_ns <= asked_ns)
		count(CORUN_COUNT_urgent_le_1x);
	else if (ran_ns <= 2 * asked_ns)
		count(CORUN_COUNT_urgent_le_2x);
	else if (ran_ns <= 4 * asked_ns)
		count(CORUN_COUNT_urgent_le_4x);
	else
		count(CORUN_COUNT_urgent_gt_4x);
}

/* Takes the urgent vCPU that this pCPU was kicked for, for a short slice. */
static bool serve_urgent(s32 cpu, struct cpu_ctx *c)
{
	u32 pid = c->urgent_pid;

	if (!pid)
		return false;
	c->urgent_pid = 0;
	if (!take_pid(pid, cpu, tun.urgent_slice_ns)) {
		__sync_fetch_and_sub(&nr_serving, 1);
		count(CORUN_COUNT_urgent_stale);
		return false;
	}
	c->serving_pid = pid;
	return true;
}

/* Dispatches whom a spinner on this pCPU asked for, if that still makes sense. */
static bool follow_hint(s32 cpu, struct cpu_ctx *c)
{
	u32 pid = c->hint_pid, slot = c->hint_slot;
	bool moved;
	s32 best;

	if (!pid)
		return false;
	c->hint_pid = 0;
	if (!corun_yield_hint_fresh(c->hint_made_ns, bpf_ktime_get_ns(),
				    tunables())) {
		count(CORUN_COUNT_yields_stale_aged);
		return false;
	}
	best = best_slot(c, cpu, (s32)slot);
	if (!corun_yield_affords(vm_of(slot), best < 0 ? NULL : vm_of(best),
				 lanes_of(slot), tunables())) {
		count(CORUN_COUNT_yields_overdrawn);
		return false;
	}
	moved = take_pid(pid, cpu, c->hint_slice_ns);
	count(moved ? CORUN_COUNT_yields_dispatched
		    : CORUN_COUNT_yields_stale_taken);
	return moved;
}

/* Takes a vCPU of the gang that this pCPU was kicked for. */
static bool join_gang(s32 cpu, struct cpu_ctx *c)
{
	u32 slot = c->gang_slot;

	if (!slot)
		return false;
	c->gang_slot = 0;
	if (!take_from(slot, cpu))
		return false;
	c->join_end_ns = c->gang_end_ns;
	count(CORUN_COUNT_gang_dispatches);
	return true;
}

/* Takes whom this pCPU was asked to run out of turn. */
static __noinline bool take_marked(s32 cpu, struct cpu_ctx *c)
{
	return serve_urgent(cpu, c) || follow_hint(cpu, c) || join_gang(cpu, c);
}

/*
 * Does @t run on past its slice's end, because it is inside a critical section?
 * Whoever the pCPU was kicked for keeps its mark and comes next.
 */
static __noinline bool defers(struct task_ctx *t, u32 slot, s32 best)
{
	u32 region;

	if (!has(CORUN_MECHANISM_SYMBOLS) || best < 0 || !is_vcpu(t))
		return false;
	region = region_now(t);
	if (!corun_urgent_defers(region, t->deferred, vm_of(slot), vm_of(best),
				 tunables()))
		return false;
	t->deferred++;
	count(CORUN_COUNT_deferrals);
	return true;
}

/*
 * Goes on with the turn that was interrupted on this pCPU, if @best, the slot with the
 * best claim, lets it.
 */
static __noinline bool resume_turn(struct cpu_ctx *c, s32 cpu, s32 best,
				   u64 now_ns)
{
	u32 pid = c->turn_pid;

	if (!pid || !turn_resumes(c, best, now_ns))
		return false;
	c->turn_pid = 0;
	if (!take_pid(pid, cpu, c->turn_left_ns))
		return false;
	c->turn_goes_on = 1;
	count(CORUN_COUNT_turns_resumed);
	return true;
}

/* @prev, charged until now, runs on for @slice_ns. */
static void run_on(struct task_struct *prev, struct task_ctx *t,
		   struct cpu_ctx *c, u64 now_ns, u64 slice_ns)
{
	s32 cpu = scx_bpf_task_cpu(prev);

	c->running = t->vcpu;
	c->run_start_ns = now_ns;
	move_clocks(c, t, slot_of(prev, t));
	scx_bpf_task_set_slice(prev, slice_ns);
	if (is_vcpu(t))
		enforce_turn(cpu, c, now_ns, slice_ns);
	else
		enforce_slice(cpu, c, now_ns, slice_ns);
}

/* Has @c left a task in a queue that it could have run? */
static __noinline bool leaves_some(struct cpu_ctx *c)
{
	u32 slot;

	bpf_for(slot, 0, nr_slots) {
		if (!has_tried(c, slot) && has_waiting(slot))
			return true;
	}
	return false;
}

/*
 * This pCPU was idle, and was kicked for a task that may not be the one that it
 * took: another idle pCPU is to look at what is left.
 */
static __noinline void kick_idle_for_rest(struct cpu_ctx *c)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	u32 cpu = bpf_cpumask_first(idle);

	scx_bpf_put_idle_cpumask(idle);
	if (cpu >= nr_cpu_ids || !leaves_some(c))
		return;
	count(CORUN_COUNT_late_kicks);
	scx_bpf_kick_cpu((s32)cpu, SCX_KICK_IDLE);
}

/* Nobody has the pCPU. */
static void dispatch_idle(s32 cpu, struct cpu_ctx *c)
{
	s32 best;

	if (!take_marked(cpu, c)) {
		best = best_slot(c, cpu, -1);
		if (best < 0 || (!resume_turn(c, cpu, best, scx_bpf_now()) &&
				 !take_best(c, cpu, best)))
			return;
	}
	kick_idle_for_rest(c);
}

/* A turn ends with @prev still runnable. */
static void dispatch_after(struct task_struct *prev, struct task_ctx *t,
			   s32 cpu, struct cpu_ctx *c, u64 now_ns)
{
	u32 slot = slot_of(prev, t);
	bool serving = c->serving_pid == prev->pid;
	bool out_of_turn = serving || !is_vcpu(t);
	s32 best, next = -1;

	settle(prev, t, slot);
	best = best_slot(c, cpu, (s32)slot);
	if (!c->hint_pid && defers(t, slot, best)) {
		turn_lasts(c, now_ns + tun.defer_ns);
		run_on(prev, t, c, now_ns, tun.defer_ns);
		return;
	}
	if (take_marked(cpu, c))
		return;
	if (!out_of_turn)
		next = chosen_by_leader(c, slot, best, now_ns);
	if (next >= 0 && next != (s32)slot && take_from((u32)next, cpu)) {
		count(CORUN_COUNT_turns_followed);
		return;
	}
	if (next == (s32)slot)
		best = -1;
	if (!serving && keeps(t, cpu, slot, best))
		count(CORUN_COUNT_keeps);
	else if ((out_of_turn &&
		  resume_turn(c, cpu, best_with(c, cpu, slot, best), now_ns)) ||
		 (next == (s32)slot && take_from(slot, cpu)) ||
		 take_best(c, cpu, best_with(c, cpu, slot, best)))
		return;
	if (serving)
		urgent_ends(c, now_ns);
	run_on(prev, t, c, now_ns,
	       is_vcpu(t) ? kept_slice(c, slot, !serving, now_ns)
			  : tun.slice_ns);
}

#endif /* CORUN_DISPATCH_BPF_H */
