/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CORUN_INTERRUPT_BPF_H
#define CORUN_INTERRUPT_BPF_H

#include <bpf_experimental.h>

/*
 * True in interrupts and softirqs (include/linux/preempt.h): the current thread
 * has nothing to do with what happens. False where the count cannot be read.
 */
static __always_inline bool in_interrupt(void)
{
	return get_preempt_count() & 0x00ff0100;
}

#endif /* CORUN_INTERRUPT_BPF_H */
