/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the accounts keep: vCPUs, what they sent each other, whose thread is whose.
 * User space maps the table of vCPUs and reads it as it is.
 */
#ifndef CORUN_ACCOUNTS_STATE_BPF_H
#define CORUN_ACCOUNTS_STATE_BPF_H

#include "corun/types.h"
#include "distribution.bpf.h"
#include "guest_kernel.bpf.h"
#include "kvm_records.bpf.h"
#include "kvm_types.bpf.h"

#define NO_SLOT (~0U)

/*
 * X(name): what a vCPU does with its time. At any moment it is in one state, so
 * the times in all of them make up its life. One that lost its pCPU is in
 * ready_other; when that wait ends, the first three get their parts of it.
 */
#define VCPU_STATES(X)                                                         \
	X(run) /* on a pCPU */                                                 \
	X(poll) /* on a pCPU, in halt polling */                               \
	X(ready_other_vm) /* runnable; another VM's vCPU had its pCPU */       \
	X(ready_sibling) /* ... a vCPU of its own VM did */                    \
	X(ready_host_task) /* ... a task of the host's did */                  \
	X(ready_woken) /* ... it was woken, and has not run since */           \
	X(ready_limited) /* ... its cgroup's bandwidth is used up */           \
	X(ready_other) /* ... nobody had its pCPU */                           \
	X(halted) /* asleep: its guest halted it */                            \
	X(blocked) /* asleep otherwise */

/* X(name): what is counted. */
#define VCPU_COUNTS(X)                                                         \
	X(spins) /* kvm_vcpu_on_spin() */                                      \
	X(yields_asked) /* yield_to() */                                       \
	X(yields_honoured) /* ... that the scheduler took */                   \
	X(ipis_sent) /* to siblings */                                         \
	X(ipis_received) /* from siblings, injected */                         \
	X(device_interrupts) /* injected, sent by no vCPU */                   \
	X(preempted_user) /* lost its pCPU, guest in user mode */              \
	X(preempted_kernel) /* ... in kernel mode */                           \
	X(preempted_critical) /* ... in a critical section, by symbols */      \
	X(preempted_outside) /* ... not in KVM */                              \
	X(halts) /* by the guest */                                            \
	X(polls_succeeded) /* halts that polling saw the end of */             \
	X(polls_failed) /* ... and those that it did not */                    \
	X(wakeups) /* of its thread */

/*
 * X(name): what is timed, when it ends. IPIs are in the order of enum
 * target_state, by which they are chosen.
 */
#define VCPU_LATENCIES(X)                                                      \
	X(ipi_to_running) /* sibling's IPI, sent to injected: target ran */    \
	X(ipi_to_preempted) /* ... target was preempted */                     \
	X(ipi_to_queued) /* ... target was woken, but did not run yet */       \
	X(ipi_to_asleep) /* ... target slept: in HLT, or in its VMM */         \
	X(wake_to_run) /* woken, to running */                                 \
	X(preempted) /* off its pCPU though runnable */                        \
	X(preempted_with_ipi) /* ... the part with a sibling's IPI pending */  \
	X(shootdown) /* IPIs to several siblings, until all were taken */

#define STATE_INDEX(name) STATE_##name,
enum vcpu_state { VCPU_STATES(STATE_INDEX) STATE_NR };
#define COUNT_INDEX(name) COUNT_##name,
enum vcpu_count { VCPU_COUNTS(COUNT_INDEX) COUNT_NR };
#define LATENCY_INDEX(name) LATENCY_##name,
enum vcpu_latency { VCPU_LATENCIES(LATENCY_INDEX) LATENCY_NR };

/* Exit reasons: those below, then AMD's from 0x400, then any other. */
#define EXIT_DIRECT 0xc0
#define EXIT_HIGH_FIRST 0x400
#define EXIT_HIGH 0x0f
#define EXIT_OTHER (EXIT_DIRECT + EXIT_HIGH)
#define EXIT_NR (EXIT_OTHER + 1)

/* Who may have a pCPU. */
#define PCPU_OCCUPANTS(X) X(nobody) X(host) X(vcpu)

#define OCCUPANT_INDEX(name) OCCUPANT_##name,
enum pcpu_occupant { PCPU_OCCUPANTS(OCCUPANT_INDEX) OCCUPANT_NR };

/*
 * VMs that a pCPU's clock tells apart, by their number: those that many apart are
 * taken for one. A power of two.
 */
#define CLOCK_VMS 256

/* Who has had a pCPU how long, since the accounts began. Its pCPU writes it. */
struct pcpu_clock {
	/* Odd while it turns. */
	u64 seq;
	/* It shows the times up to here; 0: it does not run yet. */
	u64 since_ns;
	/* Who has the pCPU since then, if a vCPU: of which VM. */
	enum pcpu_occupant occupant;
	u32 vm;
	u64 ns[OCCUPANT_NR];
	/* The vCPUs' time once more, by VM. */
	u64 vm_ns[CLOCK_VMS];
};

/* What such a clock shows to a vCPU. */
struct occupied {
	u64 host_ns;
	/* vCPUs of any VM; of its own VM. */
	u64 vcpu_ns;
	u64 own_vm_ns;
};

/*
 * A vCPU's account. Written by the pCPU that its thread is on, or that wakes it;
 * latencies of shootdowns by siblings' pCPUs.
 */
struct vcpu_account {
	/* Odd while the state and its times change. */
	u64 seq;
	/* Address of KVM's struct kvm; 0: slot is free. */
	u64 kvm;
	/* Number of its VM among those that were found. */
	u64 vm_id;
	/* When it was found; 0: it is being set up. */
	u64 found_ns;
	/* In @state since then. */
	u64 since_ns;
	enum vcpu_state state;
	u32 vcpu_id;
	u32 tgid;
	u32 tid;
	/* In ready_other: the pCPU that it lost, and what its clock showed then. */
	struct occupied at_loss;
	u32 lost_cpu;
	u32 reserved;
	u64 time_ns[STATE_NR];
	u64 counts[COUNT_NR];
	u64 exits[EXIT_NR];
	struct distribution latencies[LATENCY_NR];
};

/* What a target did when it was sent an IPI; fits into a stamp's low bits. */
enum ipi_target_state {
	TARGET_RUNNING,
	TARGET_PREEMPTED,
	TARGET_QUEUED,
	TARGET_ASLEEP,
};

/* A moment and a target's state then, in one word: 4 ns are precise enough. */
#define STAMP_STATE_MASK 3ULL
/* Not sent by a sibling, but by the vCPU itself: its timer, mostly. */
#define STAMP_SELF 1ULL

/* An interrupt that a vCPU has not taken. */
struct pending {
	/* When it was sent, and the target's state; STAMP_SELF; 0: none. */
	u64 stamp;
	/* Who sent it, and in which of its bursts. */
	u32 sender;
	u32 burst;
};

/* What goes on between siblings; not for user space. */
struct vcpu_ipis {
	/* Since when some sibling's IPI has been pending, if any is. */
	u64 pending_since_ns;
	/* IPIs that it sent and that are not all taken: their first one's moment. */
	u64 burst_start_ns;
	u32 nr_pending;
	u32 burst;
	u32 burst_vector;
	u32 burst_sent;
	u32 burst_untaken;
	u32 reserved;
	struct pending by_vector[256];
};

/* Whose thread a task is. */
struct vcpu_thread {
	struct kvm_vcpu___corun *vcpu;
	u64 kvm;
	u32 slot;
	u32 vcpu_id;
	/* Its VM's number. */
	u32 vm;
	/* In kvm_vcpu_halt(), which polled, which still does. */
	bool halting;
	bool polled;
	bool polling;
	/* Preempted, and KVM has not said yet where its guest was. */
	bool unplaced;
};

struct vcpu_key {
	u64 kvm;
	u64 vcpu_id;
};

#define NAME_LEN 24
#define NAME_STRING(name) #name,
const char state_names[STATE_NR][NAME_LEN] = { VCPU_STATES(NAME_STRING) };
const char count_names[COUNT_NR][NAME_LEN] = { VCPU_COUNTS(NAME_STRING) };
const char latency_names[LATENCY_NR][NAME_LEN] = { VCPU_LATENCIES(
	NAME_STRING) };

/* Slots of the tables below; user space sets it, and their sizes. */
const volatile u32 max_vcpus = 1;
/* There are symbols of guests' kernels. */
const volatile bool has_symbols;

/* Slots that are taken. */
u32 slots_taken;
/* vCPUs that found no slot, counted at each look. */
u64 untracked;
/* IPIs that joined one that was pending. */
u64 ipis_joined;
/* VMs found. */
u64 vms_found;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct vcpu_account);
} accounts SEC(".maps");

/* By pCPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct pcpu_clock);
} clocks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct vcpu_ipis);
} ipis SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct vcpu_key);
	__type(value, u32);
} slot_by_vcpu SEC(".maps");

/* struct kvm * -> the VM's number */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, u64);
} vm_ids SEC(".maps");

/*
 * struct kvm * -> what is known of its guest's kernel; empty unless there are symbols.
 * User space reads the one and writes the other.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct guest_evidence);
} guest_evidence SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct guest_image);
} guest_images SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct vcpu_thread);
} threads SEC(".maps");

static __always_inline struct vcpu_account *account_at(u32 slot)
{
	return bpf_map_lookup_elem(&accounts, &slot);
}

static __always_inline struct vcpu_ipis *ipis_at(u32 slot)
{
	return bpf_map_lookup_elem(&ipis, &slot);
}

static __always_inline struct pcpu_clock *clock_at(u32 cpu)
{
	return bpf_map_lookup_elem(&clocks, &cpu);
}

/* What is known of @p; NULL unless it is the thread of a vCPU. */
static __always_inline struct vcpu_thread *thread_of(struct task_struct *p)
{
	struct vcpu_thread *t = bpf_task_storage_get(&threads, p, 0, 0);

	return t && t->kvm ? t : NULL;
}

/* The account of thread @t, whose task is @tid; NULL when that life is over. */
static __always_inline struct vcpu_account *
account_of(const struct vcpu_thread *t, u32 tid)
{
	struct vcpu_account *v = account_at(t->slot);

	return v && v->kvm == t->kvm && v->tid == tid ? v : NULL;
}

static __always_inline void count(struct vcpu_account *v, u32 what)
{
	if (what < COUNT_NR)
		v->counts[what]++;
}

static __always_inline void observe(struct vcpu_account *v, u32 what, u64 ns)
{
	if (what < LATENCY_NR)
		distribution_add(&v->latencies[what], ns);
}

/* The account of @v is being changed, or whole again. */
static __always_inline void turn_over(struct vcpu_account *v)
{
	volatile u64 *seq = &v->seq;

	barrier();
	*seq += 1;
	barrier();
}

/* Between them, @v leaves its state for @state: the time since it entered is that state's. */
static __always_inline void close_state(struct vcpu_account *v, u32 state,
					u64 now)
{
	u32 old = v->state;

	/* Clocks of two pCPUs may differ by a little: time never goes back. */
	if (now < v->since_ns)
		now = v->since_ns;
	if (old < STATE_NR)
		v->time_ns[old] += now - v->since_ns;
	v->since_ns = now;
	v->state = state;
}

/* @v leaves its state for @state. */
static __always_inline void enter(struct vcpu_account *v, u32 state, u64 now)
{
	turn_over(v);
	close_state(v, state, now);
	turn_over(v);
}

#endif /* CORUN_ACCOUNTS_STATE_BPF_H */
