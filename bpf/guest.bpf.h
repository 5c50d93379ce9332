/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a guest was doing when it was stopped.
 *
 * On AMD the processor leaves instruction pointer, privilege and MSRs in the
 * VMCB at every exit, where they can be read from any context. On Intel they are
 * in the VMCS, which only the processor reads: there nothing is known but
 * preempted_in_kernel, which KVM works out itself.
 */
#ifndef CORUN_GUEST_BPF_H
#define CORUN_GUEST_BPF_H

#include "state.bpf.h"
#include "svm_types.bpf.h"

#define CORUN_MAX_IMAGES 16
#define CORUN_MAX_RANGES 4096
/* Kernel addresses of x86-64's text mapping begin here (__START_KERNEL_map). */
#define KERNEL_TEXT_MIN 0xffffffff80000000ULL

/* Text from here on, up to the next range's start, is of this region. */
struct symbol_range {
	u32 start;
	u32 region;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CORUN_MAX_IMAGES *CORUN_MAX_RANGES);
	__type(key, u32);
	__type(value, struct symbol_range);
} symbol_ranges SEC(".maps");

/* Ranges of each image; filled by user space, as are the ranges. */
u32 image_ranges[CORUN_MAX_IMAGES];
/* Length of each image's text. */
u32 image_text_len[CORUN_MAX_IMAGES];
/* vCPUs are AMD's: what is said above can be read. */
const volatile bool guest_readable;

/* The region of @rip in the image of the VM in @slot. */
static __noinline u32 region_of(u32 slot, u64 rip)
{
	struct vm_state *s = state_of(slot);
	u32 image = s->image - 1;
	u64 offset = rip - s->text_base;
	u32 low = 0, high, i;

	if (image >= CORUN_MAX_IMAGES)
		return CORUN_REGION_UNKNOWN;
	if (rip < s->text_base || offset >= image_text_len[image])
		return CORUN_REGION_KERNEL;
	high = image_ranges[image];
	/* 2^12 ranges at most. */
	bpf_for(i, 0, 13) {
		u32 middle = low + (high - low) / 2;
		u32 at = image * CORUN_MAX_RANGES + middle;
		struct symbol_range *r;

		if (high - low <= 1)
			break;
		r = bpf_map_lookup_elem(&symbol_ranges, &at);
		if (!r)
			break;
		if (r->start <= offset)
			low = middle;
		else
			high = middle;
	}
	low += image * CORUN_MAX_RANGES;
	struct symbol_range *found = bpf_map_lookup_elem(&symbol_ranges, &low);

	return found ? found->region : CORUN_REGION_UNKNOWN;
}

/* Where vCPU thread @t is in its guest. */
static u32 region_now(struct task_ctx *t)
{
	struct vcpu_svm___corun *svm = (void *)t->kvm_vcpu;
	struct vmcb___corun *vmcb;

	if (!guest_readable || !bpf_core_type_exists(struct vcpu_svm___corun))
		return CORUN_REGION_UNKNOWN;
	vmcb = BPF_CORE_READ(svm, vmcb);
	if (BPF_CORE_READ(vmcb, save.cpl) == 3)
		return CORUN_REGION_USER;
	return region_of(t->slot, BPF_CORE_READ(vmcb, save.rip));
}

/* The instruction pointer of the last exit; 0 where it cannot be read. */
static u64 guest_rip(struct task_ctx *t)
{
	struct vcpu_svm___corun *svm = (void *)t->kvm_vcpu;

	if (!guest_readable || !bpf_core_type_exists(struct vcpu_svm___corun))
		return 0;
	return BPF_CORE_READ(svm, vmcb, save.rip);
}

/* Notes what tells the guest's kernel; user space finds its image by it. */
static void note_kernel(struct task_ctx *t)
{
	struct vcpu_svm___corun *svm = (void *)t->kvm_vcpu;
	struct vm_state *s = state_of(t->slot);
	u64 lstar;

	if (!guest_readable || !bpf_core_type_exists(struct vcpu_svm___corun))
		return;
	lstar = BPF_CORE_READ(svm, vmcb, save.lstar);
	if (lstar < KERNEL_TEXT_MIN || lstar == s->lstar)
		return;
	s->cstar = BPF_CORE_READ(svm, vmcb, save.cstar);
	s->lstar = lstar;
}

#endif /* CORUN_GUEST_BPF_H */
