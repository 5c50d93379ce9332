/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interrupts: who sent them, when they were taken. Blind to those that hardware
 * delivers (AVIC, APICv): they cause no exit in the sender.
 */
#ifndef CORUN_ACCOUNTS_IPI_BPF_H
#define CORUN_ACCOUNTS_IPI_BPF_H

#include "accounts_state.bpf.h"
#include "interrupt.bpf.h"

/* IPIs that nobody took for so long are lost: their burst has ended. */
#define BURST_MAX_NS 10000000000ULL

static __always_inline u32 state_of_target(u32 state)
{
	switch (state) {
	case STATE_run:
	case STATE_poll:
		return TARGET_RUNNING;
	case STATE_ready_woken:
		return TARGET_QUEUED;
	case STATE_halted:
	case STATE_blocked:
		return TARGET_ASLEEP;
	default:
		return TARGET_PREEMPTED;
	}
}

/* Vector @vector goes out: part of the sender's burst @i, or the first of one. */
static __always_inline void add_to_burst(struct vcpu_ipis *i, u8 vector,
					 u64 now)
{
	if (!i->burst_untaken || i->burst_vector != vector ||
	    now - i->burst_start_ns > BURST_MAX_NS) {
		i->burst++;
		i->burst_vector = vector;
		i->burst_start_ns = now;
		i->burst_sent = 0;
		i->burst_untaken = 0;
	}
	i->burst_sent++;
	__sync_fetch_and_add(&i->burst_untaken, 1);
}

/* An IPI from @slot was taken: the last one of a burst to several ends a shootdown. */
static __always_inline void taken_from_burst(u64 kvm, u32 slot, u32 burst,
					     u64 now)
{
	struct vcpu_account *sender = account_at(slot);
	struct vcpu_ipis *i = ipis_at(slot);

	if (!i || !sender || sender->kvm != kvm || i->burst != burst)
		return;
	if (__sync_fetch_and_sub(&i->burst_untaken, 1) == 1 &&
	    i->burst_sent > 1 && now > i->burst_start_ns)
		observe(sender, LATENCY_shootdown, now - i->burst_start_ns);
}

/* In the sender's context, for IPIs by ICR and by hypercall. */
SEC("?tp/kvm/kvm_apic_accept_irq")
int acct_ipi_sent(struct trace_event_raw_kvm_apic_accept_irq___corun *ctx)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct vcpu_thread *t = thread_of(p);
	struct vcpu_account *sender = t ? account_of(t, p->pid) : NULL;
	struct vcpu_account *target;
	struct vcpu_ipis *to, *from;
	u32 target_id = ctx->apicid;
	u8 vector = ctx->vec;
	struct vcpu_key key;
	u32 *slot;
	u64 now;

	if (!sender || in_interrupt())
		return 0;
	if (ctx->dm != APIC_MODE_FIXED && ctx->dm != APIC_MODE_LOWEST)
		return 0;
	from = ipis_at(t->slot);
	if (target_id == t->vcpu_id && from) {
		__sync_val_compare_and_swap(&from->by_vector[vector].stamp, 0,
					    STAMP_SELF);
		return 0;
	}
	/* Outside of KVM_RUN it is the VMM that sends, for a device. */
	if (!is_in_kvm_run(t->vcpu))
		return 0;
	key.kvm = t->kvm;
	key.vcpu_id = target_id;
	slot = bpf_map_lookup_elem(&slot_by_vcpu, &key);
	target = slot ? account_at(*slot) : NULL;
	to = slot ? ipis_at(*slot) : NULL;
	if (!target || !to || !from)
		return 0;
	count(sender, COUNT_ipis_sent);
	now = bpf_ktime_get_ns() & ~STAMP_STATE_MASK;
	/* One that is pending already takes this one with it. */
	if (__sync_val_compare_and_swap(&to->by_vector[vector].stamp, 0,
					now | state_of_target(target->state))) {
		__sync_fetch_and_add(&ipis_joined, 1);
		return 0;
	}
	add_to_burst(from, vector, now);
	to->by_vector[vector].sender = t->slot;
	to->by_vector[vector].burst = from->burst;
	if (!__sync_fetch_and_add(&to->nr_pending, 1))
		to->pending_since_ns = now;
	return 0;
}

/* In the target's context, before it enters the guest. */
SEC("?tp/kvm/kvm_inj_virq")
int acct_injected(struct trace_event_raw_kvm_inj_virq___corun *ctx)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct vcpu_thread *t = thread_of(p);
	struct vcpu_account *v = t ? account_of(t, p->pid) : NULL;
	struct vcpu_ipis *i = v ? ipis_at(t->slot) : NULL;
	u8 vector = ctx->vector;
	u32 sender, burst;
	u64 stamp, now;

	if (!i || ctx->soft || ctx->reinjected)
		return 0;
	sender = i->by_vector[vector].sender;
	burst = i->by_vector[vector].burst;
	stamp = __sync_lock_test_and_set(&i->by_vector[vector].stamp, 0);
	if (!stamp) {
		count(v, COUNT_device_interrupts);
		return 0;
	}
	if (stamp == STAMP_SELF)
		return 0;
	__sync_fetch_and_sub(&i->nr_pending, 1);
	now = bpf_ktime_get_ns();
	count(v, COUNT_ipis_received);
	observe(v, LATENCY_ipi_to_running + (stamp & STAMP_STATE_MASK),
		now - (stamp & ~STAMP_STATE_MASK));
	taken_from_burst(t->kvm, sender, burst, now);
	return 0;
}

#endif /* CORUN_ACCOUNTS_IPI_BPF_H */
