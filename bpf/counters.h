/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scheduler's counters: one list, from which the indices and the names that
 * user space reads are made.
 */
#ifndef CORUN_COUNTERS_H
#define CORUN_COUNTERS_H

/* X(name): counted since the scheduler was loaded, summed over CPUs. */
#define CORUN_COUNTERS(X)                                                      \
	X(yields_asked) /* yield_to() reached us with a target */              \
	X(yields_accepted) /* ... and the policy said yes */                   \
	X(yields_dispatched) /* ... and the target ran next, by the hint */    \
	X(yields_stale_aged) /* ... but only after the hint's greatest age */  \
	X(yields_stale_taken) /* ... but another pCPU had taken the target */  \
	X(yields_undirected) /* sched_yield() of a task */                     \
	X(yields_refused_stranger) /* not two vCPUs of one VM */               \
	X(yields_refused_affinity) /* target may not run on that pCPU */       \
	X(enqueues) /* tasks put into a VM's queue */                          \
	X(direct_dispatches) /* woken onto an idle pCPU */                     \
	X(kthread_dispatches) /* pinned kernel threads, run at once */         \
	X(dispatches) /* tasks taken from a VM's queue */                      \
	X(keeps) /* slice ended, but nobody had a better claim */              \
	X(wakeup_preemptions) /* running task kicked off for a waking one */   \
	X(idle_kicks) /* idle pCPU woken for a queued task */                  \
	X(vcpus_found) /* vCPU threads registered */                           \
	X(vms_found) /* VMs registered */                                      \
	X(vms_gone) /* VMs destroyed */                                        \
	X(vms_untracked) /* VMs beyond the table: treated as host tasks */

#define CORUN_COUNTER_INDEX(name) CORUN_COUNT_##name,
enum corun_counter { CORUN_COUNTERS(CORUN_COUNTER_INDEX) CORUN_COUNTER_NR };
#undef CORUN_COUNTER_INDEX

#define CORUN_COUNTER_NAME_LEN 32

#endif /* CORUN_COUNTERS_H */
