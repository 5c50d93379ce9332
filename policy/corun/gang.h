/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Adaptive co-scheduling: the vCPUs of a VM whose vCPUs wait for each other are
 * started together; others are left alone.
 *
 * Relaxed, as in seed 000's related work: no pCPU idles for a gang, and no VM
 * runs that has no claim. When a coupled VM's turn comes on one pCPU, the next
 * pCPU whose VM has no better claim and has run for a while gives way to a
 * waiting sibling, which pulls the next in turn: a chain, no broadcast. Skew
 * within the VM is bounded by its queue's order, which is by vtime.
 */
#ifndef CORUN_GANG_H
#define CORUN_GANG_H

#include "share.h"
#include "types.h"

/* CPU time below which a window tells nothing of a VM, in event gaps. */
#define CORUN_GANG_MIN_GAPS 2

/*
 * Is a VM coupled that used @used_ns of CPU time in a window, in which a vCPU
 * waited @events times for a preempted sibling? @was: it was before; it stays so
 * down to half of the rate, and while a window tells nothing.
 */
CORUN_INLINE bool corun_gang_coupled(bool was, u64 events, u64 used_ns,
				     const struct corun_tunables *tun)
{
	u64 gap_ns = tun->gang_event_gap_ns;

	if (used_ns < CORUN_GANG_MIN_GAPS * gap_ns)
		return was;
	if (was)
		return events * 2 * gap_ns >= used_ns;
	return events * gap_ns >= used_ns;
}

/*
 * A coupled VM's vCPU got a pCPU and a sibling waits: does the VM @other give
 * way to it on another pCPU, where its vCPU runs uncharged for @ran_ns?
 */
CORUN_INLINE bool corun_gang_pulls(const struct corun_vm *vm,
				   const struct corun_vm *other, u64 ran_ns,
				   const struct corun_tunables *tun)
{
	u64 other_ns =
		other->vtime_ns + corun_share_vtime(ran_ns, other->weight);

	return ran_ns >= tun->gang_min_run_ns &&
	       !corun_before(other_ns, vm->vtime_ns);
}

/*
 * Slice of a sibling that joins: to the end of the leader's, so that all leave
 * together, but at least half of one, or the gang would fray.
 */
CORUN_INLINE u64 corun_gang_slice(u64 leader_left_ns,
				  const struct corun_tunables *tun)
{
	if (leader_left_ns < tun->slice_ns / 2)
		return tun->slice_ns / 2;
	return leader_left_ns > tun->slice_ns ? tun->slice_ns : leader_left_ns;
}

/*
 * Slice of a vCPU whose turn begins, when the turn of the sibling that began last
 * ends in @left_ns (0: it has ended): for a coupled VM to that end, if that is at
 * least half a slice away. Siblings so come to end their turns together, whatever
 * brought them apart, and their pCPUs choose at the same time. It takes no pCPU from
 * anybody; but turns that end together make others wait longer for the next end, so VMs
 * that are not coupled are left alone, unless the host could not tell.
 */
CORUN_INLINE u64 corun_gang_align(bool coupled, u64 left_ns,
				  const struct corun_tunables *tun)
{
	if (!coupled && !tun->gang_blind)
		return tun->slice_ns;
	if (left_ns < tun->slice_ns / 2 || left_ns > tun->slice_ns)
		return tun->slice_ns;
	return left_ns;
}

/* Least slice in a VM with more vCPUs than pCPUs, as part of a whole one. */
#define CORUN_GANG_CROWD 8

/*
 * Slice of a vCPU of a VM with more of them, @vcpus, than there are pCPUs, @pcpus: they
 * cannot run together, so who waits for its siblings spins until each had its turn. All
 * have theirs within one slice, as far as that leaves each of them an eighth of it. VMs
 * that are not coupled are left alone, unless the host could not tell.
 */
CORUN_INLINE u64 corun_gang_crowded(bool coupled, u32 vcpus, u32 pcpus,
				    const struct corun_tunables *tun)
{
	u64 least_ns = tun->slice_ns / CORUN_GANG_CROWD;
	u64 slice_ns;

	if ((!coupled && !tun->gang_blind) || vcpus <= pcpus)
		return tun->slice_ns;
	slice_ns = tun->slice_ns * pcpus / vcpus;
	return slice_ns < least_ns ? least_ns : slice_ns;
}

/* Turns that end within this part of a slice end together. */
#define CORUN_GANG_TOGETHER 8

/*
 * A vCPU's turn has ended; a sibling's did @age_ns ago, and its pCPU chose the VM
 * that comes next there. Does this one follow? Each pCPU charges its own turn before
 * it chooses, so that the second to choose knows more than the first: left to
 * themselves, two VMs of two share two pCPUs in one turn of three. Who follows may
 * choose wrong by its own turn, at most a slice, and the next choice sees it charged.
 */
CORUN_INLINE bool corun_gang_follows(bool coupled, u64 age_ns,
				     const struct corun_tunables *tun)
{
	return (coupled || tun->gang_blind) &&
	       age_ns < tun->slice_ns / CORUN_GANG_TOGETHER;
}

#endif /* CORUN_GANG_H */
