/* SPDX-License-Identifier: GPL-2.0-only */
/* What the scheduler knows of a vCPU's guest. */
#ifndef CORUN_GUEST_BPF_H
#define CORUN_GUEST_BPF_H

#include "state.bpf.h"

/* Where vCPU thread @t is in its guest. */
static u32 region_now(struct task_ctx *t)
{
	return region_at(&state_of(t->slot)->kernel, (void *)t->kvm_vcpu);
}

/* Notes what tells the guest's kernel; user space finds its image by it. */
static void note_kernel(struct task_ctx *t)
{
	note_kernel_at(&state_of(t->slot)->evidence, (void *)t->kvm_vcpu);
}

#endif /* CORUN_GUEST_BPF_H */
