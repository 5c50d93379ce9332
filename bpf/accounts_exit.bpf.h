/* SPDX-License-Identifier: GPL-2.0-only */
/* VM exits by reason, spins, directed yields. */
#ifndef CORUN_ACCOUNTS_EXIT_BPF_H
#define CORUN_ACCOUNTS_EXIT_BPF_H

#include "accounts_state.bpf.h"

struct vmcb_control_area___exit {
	u32 exit_code;
} __attribute__((preserve_access_index));

struct vmcb___exit {
	struct vmcb_control_area___exit control;
} __attribute__((preserve_access_index));

struct vcpu_svm___exit {
	struct vmcb___exit *vmcb;
} __attribute__((preserve_access_index));

union vmx_exit_reason___exit {
	u32 full;
} __attribute__((preserve_access_index));

struct vcpu_vt___exit {
	union vmx_exit_reason___exit exit_reason;
} __attribute__((preserve_access_index));

/* Newer kernels: shared with TDX's. */
struct vcpu_vmx___vt {
	struct vcpu_vt___exit vt;
} __attribute__((preserve_access_index));

/* Older ones. */
struct vcpu_vmx___exit {
	union vmx_exit_reason___exit exit_reason;
} __attribute__((preserve_access_index));

/* Vendor of the host's vCPUs; user space sets it. */
const volatile bool is_amd;

/* Why @vcpu left its guest, in the processor's numbers. */
static __always_inline u32 exit_reason(void *vcpu)
{
	struct vcpu_svm___exit *svm = vcpu;
	struct vcpu_vmx___vt *vmx = vcpu;
	struct vcpu_vmx___exit *old = vcpu;

	if (is_amd)
		return bpf_core_type_exists(struct vcpu_svm___exit)
			       ? BPF_CORE_READ(svm, vmcb, control.exit_code)
			       : ~0U;
	if (bpf_core_field_exists(vmx->vt))
		return BPF_CORE_READ(vmx, vt.exit_reason.full) & 0xffff;
	if (bpf_core_field_exists(old->exit_reason))
		return BPF_CORE_READ(old, exit_reason.full) & 0xffff;
	return ~0U;
}

static __always_inline u32 exit_index(u32 reason)
{
	if (reason < EXIT_DIRECT)
		return reason;
	reason -= EXIT_HIGH_FIRST;
	return reason < EXIT_HIGH ? EXIT_DIRECT + reason : EXIT_OTHER;
}

/*
 * Old kernels pass the reason where newer ones pass the vCPU. Raw, so that the
 * argument is a number: a pointer may not be taken for one.
 */
SEC("?raw_tp/kvm_exit")
int BPF_PROG(acct_exit, u64 vcpu_or_reason)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct vcpu_thread *t = thread_of(p);
	struct vcpu_account *v = t ? account_of(t, p->pid) : NULL;
	u32 index;

	if (!v)
		return 0;
	index = exit_index(vcpu_or_reason == (u64)t->vcpu
				   ? exit_reason(t->vcpu)
				   : (u32)vcpu_or_reason);
	/* The compiler knows that it is in range; the verifier wants to see it. */
	barrier_var(index);
	if (index < EXIT_NR)
		v->exits[index]++;
	return 0;
}

/* The account of the current thread, if it is a vCPU's. */
static __always_inline struct vcpu_account *current_account(void)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct vcpu_thread *t = thread_of(p);

	return t ? account_of(t, p->pid) : NULL;
}

SEC("?fentry/kvm_vcpu_on_spin")
int BPF_PROG(acct_spin)
{
	struct vcpu_account *v = current_account();

	if (v)
		count(v, COUNT_spins);
	return 0;
}

SEC("?fexit/yield_to")
int BPF_PROG(acct_yield_to, struct task_struct *p, bool preempt, int ret)
{
	struct vcpu_account *v = current_account();

	if (!v)
		return 0;
	count(v, COUNT_yields_asked);
	if (ret > 0)
		count(v, COUNT_yields_honoured);
	return 0;
}

#endif /* CORUN_ACCOUNTS_EXIT_BPF_H */
