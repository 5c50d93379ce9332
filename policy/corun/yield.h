/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Directed yields: KVM found that vCPU "from" waits and asks that vCPU "to"
 * runs instead (kvm_sched_yield() and kvm_vcpu_on_spin() through yield_to()).
 *
 * After Debooster (seed 002): no fairness check may veto, because both belong to
 * one VM and its account pays. What can refuse is only what the kernel cannot
 * do, and each reason has a name.
 */
#ifndef CORUN_YIELD_H
#define CORUN_YIELD_H

#include "region.h"
#include "share.h"
#include "types.h"

/* What becomes of a directed yield. Stable: counters and traces carry it. */
enum corun_yield_verdict {
	/* "to" runs next on the spinner's pCPU. */
	CORUN_YIELD_HONOUR = 0,
	/* Not directed: sched_yield() of a host task. */
	CORUN_YIELD_UNDIRECTED = 1,
	/* "from" or "to" is no vCPU that we know, or they are of two VMs. */
	CORUN_YIELD_STRANGER = 2,
	/* "to" may not run on the spinner's pCPU (affinity, migration disabled). */
	CORUN_YIELD_AFFINITY = 3,
};

/* All that the decision looks at. */
struct corun_yield_input {
	/* There is a "to". */
	bool directed;
	/* Both are vCPUs of one VM. */
	bool same_vm;
	/* "to" may run on the pCPU of "from". */
	bool allowed_here;
};

/* Decides a yield. */
CORUN_INLINE enum corun_yield_verdict
corun_yield_decide(const struct corun_yield_input *in)
{
	if (!in->directed)
		return CORUN_YIELD_UNDIRECTED;
	if (!in->same_vm)
		return CORUN_YIELD_STRANGER;
	if (!in->allowed_here)
		return CORUN_YIELD_AFFINITY;
	return CORUN_YIELD_HONOUR;
}

/*
 * Slice of the vCPU that runs in the spinner's place: what the spinner had
 * left, so that the VM as a whole keeps its turn's end, but enough to get out of
 * a critical section.
 */
CORUN_INLINE u64 corun_yield_slice(u64 left_ns,
				   const struct corun_tunables *tun)
{
	if (left_ns < tun->yield_min_slice_ns)
		return tun->yield_min_slice_ns;
	return left_ns > tun->slice_ns ? tun->slice_ns : left_ns;
}

/*
 * Is a hint left @made_ns still worth following at @now_ns? Dispatch is skipped
 * while the pCPU's local queue holds something, so hints go stale. A clock that
 * steps back does not make one old.
 */
CORUN_INLINE bool corun_yield_hint_fresh(u64 made_ns, u64 now_ns,
					 const struct corun_tunables *tun)
{
	return (s64)(now_ns - made_ns) <= (s64)tun->hint_max_age_ns;
}

/*
 * May a spinner of @vm still choose who runs in its place, or is it the turn of
 * @other, who waits with the best claim (NULL: nobody)? At its turn's end a VM is ahead
 * by a slice on each of its @lanes, the pCPUs that it can use at once, and a little more
 * if pCPUs chose it at different times. Spinners that hand over to each other without
 * end, each before its slice is over, get no further.
 */
CORUN_INLINE bool corun_yield_affords(const struct corun_vm *vm,
				      const struct corun_vm *other, u32 lanes,
				      const struct corun_tunables *tun)
{
	u64 turn_ns = tun->slice_ns * (lanes ? lanes : 1);
	u64 lead_ns =
		corun_share_vtime(turn_ns, vm->weight) + tun->boost_debt_ns;

	return !other || !corun_before(other->vtime_ns + lead_ns, vm->vtime_ns);
}

/* A sibling of a spinner, as the choice sees it. */
struct corun_sibling {
	/* It waits for a pCPU since then; 0: it runs, or it sleeps. */
	u64 waits_since_ns;
	/* enum corun_region of where it was stopped. */
	u32 region;
	/* It was stopped in kernel mode. */
	bool in_kernel;
	/* The spinner sent it an IPI that it has not taken. */
	bool ipi_from_spinner;
};

#define CORUN_SCORE_WAIT_MAX ((1ULL << 48) - 1)

/*
 * How much a spinner gains when this sibling runs; 0: nothing. After Strict
 * Boost (seed 002): first who owes the spinner an answer to an IPI, in whatever
 * mode it was stopped; then who was stopped in the kernel, likely lock holders
 * first; then who waits for longest. Never who runs, and never who sleeps: it
 * would have to be woken, which is an IPI's work. Who spins itself
 * (corun_region_rank() is 0) comes last.
 */
CORUN_INLINE u64 corun_yield_score(const struct corun_sibling *s, u64 now_ns)
{
	u64 waited_ns = now_ns - s->waits_since_ns;
	u64 class = 1;

	if (!s->waits_since_ns)
		return 0;
	if ((s64)waited_ns < 0)
		waited_ns = 0;
	if (waited_ns > CORUN_SCORE_WAIT_MAX)
		waited_ns = CORUN_SCORE_WAIT_MAX;
	if (s->ipi_from_spinner)
		class = 7;
	else if (s->in_kernel)
		class = 2 + corun_region_rank(s->region);
	return class << 48 | waited_ns;
}

#endif /* CORUN_YIELD_H */
