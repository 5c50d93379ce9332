/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scheduler's counters: one list, from which the indices and the names that
 * user space reads are made.
 */
#ifndef CORUN_COUNTERS_H
#define CORUN_COUNTERS_H

/* X(name): counted since the scheduler was loaded, summed over CPUs. */
#define CORUN_COUNTERS(X)                                                          \
	X(yields_asked) /* yield_to() reached us with a target */                  \
	X(yields_accepted) /* ... and the policy said yes */                       \
	X(yields_dispatched) /* ... and the target ran next, by the hint */        \
	X(yields_stale_aged) /* ... but only after the hint's greatest age */      \
	X(yields_overdrawn) /* ... but its VM was too far ahead of its share */    \
	X(yields_stale_taken) /* ... but another pCPU had taken the target */      \
	X(yields_undirected) /* sched_yield() of a task */                         \
	X(yields_refused_stranger) /* not two vCPUs of one VM */                   \
	X(yields_refused_affinity) /* target may not run on that pCPU */           \
	X(enqueues) /* tasks put into a VM's queue */                              \
	X(direct_dispatches) /* woken onto an idle pCPU */                         \
	X(kthread_dispatches) /* pinned kernel threads, run at once */             \
	X(dispatches) /* tasks taken from a VM's queue */                          \
	X(turns_resumed) /* a vCPU went on with a turn that was interrupted */     \
	X(turns_followed) /* ... gave way to the VM that a sibling gave way to */  \
	X(keeps) /* slice ended, but nobody had a better claim */                  \
	X(wakeup_preemptions) /* running task kicked off for a waking one */       \
	X(slices_cut) /* ... or to be, once it has run a little more */            \
	X(wakeups_by_siblings) /* no sibling gives way to a waking one it woke */  \
	X(idle_kicks) /* idle pCPU woken for a queued task */                      \
	X(yields_replaced) /* another sibling than KVM's was chosen */             \
	X(spins) /* KVM was told that a vCPU spins */                              \
	X(ipis_to_running) /* IPIs between siblings, target on a pCPU */           \
	X(ipis_to_waiting) /* ... target waiting for one */                        \
	X(ipis_to_asleep) /* ... target halted */                                  \
	X(device_to_waiting) /* device interrupts, target waiting */               \
	X(events_unattributed) /* interrupts sent from no thread's context */      \
	X(urgent_ipi) /* vCPUs made urgent (enum corun_urgent_event): by an IPI */ \
	X(urgent_io) /* ... by a device */                                         \
	X(urgent_lock) /* ... by a sibling's spin */                               \
	X(urgent_too_soon) /* not made urgent: it was a moment ago */              \
	X(urgent_first) /* ran before their siblings */                            \
	X(urgent_unplaced) /* no pCPU had to give way */                           \
	X(urgent_kicks) /* pCPUs kicked for an urgent vCPU */                      \
	X(urgent_stale) /* ... which was no longer there */                        \
	X(urgent_slices) /* short slices run */                                    \
	X(urgent_ns) /* their length */                                            \
	X(urgent_wait_ns) /* their time from event to start */                     \
	X(urgent_le_1x) /* short slices by length: up to the one asked */          \
	X(urgent_le_2x) /* ... up to twice that */                                 \
	X(urgent_le_4x) /* ... up to four times */                                 \
	X(urgent_gt_4x) /* ... more */                                             \
	X(deferrals) /* slices extended inside a critical section */               \
	X(preempted_critical) /* vCPUs stopped inside one all the same */          \
	X(gang_pulls) /* pCPUs kicked for the sibling of a coupled VM's vCPU */    \
	X(gang_dispatches) /* ... and the sibling was there */                     \
	X(waits) /* times that a vCPU waited for a pCPU */                         \
	X(waited_ns) /* time that vCPUs waited for a pCPU */                       \
	X(late_kicks) /* idle pCPU woken for what a dispatch left queued */        \
	X(tasks_joined) /* threads that came under the scheduler */                \
	X(tasks_left) /* ... and that went */                                      \
	X(vcpus_found) /* vCPU threads registered */                               \
	X(vms_found) /* VMs registered */                                          \
	X(vms_gone) /* VMs destroyed */                                            \
	X(vms_gone_unseen) /* ... known only by the end of their process */        \
	X(vms_untracked) /* VMs beyond the table: treated as host tasks */

#define CORUN_COUNTER_INDEX(name) CORUN_COUNT_##name,
enum corun_counter { CORUN_COUNTERS(CORUN_COUNTER_INDEX) CORUN_COUNTER_NR };
#undef CORUN_COUNTER_INDEX

#define CORUN_COUNTER_NAME_LEN 32

#endif /* CORUN_COUNTERS_H */
