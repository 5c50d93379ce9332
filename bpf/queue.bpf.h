/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many tasks each VM's queue holds, for those who look through all of them at every
 * dispatch: scx_bpf_dsq_nr_queued() looks a queue up in a hash table first.
 *
 * A task counts from the moment that it is on its way into a queue until it runs, so a
 * count is never too low; who was just taken by another pCPU still counts.
 */
#ifndef CORUN_QUEUE_BPF_H
#define CORUN_QUEUE_BPF_H

#include "state.bpf.h"

static __always_inline bool has_queued(u32 slot)
{
	return nr_queued[slot & (CORUN_MAX_SLOTS - 1)];
}

/* The same, exactly: for those who would disturb others in vain. */
static __always_inline bool has_waiting(u32 slot)
{
	return has_queued(slot) && scx_bpf_dsq_nr_queued(CORUN_DSQ(slot)) > 0;
}

/* @t has a pCPU, or is no task of ours any more. */
static void leaves_queue(struct task_ctx *t)
{
	u32 slot = t->queued_in - 1;

	if (!t->queued_in)
		return;
	t->queued_in = 0;
	__sync_fetch_and_sub(&nr_queued[slot & (CORUN_MAX_SLOTS - 1)], 1);
}

/* @t is about to enter the queue of @slot; it may have left another without a run. */
static void enters_queue(struct task_ctx *t, u32 slot)
{
	if (t->queued_in == slot + 1)
		return;
	leaves_queue(t);
	t->queued_in = slot + 1;
	__sync_fetch_and_add(&nr_queued[slot & (CORUN_MAX_SLOTS - 1)], 1);
}

#endif /* CORUN_QUEUE_BPF_H */
