/* SPDX-License-Identifier: GPL-2.0-only */
/* Everything the scheduler keeps: VMs, vCPUs, pCPUs, counters. */
#ifndef CORUN_STATE_BPF_H
#define CORUN_STATE_BPF_H

#include "corun/gang.h"
#include "corun/pool.h"
#include "corun/share.h"
#include "corun/types.h"
#include "corun/urgent.h"
#include "corun/vcpuset.h"
#include "corun/yield.h"
#include "counters.h"
#include "guest_kernel.bpf.h"

/* Slots of VMs; slot 0 is the host: all tasks that belong to no VM. */
#define CORUN_MAX_SLOTS 256
#define CORUN_HOST_SLOT 0
/* pCPUs with state of their own; those beyond get no directed yields. */
#define CORUN_MAX_CPUS 1024
/* One DSQ a slot, ordered by the vtime of the vCPU within its VM. */
#define CORUN_DSQ(slot) (0x1000ULL + (slot))

/* What is known of the VM in a slot; read by user space. */
struct vm_info {
	/* Address of KVM's struct kvm: the VM's identity. 0: slot is free. */
	u64 kvm;
	/* Process of the VMM. */
	u32 tgid;
	/* Counts the VMs that had this slot, so that stale references show. */
	u32 generation;
	/* vCPU threads registered. */
	u32 nr_vcpus;
	/* pCPUs that they may run on, all told, as user space says; 0: not yet known. */
	u32 nr_pcpus;
};

/* What boosts know of the VM in a slot; user space sets the symbols. */
struct vm_state {
	/* vCPUs that wait for a pCPU. */
	struct corun_vcpuset waiting;
	/* Times that a vCPU waited for a preempted sibling, now and a window ago. */
	u64 events;
	u64 events_before;
	u64 used_before_ns;
	/* Its kernel; the evidence is looked at again once a window. */
	u64 evidence_due;
	struct guest_evidence evidence;
	struct guest_image kernel;
	/* End of the turn that began last. */
	u64 turn_end_ns;
	/* When a turn ended and who came next was chosen last, and the VM's slot. */
	u64 chosen_ns;
	u64 chosen_slot;
	/* Thread that runs before its siblings; 0: none. */
	u32 first_pid;
	/* Its vCPUs are started together. */
	u32 coupled;
	/* Not all of its tasks may run on every pCPU. */
	u32 bound;
	u32 reserved;
};

/* What others may know of a vCPU. */
struct vcpu_rec {
	/* It waits for a pCPU since then; 0: it runs, or it sleeps. */
	u64 waits_since_ns;
	/* It is urgent since then; 0: it is not. */
	u64 urgent_ns;
	/* Its last urgent slice began then; 0: there was none. */
	u64 boosted_ns;
	/* Siblings whose IPIs it has not taken. */
	struct corun_vcpuset ipi_from;
	/* Thread; 0: no such vCPU. */
	u32 pid;
	/* It has a pCPU. */
	u32 runs;
	/* Where it was stopped: enum corun_region, and whether in the kernel. */
	u32 region;
	u32 in_kernel;
	/* The pCPU that it is bound to; -1: it has a choice. */
	s32 only_cpu;
	u32 reserved;
};

/* Per task. */
struct task_ctx {
	struct corun_vcpu vcpu;
	/* Its CPU time by the kernel's account when it was charged or began to run. */
	u64 exec_ns;
	/* Address of KVM's struct kvm_vcpu, for vCPU threads. */
	u64 kvm_vcpu;
	/* Set for vCPU threads alone: their VM, its slot, generation and index. */
	u64 kvm;
	u32 slot;
	u32 generation;
	u32 vcpu_id;
	/* Times in a row that its slice's end was put off. */
	u32 deferred;
	/* It slept before it waited for a pCPU. */
	u32 woken;
	/* The VM, or the host, among whose threads its vtime counts. */
	u32 home_slot;
	u32 home_generation;
	/* It has a pCPU. */
	u32 runs;
	/* Slot in whose queue it is, plus 1; 0: in none. */
	u32 queued_in;
	/*
	 * How many pCPUs were looked at for it. (Here, for the verifier follows a
	 * variable that counts turns of a loop through all its values.)
	 */
	u32 looks;
};

/* Per pCPU. */
struct cpu_ctx {
	/* Directed yield: who is to run next here, since when, for how long. */
	u64 hint_made_ns;
	u64 hint_slice_ns;
	/* Who runs: copies that a waking task on another pCPU compares with. */
	struct corun_vcpu running;
	u64 run_start_ns;
	u32 running_slot;
	u32 hint_pid;
	u32 hint_slot;
	/* A preempting kick is on its way; one at a time. */
	u32 kick_pending;
	/* Urgent vCPU that this pCPU was kicked for; 0: none. */
	u32 urgent_pid;
	/* Urgent vCPU that has its short slice here; 0: none. */
	u32 serving_pid;
	/* When its short slice began, and when the last one ended; 0: none. */
	u64 serve_start_ns;
	u64 urgent_end_ns;
	/* Id of the vCPU that runs here, plus 1; 0: no vCPU. */
	u32 running_id;
	/* Thread of the vCPU that was woken from here and waits; 0: of none. */
	u32 woken_pid;
	/* Slot whose gang this pCPU was kicked for, and its leader's end; 0: none. */
	u32 gang_slot;
	u64 gang_end_ns;
	/* Leader's end, for who is about to run here; 0: of no gang. */
	u64 join_end_ns;
	/* End of the vCPU's turn here; 0: it gave way itself. */
	u64 turn_end_ns;
	/*
	 * The vCPU whose turn was interrupted here, its VM and number, when, and what it
	 * has left.
	 */
	u64 turn_left_ns;
	u64 turn_stopped_ns;
	u32 turn_pid;
	u32 turn_slot;
	u32 turn_id;
	/* It was interrupted by a VM with a better claim. */
	u32 turn_lost;
	/* Such a turn is about to go on. */
	u32 turn_goes_on;
	/* When a VM that woke in vain will have a better claim than the turn's; 0: none. */
	u64 cut_end_ns;
	/* End of the slice that a timer enforces; 0: none. */
	u64 enforced_end_ns;
	/* When that timer goes off, which may be before; 0: it is not set. */
	u64 timer_ns;
	/* vtime of the VM that was picked here last, or later. */
	u64 vtime_now_ns;
	/* Slots that had nothing for this pCPU in this dispatch. */
	u64 tried[CORUN_MAX_SLOTS / 64];
};

/* Set by user space before loading, as are the two below. */
const volatile struct corun_tunables tun;
const volatile u32 nr_cpu_ids = 1;
/* enum corun_mechanism: what is on. */
const volatile u32 mechanisms;
/* Last-level cache of each pCPU. */
const volatile u16 llc_of_cpu[CORUN_MAX_CPUS];

#define CORUN_COUNTER_STRING(name) #name,
const char counter_names[CORUN_COUNTER_NR][CORUN_COUNTER_NAME_LEN] = {
	CORUN_COUNTERS(CORUN_COUNTER_STRING)
};

struct corun_vm vms[CORUN_MAX_SLOTS];
struct vm_info vm_infos[CORUN_MAX_SLOTS];
struct vm_state vm_states[CORUN_MAX_SLOTS];
struct cpu_ctx cpus[CORUN_MAX_CPUS];
/* Tasks in each slot's queue (queue.bpf.h). */
u32 nr_queued[CORUN_MAX_SLOTS];
/* Slots ever used: bounds the search. The host's is always one. */
u32 nr_slots = 1;
/* vtime of the VM that was picked last. */
u64 vtime_now_ns;
/* How many pCPUs may serve urgent vCPUs at once. */
struct corun_pool pool;
/*
 * How many do, or were kicked to. Counted anew each window, for a pCPU may go offline
 * in between.
 */
s32 nr_serving;
/* Urgent service since loading; the window's controller takes differences. */
struct corun_pool_window served;

/* vCPUs by slot and id; a map, so that user space does not mirror all of it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CORUN_MAX_SLOTS *CORUN_MAX_VCPUS);
	__type(key, u32);
	__type(value, struct vcpu_rec);
} vcpu_recs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CORUN_COUNTER_NR);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

/* struct kvm * -> slot */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CORUN_MAX_SLOTS);
	__type(key, u64);
	__type(value, u32);
} slot_by_kvm SEC(".maps");

/* Process of a VMM -> slot, for its threads that are no vCPUs. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CORUN_MAX_SLOTS);
	__type(key, u32);
	__type(value, u32);
} slot_by_tgid SEC(".maps");

static __always_inline void count(u32 counter)
{
	u64 *value = bpf_map_lookup_elem(&counters, &counter);

	if (value)
		(*value)++;
}

static __always_inline struct task_ctx *task_ctx_of(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, 0, 0);
}

static __always_inline struct corun_vm *vm_of(u32 slot)
{
	return &vms[slot & (CORUN_MAX_SLOTS - 1)];
}

static __always_inline struct vm_info *info_of(u32 slot)
{
	return &vm_infos[slot & (CORUN_MAX_SLOTS - 1)];
}

/* How many pCPUs there are for the VM in @slot, or the host. */
static __always_inline u32 pcpus_of(u32 slot)
{
	u32 pcpus = info_of(slot)->nr_pcpus;

	return pcpus && pcpus < nr_cpu_ids ? pcpus : nr_cpu_ids;
}

static __always_inline struct cpu_ctx *cpu_ctx_of(s32 cpu)
{
	if (cpu < 0 || cpu >= CORUN_MAX_CPUS)
		return NULL;
	return &cpus[cpu & (CORUN_MAX_CPUS - 1)];
}

static __always_inline void count_by(u32 counter, u64 by)
{
	u64 *value = bpf_map_lookup_elem(&counters, &counter);

	if (value)
		*value += by;
}

static __always_inline struct vm_state *state_of(u32 slot)
{
	return &vm_states[slot & (CORUN_MAX_SLOTS - 1)];
}

/* What is known of vCPU @id of the VM in @slot; NULL beyond the table. */
static __always_inline struct vcpu_rec *rec_of(u32 slot, u32 id)
{
	u32 at = slot * CORUN_MAX_VCPUS + id;

	if (slot == CORUN_HOST_SLOT || id >= CORUN_MAX_VCPUS)
		return NULL;
	return bpf_map_lookup_elem(&vcpu_recs, &at);
}

static __always_inline bool has(u32 mechanism)
{
	return mechanisms & mechanism;
}

/*
 * The tunables as the pure policy takes them: without volatile. The barrier
 * keeps the compiler from folding in the zeros that stand here before loading.
 */
static __always_inline const struct corun_tunables *tunables(void)
{
	const struct corun_tunables *t = (const struct corun_tunables *)&tun;

	barrier_var(t);
	return t;
}

/*
 * Time from @since_ns to @now_ns, 0 when that is earlier. scx_bpf_now() is the
 * clock of the pCPU that asks, and not always of the one where a task runs: who
 * changes a running task's affinity stops it from afar, and may be behind.
 */
static __always_inline u64 elapsed_ns(u64 since_ns, u64 now_ns)
{
	return (s64)(now_ns - since_ns) > 0 ? now_ns - since_ns : 0;
}

/* True while a registered vCPU's VM is the one that it registered with. */
static __always_inline bool is_vcpu(const struct task_ctx *t)
{
	return t->kvm && info_of(t->slot)->generation == t->generation;
}

#endif /* CORUN_STATE_BPF_H */
