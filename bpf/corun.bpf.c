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

#include "share.bpf.h"
#include "boost.bpf.h"
#include "discover.bpf.h"
#include "dispatch.bpf.h"
#include "events.bpf.h"
#include "gang.bpf.h"
#include "guest.bpf.h"
#include "queue.bpf.h"
#include "slices.bpf.h"
#include "state.bpf.h"
#include "turn.bpf.h"
#include "wakeup.bpf.h"

char _license[] SEC("license") = "GPL";

UEI_DEFINE(uei);

/* Looking for an idle pCPU takes the kernel long, and mostly there is none. */
static __always_inline bool any_idle(void)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	bool any = !bpf_cpumask_empty(idle);

	scx_bpf_put_idle_cpumask(idle);
	return any;
}

s32 BPF_STRUCT_OPS(corun_select_cpu, struct task_struct *p, s32 prev_cpu,
		   u64 wake_flags)
{
	struct task_ctx *t = task_ctx_of(p);
	bool is_idle = false;
	s32 cpu;

	if (!any_idle())
		return prev_cpu;
	cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);
	if (is_idle && t) {
		t->woken = 1;
		wake_vtimes(p, t, slot_of(p, t));
		count(CORUN_COUNT_direct_dispatches);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, tun.slice_ns, 0);
	}
	return cpu;
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
	t->woken = waking;
	if (waking)
		wake_vtimes(p, t, slot);
	if (is_vcpu(t))
		note_waits(p, t, waking, scx_bpf_now());
	enters_queue(p, t, slot);
	count(CORUN_COUNT_enqueues);
	scx_bpf_dsq_insert_vtime(p, CORUN_DSQ(slot), tun.slice_ns,
				 t->vcpu.vtime_ns, enq_flags);
	cpu = any_idle() ? scx_bpf_pick_idle_cpu(p->cpus_ptr, 0) : -1;
	if (cpu >= 0) {
		count(CORUN_COUNT_idle_kicks);
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	} else if (waking) {
		kick_for_wakeup(p, t, slot);
	}
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
	leave_hint(c, from, f->slot, yield_target(f, to->pid, cpu));
	scx_bpf_task_set_slice(from, 0);
	return true;
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
		dispatch_idle(cpu, c);
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
	bool goes_on = is_vcpu(t) && c->turn_goes_on;
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
		enforce_slice(cpu, c, now_ns, slice_ns);
	} else {
		if (c->serving_pid)
			__sync_fetch_and_sub(&nr_serving, 1);
		c->serving_pid = 0;
		if (c->join_end_ns) {
			slice_ns = corun_gang_slice(
				elapsed_ns(now_ns, c->join_end_ns), tunables());
			scx_bpf_task_set_slice(p, slice_ns);
		} else if (is_vcpu(t) && !goes_on && slice_ns == tun.slice_ns) {
			slice_ns = aligned_slice(slot, now_ns);
			scx_bpf_task_set_slice(p, slice_ns);
		}
		if (has(CORUN_MECHANISM_GANG) && new_vm)
			pull_gang(slot, cpu, now_ns + slice_ns, now_ns);
		if (is_vcpu(t)) {
			c->turn_goes_on = 0;
			if (!goes_on)
				c->cut_end_ns = 0;
			turn_starts(c, t, slot, now_ns + slice_ns);
			enforce_turn(cpu, c, now_ns, slice_ns);
		} else {
			enforce_slice(cpu, c, now_ns, slice_ns);
		}
	}
	c->join_end_ns = 0;
}

void BPF_STRUCT_OPS(corun_running, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *c = cpu_ctx_of(cpu);
	struct task_ctx *t = task_ctx_of(p);
	u64 now_ns = scx_bpf_now();
	u32 slot;

	if (!t)
		return;
	leaves_queue(t);
	slot = slot_of(p, t);
	t->runs = 1;
	t->exec_ns = p->se.sum_exec_runtime;
	t->deferred = 0;
	move_clocks(c, t, slot);
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
			turn_stops(c, p, t, now_ns);
		c->run_start_ns = 0;
		c->enforced_end_ns = 0;
	}
	if (!t)
		return;
	settle(p, t, slot_of(p, t));
	t->runs = 0;
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

/* @p is no task of ours from here on; it may have waited for a pCPU. */
void BPF_STRUCT_OPS(corun_disable, struct task_struct *p)
{
	struct task_ctx *t = task_ctx_of(p);

	if (t)
		leaves_queue(t);
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
	       .enable = (void *)corun_enable, .disable = (void *)corun_disable,
	       .cpu_online = (void *)corun_cpu_online,
	       .cpu_offline = (void *)corun_cpu_offline,
	       .init = (void *)corun_init, .exit = (void *)corun_exit,
	       .timeout_ms = 30000, .name = "corun");
