/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a guest was doing when it was stopped, by its kernel's symbols.
 *
 * On AMD the processor leaves instruction pointer, privilege and MSRs in the
 * VMCB at every exit, where they can be read from any context. On Intel they are
 * in the VMCS, which only the processor reads: there nothing is known but
 * preempted_in_kernel, which KVM works out itself.
 */
#ifndef CORUN_GUEST_KERNEL_BPF_H
#define CORUN_GUEST_KERNEL_BPF_H

#include "corun/region.h"
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

/*
 * What tells the kernel that a guest runs: MSR_LSTAR and MSR_CSTAR of its vCPUs, and the
 * instruction pointer of the last halt.
 */
struct guest_evidence {
	u64 lstar;
	u64 cstar;
	u64 halt_rip;
};

/* What user space made of it: where the kernel's text begins, and its symbols. */
struct guest_image {
	u64 text_base;
	/* From 1; 0: not known. */
	u32 image;
	u32 reserved;
};

/* The region of @rip in the kernel @of. */
static __noinline u32 region_of(const struct guest_image *of, u64 rip)
{
	u32 image = of->image - 1;
	u64 base = of->text_base;
	u64 offset = rip - base;
	u32 low = 0, high, i;
	struct symbol_range *found;

	if (image >= CORUN_MAX_IMAGES)
		return CORUN_REGION_UNKNOWN;
	if (rip < base || offset >= image_text_len[image])
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
	found = bpf_map_lookup_elem(&symbol_ranges, &low);
	return found ? found->region : CORUN_REGION_UNKNOWN;
}

/* True when the guest's registers of KVM's @svm can be read. */
static __always_inline bool svm_is_readable(void)
{
	return guest_readable && bpf_core_type_exists(struct vcpu_svm___corun);
}

/* Where the vCPU @svm, which runs the kernel @of, is in its guest. */
static __always_inline u32 region_at(const struct guest_image *of,
				     struct vcpu_svm___corun *svm)
{
	struct vmcb___corun *vmcb;

	if (!svm_is_readable())
		return CORUN_REGION_UNKNOWN;
	vmcb = BPF_CORE_READ(svm, vmcb);
	if (BPF_CORE_READ(vmcb, save.cpl) == 3)
		return CORUN_REGION_USER;
	return region_of(of, BPF_CORE_READ(vmcb, save.rip));
}

/* The instruction pointer of the last exit of @svm; 0 where it cannot be read. */
static __always_inline u64 rip_at(struct vcpu_svm___corun *svm)
{
	return svm_is_readable() ? BPF_CORE_READ(svm, vmcb, save.rip) : 0;
}

/* Notes what tells the kernel that the vCPU @svm runs. */
static __always_inline void note_kernel_at(struct guest_evidence *kernel,
					   struct vcpu_svm___corun *svm)
{
	u64 lstar;

	if (!svm_is_readable())
		return;
	lstar = BPF_CORE_READ(svm, vmcb, save.lstar);
	if (lstar < KERNEL_TEXT_MIN || lstar == kernel->lstar)
		return;
	kernel->cstar = BPF_CORE_READ(svm, vmcb, save.cstar);
	kernel->lstar = lstar;
}

struct kvm_vcpu_arch___rip {
	unsigned long rip;
} __attribute__((preserve_access_index));

struct kvm_vcpu___rip {
	struct kvm_vcpu_arch___rip arch;
} __attribute__((preserve_access_index));

/*
 * Notes where a vCPU's guest halts: evidence of which kernel it is. KVM has stepped
 * over the HLT, so the pointer is in its memory (in a register array in older
 * kernels, where the VMCB still points at the HLT).
 */
static __always_inline void note_halt_at(struct guest_evidence *kernel,
					 void *kvm_vcpu)
{
	struct kvm_vcpu___rip *vcpu = kvm_vcpu;

	if (bpf_core_field_exists(vcpu->arch.rip))
		kernel->halt_rip = BPF_CORE_READ(vcpu, arch.rip);
	else
		kernel->halt_rip = rip_at(kvm_vcpu);
}

#endif /* CORUN_GUEST_KERNEL_BPF_H */
