/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finding VMs and vCPUs from KVM's own events, without the VMM's help.
 *
 * A vCPU's thread is the one that KVM loads it on: kvm_arch_vcpu_load() runs on
 * every KVM_RUN and every time the thread is switched in, so VMs that run
 * already when corun starts are found at their next switch.
 */
#ifndef CORUN_DISCOVER_BPF_H
#define CORUN_DISCOVER_BPF_H

#include "boost.bpf.h"
#include "kvm_types.bpf.h"
#include "preempt.bpf.h"
#include "state.bpf.h"

/* Makes the search look at @slot, too. Two VMs may come at once. */
static void cover_slot(u32 slot)
{
	u32 seen = nr_slots, attempt;

	bpf_for(attempt, 0, CORUN_MAX_SLOTS) {
		u32 was;

		if (slot < seen)
			break;
		was = __sync_val_compare_and_swap(&nr_slots, seen, slot + 1);
		if (was == seen)
			break;
		seen = was;
	}
}

/* A free slot for @kvm, or the host's when all are taken. */
static u32 claim_slot(u64 kvm, u32 tgid)
{
	u32 slot;

	bpf_for(slot, 1, CORUN_MAX_SLOTS) {
		struct vm_info *info = info_of(slot);
		struct corun_vm *vm = vm_of(slot);

		if (info->kvm ||
		    __sync_val_compare_and_swap(&info->kvm, 0, kvm))
			continue;
		info->tgid = tgid;
		info->nr_vcpus = 0;
		info->nr_pcpus = 0;
		vm->vtime_ns = vtime_now_ns;
		vm->used_ns = 0;
		vm->vcpu_vtime_now_ns = 0;
		vm->weight = CORUN_WEIGHT_DEFAULT;
		__builtin_memset(state_of(slot), 0, sizeof(struct vm_state));
		cover_slot(slot);
		return slot;
	}
	count(CORUN_COUNT_vms_untracked);
	return CORUN_HOST_SLOT;
}

/* The VM in @slot is gone. Its threads may outlive it: nobody else clears these. */
static void forget_vcpus(u32 slot)
{
	u32 id;

	bpf_for(id, 0, CORUN_MAX_VCPUS) {
		struct vcpu_rec *r = rec_of(slot, id);

		if (r && r->pid)
			__builtin_memset(r, 0, sizeof(*r));
	}
}

/* The VM @kvm ends: its slot is free again. */
static void forget_vm(u64 kvm)
{
	u32 *known = bpf_map_lookup_elem(&slot_by_kvm, &kvm);
	struct vm_info *info;
	u32 slot, tgid;

	if (!known)
		return;
	slot = *known;
	info = info_of(slot);
	tgid = info->tgid;
	bpf_map_delete_elem(&slot_by_kvm, &kvm);
	bpf_map_delete_elem(&slot_by_tgid, &tgid);
	info->tgid = 0;
	/* Threads that still name this slot become host tasks from here on. */
	__sync_fetch_and_add(&info->generation, 1);
	forget_vcpus(slot);
	__sync_lock_test_and_set(&info->kvm, 0);
	count(CORUN_COUNT_vms_gone);
}

static bool process_lives(u32 tgid)
{
	struct task_struct *p = bpf_task_from_pid((s32)tgid);

	if (p)
		bpf_task_release(p);
	return p;
}

/*
 * Forgets the VM in @slot when its process is gone, and with it all threads: its end
 * was missed. Several may see it at a time; who takes @tgid out forgets it.
 */
static void forget_if_ended(u32 slot)
{
	struct vm_info *info = info_of(slot);
	u64 kvm = info->kvm;
	u32 tgid = info->tgid;

	if (!kvm || !tgid || process_lives(tgid))
		return;
	if (__sync_val_compare_and_swap(&info->tgid, tgid, 0) != tgid)
		return;
	bpf_map_delete_elem(&slot_by_tgid, &tgid);
	forget_vm(kvm);
	count(CORUN_COUNT_vms_gone_unseen);
}

/*
 * The slot of @kvm; two vCPUs that come at once agree on one. The kernel gives the
 * memory of a VM that ended to the next one: what another process left is not this VM's.
 */
static u32 slot_of_kvm(u64 kvm, u32 tgid)
{
	u32 *known = bpf_map_lookup_elem(&slot_by_kvm, &kvm);
	u32 slot;

	if (known && info_of(*known)->tgid != tgid) {
		forget_if_ended(*known);
		known = bpf_map_lookup_elem(&slot_by_kvm, &kvm);
	}
	if (known)
		return *known;
	slot = claim_slot(kvm, tgid);
	if (slot == CORUN_HOST_SLOT)
		return slot;
	if (bpf_map_update_elem(&slot_by_kvm, &kvm, &slot, BPF_NOEXIST)) {
		__sync_lock_test_and_set(&info_of(slot)->kvm, 0);
		known = bpf_map_lookup_elem(&slot_by_kvm, &kvm);
		return known ? *known : CORUN_HOST_SLOT;
	}
	bpf_map_update_elem(&slot_by_tgid, &tgid, &slot, BPF_ANY);
	count(CORUN_COUNT_vms_found);
	return slot;
}

/*
 * Thread @pid with context @t is no vCPU's any more: it ends, or it runs another.
 * What is known of the vCPU stays when another thread has taken it over.
 */
static void forget_vcpu(struct task_ctx *t, u32 pid)
{
	struct vcpu_rec *r = rec_of(t->slot, t->vcpu_id);

	t->kvm = 0;
	if (r && r->pid != pid)
		return;
	if (r) {
		__builtin_memset(r, 0, sizeof(*r));
		no_longer_waits(state_of(t->slot), t->vcpu_id);
	}
	__sync_fetch_and_sub(&info_of(t->slot)->nr_vcpus, 1);
}

/* Thread @pid with context @t runs @vcpu of the VM in @slot. */
static void register_vcpu(struct task_ctx *t, struct kvm_vcpu___corun *vcpu,
			  u32 slot, u32 pid)
{
	bool taken_over = false;
	struct vcpu_rec *r;

	if (is_vcpu(t))
		forget_vcpu(t, pid);
	t->slot = slot;
	t->generation = info_of(slot)->generation;
	t->vcpu_id = BPF_CORE_READ(vcpu, vcpu_id);
	t->kvm_vcpu = (u64)vcpu;
	t->home_slot = slot;
	t->home_generation = t->generation;
	t->vcpu.weight = CORUN_WEIGHT_DEFAULT;
	t->vcpu.vtime_ns = vm_of(slot)->vcpu_vtime_now_ns;
	t->kvm = (u64)BPF_CORE_READ(vcpu, kvm);
	r = rec_of(slot, t->vcpu_id);
	if (r) {
		taken_over = r->pid;
		__builtin_memset(r, 0, sizeof(*r));
		r->pid = pid;
		/* It is the current thread. */
		r->runs = 1;
	}
	if (!taken_over)
		__sync_fetch_and_add(&info_of(slot)->nr_vcpus, 1);
	count(CORUN_COUNT_vcpus_found);
}

SEC("?fentry/kvm_arch_vcpu_load")
int BPF_PROG(on_vcpu_load, struct kvm_vcpu___corun *vcpu)
{
	struct task_struct *p = bpf_get_current_task_btf();
	u64 kvm = (u64)vcpu->kvm;
	struct task_ctx *t;
	u32 slot;

	if (!arg_is_in_kvm_run(vcpu))
		return 0;
	t = bpf_task_storage_get(&task_ctxs, p, 0,
				 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t || (t->kvm == kvm && is_vcpu(t)))
		return 0;
	slot = slot_of_kvm(kvm, p->tgid);
	if (slot == CORUN_HOST_SLOT)
		return 0;
	register_vcpu(t, vcpu, slot, p->pid);
	return 0;
}

SEC("?fentry/kvm_arch_destroy_vm")
int BPF_PROG(on_destroy_vm, struct kvm *kvm_ptr)
{
	keep_pcpu();
	forget_vm((u64)kvm_ptr);
	may_lose_pcpu();
	return 0;
}

/*
 * User space asks for it once in a while: VMs whose end was missed give their slots
 * back. Should somebody else hold such a VM, it is found again when it runs.
 */
SEC("syscall")
int forget_ended_vms(void *ctx)
{
	u32 slot;

	bpf_for(slot, 1, CORUN_MAX_SLOTS) {
		if (slot >= nr_slots)
			break;
		forget_if_ended(slot);
	}
	return 0;
}

#endif /* CORUN_DISCOVER_BPF_H */
