/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who has a pCPU, for how long: a clock for each kind of occupant. What a vCPU waited
 * for is what the clocks of the pCPU that it lost gained meanwhile.
 */
#ifndef CORUN_ACCOUNTS_CLOCK_BPF_H
#define CORUN_ACCOUNTS_CLOCK_BPF_H

#include "accounts_state.bpf.h"

/* Readings of another pCPU's clock that turns meanwhile, before the last one stands. */
#define CLOCK_READINGS 4

static __always_inline u32 occupant_of(struct task_struct *p,
				       const struct vcpu_thread *t)
{
	if (t)
		return OCCUPANT_vcpu;
	return p->pid ? OCCUPANT_host : OCCUPANT_nobody;
}

/* From @now on, @occupant has the pCPU of clock @c, and if a vCPU, one of VM @vm. */
static __always_inline void turn_clock(struct pcpu_clock *c, u32 occupant,
				       u32 vm, u64 now)
{
	volatile u64 *seq = &c->seq;
	u64 ns = c->since_ns && now > c->since_ns ? now - c->since_ns : 0;
	u32 old = c->occupant;

	*seq += 1;
	barrier();
	if (old < OCCUPANT_NR)
		c->ns[old] += ns;
	if (old == OCCUPANT_vcpu)
		c->vm_ns[c->vm % CLOCK_VMS] += ns;
	c->since_ns = now;
	c->occupant = occupant;
	c->vm = vm;
	barrier();
	*seq += 1;
}

/* What clock @c shows at @now to a vCPU of VM @vm. */
static __always_inline void look_at_clock(const struct pcpu_clock *c, u32 vm,
					  u64 now, struct occupied *o)
{
	u64 since = c->since_ns;
	u64 ns = now > since ? now - since : 0;
	u32 occupant = c->occupant;

	o->host_ns = c->ns[OCCUPANT_host];
	o->vcpu_ns = c->ns[OCCUPANT_vcpu];
	o->own_vm_ns = c->vm_ns[vm % CLOCK_VMS];
	if (occupant == OCCUPANT_host)
		o->host_ns += ns;
	if (occupant != OCCUPANT_vcpu)
		return;
	o->vcpu_ns += ns;
	if (c->vm % CLOCK_VMS == vm % CLOCK_VMS)
		o->own_vm_ns += ns;
}

/* The same of another pCPU's clock, which may turn meanwhile. */
static __always_inline void look_at_far_clock(const struct pcpu_clock *c,
					      u32 vm, u64 now,
					      struct occupied *o)
{
	const volatile u64 *seq = &c->seq;
	u32 reading;

	bpf_for(reading, 0, CLOCK_READINGS) {
		u64 before = *seq;

		barrier();
		look_at_clock(c, vm, now, o);
		barrier();
		if (!(before & 1) && *seq == before)
			return;
	}
}

/* The time from @before to @after, taken from what is @left of a wait. */
static __always_inline u64 take_part(u64 before, u64 after, u64 *left)
{
	u64 part = after > before ? after - before : 0;

	if (part > *left)
		part = *left;
	*left -= part;
	return part;
}

/* @v of VM @vm loses the pCPU @cpu, of clock @c. */
static __always_inline void begin_wait(struct vcpu_account *v, u32 cpu,
				       const struct pcpu_clock *c, u32 vm,
				       u64 now)
{
	v->lost_cpu = cpu;
	look_at_clock(c, vm, now, &v->at_loss);
}

/*
 * @v of VM @vm has waited until @now: the time of its wait goes to those who had the
 * pCPU that it lost, the rest to nobody. Its account is being changed.
 */
static __always_inline void charge_wait(struct vcpu_account *v, u32 vm, u64 now)
{
	u64 left = now > v->since_ns ? now - v->since_ns : 0, siblings;
	struct pcpu_clock *c = clock_at(v->lost_cpu);
	struct occupied o = {};

	if (!c)
		return;
	look_at_far_clock(c, vm, now, &o);
	v->time_ns[STATE_ready_host_task] +=
		take_part(v->at_loss.host_ns, o.host_ns, &left);
	siblings = take_part(v->at_loss.own_vm_ns, o.own_vm_ns, &left);
	v->time_ns[STATE_ready_sibling] += siblings;
	v->time_ns[STATE_ready_other_vm] +=
		take_part(v->at_loss.vcpu_ns + siblings, o.vcpu_ns, &left);
	v->since_ns = now - left;
}

#endif /* CORUN_ACCOUNTS_CLOCK_BPF_H */
