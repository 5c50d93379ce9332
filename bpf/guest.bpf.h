/* SPDX-License-Identifier: GPL-2.0-only */
/* What the scheduler knows of a vCPU's guest. */
#ifndef CORUN_GUEST_BPF_H
#define CORUN_GUEST_BPF_H

#include "state.bpf.h"

/* Where vCPU thread @t is in its guest. */
static u32 region_now(struct task_ctx *t)
{
	const struct guest_image *kernel = &state_of(t->slot)->kernel;

	return kernel->image ? region_at(kernel, (void *)t->kvm_vcpu)
			     : CORUN_REGION_UNKNOWN;
}

/* Notes what tells the guest's kernel; user space finds its image by it. */
static void note_kernel(struct task_ctx *t)
{
	struct vm_state *s = state_of(t->slot);

	if (!s->evidence_due)
		return;
	s->evidence_due = 0;
	note_kernel_at(&s->evidence, (void *)t->kvm_vcpu);
}

#endif /* CORUN_GUEST_BPF_H */
