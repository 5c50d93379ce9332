/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What KVM tells of vCPUs that wait for each other. These programs cannot move
 * tasks: they mark, and kick a pCPU, whose dispatch does the rest. Each is
 * loaded only when a mechanism wants it.
 */
#ifndef CORUN_EVENTS_BPF_H
#define CORUN_EVENTS_BPF_H

#include "boost.bpf.h"
#include "guest.bpf.h"
#include "interrupt.bpf.h"
#include "kvm_records.bpf.h"

/* KVM_HC_SCHED_YIELD (include/uapi/linux/kvm_para.h) */
#define HC_SCHED_YIELD 11

struct kvm_vcpu_arch___corun {
	bool preempted_in_kernel;
} __attribute__((preserve_access_index));

struct kvm_vcpu___events {
	bool preempted;
	struct kvm_vcpu_arch___corun arch;
} __attribute__((preserve_access_index));

/* The current thread, if it is a vCPU's. */
static struct task_ctx *current_vcpu(void)
{
	struct task_ctx *t = task_ctx_of(bpf_get_current_task_btf());

	return t && is_vcpu(t) ? t : NULL;
}

/* Hands this pCPU to thread @pid of @slot's VM at its next dispatch, which is now. */
static void hand_over(u32 slot, u32 pid)
{
	s32 cpu = (s32)bpf_get_smp_processor_id();
	struct cpu_ctx *c = cpu_ctx_of(cpu);

	if (!c)
		return;
	leave_hint(c, bpf_get_current_task_btf(), slot, pid);
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/*
 * KVM found the current vCPU spinning: by pause-loop exiting or by Hyper-V's
 * long-spin notification. Its own choice passes over siblings that were
 * preempted in user mode, so it may end without a yield; ours does not.
 */
SEC("?fentry/kvm_vcpu_on_spin")
int BPF_PROG(on_spin)
{
	struct task_ctx *t = current_vcpu();
	struct vcpu_rec *r;
	u32 chosen;

	if (!t)
		return 0;
	count(CORUN_COUNT_spins);
	__sync_fetch_and_add(&state_of(t->slot)->events, 1);
	chosen = choose_sibling(t->slot, t->vcpu_id,
				(s32)bpf_get_smp_processor_id());
	r = chosen ? rec_of(t->slot, chosen - 1) : NULL;
	if (r && has(CORUN_MECHANISM_STRICT))
		hand_over(t->slot, r->pid);
	return 0;
}

/*
 * A sibling, or a device, sent vCPU @id of the VM in @slot an interrupt, which woke
 * thread @woken_pid.
 */
static void note_interrupt(u32 slot, u32 id, struct task_ctx *sender,
			   u32 woken_pid)
{
	struct vcpu_rec *r = rec_of(slot, id);
	bool waited;
	u32 from;

	if (!r || !r->pid)
		return;
	/* Before it was sent: whom it woke waits only since. */
	waited = r->waits_since_ns && r->pid != woken_pid;
	if (!sender) {
		if (!waited)
			return;
		count(CORUN_COUNT_device_to_waiting);
		if (has(CORUN_MECHANISM_IO))
			make_urgent(slot, id, CORUN_URGENT_IO);
		return;
	}
	if (r->runs) {
		count(CORUN_COUNT_ipis_to_running);
		return;
	}
	from = sender->vcpu_id;
	if (from < CORUN_MAX_VCPUS)
		__sync_fetch_and_or(
			&r->ipi_from.word[corun_vcpuset_index(from)],
			corun_vcpuset_bit(from));
	if (!waited) {
		count(CORUN_COUNT_ipis_to_asleep);
		return;
	}
	count(CORUN_COUNT_ipis_to_waiting);
	__sync_fetch_and_add(&state_of(slot)->events, 1);
	if (has(CORUN_MECHANISM_IPI))
		make_urgent(slot, id, CORUN_URGENT_IPI);
}

/*
 * vCPU @id of @kvm, or of the VM that the current thread belongs to, is sent an interrupt,
 * which woke thread @woken_pid. We are in the sender's context; from an interrupt of the
 * host's, that is whoever ran, and nobody is told.
 */
static __always_inline void note_sent(struct cpu_ctx *c, u64 kvm, u32 id,
				      u32 woken_pid)
{
	struct task_ctx *t;
	u32 *slot, tgid;

	/* Most are a vCPU's own timer. */
	if (c->running_id == id + 1)
		return;
	if (in_interrupt()) {
		count(CORUN_COUNT_events_unattributed);
		return;
	}
	t = current_vcpu();
	if (t && (!kvm || t->kvm == kvm)) {
		note_interrupt(t->slot, id, t, woken_pid);
		return;
	}
	tgid = bpf_get_current_task_btf()->tgid;
	slot = kvm ? bpf_map_lookup_elem(&slot_by_kvm, &kvm)
		   : bpf_map_lookup_elem(&slot_by_tgid, &tgid);
	if (slot)
		note_interrupt(*slot, id, NULL, woken_pid);
}

/*
 * The local APIC of a vCPU has accepted an interrupt, and the vCPU was kicked or woken:
 * nothing here delays that. A vCPU that is about to halt sleeps if its interrupt is a
 * moment late, and to wake it takes longer than all of this.
 */
SEC("?fexit/__apic_accept_irq")
int BPF_PROG(on_interrupt, struct kvm_lapic___corun *apic)
{
	struct cpu_ctx *c = cpu_ctx_of((s32)bpf_get_smp_processor_id());
	struct kvm_vcpu___corun *vcpu = apic->vcpu;
	u32 woken_pid;

	if (!c)
		return 0;
	woken_pid = c->woken_pid;
	c->woken_pid = 0;
	note_sent(c, (u64)vcpu->kvm, vcpu->vcpu_id, woken_pid);
	return 0;
}

/* The same for kernels that have no such function: the interrupt is on its way. */
SEC("?tp/kvm/kvm_apic_accept_irq")
int on_interrupt_early(struct trace_event_raw_kvm_apic_accept_irq___corun *ctx)
{
	struct cpu_ctx *c = cpu_ctx_of((s32)bpf_get_smp_processor_id());

	if (c)
		note_sent(c, 0, ctx->apicid, 0);
	return 0;
}

/* A guest asks that its vCPU @id runs, which it sent an IPI. */
SEC("?tp/kvm/kvm_hypercall")
int on_hypercall(struct trace_event_raw_kvm_hypercall___corun *ctx)
{
	struct task_ctx *t;
	struct vcpu_rec *r;

	if (ctx->nr != HC_SCHED_YIELD)
		return 0;
	t = current_vcpu();
	r = t ? rec_of(t->slot, (u32)ctx->a0) : NULL;
	if (r && r->waits_since_ns)
		hand_over(t->slot, r->pid);
	return 0;
}

/* A vCPU leaves its pCPU: where was it stopped? KVM has just worked it out. */
SEC("?fexit/kvm_arch_vcpu_put")
int BPF_PROG(on_vcpu_put, struct kvm_vcpu___events *vcpu)
{
	struct task_ctx *t;
	struct vcpu_rec *r;

	if (!vcpu->preempted)
		return 0;
	t = current_vcpu();
	r = t ? rec_of(t->slot, t->vcpu_id) : NULL;
	if (!r)
		return 0;
	note_kernel(t);
	r->in_kernel = vcpu->arch.preempted_in_kernel;
	r->region = has(CORUN_MECHANISM_SYMBOLS) ? region_now(t)
						 : CORUN_REGION_UNKNOWN;
	if (corun_region_critical(r->region))
		count(CORUN_COUNT_preempted_critical);
	return 0;
}

/* A vCPU halts. */
SEC("?fentry/kvm_vcpu_halt")
int BPF_PROG(on_halt, struct kvm_vcpu___events *vcpu)
{
	struct task_ctx *t = current_vcpu();

	if (t)
		note_halt_at(&state_of(t->slot)->evidence, vcpu);
	return 0;
}

#endif /* CORUN_EVENTS_BPF_H */
