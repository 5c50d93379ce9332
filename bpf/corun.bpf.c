// SPDX-License-Identifier: GPL-2.0-only
/*
 * corun's sched_ext scheduler: thin hooks around the policy in policy/.
 *
 * One DSQ a VM, ordered by the vCPU's vtime; a pCPU takes its next task from the
 * VM with the least vtime. Host tasks share slot 0. What goes before that order
 * leaves a mark on a pCPU and kicks it, and its next dispatch follows: the hint of
 * a directed yield, an urgent vCPU, a gang's sibling.
 */
#include <scx/common.bpf.h>

#include "scx_values.bpf.h"

#include "boost.bpf.h"
#include "discover.bpf.h"
#include "events.bpf.h"
#include "gang.bpf.h"
#include "turn.bpf.h"
#include "guest.bpf.h"
#include "slices.bpf.h"
#include "state.bpf.h"

char _license[] SEC("license") = "GPL";

UEI_DEFINE(uei);

/* The slot whose queue @p belongs to. */
static u32 find_slot(struct task_struct *p, struct task_ctx *t)
{
	u32 tgid = p->tgid;
	u32 *slot;

	if (is_vcpu(t))
		return t->slot;
	if (p->flags & PF_KTHREAD)
		return CORUN_HOST_SLOT;
	slot = bpf_map_lookup_elem(&slot_by_tgid, &tgid);
	return slot ? *slot : CORUN_HOST_SLOT;
}

/*
 * The same; and when that is another VM than a moment ago, because @p's process
 * has become a VMM or has lost its VM, @p joins its peers there as one of them:
 * vtimes of two VMs cannot be compared.
 */
static __noinline u32 slot_of(struct task_struct *p, struct task_ctx *t)
{
	u32 slot = find_slot(p, t);
	u32 generation = info_of(slot)->generation;

	if (t->home_slot != slot || t->home_generation != generation) {
		t->home_slot = slot;
		t->home_generation = generation;
		t->vcpu.vtime_ns = vm_of(slot)->vcpu_vtime_now_ns;
	}
	return slot;
}

/* Charges @p for what it ran since it was charged last. */
static void settle(struct task_ctx *t, u32 slot, u64 now_ns)
{
	struct corun_vm *vm = vm_of(slot);
	u64 ran_ns;

	if (!t->run_start_ns)
		return;
	ran_ns = elapsed_ns(t->run_start_ns, now_ns);
	t->run_start_ns = now_ns;
	corun_share_charge_vcpu(&t->vcpu, ran_ns);
	/* Several pCPUs charge one VM at once. */
	__sync_fetch_and_add(&vm->vtime_ns,
			     corun_share_vtime(ran_ns, vm->weight));
	__sync_fetch_and_add(&vm->used_ns, ran_ns);
}

/* How many pCPUs the VM in @slot, or the host, can use at once. */
static u32 lanes_of(u32 slot)
{
	u32 vcpus = info_of(slot)->nr_vcpus;

	if (slot == CORUN_HOST_SLOT || vcpus > nr_cpu_ids)
		return nr_cpu_ids;
	return vcpus;
}

/* Limits what a VM and a vCPU may have saved up while they slept. */
static void wake_vtimes(struct task_ctx *t, u32 slot)
{
	struct corun_vm *vm = vm_of(slot);
	u64 old = vm->vtime_ns;
	u64 capped =
		corun_share_wake(old, vtime_now_ns, lanes_of(slot), tunables());

	/* Lost to a concurrent charge: that one moved it forward, good enough. */
	if (capped != old)
		__sync_val_compare_and_swap(&vm->vtime_ns, old, capped);
	t->vcpu.vtime_ns = corun_share_wake(
		t->vcpu.vtime_ns, vm->vcpu_vtime_now_ns, 1, tunables());
}

s32 BPF_STRUCT_OPS(corun_select_cpu, struct task_struct *p, s32 prev_cpu,
		   u64 wake_flags)
{
	struct task_ctx *t = task_ctx_of(p);
	bool is_idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle && t) {
		wake_vtimes(t, slot_of(p, t));
		count(CORUN_COUNT_direct_dispatches);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, tun.slice_ns, 0);
	}
	return cpu;
}

/* Would @t, waking, preempt what runs on @cpu? */
static bool preempts(struct task_ctx *t, u32 slot, s32 cpu, u64 now_ns)
{
	struct cpu_ctx *c = cpu_ctx_of(cpu);
	u64 started_ns;

	if (!c || c->kick_pending)
		return false;
	started_ns = c->run_start_ns;
	if (!started_ns)
		return false;
	return corun_share_preempts(vm_of(slot), &t->vcpu,
				    vm_of(c->running_slot), &c->running,
				    slot == c->running_slot,
				    elapsed_ns(started_ns, now_ns), tunables());
}

/* Kicks one pCPU off its task for @p, if one should give way. */
static __noinline void kick_for_wakeup(struct task_struct *p,
				       struct task_ctx *t, u32 slot)
{
	u64 now_ns = scx_bpf_now();
	s32 prev_cpu = scx_bpf_task_cpu(p);
	s32 victim = -1;
	struct cpu_ctx *c;
	u32 cpu;

	if (preempts(t, slot, prev_cpu, now_ns)) {
		victim = prev_cpu;
	} else {
		bpf_for(cpu, 0, nr_cpu_ids) {
			if (cpu != prev_cpu &&
			    bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
			    preempts(t, slot, cpu, now_ns)) {
				victim = cpu;
				break;
			}
		}
	}
	c = cpu_ctx_of(victim);
	if (!c)
		return;
	c->kick_pending = 1;
	count(CORUN_COUNT_wakeup_preemptions);
	scx_bpf_kick_cpu(victim, SCX_KICK_PREEMPT);
}

void BPF_STRUCT_OPS(corun_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *t = task_ctx_of(p);
	bool waking = enq_flags & SCX_ENQ_WAKEUP;
	u32 slot;
	s32 cpu;

	/* Work bound to one CPU is the host's own: nobody else can do it. */
	if (!t || ((p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1)) {
		count(CORUN_COUNT_kthread_dispatches);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, tun.slice_ns,
				   enq_flags | (waking ? SCX_ENQ_PREEMPT : 0));
		return;
	}
	slot = slot_of(p, t);
	if (waking)
		wake_vtimes(t, slot);
	if (is_vcpu(t))
		note_waits(p, t, waking, scx_bpf_now());
	count(CORUN_COUNT_enqueues);
	scx_bpf_dsq_insert_vtime(p, CORUN_DSQ(slot), tun.slice_ns,
				 t->vcpu.vtime_ns, enq_flags);
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0) {
		count(CORUN_COUNT_idle_kicks);
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	} else if (waking) {
		kick_for_wakeup(p, t, slot);
	}
}

/*
 * True when @p may be moved to @cpu's local queue; an illegal move is fatal. @p
 * is never the current task, whose migration the BPF prologue may disable.
 */
static bool may_run_on(struct task_struct *p, s32 cpu)
{
	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
	       (!p->migration_disabled || scx_bpf_task_cpu(p) == cpu);
}

/* The thread that runs in @from's place: KVM's choice @pid, or a better one. */
static u32 yield_target(struct task_ctx *from, u32 pid, s32 cpu)
{
	struct vcpu_rec *r;
	u32 chosen;

	__sync_fetch_and_add(&state_of(from->slot)->events, 1);
	if (!has(CORUN_MECHANISM_STRICT))
		return pid;
	chosen = choose_sibling(from->slot, from->vcpu_id, cpu);
	r = chosen ? rec_of(from->slot, chosen - 1) : NULL;
	if (!r || !r->pid || r->pid == pid)
		return pid;
	count(CORUN_COUNT_yields_replaced);
	return r->pid;
}

bool BPF_STRUCT_OPS(corun_yield, struct task_struct *from,
		    struct task_struct *to)
{
	struct corun_yield_input in = { .directed = to };
	s32 cpu = scx_bpf_task_cpu(from);
	struct cpu_ctx *c = cpu_ctx_of(cpu);
	struct task_ctx *f = task_ctx_of(from), *t = NULL;
	enum corun_yield_verdict verdict;

	if (to) {
		count(CORUN_COUNT_yields_asked);
		t = task_ctx_of(to);
		in.same_vm = f && t && is_vcpu(f) && is_vcpu(t) &&
			     f->slot == t->slot;
		in.allowed_here = c && may_run_on(to, cpu);
	}
	verdict = corun_yield_decide(&in);
	if (verdict == CORUN_YIELD_UNDIRECTED) {
		count(CORUN_COUNT_yields_undirected);
		if (c)
			c->turn_end_ns = 0;
		scx_bpf_task_set_slice(from, 0);
		return false;
	}
	if (verdict == CORUN_YIELD_STRANGER)
		count(CORUN_COUNT_yields_refused_stranger);
	if (verdict == CORUN_YIELD_AFFINITY)
		count(CORUN_COUNT_yields_refused_affinity);
	if (verdict != CORUN_YIELD_HONOUR || !has(CORUN_MECHANISM_YIELD) ||
	    !c || !f)
		return false;
	count(CORUN_COUNT_yields_accepted);
	c->hint_slice_ns = corun_yield_slice(from->scx.slice, tunables());
	c->hint_made_ns = bpf_ktime_get_ns();
	c->hint_pid = yield_target(f, to->pid, cpu);
	c->turn_end_ns = 0;
	scx_bpf_task_set_slice(from, 0);
	return true;
}

/* Moves @p from its VM's queue to this pCPU; false when it is not there. */
static bool take(struct task_struct *p, u32 slot, u64 slice_ns)
{
	struct bpf_iter_scx_dsq it;
	bool moved = false;

	if (!bpf_iter_scx_dsq_new(&it, CORUN_DSQ(slot), 0)) {
		scx_bpf_dsq_move_set_slice(&it, slice_ns);
		moved = scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0);
	}
	bpf_iter_scx_dsq_destroy(&it);
	return moved;
}

/* Moves the task of @pid to this pCPU, if it still waits and may run here. */
static __noinline bool take_pid(u32 pid, s32 cpu, u64 slice_ns)
{
	struct task_struct *p = bpf_task_from_pid(pid);
	struct task_ctx *t;
	bool moved = false;

	if (!p)
		return false;
	t = task_ctx_of(p);
	if (t && is_vcpu(t) && may_run_on(p, cpu))
		moved = take(p, t->slot, slice_ns);
	bpf_task_release(p);
	return moved;
}

/* Dispatches whom a spinner on this pCPU asked for, if that still makes sense. */
static bool follow_hint(s32 cpu, struct cpu_ctx *c)
{
	u32 pid = c->hint_pid;
	bool moved;

	if (!pid)
		return false;
	c->hint_pid = 0;
	if (!corun_yield_hint_fresh(c->hint_made_ns, bpf_ktime_get_ns(),
				    tunables())) {
		count(CORUN_COUNT_yields_stale_aged);
		return false;
	}
	moved = take_pid(pid, cpu, c->hint_slice_ns);
	count(moved ? CORUN_COUNT_yields_dispatched
		    : CORUN_COUNT_yields_stale_taken);
	return moved;
}

/*
 * The slot with the best claim among those with a task queued, leaving out
 * @except and those that @c tried; -1 when there is none.
 */
static __noinline s32 best_slot(struct cpu_ctx *c, s32 except)
{
	bool found = false;
	u32 best = 0;
	u32 slot;

	bpf_for(slot, 0, nr_slots) {
		u64 tried = c->tried[(slot / 64) % (CORUN_MAX_SLOTS / 64)];

		if (slot == except || (tried & (1ULL << (slot % 64))) ||
		    scx_bpf_dsq_nr_queued(CORUN_DSQ(slot)) <= 0)
			continue;
		if (!found || corun_share_first(vm_of(slot), vm_of(best)))
			best = slot;
		found = true;
	}
	return found ? (s32)best : -1;
}

/* Does @prev, whose slice is over, go on? @best: the other VM that waits. */
static __noinline bool keeps(struct task_ctx *t, u32 slot, s32 best)
{
	struct task_struct *head;
	bool has_head = false;
	u64 head_vtime_ns = 0;

	bpf_rcu_read_lock();
	head = __COMPAT_scx_bpf_dsq_peek(CORUN_DSQ(slot));
	if (head) {
		has_head = true;
		head_vtime_ns = BPF_CORE_READ(head, scx.dsq_vtime);
		/* A sibling is urgent: it goes before any other. */
		if (state_of(slot)->first_pid)
			head_vtime_ns = t->vcpu.vtime_ns - 1;
	}
	bpf_rcu_read_unlock();
	return corun_share_keeps(vm_of(slot), &t->vcpu,
				 best < 0 ? NULL : vm_of(best), has_head,
				 head_vtime_ns);
}

/* Takes the urgent vCPU of the VM in @slot, or its first task; false: none. */
static __noinline bool take_from(u32 slot, s32 cpu)
{
	struct vm_state *s = state_of(slot);
	u32 pid = s->first_pid;

	if (pid && __sync_val_compare_and_swap(&s->first_pid, pid, 0) == pid &&
	    take_pid(pid, cpu, tun.slice_ns)) {
		count(CORUN_COUNT_urgent_first);
		return true;
	}
	return scx_bpf_dsq_move_to_local(CORUN_DSQ(slot), 0);
}

/* Takes the first task that may run here from the VM with the best claim. */
static __noinline bool take_best(struct cpu_ctx *c, s32 cpu)
{
	u32 attempt, taken = 0;

	bpf_for(attempt, 0, CORUN_MAX_SLOTS) {
		s32 slot = best_slot(c, -1);

		if (slot < 0)
			break;
		if (take_from(slot, cpu)) {
			taken++;
			break;
		}
		/* All its tasks are bound to other pCPUs, or were just taken. */
		c->tried[(slot / 64) % (CORUN_MAX_SLOTS / 64)] |=
			1ULL << (slot % 64);
	}
	if (!taken)
		return false;
	count(CORUN_COUNT_dispatches);
	return true;
}

/* The urgent slice on the pCPU of @c ends. */
static void urgent_ends(struct cpu_ctx *c, u64 now_ns)
{
	u64 ran_ns = elapsed_ns(c->serve_start_ns, now_ns);
	u64 asked_ns = tun.urgent_slice_ns;

	c->serving_pid = 0;
	c->urgent_end_ns = now_ns;
	__sync_fetch_and_add(&served.busy_ns, ran_ns);
	count_by(CORUN_COUNT_urgent_ns, ran_ns);
	if (ran_ns <= asked_ns)
		count(CORUN_COUNT_urgent_le_1x);
	else if (ran_ns <= 2 * asked_ns)
		count(CORUN_COUNT_urgent_le_2x);
	else if (ran_ns <= 4 * asked_ns)
		count(CORUN_COUNT_urgent_le_4x);
	else
		count(CORUN_COUNT_urgent_gt_4x);
}

/* Takes the urgent vCPU that this pCPU was kicked for, for a short slice. */
static bool serve_urgent(s32 cpu, struct cpu_ctx *c)
{
	u32 pid = c->urgent_pid;

	if (!pid)
		return false;
	c->urgent_pid = 0;
	if (!take_pid(pid, cpu, tun.urgent_slice_ns)) {
		count(CORUN_COUNT_urgent_stale);
		return false;
	}
	c->serving_pid = pid;
	return true;
}

/* Takes a vCPU of the gang that this pCPU was kicked for. */
static bool join_gang(s32 cpu, struct cpu_ctx *c)
{
	u32 slot = c->gang_slot;

	if (!slot)
		return false;
	c->gang_slot = 0;
	if (!take_from(slot, cpu))
		return false;
	c->join_end_ns = c->gang_end_ns;
	count(CORUN_COUNT_gang_dispatches);
	return true;
}

/* Takes whom this pCPU was asked to run out of turn. */
static __noinline bool take_marked(s32 cpu, struct cpu_ctx *c)
{
	return serve_urgent(cpu, c) || follow_hint(cpu, c) || join_gang(cpu, c);
}

/*
 * Does @t run on past its slice's end, because it is inside a critical section?
 * Whoever the pCPU was kicked for keeps its mark and comes next.
 */
static __noinline bool defers(struct task_ctx *t, u32 slot, s32 best)
{
	u32 region;

	if (!has(CORUN_MECHANISM_SYMBOLS) || best < 0 || !is_vcpu(t))
		return false;
	region = region_now(t);
	if (!corun_urgent_defers(region, t->deferred, vm_of(slot), vm_of(best),
				 tunables()))
		return false;
	t->deferred++;
	count(CORUN_COUNT_deferrals);
	return true;
}

/* Goes on with the turn that was interrupted on this pCPU. */
static __noinline bool resume_turn(struct cpu_ctx *c, s32 cpu)
{
	u32 pid = c->turn_pid;

	if (!pid || !turn_resumes(c, best_slot(c, -1)))
		return false;
	/* Once: who was taken by another pCPU has its turn there. */
	c->turn_pid = 0;
	if (!take_pid(pid, cpu, c->turn_left_ns))
		return false;
	count(CORUN_COUNT_turns_resumed);
	return true;
}

/* @prev, charged until now, runs on for @slice_ns. */
static void run_on(struct task_struct *prev, struct task_ctx *t, s32 cpu,
		   struct cpu_ctx *c, u64 now_ns, u64 slice_ns)
{
	c->running = t->vcpu;
	c->run_start_ns = now_ns;
	if (is_vcpu(t))
		turn_begins(c, now_ns + slice_ns);
	scx_bpf_task_set_slice(prev, slice_ns);
	enforce_slice(cpu, c, now_ns, slice_ns);
}

/*
 * This pCPU was idle, and was kicked for a task that may not be the one that it
 * took: another idle pCPU is to look at what is left.
 */
static __noinline void kick_idle_for_rest(struct cpu_ctx *c)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	u32 cpu = bpf_cpumask_first(idle);

	scx_bpf_put_idle_cpumask(idle);
	if (cpu >= nr_cpu_ids || best_slot(c, -1) < 0)
		return;
	count(CORUN_COUNT_late_kicks);
	scx_bpf_kick_cpu((s32)cpu, SCX_KICK_IDLE);
}

/* A turn ends with @prev still runnable. */
static void dispatch_after(struct task_struct *prev, struct task_ctx *t,
			   s32 cpu, struct cpu_ctx *c, u64 now_ns)
{
	u32 slot = slot_of(prev, t);
	s32 best, next = -1;

	settle(t, slot, now_ns);
	best = best_slot(c, (s32)slot);
	if (!c->hint_pid && defers(t, slot, best)) {
		run_on(prev, t, cpu, c, now_ns, tun.defer_ns);
		return;
	}
	if (take_marked(cpu, c))
		return;
	if (is_vcpu(t) && c->serving_pid != prev->pid)
		next = chosen_by_leader(c, slot, best, now_ns);
	if (next >= 0 && next != (s32)slot && take_from((u32)next, cpu)) {
		count(CORUN_COUNT_turns_followed);
		return;
	}
	if (next == (s32)slot)
		best = -1;
	if (c->serving_pid != prev->pid && keeps(t, slot, best))
		count(CORUN_COUNT_keeps);
	else if (resume_turn(c, cpu) ||
		 (next == (s32)slot && take_from(slot, cpu)) ||
		 take_best(c, cpu))
		return;
	if (c->serving_pid == prev->pid)
		urgent_ends(c, now_ns);
	run_on(prev, t, cpu, c, now_ns,
	       is_vcpu(t) ? aligned_slice(slot, now_ns) : tun.slice_ns);
}

void BPF_STRUCT_OPS(corun_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu_ctx *c = cpu_ctx_of(cpu);
	struct task_ctx *t;

	if (!c)
		c = &cpus[0];
	c->kick_pending = 0;
	__builtin_memset(c->tried, 0, sizeof(c->tried));
	if (!prev || !(prev->scx.flags & SCX_TASK_QUEUED)) {
		if (take_marked(cpu, c) || resume_turn(c, cpu) ||
		    take_best(c, cpu))
			kick_idle_for_rest(c);
		return;
	}
	t = task_ctx_of(prev);
	if (t)
		dispatch_after(prev, t, cpu, c, scx_bpf_now());
}

/* An urgent slice of @t begins: its VM pays for the switches, too. */
static void urgent_starts(struct task_ctx *t, u32 slot, u64 now_ns)
{
	struct vcpu_rec *r = rec_of(t->slot, t->vcpu_id);
	struct corun_vm *vm = vm_of(slot);
	u64 waited_ns;

	__sync_fetch_and_add(&vm->vtime_ns,
			     corun_share_vtime(tun.boost_cost_ns, vm->weight));
	count(CORUN_COUNT_urgent_slices);
	if (!r)
		return;
	r->boosted_ns = now_ns;
	waited_ns = r->urgent_ns ? elapsed_ns(r->urgent_ns, now_ns) : 0;
	count_by(CORUN_COUNT_urgent_wait_ns, waited_ns);
	__sync_fetch_and_add(&served.served, 1);
	__sync_fetch_and_add(&served.waited_ns, waited_ns);
}

/* Notes on @cpu that @p runs there, and sees to its slice's end. */
static void begin_turn(struct task_struct *p, struct task_ctx *t, s32 cpu,
		       struct cpu_ctx *c, u32 slot, u64 now_ns)
{
	bool new_vm = c->running_slot != slot;
	u64 slice_ns = p->scx.slice;

	c->kick_pending = 0;
	c->running = t->vcpu;
	c->running_slot = slot;
	c->running_id = is_vcpu(t) ? t->vcpu_id + 1 : 0;
	c->run_start_ns = now_ns;
	if (c->serving_pid == p->pid) {
		c->serve_start_ns = now_ns;
		urgent_starts(t, slot, now_ns);
	} else {
		c->serving_pid = 0;
		if (c->join_end_ns) {
			slice_ns = corun_gang_slice(
				elapsed_ns(now_ns, c->join_end_ns), tunables());
			scx_bpf_task_set_slice(p, slice_ns);
		} else if (is_vcpu(t) && slice_ns == tun.slice_ns) {
			slice_ns = aligned_slice(slot, now_ns);
			scx_bpf_task_set_slice(p, slice_ns);
		}
		if (has(CORUN_MECHANISM_GANG) && new_vm)
			pull_gang(slot, cpu, now_ns + slice_ns, now_ns);
		if (is_vcpu(t))
			turn_begins(c, now_ns + slice_ns);
	}
	c->join_end_ns = 0;
	enforce_slice(cpu, c, now_ns, slice_ns);
}

void BPF_STRUCT_OPS(corun_running, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *c = cpu_ctx_of(cpu);
	struct task_ctx *t = task_ctx_of(p);
	u64 now_ns = scx_bpf_now();
	struct corun_vm *vm;
	u32 slot;

	if (!t)
		return;
	slot = slot_of(p, t);
	vm = vm_of(slot);
	t->run_start_ns = now_ns;
	t->deferred = 0;
	vtime_now_ns = corun_later(vtime_now_ns, vm->vtime_ns);
	vm->vcpu_vtime_now_ns =
		corun_later(vm->vcpu_vtime_now_ns, t->vcpu.vtime_ns);
	if (c)
		begin_turn(p, t, cpu, c, slot, now_ns);
	if (is_vcpu(t))
		note_runs(t, now_ns);
}

void BPF_STRUCT_OPS(corun_stopping, struct task_struct *p, bool runnable)
{
	struct cpu_ctx *c = cpu_ctx_of(scx_bpf_task_cpu(p));
	struct task_ctx *t = task_ctx_of(p);
	u64 now_ns = scx_bpf_now();
	struct vcpu_rec *r;

	if (c) {
		if (c->serving_pid == p->pid)
			urgent_ends(c, now_ns);
		else if (t && runnable && is_vcpu(t))
			turn_stops(c, p, slot_of(p, t), now_ns);
		c->run_start_ns = 0;
		c->enforced_end_ns = 0;
	}
	if (!t)
		return;
	settle(t, slot_of(p, t), now_ns);
	t->run_start_ns = 0;
	r = is_vcpu(t) ? rec_of(t->slot, t->vcpu_id) : NULL;
	if (r)
		r->runs = 0;
}

void BPF_STRUCT_OPS(corun_set_weight, struct task_struct *p, u32 weight)
{
	struct task_ctx *t = task_ctx_of(p);

	/* vCPUs of one VM are peers; the VM's weight is its cgroup's. */
	if (t && !t->kvm)
		t->vcpu.weight = weight;
}

s32 BPF_STRUCT_OPS(corun_init_task, struct task_struct *p,
		   struct scx_init_task_args *args)
{
	struct task_ctx *t = bpf_task_storage_get(
		&task_ctxs, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!t)
		return -ENOMEM;
	count(CORUN_COUNT_tasks_joined);
	return 0;
}

void BPF_STRUCT_OPS(corun_enable, struct task_struct *p)
{
	struct task_ctx *t = task_ctx_of(p);

	if (!t)
		return;
	t->vcpu.weight = p->scx.weight;
	t->vcpu.vtime_ns = vm_of(slot_of(p, t))->vcpu_vtime_now_ns;
}

void BPF_STRUCT_OPS(corun_exit_task, struct task_struct *p,
		    struct scx_exit_task_args *args)
{
	struct task_ctx *t = task_ctx_of(p);

	count(CORUN_COUNT_tasks_left);
	if (t && is_vcpu(t))
		forget_vcpu(t, p->pid);
}

/* CPUs come and go: nothing here is laid out by what is online. */
void BPF_STRUCT_OPS(corun_cpu_online, s32 cpu)
{
}

void BPF_STRUCT_OPS(corun_cpu_offline, s32 cpu)
{
}

s32 BPF_STRUCT_OPS_SLEEPABLE(corun_init)
{
	u32 slot;
	s32 err;

	bpf_for(slot, 0, CORUN_MAX_SLOTS) {
		err = scx_bpf_create_dsq(CORUN_DSQ(slot), -1);
		if (err)
			return err;
	}
	vms[CORUN_HOST_SLOT].weight = CORUN_WEIGHT_DEFAULT;
	err = init_slice_timers();
	return err ? err : init_window();
}

void BPF_STRUCT_OPS(corun_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

SCX_OPS_DEFINE(corun_ops, .select_cpu = (void *)corun_select_cpu,
	       .enqueue = (void *)corun_enqueue,
	       .dispatch = (void *)corun_dispatch, .yield = (void *)corun_yield,
	       .running = (void *)corun_running,
	       .stopping = (void *)corun_stopping,
	       .set_weight = (void *)corun_set_weight,
	       .init_task = (void *)corun_init_task,
	       .exit_task = (void *)corun_exit_task,
	       .enable = (void *)corun_enable,
	       .cpu_online = (void *)corun_cpu_online,
	       .cpu_offline = (void *)corun_cpu_offline,
	       .init = (void *)corun_init, .exit = (void *)corun_exit,
	       .timeout_ms = 30000, .name = "corun");
