// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every event of vCPUs, for `corun trace record`, whatever scheduler runs. Reads
 * only. IPIs that hardware delivers (AVIC, APICv) cause no exit and are not seen.
 */
#include <scx/common.bpf.h>

#include "kvm_records.bpf.h"
#include "kvm_types.bpf.h"
#include "preempt.bpf.h"
#include "svm_types.bpf.h"
#include "trace_state.bpf.h"

char _license[] SEC("license") = "GPL";

/* The place of @kvm, given at first sight; a VM keeps it to the end. */
static u32 vm_of_kvm(u64 kvm, u32 tgid)
{
	u32 *known = bpf_map_lookup_elem(&trace_vm_by_kvm, &kvm);
	u32 vm;

	if (known)
		return *known;
	if (trace_only_chosen && !bpf_map_lookup_elem(&trace_chosen, &tgid))
		return TRACE_NO_VM;
	vm = __sync_fetch_and_add(&trace_nr_vms, 1);
	if (vm >= TRACE_MAX_VMS) {
		__sync_fetch_and_sub(&trace_nr_vms, 1);
		__sync_fetch_and_add(&trace_unobserved, 1);
		return TRACE_NO_VM;
	}
	/* Two of its vCPUs at once: the place of the slower one stays empty. */
	if (bpf_map_update_elem(&trace_vm_by_kvm, &kvm, &vm, BPF_NOEXIST)) {
		known = bpf_map_lookup_elem(&trace_vm_by_kvm, &kvm);
		return known ? *known : TRACE_NO_VM;
	}
	trace_vm_at(vm)->kvm = kvm;
	return vm;
}

/* A vCPU's thread is the one that KVM loads it on. */
SEC("?fentry/kvm_arch_vcpu_load")
int BPF_PROG(trace_vcpu_load, struct kvm_vcpu___corun *vcpu)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct trace_thread *t;
	u64 kvm;
	u32 vm;

	if (!trace_on || !arg_is_in_kvm_run(vcpu))
		return 0;
	t = bpf_task_storage_get(&trace_threads, p, 0, 0);
	kvm = (u64)vcpu->kvm;
	if (t && t->vcpu == vcpu && t->kvm == kvm && thread_of(p))
		return 0;
	vm = vm_of_kvm(kvm, p->tgid);
	if (vm == TRACE_NO_VM)
		return 0;
	t = bpf_task_storage_get(&trace_threads, p, 0,
				 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t)
		return 0;
	t->vcpu = vcpu;
	t->vm = vm;
	t->vcpu_id = vcpu->vcpu_id;
	t->blocked = false;
	t->yields = false;
	t->kvm = kvm;
	emit(t, TRACE_vcpu_seen, (u64)p->pid << 32 | p->tgid, 0);
	return 0;
}

static void forget_vm(u64 kvm)
{
	u32 *known = bpf_map_lookup_elem(&trace_vm_by_kvm, &kvm);

	if (!known)
		return;
	trace_vm_at(*known)->kvm = 0;
	bpf_map_delete_elem(&trace_vm_by_kvm, &kvm);
}

SEC("?fentry/kvm_arch_destroy_vm")
int BPF_PROG(trace_destroy_vm, struct kvm *kvm_ptr)
{
	keep_pcpu();
	forget_vm((u64)kvm_ptr);
	may_lose_pcpu();
	return 0;
}

/* Does the guest that was left take interrupts? Neither bit: it cannot be told. */
static __always_inline u64 interrupts_of(struct trace_thread *t)
{
	struct vcpu_svm___corun *svm = (void *)t->vcpu;

	if (!trace_vmcb_readable ||
	    !bpf_core_type_exists(struct vcpu_svm___corun))
		return 0;
	return BPF_CORE_READ(svm, vmcb, save.rflags) & RFLAGS_IF
		       ? EXIT_INTERRUPTS_ON
		       : EXIT_INTERRUPTS_OFF;
}

/* The formatted record: reason and instruction pointer for both vendors. */
SEC("?tp/kvm/kvm_exit")
int trace_exit(struct trace_event_raw_kvm_exit___corun *ctx)
{
	struct trace_thread *t = current_thread();

	if (!t)
		return 0;
	t->ip = ctx->guest_rip;
	emit(t, TRACE_exit,
	     (u64)ctx->isa << 32 | ctx->exit_reason | interrupts_of(t), t->ip);
	return 0;
}

SEC("?tp_btf/kvm_entry")
int BPF_PROG(trace_enter)
{
	struct trace_thread *t = current_thread();

	if (t)
		emit(t, TRACE_enter, 0, 0);
	return 0;
}

/* In the sender's context, for IPIs by ICR and by hypercall. */
SEC("?tp/kvm/kvm_apic_accept_irq")
int trace_ipi_send(struct trace_event_raw_kvm_apic_accept_irq___corun *ctx)
{
	struct trace_thread *t = current_thread();

	if (!t || ctx->apicid == t->vcpu_id)
		return 0;
	if (ctx->dm != APIC_MODE_FIXED && ctx->dm != APIC_MODE_LOWEST)
		return 0;
	/* Outside of KVM_RUN it is the VMM that sends, for a device. */
	if (is_in_kvm_run(t->vcpu))
		emit(t, TRACE_ipi_send, (u64)ctx->vec << 32 | ctx->apicid, 0);
	return 0;
}

/* In the target's context, before it enters the guest. */
SEC("?tp/kvm/kvm_inj_virq")
int trace_ipi_take(struct trace_event_raw_kvm_inj_virq___corun *ctx)
{
	struct trace_thread *t = current_thread();

	if (t)
		emit(t, TRACE_ipi_take, (u64)(ctx->vector & 0xff) << 32, 0);
	return 0;
}

/* What tells the guest's kernel; user space finds its symbols by it. */
static __always_inline void note_kernel(struct trace_thread *t)
{
	struct vcpu_svm___corun *svm = (void *)t->vcpu;
	struct trace_vm *vm = trace_vm_at(t->vm);

	if (!trace_vmcb_readable ||
	    !bpf_core_type_exists(struct vcpu_svm___corun))
		return;
	vm->lstar = BPF_CORE_READ(svm, vmcb, save.lstar);
	/* A guest's firmware halts too, before there is a kernel. */
	if (vm->lstar)
		vm->halt_rip = t->ip;
}

SEC("?fentry/kvm_vcpu_halt")
int BPF_PROG(trace_halt)
{
	struct trace_thread *t = current_thread();

	if (!t)
		return 0;
	note_kernel(t);
	emit(t, TRACE_halt, 0, 0);
	return 0;
}

SEC("?tp/kvm/kvm_vcpu_wakeup")
int trace_halt_end(struct trace_event_raw_kvm_vcpu_wakeup___corun *ctx)
{
	struct trace_thread *t = current_thread();

	if (t)
		emit(t, TRACE_halt_end, ctx->waited, 0);
	return 0;
}

SEC("?fentry/kvm_vcpu_on_spin")
int BPF_PROG(trace_spin, void *vcpu, bool kernel_mode)
{
	struct trace_thread *t = current_thread();

	if (t)
		emit(t, TRACE_spin, kernel_mode, t->ip);
	return 0;
}

SEC("?fentry/yield_to")
int BPF_PROG(trace_yield_to, struct task_struct *p)
{
	struct trace_thread *t = current_thread(), *target = thread_of(p);

	if (t && target && t->vm == target->vm)
		emit(t, TRACE_yield_ask, target->vcpu_id, 0);
	return 0;
}

/* yield_to() itself returns only when the yielding task runs again. */
static __always_inline int yield_answered(struct task_struct *p, bool granted)
{
	struct trace_thread *t = current_thread(), *target = thread_of(p);

	if (!granted || !t || !target || t->vm != target->vm)
		return 0;
	t->yields = true;
	emit(t, TRACE_yield_grant, target->vcpu_id, 0);
	return 0;
}

SEC("?fexit/yield_to_task_fair")
int BPF_PROG(trace_yield_fair, void *rq, struct task_struct *p, bool granted)
{
	return yield_answered(p, granted);
}

SEC("?fexit/yield_to_task_scx")
int BPF_PROG(trace_yield_scx, void *rq, struct task_struct *p, bool granted)
{
	return yield_answered(p, granted);
}

/* In the waker's context; the wake-up itself may come on another pCPU. */
SEC("?tp_btf/sched_waking")
int BPF_PROG(trace_waking, struct task_struct *p)
{
	struct trace_thread *t = thread_of(p), *waker;

	if (!t)
		return 0;
	waker = current_thread();
	t->waker = waker && waker->vm == t->vm ? waker->vcpu_id + 1 : 0;
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(trace_wakeup, struct task_struct *p)
{
	struct trace_thread *t = thread_of(p);

	/* Woken on its way to sleep, it has never left. */
	if (!t || !t->blocked)
		return 0;
	t->blocked = false;
	emit(t, TRACE_wake, t->waker, 0);
	return 0;
}

/* A task that is no vCPU gets the pCPU of one. */
static __always_inline void host_in(struct task_struct *next)
{
	struct trace_record *r = record_of(TRACE_host_in);
	u64 name[2] = {};

	if (!r)
		return;
	bpf_probe_read_kernel(name, sizeof(name), next->comm);
	r->arg = next->pid;
	r->ip = name[0];
	r->vm = (u32)name[1];
	r->vcpu = name[1] >> 32;
	submit(r);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(trace_switch, bool preempt, struct task_struct *prev,
	     struct task_struct *next, unsigned int prev_state)
{
	struct trace_thread *out = thread_of(prev), *in = thread_of(next);
	u64 why = OUT_PREEMPTED;

	if (out) {
		out->blocked = !preempt && prev_state;
		if (out->blocked)
			why = OUT_BLOCKED;
		else if (out->yields && !preempt)
			why = OUT_YIELDED;
		out->yields = false;
		emit(out, TRACE_switch_out, why, out->ip);
	}
	if (in)
		emit(in, TRACE_switch_in, 0, 0);
	else if (out)
		host_in(next);
	return 0;
}
