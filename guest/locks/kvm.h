/* SPDX-License-Identifier: GPL-2.0-only */
/* What the hypervisor offers to waiting locks. */
#ifndef CORUN_LOCKS_KVM_H
#define CORUN_LOCKS_KVM_H

#include <linux/types.h>

/* NULL: halts can be ended by kicks. Else why not, and what to do about it. */
const char *corun_kvm_no_kicks(void);

/* Kicks that the hypervisor refused since the last corun_kvm_forget(). */
u64 corun_kvm_failed_kicks(void);
void corun_kvm_forget(void);

#endif /* CORUN_LOCKS_KVM_H */
