/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sched_ext's flag values, taken from the running kernel's BTF when the program
 * is loaded: they have moved between kernel versions. (scx's own headers expect
 * user space to fill in variables for these.)
 */
#ifndef CORUN_SCX_VALUES_BPF_H
#define CORUN_SCX_VALUES_BPF_H

#undef SCX_DSQ_LOCAL
#undef SCX_ENQ_WAKEUP
#undef SCX_ENQ_PREEMPT
#undef SCX_KICK_IDLE
#undef SCX_KICK_PREEMPT
#undef SCX_TASK_QUEUED

#define SCX_DSQ_LOCAL bpf_core_enum_value(enum scx_dsq_id_flags, SCX_DSQ_LOCAL)
#define SCX_ENQ_WAKEUP bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_WAKEUP)
#define SCX_ENQ_PREEMPT bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_PREEMPT)
#define SCX_KICK_IDLE bpf_core_enum_value(enum scx_kick_flags, SCX_KICK_IDLE)
#define SCX_KICK_PREEMPT                                                       \
	bpf_core_enum_value(enum scx_kick_flags, SCX_KICK_PREEMPT)
#define SCX_TASK_QUEUED bpf_core_enum_value(enum scx_ent_flags, SCX_TASK_QUEUED)

#endif /* CORUN_SCX_VALUES_BPF_H */
