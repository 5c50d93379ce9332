/* SPDX-License-Identifier: GPL-2.0-only */
/* Whose task a task is, and what it is charged: the shares of VMs and of vCPUs. */
#ifndef CORUN_SHARE_BPF_H
#define CORUN_SHARE_BPF_H

#include "state.bpf.h"

/* The slot whose queue @p belongs to. */
static u32 find_slot(struct task_struct *p, struct task_ctx *t)
{
	u32 tgid = p->tgid;
	u32 *slot;

	if (is_vcpu(t))
		return t->slot;
	if (p->flags & PF_KTHREAD)
		return CORUN_HOST_SLOT;
	slot = bpf_map_lookup_elem(&slot_by_tgid, &tgid);
	return slot ? *slot : CORUN_HOST_SLOT;
}

/*
 * The same; and when that is another VM than a moment ago, because @p's process
 * has become a VMM or has lost its VM, @p joins its peers there as one of them:
 * vtimes of two VMs cannot be compared.
 */
static __noinline u32 slot_of(struct task_struct *p, struct task_ctx *t)
{
	u32 slot = find_slot(p, t);
	u32 generation = info_of(slot)->generation;

	if (t->home_slot != slot || t->home_generation != generation) {
		t->home_slot = slot;
		t->home_generation = generation;
		t->vcpu.vtime_ns = vm_of(slot)->vcpu_vtime_now_ns;
	}
	return slot;
}

/*
 * Charges @p for what it ran since it was charged last, by the kernel's own account,
 * which is up to date in ops.dispatch and ops.stopping. It begins when the one before
 * ended. scx_bpf_now() does not where the pCPU let go of its queue's lock in between, to
 * fetch @p from another: who wakes ten thousand times a second would run for nothing
 * for as long as it takes to choose it.
 */
static void settle(struct task_struct *p, struct task_ctx *t, u32 slot)
{
	struct corun_vm *vm = vm_of(slot);
	u64 exec_ns = p->se.sum_exec_runtime;
	u64 ran_ns;

	if (!t->runs)
		return;
	ran_ns = elapsed_ns(t->exec_ns, exec_ns);
	t->exec_ns = exec_ns;
	corun_share_charge_vcpu(&t->vcpu, ran_ns);
	/* Several pCPUs charge one VM at once. */
	__sync_fetch_and_add(&vm->vtime_ns,
			     corun_share_vtime(ran_ns, vm->weight));
	__sync_fetch_and_add(&vm->used_ns, ran_ns);
}

/* How many pCPUs the VM in @slot, or the host, can use at once. */
static u32 lanes_of(u32 slot)
{
	u32 vcpus = info_of(slot)->nr_vcpus, pcpus = pcpus_of(slot);

	return slot == CORUN_HOST_SLOT || vcpus > pcpus ? pcpus : vcpus;
}

/*
 * The vtime that @p, which slept, is measured against: of what runs where it may. VMs
 * that are bound to other pCPUs do not compete with it, and their vtimes may be far off.
 */
static __noinline u64 vtime_where_allowed(struct task_struct *p)
{
	u64 vtime_ns = 0;
	bool found = false;
	u32 cpu;

	if ((u32)p->nr_cpus_allowed >= nr_cpu_ids)
		return vtime_now_ns;
	bpf_for(cpu, 0, nr_cpu_ids) {
		struct cpu_ctx *c = cpu_ctx_of((s32)cpu);

		if (!c || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		vtime_ns = found ? corun_later(vtime_ns, c->vtime_now_ns)
				 : c->vtime_now_ns;
		found = true;
	}
	return vtime_ns;
}

/* Limits what the VM of @p and @p may have saved up while they slept. */
static void wake_vtimes(struct task_struct *p, struct task_ctx *t, u32 slot)
{
	struct corun_vm *vm = vm_of(slot);
	u64 old = vm->vtime_ns;
	u64 capped = corun_share_wake(old, vtime_where_allowed(p),
				      lanes_of(slot), tunables());

	/* Lost to a concurrent charge: that one moved it forward, good enough. */
	if (capped != old)
		__sync_val_compare_and_swap(&vm->vtime_ns, old, capped);
	t->vcpu.vtime_ns = corun_share_wake(
		t->vcpu.vtime_ns, vm->vcpu_vtime_now_ns, 1, tunables());
}

/* @t was chosen on the pCPU of @c: those who sleep are measured against where it is. */
static void move_clocks(struct cpu_ctx *c, struct task_ctx *t, u32 slot)
{
	struct corun_vm *vm = vm_of(slot);

	if (c)
		c->vtime_now_ns = corun_later(c->vtime_now_ns, vm->vtime_ns);
	vtime_now_ns = corun_later(vtime_now_ns, vm->vtime_ns);
	vm->vcpu_vtime_now_ns =
		corun_later(vm->vcpu_vtime_now_ns, t->vcpu.vtime_ns);
}

#endif /* CORUN_SHARE_BPF_H */
