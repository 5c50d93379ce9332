/* SPDX-License-Identifier: GPL-2.0-only */
/* What the latency observer keeps: VMs, their vCPUs, and who is whose thread. */
#ifndef CORUN_LATENCY_STATE_BPF_H
#define CORUN_LATENCY_STATE_BPF_H

#include "distribution.bpf.h"

/* VMs and vCPU ids that are observed; those beyond are not. */
#define LATENCY_MAX_VMS 32
#define LATENCY_MAX_VCPUS 64
#define LATENCY_NO_SLOT LATENCY_MAX_VMS

/*
 * X(name): a time. Intervals count when they end. The first four are in the
 * order of enum vcpu_state, by which they are chosen.
 */
#define LATENCIES(X)                                                           \
	X(ipi_to_running) /* sibling's IPI, sent to injected: target ran */    \
	X(ipi_to_preempted) /* ... target was preempted */                     \
	X(ipi_to_queued) /* ... target was woken, but did not run yet */       \
	X(ipi_to_halted) /* ... target slept: in HLT, or in its VMM */         \
	X(wake_to_run) /* vCPU thread woken, to running */                     \
	X(preempted) /* vCPU thread off its pCPU though runnable */            \
	X(preempted_with_ipi) /* ... the part with a sibling's IPI pending */

#define LATENCY_INDEX(name) LATENCY_##name,
enum latency { LATENCIES(LATENCY_INDEX) LATENCY_NR };
#undef LATENCY_INDEX

enum vcpu_state {
	VCPU_RUNNING,
	VCPU_PREEMPTED,
	VCPU_QUEUED,
	VCPU_HALTED,
};

/* A moment and a vCPU's state then, in one word: 4 ns are precise enough. */
#define STAMP_STATE_MASK 3ULL

/* A vCPU. Written by its own pCPU, but for the IPIs, which senders write. */
struct vcpu {
	/* Since when it is in @state, unless that is VCPU_RUNNING. */
	u64 since_ns;
	/* Since when some sibling's IPI has been pending, if any is. */
	u64 pending_since_ns;
	u32 nr_pending;
	u32 state;
	/* By vector, when the oldest IPI not yet injected was sent; 0: none. */
	u64 sent[256];
};

/* A VM; read and set to 0 by user space, which knows it by @tgid. */
struct vm {
	/* Address of KVM's struct kvm; 0: slot is free. */
	u64 kvm;
	/* Process of the VMM. */
	u32 tgid;
	u32 reserved;
	/* Calls of kvm_vcpu_on_spin(): pause exits, Hyper-V long spins. */
	u64 spins;
	/* Directed yields that KVM asked the kernel for, from its vCPUs. */
	u64 yields;
	struct distribution times[LATENCY_NR];
};

/* Whose thread a task is. */
struct thread {
	struct kvm_vcpu___corun *vcpu;
	u64 kvm;
	u32 slot;
	u32 vcpu_id;
};

#define LATENCY_STRING(name) #name,
const char latency_names[LATENCY_NR][32] = { LATENCIES(LATENCY_STRING) };
#undef LATENCY_STRING

struct vm vms[LATENCY_MAX_VMS];
struct vcpu vcpus[LATENCY_MAX_VMS][LATENCY_MAX_VCPUS];
/* VMs that found no slot, vCPUs whose id is too large. */
u64 unobserved;

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

/* struct kvm * -> slot */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LATENCY_MAX_VMS);
	__type(key, u64);
	__type(value, u32);
} slot_by_kvm SEC(".maps");

static __always_inline struct vm *vm_at(u32 slot)
{
	return &vms[slot & (LATENCY_MAX_VMS - 1)];
}

static __always_inline struct vcpu *vcpu_at(u32 slot, u32 vcpu_id)
{
	return &vcpus[slot & (LATENCY_MAX_VMS - 1)]
		     [vcpu_id & (LATENCY_MAX_VCPUS - 1)];
}

static __always_inline void observe(u32 slot, enum latency what, u64 ns)
{
	if (what < LATENCY_NR)
		distribution_add(&vm_at(slot)->times[what], ns);
}

/* What is known of @p if it is a vCPU's thread of a VM that exists. */
static __always_inline struct thread *thread_of(struct task_struct *p)
{
	struct thread *t = bpf_task_storage_get(&threads, p, 0, 0);

	return t && t->kvm && vm_at(t->slot)->kvm == t->kvm ? t : NULL;
}

#endif /* CORUN_LATENCY_STATE_BPF_H */
