/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs on fentry can be preempted, and until one goes on the kernel skips it for
 * whoever else comes to it on that pCPU. What must not be missed, such as the end of a
 * VM, is done without being preempted.
 */
#ifndef CORUN_PREEMPT_BPF_H
#define CORUN_PREEMPT_BPF_H

#include <bpf_experimental.h>

static __always_inline void keep_pcpu(void)
{
	if (bpf_ksym_exists(bpf_preempt_disable))
		bpf_preempt_disable();
}

static __always_inline void may_lose_pcpu(void)
{
	if (bpf_ksym_exists(bpf_preempt_disable))
		bpf_preempt_enable();
}

#endif /* CORUN_PREEMPT_BPF_H */
