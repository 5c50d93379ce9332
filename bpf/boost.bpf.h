/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who waits, and who runs out of turn: the choice of a spinner's target, and
 * urgent vCPUs. policy/ decides; this gathers what it wants to know.
 */
#ifndef CORUN_BOOST_BPF_H
#define CORUN_BOOST_BPF_H

#include "state.bpf.h"

/* What runs here wakes the vCPU of thread @pid, which has to wait. */
static void note_waker(u32 pid)
{
	struct cpu_ctx *c = cpu_ctx_of((s32)bpf_get_smp_processor_id());

	if (c)
		c->woken_pid = pid;
}

/*
 * vCPU @t of thread @p enters its VM's queue; called before it can be taken from
 * there. Of one that was halted we know that it has an interrupt to handle.
 */
static void note_waits(struct task_struct *p, struct task_ctx *t, bool waking,
		       u64 now_ns)
{
	struct vcpu_rec *r = rec_of(t->slot, t->vcpu_id);
	struct corun_vcpuset *set = &state_of(t->slot)->waiting;

	if (!r)
		return;
	if (waking) {
		r->in_kernel = 1;
		r->region = CORUN_REGION_UNKNOWN;
		note_waker(r->pid);
	}
	r->only_cpu = p->nr_cpus_allowed == 1 ? scx_bpf_task_cpu(p) : -1;
	r->waits_since_ns = now_ns;
	__sync_fetch_and_or(&set->word[corun_vcpuset_index(t->vcpu_id)],
			    corun_vcpuset_bit(t->vcpu_id));
}

static void no_longer_waits(struct vm_state *s, u32 id)
{
	__sync_fetch_and_and(&s->waiting.word[corun_vcpuset_index(id)],
			     ~corun_vcpuset_bit(id));
}

/* vCPU @t got a pCPU: it takes its interrupts now. */
static void note_runs(struct task_ctx *t, u64 now_ns)
{
	struct vcpu_rec *r = rec_of(t->slot, t->vcpu_id);
	struct vm_state *s = state_of(t->slot);

	if (!r)
		return;
	r->runs = 1;
	if (r->waits_since_ns) {
		count(CORUN_COUNT_waits);
		count_by(CORUN_COUNT_waited_ns,
			 elapsed_ns(r->waits_since_ns, now_ns));
	}
	r->waits_since_ns = 0;
	r->urgent_ns = 0;
	__builtin_memset(&r->ipi_from, 0, sizeof(r->ipi_from));
	no_longer_waits(s, t->vcpu_id);
	/* Whoever runs need not go first any more. */
	if (s->first_pid == r->pid)
		s->first_pid = 0;
}

/* The pCPU of @c as a boost of the VM in @slot sees it. */
static void see_victim(struct corun_victim *v, struct cpu_ctx *c, u32 slot,
		       u64 now_ns)
{
	u32 other = c->running_slot;
	u64 started_ns = c->run_start_ns;
	struct corun_vm *vm = vm_of(other);

	v->sibling_or_host = other == slot || other == CORUN_HOST_SLOT;
	v->taken = !started_ns || c->kick_pending || c->urgent_pid ||
		   c->serving_pid;
	v->urgent_end_ns = c->urgent_end_ns;
	v->vm_vtime_ns =
		vm->vtime_ns +
		corun_share_vtime(elapsed_ns(started_ns, now_ns), vm->weight);
}

/*
 * A pCPU that gives way to thread @p of the VM in @slot, from the one where it
 * was on; -1 when there is none or the pool is full.
 */
static s32 find_victim(struct task_struct *p, u32 slot, u64 now_ns)
{
	struct task_ctx *t = task_ctx_of(p);
	u32 start = (u32)scx_bpf_task_cpu(p), i;

	if (!t || nr_serving >= (s32)pool.size)
		return -1;
	t->looks = 0;
	bpf_for(i, 0, nr_cpu_ids) {
		u32 cpu = (start + i) % nr_cpu_ids;
		struct cpu_ctx *c = cpu_ctx_of((s32)cpu);
		struct corun_victim v;

		if (!c || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (t->looks++ == tun.cpu_looks)
			break;
		see_victim(&v, c, slot, now_ns);
		if (corun_urgent_takes(vm_of(slot), &v, now_ns, tunables()))
			return (s32)cpu;
	}
	return -1;
}

/*
 * Kicks a pCPU for the urgent vCPU of thread @pid. (Global functions, here and
 * below: the verifier looks at them once, not at every call. It wants a result.)
 */
__weak int place_urgent(u32 slot, u32 pid, u64 now_ns)
{
	struct task_struct *p = bpf_task_from_pid((s32)pid);
	struct cpu_ctx *c;
	s32 cpu = -1;

	if (p) {
		cpu = find_victim(p, slot, now_ns);
		bpf_task_release(p);
	}
	c = cpu_ctx_of(cpu);
	if (!c || __sync_val_compare_and_swap(&c->urgent_pid, 0, pid)) {
		count(CORUN_COUNT_urgent_unplaced);
		return 0;
	}
	__sync_fetch_and_add(&nr_serving, 1);
	count(CORUN_COUNT_urgent_kicks);
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	return 0;
}

/* Others wait for vCPU @id of the VM in @slot: it runs soon, if policy agrees. */
__weak int make_urgent(u32 slot, u32 id, u32 event)
{
	struct vcpu_rec *r = rec_of(slot, id);
	enum corun_urgent_verdict verdict;
	u64 now_ns = scx_bpf_now();

	if (!r)
		return 0;
	verdict = corun_urgent_decide(r->waits_since_ns, r->urgent_ns,
				      r->boosted_ns, now_ns, tunables());
	if (verdict == CORUN_URGENT_TOO_SOON)
		count(CORUN_COUNT_urgent_too_soon);
	if (verdict != CORUN_URGENT_YES)
		return 0;
	r->urgent_ns = now_ns;
	count(CORUN_COUNT_urgent_ipi + event);
	state_of(slot)->first_pid = r->pid;
	if (!has(CORUN_MECHANISM_MICRO))
		return 0;
	__sync_fetch_and_add(&served.events, 1);
	return place_urgent(slot, r->pid, now_ns);
}

/* A spinner's choice: whom it yields to, and who else holds others up. */
struct choice {
	u64 best_score;
	u32 best;
	u32 critical;
};

static void weigh(struct choice *choice, u32 slot, u32 from, u32 id, s32 cpu,
		  u64 now_ns)
{
	struct vcpu_rec *r = rec_of(slot, id);
	struct corun_sibling s = {};
	u64 score;

	if (!r || id == from)
		return;
	s.waits_since_ns = r->waits_since_ns;
	s.region = r->region;
	s.in_kernel = r->in_kernel;
	s.ipi_from_spinner = corun_vcpuset_has(&r->ipi_from, from);
	score = corun_yield_score(&s, now_ns);
	if (score && corun_region_critical(s.region))
		choice->critical = id + 1;
	if (score > choice->best_score &&
	    (r->only_cpu < 0 || r->only_cpu == cpu)) {
		choice->best_score = score;
		choice->best = id + 1;
	}
}

/* vCPU @from of the VM in @slot spins on @cpu: an id plus 1, or 0 for nobody. */
__weak u32 choose_sibling(u32 slot, u32 from, s32 cpu)
{
	struct vm_state *s = state_of(slot);
	struct choice choice = {};
	u64 now_ns = scx_bpf_now();
	u32 w, i;

	bpf_for(w, 0, CORUN_VCPUSET_WORDS) {
		u64 bits = s->waiting.word[w % CORUN_VCPUSET_WORDS];

		if (!bits)
			continue;
		bpf_for(i, 0, 64) {
			if (bits & (1ULL << i))
				weigh(&choice, slot, from, w * 64 + i, cpu,
				      now_ns);
		}
	}
	/* The best one gets the spinner's pCPU; another gets a short slice. */
	if (has(CORUN_MECHANISM_MICRO) && choice.critical &&
	    choice.critical != choice.best)
		make_urgent(slot, choice.critical - 1, CORUN_URGENT_LOCK);
	return choice.best;
}

/* Leaves a hint on @c: @from, of @slot's VM, gives way to thread @pid of it. */
static void leave_hint(struct cpu_ctx *c, struct task_struct *from, u32 slot,
		       u32 pid)
{
	c->hint_slice_ns = corun_yield_slice(from->scx.slice, tunables());
	c->hint_made_ns = bpf_ktime_get_ns();
	c->hint_slot = slot;
	c->hint_pid = pid;
	c->turn_end_ns = 0;
}

#endif /* CORUN_BOOST_BPF_H */
