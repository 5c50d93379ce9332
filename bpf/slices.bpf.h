/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Short slices: the kernel ends slices at ticks (4 ms at 250 Hz), so a timer ends these,
 * with a preempting kick: the pCPU's, which another pCPU may have started. One that comes
 * when another runs does nothing.
 */
#ifndef CORUN_SLICES_BPF_H
#define CORUN_SLICES_BPF_H

#include "turn.bpf.h"

/* A timer that has not gone off so long after its time is set again. */
#define TIMER_LATE_NS 1000000

struct slice_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CORUN_MAX_CPUS);
	__type(key, u32);
	__type(value, struct slice_timer);
} slice_timers SEC(".maps");

static void set_slice_timer(struct slice_timer *timer, struct cpu_ctx *c,
			    u64 end_ns, u64 left_ns)
{
	c->timer_ns = end_ns;
	bpf_timer_start(&timer->timer, left_ns, BPF_F_TIMER_CPU_PIN);
}

static int on_slice_end(void *map, u32 *key, struct slice_timer *timer)
{
	struct cpu_ctx *c = cpu_ctx_of((s32)*key);
	u64 end_ns, left_ns;

	if (!c)
		return 0;
	/* Before the end is read: who moves it looks at this one after. */
	__sync_lock_test_and_set(&c->timer_ns, 0);
	end_ns = c->enforced_end_ns;
	if (!end_ns)
		return 0;
	/* Meanwhile the pCPU may have begun another slice, with an end of its own. */
	left_ns = elapsed_ns(scx_bpf_now() + TIMER_SLACK_NS, end_ns);
	if (left_ns)
		set_slice_timer(timer, c, end_ns, left_ns);
	else if (__sync_val_compare_and_swap(&c->enforced_end_ns, end_ns, 0) ==
		 end_ns)
		scx_bpf_kick_cpu((s32)*key, SCX_KICK_PREEMPT);
	return 0;
}

static void end_slice_in(s32 cpu, struct cpu_ctx *c, u64 now_ns, u64 slice_ns)
{
	u64 end_ns = now_ns + slice_ns, timer_ns;
	struct slice_timer *timer;
	u32 key = (u32)cpu;

	timer = bpf_map_lookup_elem(&slice_timers, &key);
	if (!timer)
		return;
	__sync_lock_test_and_set(&c->enforced_end_ns, end_ns);
	/* Setting it is dear: one that goes off before is set anew then. */
	timer_ns = c->timer_ns;
	if (!timer_ns || elapsed_ns(end_ns, timer_ns) ||
	    !elapsed_ns(now_ns, timer_ns + TIMER_LATE_NS))
		set_slice_timer(timer, c, end_ns, slice_ns);
}

/* Ends what runs on @cpu after @slice_ns; long slices are left to the tick. */
static void enforce_slice(s32 cpu, struct cpu_ctx *c, u64 now_ns, u64 slice_ns)
{
	c->enforced_end_ns = 0;
	if (slice_ns < tun.slice_ns / 2)
		end_slice_in(cpu, c, now_ns, slice_ns);
}

/* The same for a vCPU's turn, which may end before for who woke in vain. */
static void enforce_turn(s32 cpu, struct cpu_ctx *c, u64 now_ns, u64 slice_ns)
{
	u64 left_ns = elapsed_ns(now_ns, c->cut_end_ns);

	if (left_ns && left_ns < slice_ns) {
		end_slice_in(cpu, c, now_ns, left_ns);
		return;
	}
	if (!left_ns)
		c->cut_end_ns = 0;
	enforce_slice(cpu, c, now_ns, slice_ns);
}

/*
 * The turn on @cpu, which need not be this pCPU, stops after @wait_ns to let who has the
 * best claim go on: it had none that was good enough when it woke. Who runs there out of
 * turn is not stopped; the turn is, when it goes on.
 */
static void cut_slice(s32 cpu, u64 now_ns, u64 wait_ns)
{
	struct cpu_ctx *c = cpu_ctx_of(cpu);
	u64 end_ns = now_ns + wait_ns;

	if (!c || elapsed_ns(c->run_start_ns, end_ns) >= tun.slice_ns ||
	    (c->cut_end_ns && !elapsed_ns(end_ns, c->cut_end_ns)))
		return;
	count(CORUN_COUNT_slices_cut);
	c->cut_end_ns = end_ns;
	if (c->serving_pid || c->urgent_pid || !c->running_id ||
	    (c->enforced_end_ns && elapsed_ns(c->enforced_end_ns, end_ns)))
		return;
	end_slice_in(cpu, c, now_ns, wait_ns);
}

static s32 init_slice_timers(void)
{
	u32 cpu;
	s32 err;

	bpf_for(cpu, 0, nr_cpu_ids) {
		struct slice_timer *timer =
			bpf_map_lookup_elem(&slice_timers, &cpu);

		if (!timer)
			break;
		err = bpf_timer_init(&timer->timer, &slice_timers,
				     CLOCK_MONOTONIC);
		if (err)
			return err;
		bpf_timer_set_callback(&timer->timer, on_slice_end);
	}
	return 0;
}

#endif /* CORUN_SLICES_BPF_H */
