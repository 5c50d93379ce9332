/* SPDX-License-Identifier: GPL-2.0-only */
/* What the recorder keeps: VMs, who is whose thread, and the way out. */
#ifndef CORUN_TRACE_STATE_BPF_H
#define CORUN_TRACE_STATE_BPF_H

/* VMs of one recording, those too that ended; later ones are not recorded. */
#define TRACE_MAX_VMS 1024
#define TRACE_NO_VM (~0U)
/* pCPUs whose drops are counted apart. */
#define TRACE_MAX_CPUS 1024

/* X(name): kinds of records; user space knows an event's kind by this name. */
#define TRACE_KINDS(X)                                                         \
	X(switch_in)                                                           \
	X(switch_out)                                                          \
	X(wake)                                                                \
	X(exit)                                                                \
	X(enter)                                                               \
	X(ipi_send)                                                            \
	X(ipi_take)                                                            \
	X(yield_ask)                                                           \
	X(yield_grant)                                                         \
	X(halt)                                                                \
	X(halt_end)                                                            \
	X(spin)                                                                \
	X(host_in)                                                             \
	X(vcpu_seen) /* no event: argument is thread << 32 | process */

#define TRACE_KIND(name) TRACE_##name,
enum trace_kind { TRACE_KINDS(TRACE_KIND) TRACE_NR_KINDS };
#undef TRACE_KIND
#define TRACE_STRING(name) #name,
const char trace_kinds[TRACE_NR_KINDS][16] = { TRACE_KINDS(TRACE_STRING) };
#undef TRACE_STRING

/* Why a vCPU lost its pCPU: an argument of switch_out (corun-events, `out`). */
enum { OUT_BLOCKED, OUT_PREEMPTED, OUT_YIELDED };

/*
 * Beside the reason and the instruction set in an exit's argument: does the guest take
 * interrupts (corun-events, `flag`)?
 */
#define EXIT_INTERRUPTS_ON (1ULL << 62)
#define EXIT_INTERRUPTS_OFF (1ULL << 63)

/* What goes to user space. */
struct trace_record {
	u64 at_ns;
	u64 arg;
	/* host_in: the first half of the task's name. */
	u64 ip;
	/* host_in: the second half. */
	u32 vm;
	u32 vcpu;
	u32 cpu;
	u32 kind;
};

/* A VM; user space reads all but the first. */
struct trace_vm {
	/* Address of KVM's struct kvm; 0: gone. */
	u64 kvm;
	/* What tells the guest's kernel, where it can be read. */
	u64 lstar;
	u64 halt_rip;
};

/* Whose thread a task is, and what is known of it between two events. */
struct trace_thread {
	struct kvm_vcpu___corun *vcpu;
	u64 kvm;
	/* Instruction pointer of the last exit. */
	u64 ip;
	u32 vm;
	u32 vcpu_id;
	/* 1 + vCPU that was current where it is being woken; 0: none of its VM. */
	u32 waker;
	bool blocked;
	/* A directed yield of it was granted. */
	bool yields;
};

struct trace_vm trace_vms[TRACE_MAX_VMS];
u32 trace_nr_vms;
/* Records that found the ring full, by pCPU. */
u64 trace_drops[TRACE_MAX_CPUS];
/* VMs that found no place. */
u64 trace_unobserved;
/* Nothing is recorded before user space says so. */
bool trace_on;
/* Only VMs of the processes in trace_chosen. */
const volatile bool trace_only_chosen;
/* vCPUs are AMD's: their registers can be read in memory. */
const volatile bool trace_vmcb_readable;

/* Its size is user space's choice. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} trace_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct trace_thread);
} trace_threads SEC(".maps");

/* struct kvm * -> index of trace_vms */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TRACE_MAX_VMS);
	__type(key, u64);
	__type(value, u32);
} trace_vm_by_kvm SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TRACE_MAX_VMS);
	__type(key, u32);
	__type(value, u8);
} trace_chosen SEC(".maps");

static __always_inline struct trace_vm *trace_vm_at(u32 vm)
{
	return &trace_vms[vm & (TRACE_MAX_VMS - 1)];
}

/* What is known of @p if it is a vCPU's thread of a VM that is recorded. */
static __always_inline struct trace_thread *thread_of(struct task_struct *p)
{
	struct trace_thread *t;

	if (!trace_on)
		return NULL;
	t = bpf_task_storage_get(&trace_threads, p, 0, 0);
	return t && t->kvm && trace_vm_at(t->vm)->kvm == t->kvm ? t : NULL;
}

static __always_inline struct trace_thread *current_thread(void)
{
	return thread_of(bpf_get_current_task_btf());
}

/* A record to be filled and submitted; NULL, counted, when the ring is full. */
static __always_inline struct trace_record *record_of(enum trace_kind kind)
{
	u64 now = bpf_ktime_get_ns();
	u32 cpu = bpf_get_smp_processor_id();
	struct trace_record *r;

	r = bpf_ringbuf_reserve(&trace_ring, sizeof(*r), 0);
	if (!r) {
		trace_drops[cpu & (TRACE_MAX_CPUS - 1)]++;
		return NULL;
	}
	r->at_ns = now;
	r->cpu = cpu;
	r->kind = kind;
	return r;
}

/* User space looks by itself every so often: waking it costs more. */
static __always_inline void submit(struct trace_record *r)
{
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

/* Records an event of @t's vCPU. */
static __always_inline void emit(struct trace_thread *t, enum trace_kind kind,
				 u64 arg, u64 ip)
{
	struct trace_record *r = record_of(kind);

	if (!r)
		return;
	r->arg = arg;
	r->ip = ip;
	r->vm = t->vm;
	r->vcpu = t->vcpu_id;
	submit(r);
}

#endif /* CORUN_TRACE_STATE_BPF_H */
