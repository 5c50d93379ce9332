/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many tasks each VM's queue holds, for those who look through all of them at every
 * dispatch: scx_bpf_dsq_nr_queued() looks a queue up in a hash table first.
 *
 * A task counts from the moment that it is on its way into a queue until it runs, so a
 * count is never too low; who was just taken by another pCPU still counts.
 */
#ifndef CORUN_QUEUE_BPF_H
#define CORUN_QUEUE_BPF_H

#include "state.bpf.h"

/* Tasks of a queue that are asked where they may run, at most. */
#define QUEUE_LOOKS 8

static __always_inline bool has_queued(u32 slot)
{
	return nr_queued[slot & (CORUN_MAX_SLOTS - 1)];
}

/* The same, exactly: for those who would disturb others in vain. */
static __always_inline bool has_waiting(u32 slot)
{
	return has_queued(slot) && scx_bpf_dsq_nr_queued(CORUN_DSQ(slot)) > 0;
}

/* waits_for_cpu() where the first task may not run on @cpu. */
static __noinline bool waits_behind_first(u32 slot, s32 cpu, u64 *vtime_ns)
{
	struct task_struct *p;
	bool found = false;
	u32 looks = 0;

	bpf_for_each(scx_dsq, p, CORUN_DSQ(slot), 0) {
		*vtime_ns = p->scx.dsq_vtime;
		found = bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ||
			++looks == QUEUE_LOOKS;
		if (found)
			break;
	}
	return found;
}

/*
 * What the queue of @slot has for @cpu. *@vtime_ns: of the first task that may run there;
 * false: there is none. Who may not run here has no claim to this pCPU either: VMs that
 * are bound to different ones have vtimes that drift apart without end. Of a long queue
 * the first tasks decide; when none of them may, the rest is taken to hold one that does.
 */
static __noinline bool waits_for_cpu(u32 slot, s32 cpu, u64 *vtime_ns)
{
	struct task_struct *p;
	bool any = false, found = false;

	bpf_rcu_read_lock();
	p = __COMPAT_scx_bpf_dsq_peek(CORUN_DSQ(slot));
	if (p) {
		any = true;
		*vtime_ns = p->scx.dsq_vtime;
		found = !state_of(slot)->bound ||
			bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
	}
	bpf_rcu_read_unlock();
	return found || (any && waits_behind_first(slot, cpu, vtime_ns));
}

/* @t has a pCPU, or is no task of ours any more. */
static void leaves_queue(struct task_ctx *t)
{
	u32 slot = t->queued_in - 1;

	if (!t->queued_in)
		return;
	t->queued_in = 0;
	__sync_fetch_and_sub(&nr_queued[slot & (CORUN_MAX_SLOTS - 1)], 1);
}

/*
 * @p, with context @t, is about to enter the queue of @slot; it may have left another
 * without a run.
 */
static void enters_queue(struct task_struct *p, struct task_ctx *t, u32 slot)
{
	if ((u32)p->nr_cpus_allowed < nr_cpu_ids)
		state_of(slot)->bound = 1;
	if (t->queued_in == slot + 1)
		return;
	leaves_queue(t);
	t->queued_in = slot + 1;
	__sync_fetch_and_add(&nr_queued[slot & (CORUN_MAX_SLOTS - 1)], 1);
}

#endif /* CORUN_QUEUE_BPF_H */
