// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long vCPUs wait for each other and for a pCPU, whatever scheduler runs.
 * Reads only. Blind to IPIs that hardware delivers (AVIC, APICv): they cause no
 * exit in the sender.
 */
#include <scx/common.bpf.h>

#include "kvm_types.bpf.h"
#include "latency_state.bpf.h"

char _license[] SEC("license") = "GPL";

/* Delivery modes of interrupts that are injected by vector. */
#define APIC_MODE_FIXED 0
#define APIC_MODE_LOWEST 0x100

#define WORDS(object) (sizeof(object) / sizeof(u64))

/* Forgets what a VM before left in @slot: figures, IPIs that nobody took. */
static void empty_slot(u32 slot)
{
	struct vm *vm = vm_at(slot);
	u64 *times = (u64 *)vm->times;
	u64 *of_vcpus = (u64 *)vcpu_at(slot, 0);
	u32 i;

	vm->spins = 0;
	vm->yields = 0;
	bpf_for(i, 0, WORDS(vm->times)) {
		if (i < WORDS(vm->times))
			times[i] = 0;
	}
	bpf_for(i, 0, WORDS(vcpus[0])) {
		if (i < WORDS(vcpus[0]))
			of_vcpus[i] = 0;
	}
}

/* A free slot for @kvm; LATENCY_NO_SLOT when all are taken. */
static u32 claim_slot(u64 kvm, u32 tgid)
{
	u32 slot;

	bpf_for(slot, 0, LATENCY_MAX_VMS) {
		struct vm *vm = vm_at(slot);

		if (vm->kvm || __sync_val_compare_and_swap(&vm->kvm, 0, kvm))
			continue;
		vm->tgid = tgid;
		return slot;
	}
	__sync_fetch_and_add(&unobserved, 1);
	return LATENCY_NO_SLOT;
}

/* The slot of @kvm; two vCPUs that come at once agree on one. */
static u32 slot_of_kvm(u64 kvm, u32 tgid)
{
	u32 *known = bpf_map_lookup_elem(&slot_by_kvm, &kvm);
	u32 slot;

	if (known)
		return *known;
	slot = claim_slot(kvm, tgid);
	if (slot == LATENCY_NO_SLOT)
		return slot;
	if (bpf_map_update_elem(&slot_by_kvm, &kvm, &slot, BPF_NOEXIST)) {
		__sync_lock_test_and_set(&vm_at(slot)->kvm, 0);
		known = bpf_map_lookup_elem(&slot_by_kvm, &kvm);
		return known ? *known : LATENCY_NO_SLOT;
	}
	return slot;
}

/* A vCPU's thread is the one that KVM loads it on. */
SEC("?fentry/kvm_arch_vcpu_load")
int BPF_PROG(latency_vcpu_load, struct kvm_vcpu___corun *vcpu)
{
	struct task_struct *p = bpf_get_current_task_btf();
	u64 kvm = (u64)BPF_CORE_READ(vcpu, kvm);
	u32 vcpu_id = BPF_CORE_READ(vcpu, vcpu_id);
	struct thread *t;
	struct vcpu *v;
	u32 slot;

	if (!is_in_kvm_run(vcpu))
		return 0;
	t = bpf_task_storage_get(&threads, p, 0,
				 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t || (t->vcpu == vcpu && t->kvm == kvm && thread_of(p)))
		return 0;
	if (vcpu_id >= LATENCY_MAX_VCPUS) {
		__sync_fetch_and_add(&unobserved, 1);
		return 0;
	}
	slot = slot_of_kvm(kvm, p->tgid);
	if (slot == LATENCY_NO_SLOT)
		return 0;
	v = vcpu_at(slot, vcpu_id);
	v->state = VCPU_RUNNING;
	t->vcpu = vcpu;
	t->slot = slot;
	t->vcpu_id = vcpu_id;
	t->kvm = kvm;
	return 0;
}

SEC("?fentry/kvm_arch_destroy_vm")
int BPF_PROG(latency_destroy_vm, struct kvm *kvm_ptr)
{
	u64 kvm = (u64)kvm_ptr;
	u32 *known = bpf_map_lookup_elem(&slot_by_kvm, &kvm);
	u32 slot;

	if (!known)
		return 0;
	slot = *known;
	bpf_map_delete_elem(&slot_by_kvm, &kvm);
	empty_slot(slot);
	__sync_lock_test_and_set(&vm_at(slot)->kvm, 0);
	return 0;
}

/* In the sender's context, for IPIs by ICR and by hypercall. */
SEC("?tp_btf/kvm_apic_accept_irq")
int BPF_PROG(latency_ipi_sent, u32 target_id, u16 mode, u16 trigger, u8 vector)
{
	struct thread *t = thread_of(bpf_get_current_task_btf());
	u64 now = bpf_ktime_get_ns();
	struct vcpu *target;

	if (!t || target_id == t->vcpu_id || target_id >= LATENCY_MAX_VCPUS)
		return 0;
	if (mode != APIC_MODE_FIXED && mode != APIC_MODE_LOWEST)
		return 0;
	/* Outside of KVM_RUN it is the VMM that sends, for a device. */
	if (!is_in_kvm_run(t->vcpu))
		return 0;
	target = vcpu_at(t->slot, target_id);
	/* One that is pending already takes this one with it. */
	if (__sync_val_compare_and_swap(
		    &target->sent[vector], 0,
		    (now & ~STAMP_STATE_MASK) |
			    (target->state & STAMP_STATE_MASK)))
		return 0;
	if (!__sync_fetch_and_add(&target->nr_pending, 1))
		target->pending_since_ns = now;
	return 0;
}

/* In the target's context, before it enters the guest. */
SEC("?tp_btf/kvm_inj_virq")
int BPF_PROG(latency_ipi_injected, u32 vector)
{
	struct thread *t = thread_of(bpf_get_current_task_btf());
	struct vcpu *v;
	u64 sent, now;

	if (!t)
		return 0;
	v = vcpu_at(t->slot, t->vcpu_id);
	vector &= 0xff;
	if (!v->sent[vector])
		return 0;
	sent = __sync_lock_test_and_set(&v->sent[vector], 0);
	if (!sent)
		return 0;
	__sync_fetch_and_sub(&v->nr_pending, 1);
	now = bpf_ktime_get_ns();
	observe(t->slot, LATENCY_ipi_to_running + (sent & STAMP_STATE_MASK),
		now - (sent & ~STAMP_STATE_MASK));
	return 0;
}

SEC("?fentry/kvm_vcpu_on_spin")
int BPF_PROG(latency_on_spin)
{
	struct thread *t = thread_of(bpf_get_current_task_btf());

	if (t)
		__sync_fetch_and_add(&vm_at(t->slot)->spins, 1);
	return 0;
}

SEC("fentry/yield_to")
int BPF_PROG(latency_yield_to)
{
	struct thread *t = thread_of(bpf_get_current_task_btf());

	if (t)
		__sync_fetch_and_add(&vm_at(t->slot)->yields, 1);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(latency_wakeup, struct task_struct *p)
{
	struct thread *t = thread_of(p);
	struct vcpu *v;

	if (!t)
		return 0;
	v = vcpu_at(t->slot, t->vcpu_id);
	/* Woken on its way to sleep, it has never left: no wake-up to us. */
	if (v->state != VCPU_HALTED)
		return 0;
	v->since_ns = bpf_ktime_get_ns();
	v->state = VCPU_QUEUED;
	return 0;
}

static __always_inline void switched_in(struct thread *t, u64 now)
{
	struct vcpu *v = vcpu_at(t->slot, t->vcpu_id);
	u64 since = v->since_ns;

	if (v->state == VCPU_QUEUED)
		observe(t->slot, LATENCY_wake_to_run, now - since);
	if (v->state == VCPU_PREEMPTED) {
		observe(t->slot, LATENCY_preempted, now - since);
		/* None is taken while preempted: the oldest spans the rest. */
		if (v->nr_pending && v->pending_since_ns > since)
			since = v->pending_since_ns;
		if (v->nr_pending && since < now)
			observe(t->slot, LATENCY_preempted_with_ipi,
				now - since);
	}
	v->state = VCPU_RUNNING;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(latency_switch, bool preempt, struct task_struct *prev,
	     struct task_struct *next, unsigned int prev_state)
{
	struct thread *out = thread_of(prev), *in = thread_of(next);
	u64 now;

	if (!out && !in)
		return 0;
	now = bpf_ktime_get_ns();
	if (out) {
		struct vcpu *v = vcpu_at(out->slot, out->vcpu_id);

		v->since_ns = now;
		v->state = preempt || !prev_state ? VCPU_PREEMPTED
						  : VCPU_HALTED;
	}
	if (in)
		switched_in(in, now);
	return 0;
}
