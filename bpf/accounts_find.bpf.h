/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finding vCPUs: a vCPU's thread is the one that KVM loads it on, which is every
 * time that it is switched in, too. One that ran before is found at its next
 * switch; what it did until then is in no account.
 */
#ifndef CORUN_ACCOUNTS_FIND_BPF_H
#define CORUN_ACCOUNTS_FIND_BPF_H

#include "accounts_state.bpf.h"
#include "preempt.bpf.h"

#define WORDS(object) (sizeof(object) / sizeof(u64))

/* The number of the VM @kvm; two vCPUs that come at once agree on one. */
static u64 vm_id_of(u64 kvm)
{
	u64 *known = bpf_map_lookup_elem(&vm_ids, &kvm);
	u64 id;

	if (known)
		return *known;
	id = __sync_fetch_and_add(&vms_found, 1) + 1;
	if (!bpf_map_update_elem(&vm_ids, &kvm, &id, BPF_NOEXIST))
		return id;
	known = bpf_map_lookup_elem(&vm_ids, &kvm);
	return known ? *known : 0;
}

/* Forgets what a vCPU before left in @slot. */
static void empty_slot(struct vcpu_account *v, u32 slot)
{
	struct vcpu_ipis *i = ipis_at(slot);
	u64 *words = (u64 *)v;
	u32 at;

	bpf_for(at, offsetof(struct vcpu_account, time_ns) / 8, WORDS(*v)) {
		if (at < WORDS(*v))
			words[at] = 0;
	}
	words = (u64 *)i;
	bpf_for(at, 0, WORDS(*i)) {
		if (words && at < WORDS(*i))
			words[at] = 0;
	}
}

/* Gives a slot back. */
static void free_slot(struct vcpu_account *v)
{
	__sync_lock_test_and_set(&v->kvm, 0);
	__sync_fetch_and_sub(&slots_taken, 1);
}

/* A free slot for a vCPU of @kvm, now taken; NO_SLOT when there is none. */
static u32 claim_slot(u64 kvm)
{
	u32 slot;

	/* A vCPU without one comes again at each switch: no search then. */
	if (slots_taken >= max_vcpus) {
		__sync_fetch_and_add(&untracked, 1);
		return NO_SLOT;
	}
	bpf_for(slot, 0, max_vcpus) {
		struct vcpu_account *v = account_at(slot);

		if (!v)
			break;
		if (v->kvm || __sync_val_compare_and_swap(&v->kvm, 0, kvm))
			continue;
		__sync_fetch_and_add(&slots_taken, 1);
		empty_slot(v, slot);
		return slot;
	}
	__sync_fetch_and_add(&untracked, 1);
	return NO_SLOT;
}

/* The slot of vCPU @key: the one that it has, or a new one. */
static u32 slot_of(struct vcpu_key *key)
{
	u32 *known = bpf_map_lookup_elem(&slot_by_vcpu, key);
	struct vcpu_account *v;
	u32 slot;

	if (known)
		return *known;
	slot = claim_slot(key->kvm);
	v = account_at(slot);
	if (slot == NO_SLOT || !v)
		return NO_SLOT;
	if (bpf_map_update_elem(&slot_by_vcpu, key, &slot, BPF_NOEXIST)) {
		free_slot(v);
		return NO_SLOT;
	}
	v->vm_id = vm_id_of(key->kvm);
	v->vcpu_id = key->vcpu_id;
	v->state = STATE_run;
	v->since_ns = bpf_ktime_get_ns();
	barrier();
	v->found_ns = v->since_ns;
	return slot;
}

SEC("?fentry/kvm_arch_vcpu_load")
int BPF_PROG(acct_vcpu_load, struct kvm_vcpu___corun *vcpu)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct vcpu_key key = { .kvm = (u64)vcpu->kvm };
	struct vcpu_account *v;
	struct vcpu_thread *t;

	t = bpf_task_storage_get(&threads, p, 0, 0);
	if (t && t->vcpu == vcpu && t->kvm == key.kvm && account_of(t, p->pid))
		return 0;
	if (!arg_is_in_kvm_run(vcpu))
		return 0;
	t = bpf_task_storage_get(&threads, p, 0,
				 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t)
		return 0;
	key.vcpu_id = vcpu->vcpu_id;
	t->kvm = 0;
	t->slot = slot_of(&key);
	v = account_at(t->slot);
	if (t->slot == NO_SLOT || !v)
		return 0;
	v->tgid = p->tgid;
	v->tid = p->pid;
	/* It may have been another thread's, which slept. */
	enter(v, STATE_run, bpf_ktime_get_ns());
	t->vcpu = vcpu;
	t->vcpu_id = key.vcpu_id;
	t->vm = v->vm_id;
	t->halting = t->polled = t->polling = t->unplaced = false;
	t->kvm = key.kvm;
	return 0;
}

/* The vCPU @key ends: its account is closed. */
static void forget_vcpu(struct vcpu_key *key)
{
	u32 *known = bpf_map_lookup_elem(&slot_by_vcpu, key);
	struct vcpu_account *v;

	if (!known)
		return;
	v = account_at(*known);
	bpf_map_delete_elem(&slot_by_vcpu, key);
	if (!v)
		return;
	v->found_ns = 0;
	barrier();
	free_slot(v);
}

SEC("?fentry/kvm_arch_vcpu_destroy")
int BPF_PROG(acct_vcpu_destroy, struct kvm_vcpu___corun *vcpu)
{
	struct vcpu_key key = { .kvm = (u64)vcpu->kvm,
				.vcpu_id = vcpu->vcpu_id };

	keep_pcpu();
	forget_vcpu(&key);
	may_lose_pcpu();
	return 0;
}

SEC("?fentry/kvm_arch_destroy_vm")
int BPF_PROG(acct_destroy_vm, struct kvm *kvm_ptr)
{
	u64 kvm = (u64)kvm_ptr;

	keep_pcpu();
	bpf_map_delete_elem(&vm_ids, &kvm);
	bpf_map_delete_elem(&guest_evidence, &kvm);
	bpf_map_delete_elem(&guest_images, &kvm);
	may_lose_pcpu();
	return 0;
}

#endif /* CORUN_ACCOUNTS_FIND_BPF_H */
