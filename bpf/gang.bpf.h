/* SPDX-License-Identifier: GPL-2.0-only */
/* Gangs, and the window in which pool and coupling are looked at again. */
#ifndef CORUN_GANG_BPF_H
#define CORUN_GANG_BPF_H

#include "queue.bpf.h"
#include "state.bpf.h"

/* pCPUs that a leader looks at: a gang spreads from pCPU to pCPU. */
#define GANG_SCAN 64

/* Would @c's vCPU give way to a sibling of the VM in @slot? */
static bool gang_takes(struct cpu_ctx *c, u32 slot, u64 now_ns)
{
	u64 started_ns = c->run_start_ns;
	u32 other = c->running_slot;

	if (!started_ns || other == slot || other == CORUN_HOST_SLOT ||
	    c->kick_pending || c->urgent_pid || c->serving_pid)
		return false;
	return corun_gang_pulls(vm_of(slot), vm_of(other),
				elapsed_ns(started_ns, now_ns), tunables());
}

/* A vCPU of the VM in @slot starts on @cpu: another pCPU may join its gang. */
static __noinline void pull_gang(u32 slot, s32 cpu, u64 end_ns, u64 now_ns)
{
	u32 i;

	if (!state_of(slot)->coupled || !has_waiting(slot))
		return;
	bpf_for(i, 1, GANG_SCAN) {
		u32 other = ((u32)cpu + i) % nr_cpu_ids;
		struct cpu_ctx *c = cpu_ctx_of((s32)other);

		if (i >= nr_cpu_ids)
			break;
		if (!c || llc_of_cpu[other % CORUN_MAX_CPUS] !=
				  llc_of_cpu[(u32)cpu % CORUN_MAX_CPUS])
			continue;
		if (!gang_takes(c, slot, now_ns))
			continue;
		c->gang_slot = slot;
		c->gang_end_ns = end_ns;
		c->kick_pending = 1;
		count(CORUN_COUNT_gang_pulls);
		scx_bpf_kick_cpu((s32)other, SCX_KICK_PREEMPT);
		break;
	}
}

struct window_timer {
	struct bpf_timer timer;
	/* `served` a window ago. */
	struct corun_pool_window before;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct window_timer);
} window_timers SEC(".maps");

/* Counts the pCPUs that serve an urgent vCPU, or were kicked to. */
static void count_serving(void)
{
	s32 serving = 0;
	u32 cpu;

	bpf_for(cpu, 0, nr_cpu_ids) {
		struct cpu_ctx *c = cpu_ctx_of((s32)cpu);

		if (c && (c->urgent_pid || c->serving_pid))
			serving++;
	}
	nr_serving = serving;
}

static void next_pool(struct window_timer *window)
{
	struct corun_pool_window now = served;
	struct corun_pool_window w = {
		.window_ns = tun.window_ns,
		.busy_ns = now.busy_ns - window->before.busy_ns,
		.waited_ns = now.waited_ns - window->before.waited_ns,
		.events = now.events - window->before.events,
		.served = now.served - window->before.served,
		.nr_cpus = nr_cpu_ids,
	};

	window->before = now;
	pool = corun_pool_next(pool, &w, tunables());
}

static void next_coupling(u32 slot)
{
	struct vm_state *s = state_of(slot);
	u64 used_ns = vm_of(slot)->used_ns, events = s->events;

	s->coupled = corun_gang_coupled(s->coupled, events - s->events_before,
					used_ns - s->used_before_ns,
					tunables());
	/* Windows too short to tell add up. */
	if (used_ns - s->used_before_ns >=
	    CORUN_GANG_MIN_GAPS * tun.gang_event_gap_ns) {
		s->events_before = events;
		s->used_before_ns = used_ns;
	}
}

static int on_window(void *map, u32 *key, struct window_timer *window)
{
	u32 slot;

	next_pool(window);
	count_serving();
	bpf_for(slot, 1, nr_slots) {
		next_coupling(slot);
		state_of(slot)->evidence_due = 1;
	}
	bpf_timer_start(&window->timer, tun.window_ns, 0);
	return 0;
}

static s32 init_window(void)
{
	struct window_timer *window;
	u32 key = 0;
	s32 err;

	window = bpf_map_lookup_elem(&window_timers, &key);
	if (!window)
		return -ENOENT;
	err = bpf_timer_init(&window->timer, &window_timers, CLOCK_MONOTONIC);
	if (err)
		return err;
	bpf_timer_set_callback(&window->timer, on_window);
	return bpf_timer_start(&window->timer, tun.window_ns, 0);
}

#endif /* CORUN_GANG_BPF_H */
