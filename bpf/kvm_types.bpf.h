/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * KVM's types, by field name: KVM is a module, so they come from the module's
 * BTF when a program is loaded.
 */
#ifndef CORUN_KVM_TYPES_BPF_H
#define CORUN_KVM_TYPES_BPF_H

struct kvm_vcpu___corun {
	struct kvm *kvm;
	int vcpu_id;
	bool wants_to_run;
} __attribute__((preserve_access_index));

struct kvm_lapic___corun {
	struct kvm_vcpu___corun *vcpu;
} __attribute__((preserve_access_index));

/*
 * Whether @vcpu is inside KVM_RUN. Ioctls load a vCPU too, on whatever thread
 * the VMM uses. Kernels that do not tell: taken for granted.
 */
static __always_inline bool is_in_kvm_run(struct kvm_vcpu___corun *vcpu)
{
	return !bpf_core_field_exists(vcpu->wants_to_run) ||
	       BPF_CORE_READ(vcpu, wants_to_run);
}

/*
 * The same for a program that has @vcpu as its argument: the verifier knows what it is,
 * and lets it be read without a call.
 */
static __always_inline bool arg_is_in_kvm_run(struct kvm_vcpu___corun *vcpu)
{
	return !bpf_core_field_exists(vcpu->wants_to_run) || vcpu->wants_to_run;
}

#endif /* CORUN_KVM_TYPES_BPF_H */
