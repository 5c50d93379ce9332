/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * AMD's registers of a guest in memory, by field name: the processor leaves them
 * in the VMCB at every exit.
 */
#ifndef CORUN_SVM_TYPES_BPF_H
#define CORUN_SVM_TYPES_BPF_H

/* X86_EFLAGS_IF */
#define RFLAGS_IF 0x200

struct vmcb_save_area___corun {
	u8 cpl;
	u64 rflags;
	u64 rip;
	u64 lstar;
	u64 cstar;
} __attribute__((preserve_access_index));

struct vmcb___corun {
	struct vmcb_save_area___corun save;
} __attribute__((preserve_access_index));

struct vcpu_svm___corun {
	struct vmcb___corun *vmcb;
} __attribute__((preserve_access_index));

#endif /* CORUN_SVM_TYPES_BPF_H */
