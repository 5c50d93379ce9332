/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a vCPU's time goes: its thread is switched in and out, sleeps, wakes. */
#ifndef CORUN_ACCOUNTS_TIME_BPF_H
#define CORUN_ACCOUNTS_TIME_BPF_H

#include "accounts_clock.bpf.h"

struct task_struct___limit {
	bool throttled;
} __attribute__((preserve_access_index));

struct kvm_vcpu_arch___put {
	bool preempted_in_kernel;
} __attribute__((preserve_access_index));

struct kvm_vcpu___put {
	bool preempted;
	struct kvm_vcpu_arch___put arch;
} __attribute__((preserve_access_index));

struct kvm_vcpu___halt {
	unsigned int halt_poll_ns;
} __attribute__((preserve_access_index));

/* Its cgroup has no bandwidth left (kernels that throttle task by task). */
static __always_inline bool is_limited(struct task_struct *p)
{
	struct task_struct___limit *limit = (void *)p;

	return bpf_core_field_exists(limit->throttled) &&
	       BPF_CORE_READ(limit, throttled);
}

/* @prev, @v's thread, leaves @cpu at @now, when its clock @c has turned. */
static __always_inline void switched_out(struct vcpu_thread *t,
					 struct vcpu_account *v,
					 struct task_struct *prev,
					 bool runnable, u32 cpu,
					 const struct pcpu_clock *c, u64 now)
{
	if (!runnable) {
		enter(v, t->halting ? STATE_halted : STATE_blocked, now);
		t->polling = false;
		return;
	}
	turn_over(v);
	close_state(v,
		    is_limited(prev) ? STATE_ready_limited : STATE_ready_other,
		    now);
	begin_wait(v, cpu, c, t->vm, now);
	turn_over(v);
	t->unplaced = true;
}

static __always_inline bool is_preempted(u32 state)
{
	return state == STATE_ready_other || state == STATE_ready_limited;
}

static __always_inline void switched_in(struct vcpu_thread *t,
					struct vcpu_account *v, u64 now)
{
	struct vcpu_ipis *i = ipis_at(t->slot);
	u64 since = v->since_ns;

	if (v->state == STATE_ready_woken)
		observe(v, LATENCY_wake_to_run, now - since);
	if (is_preempted(v->state)) {
		observe(v, LATENCY_preempted, now - since);
		if (t->unplaced)
			count(v, COUNT_preempted_outside);
		/* None is taken while preempted: the oldest spans the rest. */
		if (i && i->nr_pending && i->pending_since_ns > since)
			since = i->pending_since_ns;
		if (i && i->nr_pending && since < now)
			observe(v, LATENCY_preempted_with_ipi, now - since);
	}
	t->unplaced = false;
	turn_over(v);
	if (v->state == STATE_ready_other)
		charge_wait(v, t->vm, now);
	close_state(v, t->polling ? STATE_poll : STATE_run, now);
	turn_over(v);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(acct_switch, bool preempt, struct task_struct *prev,
	     struct task_struct *next, unsigned int prev_state)
{
	struct vcpu_thread *out = thread_of(prev), *in = thread_of(next);
	u32 occupant = occupant_of(next, in), cpu = bpf_get_smp_processor_id();
	struct pcpu_clock *c = clock_at(cpu);
	struct vcpu_account *v;
	u64 now;

	/* From one task of the host's to another: nothing that a clock shows. */
	if (!c ||
	    (!out && c->occupant == occupant && occupant != OCCUPANT_vcpu))
		return 0;
	now = bpf_ktime_get_ns();
	turn_clock(c, occupant, in ? in->vm : 0, now);
	v = out ? account_of(out, prev->pid) : NULL;
	if (v)
		switched_out(out, v, prev, preempt || !prev_state, cpu, c, now);
	v = in ? account_of(in, next->pid) : NULL;
	if (v)
		switched_in(in, v, now);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(acct_wakeup, struct task_struct *p)
{
	struct vcpu_thread *t = thread_of(p);
	struct vcpu_account *v = t ? account_of(t, p->pid) : NULL;

	/* Woken on its way to sleep, it has never left: no wake-up to us. */
	if (!v || (v->state != STATE_halted && v->state != STATE_blocked))
		return 0;
	enter(v, STATE_ready_woken, bpf_ktime_get_ns());
	count(v, COUNT_wakeups);
	return 0;
}

/* What tells the kernel of the guest of @t. */
static struct guest_evidence *evidence_of(struct vcpu_thread *t)
{
	struct guest_evidence *known, none = {};

	known = bpf_map_lookup_elem(&guest_evidence, &t->kvm);
	if (known)
		return known;
	bpf_map_update_elem(&guest_evidence, &t->kvm, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&guest_evidence, &t->kvm);
}

/* vCPU @t lost its pCPU: was its guest in a critical section? */
static void count_critical(struct vcpu_account *v, struct vcpu_thread *t)
{
	struct guest_evidence *evidence = evidence_of(t);
	struct guest_image *kernel =
		bpf_map_lookup_elem(&guest_images, &t->kvm);

	if (evidence)
		note_kernel_at(evidence, (void *)t->vcpu);
	if (kernel && corun_region_critical(region_at(kernel, (void *)t->vcpu)))
		count(v, COUNT_preempted_critical);
}

/* Notes where the guest of @t halts, and what else tells its kernel. */
static void note_halt(struct vcpu_thread *t)
{
	struct guest_evidence *evidence = evidence_of(t);

	if (!evidence)
		return;
	note_kernel_at(evidence, (void *)t->vcpu);
	note_halt_at(evidence, t->vcpu);
}

/* A vCPU leaves its pCPU: where was its guest? KVM has just worked it out. */
SEC("?fexit/kvm_arch_vcpu_put")
int BPF_PROG(acct_vcpu_put, struct kvm_vcpu___put *vcpu)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct vcpu_thread *t = thread_of(p);
	struct vcpu_account *v;

	if (!t || !t->unplaced || (void *)t->vcpu != (void *)vcpu)
		return 0;
	t->unplaced = false;
	v = account_of(t, p->pid);
	if (!v)
		return 0;
	count(v, vcpu->arch.preempted_in_kernel ? COUNT_preempted_kernel
						: COUNT_preempted_user);
	if (has_symbols)
		count_critical(v, t);
	return 0;
}

/*
 * A guest halts its vCPU. Polling, if any, lasts until the thread sleeps or the
 * wait is over: KVM inlines what comes between, which takes a microsecond.
 */
SEC("?fentry/kvm_vcpu_halt")
int BPF_PROG(acct_halt, struct kvm_vcpu___halt *vcpu)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct vcpu_thread *t = thread_of(p);
	struct vcpu_account *v = t ? account_of(t, p->pid) : NULL;

	if (!v)
		return 0;
	t->halting = true;
	t->polled = t->polling = vcpu->halt_poll_ns != 0;
	if (t->polling)
		enter(v, STATE_poll, bpf_ktime_get_ns());
	count(v, COUNT_halts);
	if (has_symbols)
		note_halt(t);
	return 0;
}

/* It is over; it waited if it slept and was not ended within polling. */
SEC("?tp/kvm/kvm_vcpu_wakeup")
int acct_halt_end(struct trace_event_raw_kvm_vcpu_wakeup___corun *ctx)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct vcpu_thread *t = thread_of(p);
	struct vcpu_account *v = t ? account_of(t, p->pid) : NULL;

	if (!v || !t->halting)
		return 0;
	if (v->state == STATE_poll)
		enter(v, STATE_run, bpf_ktime_get_ns());
	if (t->polled)
		count(v,
		      ctx->waited ? COUNT_polls_failed : COUNT_polls_succeeded);
	t->halting = t->polled = t->polling = false;
	return 0;
}

#endif /* CORUN_ACCOUNTS_TIME_BPF_H */
