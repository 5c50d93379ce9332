// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts the kernel's yield_to() calls and what becomes of them, whatever
 * scheduler runs. Reads only.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

/* X(name): the fate of a directed yield, by the order of yield_to()'s checks. */
#define YIELD_FATES(X)                                                         \
	X(asked)                                                               \
	X(honoured) /* the scheduler took it */                                \
	X(refused_both_alone) /* both runqueues hold one task: -ESRCH */       \
	X(refused_other_class) /* target is of another scheduling class */     \
	X(refused_target_running) /* target is on a pCPU already */            \
	X(refused_target_asleep) /* target is not runnable */                  \
	X(refused_by_scheduler) /* the scheduling class said no */

#define FATE_INDEX(name) FATE_##name,
enum yield_fate { YIELD_FATES(FATE_INDEX) FATE_NR };
#define FATE_STRING(name) #name,
const char fate_names[FATE_NR][32] = { YIELD_FATES(FATE_STRING) };

u64 fates[FATE_NR];

/* Why a yield that returned 0 was refused, in the order of the kernel's checks. */
static enum yield_fate reason(struct task_struct *from, struct task_struct *to)
{
	if (from->sched_class != to->sched_class)
		return FATE_refused_other_class;
	if (to->on_cpu)
		return FATE_refused_target_running;
	if (to->__state)
		return FATE_refused_target_asleep;
	return FATE_refused_by_scheduler;
}

SEC("fexit/yield_to")
int BPF_PROG(on_yield_to, struct task_struct *p, bool preempt, int ret)
{
	enum yield_fate fate;

	if (ret > 0)
		fate = FATE_honoured;
	else if (ret < 0)
		fate = FATE_refused_both_alone;
	else
		fate = reason(bpf_get_current_task_btf(), p);
	__sync_fetch_and_add(&fates[FATE_asked], 1);
	__sync_fetch_and_add(&fates[fate], 1);
	return 0;
}
