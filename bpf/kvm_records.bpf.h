/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records of KVM's tracepoints, by field name. Programs that get the record (tp, not
 * tp_btf or raw_tp) cannot be preempted. Those on the raw tracepoint can, on kernels
 * that call them so; then the kernel skips the program for whatever else runs on
 * that pCPU until it goes on: interrupts of many milliseconds are lost at a time.
 */
#ifndef CORUN_KVM_RECORDS_BPF_H
#define CORUN_KVM_RECORDS_BPF_H

/* What is in a register is not in memory on Intel. */
struct trace_event_raw_kvm_exit___corun {
	unsigned int exit_reason;
	unsigned long guest_rip;
	u32 isa;
} __attribute__((preserve_access_index));

/* Delivery modes of interrupts that are injected by vector. */
#define APIC_MODE_FIXED 0
#define APIC_MODE_LOWEST 0x100

struct trace_event_raw_kvm_apic_accept_irq___corun {
	u32 apicid;
	u16 dm;
	u8 vec;
} __attribute__((preserve_access_index));

struct trace_event_raw_kvm_hypercall___corun {
	unsigned long nr;
	unsigned long a0;
} __attribute__((preserve_access_index));

struct trace_event_raw_kvm_inj_virq___corun {
	unsigned int vector;
	bool soft;
	bool reinjected;
} __attribute__((preserve_access_index));

struct trace_event_raw_kvm_vcpu_wakeup___corun {
	bool waited;
} __attribute__((preserve_access_index));

#endif /* CORUN_KVM_RECORDS_BPF_H */
