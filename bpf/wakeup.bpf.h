/* SPDX-License-Identifier: GPL-2.0-only */
/* Who gives way to a task that wakes while no pCPU is idle, and when. */
#ifndef CORUN_WAKEUP_BPF_H
#define CORUN_WAKEUP_BPF_H

#include "interrupt.bpf.h"
#include "slices.bpf.h"

/*
 * What wakes a task of @slot: a vCPU of the same VM, which sends it an interrupt, or
 * anything else. In an interrupt of the host's, whoever runs here has nothing to do
 * with it.
 */
static enum corun_wakeup wakeup_within(u32 slot)
{
	struct cpu_ctx *here = cpu_ctx_of((s32)bpf_get_smp_processor_id());

	return here && here->run_start_ns && here->running_id &&
			       here->running_slot == slot && !in_interrupt()
		       ? CORUN_WAKEUP_BY_SIBLING
		       : CORUN_WAKEUP_SIBLING;
}

/* After how much more time of what runs on the pCPU of @c does @t, waking, preempt it? */
static u64 preempts_in(struct task_ctx *t, u32 slot, struct cpu_ctx *c,
		       enum corun_wakeup within, u64 now_ns)
{
	u64 started_ns = c->run_start_ns;

	/* Somebody preempts what runs there already, or nothing does. */
	if (c->kick_pending || !started_ns)
		return CORUN_SHARE_NEVER;
	return corun_share_preempts_in(
		vm_of(slot), &t->vcpu, vm_of(c->running_slot), &c->running,
		slot == c->running_slot ? within : CORUN_WAKEUP_STRANGER,
		elapsed_ns(started_ns, now_ns), tunables());
}

/*
 * Kicks one pCPU off its task for @p, if one should give way, or sees to it that the
 * first that should soon does.
 */
static __noinline void kick_for_wakeup(struct task_struct *p,
				       struct task_ctx *t, u32 slot)
{
	u64 now_ns = scx_bpf_now(), least_ns = CORUN_SHARE_NEVER;
	enum corun_wakeup within = wakeup_within(slot);
	u32 prev_cpu = (u32)scx_bpf_task_cpu(p), i;
	s32 first = -1;

	if (within == CORUN_WAKEUP_BY_SIBLING)
		count(CORUN_COUNT_wakeups_by_siblings);
	t->looks = 0;
	bpf_for(i, 0, nr_cpu_ids) {
		u32 cpu = (prev_cpu + i) % nr_cpu_ids;
		struct cpu_ctx *c = cpu_ctx_of((s32)cpu);
		u64 wait_ns;

		if (!c || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (t->looks++ == tun.cpu_looks)
			break;
		wait_ns = preempts_in(t, slot, c, within, now_ns);
		if (wait_ns >= least_ns)
			continue;
		least_ns = wait_ns;
		first = (s32)cpu;
		if (!wait_ns)
			break;
	}
	if (first < 0)
		return;
	if (least_ns) {
		cut_slice(first, now_ns, least_ns);
		return;
	}
	cpus[first & (CORUN_MAX_CPUS - 1)].kick_pending = 1;
	count(CORUN_COUNT_wakeup_preemptions);
	scx_bpf_kick_cpu(first, SCX_KICK_PREEMPT);
}

#endif /* CORUN_WAKEUP_BPF_H */
