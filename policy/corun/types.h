/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Types of the policy: what a VM, a vCPU and a host are to a decision.
 *
 * Every header of this folder is pure: explicit state in, decision out. No
 * maps, kfuncs, globals, floating point, allocation or clocks. The same text is
 * compiled into the BPF scheduler, the simulator and the native unit tests.
 *
 * "vtime" is CPU time divided by weight, in nanoseconds at the default weight
 * (CORUN_WEIGHT_DEFAULT). It wraps; compare it with corun_before() alone.
 */
#ifndef CORUN_TYPES_H
#define CORUN_TYPES_H

#ifdef __bpf__
/* vmlinux.h, included before, has the fixed-width types. */
#else
#include <stdbool.h>
#include <stdint.h>
typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
#endif

#define CORUN_INLINE static inline __attribute__((always_inline))

/*
 * Hides what is known of @x from the compiler, so that it keeps a mask on an
 * index that BPF's verifier, which knows less, wants to see.
 */
#ifdef __bpf__
#define CORUN_OPAQUE(x) asm volatile("" : "+r"(x))
#else
#define CORUN_OPAQUE(x) ((void)(x))
#endif

/* cgroup v2's cpu.weight: range and default (kernel: CGROUP_WEIGHT_*). */
#define CORUN_WEIGHT_MIN 1
#define CORUN_WEIGHT_DEFAULT 100
#define CORUN_WEIGHT_MAX 10000

/*
 * Tunables. All times are nanoseconds of the host's clock. In the lab each is
 * multiplied by the time scale before it gets here.
 */
struct corun_tunables {
	/*
	 * Longest time that a task runs before others are considered.
	 * Default 3 ms, range 100 us to 1 s: EEVDF's base slice on an 8-CPU host
	 * is 2.8 ms, and an A/B comparison wants equal slices.
	 */
	u64 slice_ns;
	/*
	 * A waking task preempts a running one only when it is behind by more
	 * than this, in vtime. Default 1 ms, range 0 to slice_ns: lower switches
	 * more often for less wake-up latency.
	 */
	u64 wakeup_gran_ns;
	/*
	 * How many pCPUs are looked at for one that gives way to a waking task or an
	 * urgent vCPU, from the one where it was on. Default 32, range 1 to 1024: on
	 * larger hosts each look is a line of another pCPU's cache. In the simulator 4
	 * do as well as all of 128.
	 */
	u64 cpu_looks;
	/*
	 * How far behind the running ones a vCPU that slept may start; a VM, so
	 * far for each pCPU that it can use. Default slice_ns, range 0 to 1 s: the
	 * credit of a sleeper, and so the most that halting can win over burning.
	 */
	u64 sleeper_credit_ns;
	/*
	 * A directed-yield hint older than this is ignored: what the spinner
	 * waited for has passed. Default 2 * slice_ns.
	 */
	u64 hint_max_age_ns;
	/*
	 * Shortest slice of a vCPU that runs on a spinner's donated time. Default
	 * 100 us (the micro-slice of the micro-sliced cores paper), range 0 to
	 * slice_ns.
	 */
	u64 yield_min_slice_ns;
	/*
	 * Slice of a vCPU that others wait for (urgent.h). Default 100 us, range
	 * 10 us to slice_ns: the micro-slice of seed 004, long enough to take an
	 * interrupt or leave a critical section, short enough that who gives way
	 * finds its caches warm.
	 */
	u64 urgent_slice_ns;
	/*
	 * Least time between two urgent slices on one pCPU, and between two of
	 * one vCPU. Default 200 us, range 0 to 1 s: urgent slices take at most a
	 * third of any pCPU, whatever guests do.
	 */
	u64 urgent_gap_ns;
	/*
	 * How far ahead of the VM that gives way a VM may be, in vtime, and still
	 * be boosted. Default 2 * slice_ns, range 0 to 1 s. All boosted time is
	 * charged, so this is the VM's whole budget: who boosts itself without end
	 * is this far ahead once, and at its fair share from then on.
	 */
	u64 boost_debt_ns;
	/*
	 * Charged for each boost on top of the time that it ran: two switches and
	 * the cold caches of the one that gave way. Default 10 us (switches of
	 * 1 to 3 us, caches the rest), range 0 to 1 ms.
	 */
	u64 boost_cost_ns;
	/*
	 * A vCPU caught inside a critical section at its slice's end runs on for
	 * this long. Default 50 us, range 0 (never) to 1 ms: spinlocks are held for
	 * some 1 to 15 us.
	 */
	u64 defer_ns;
	/* ... and so many times in a row. Default 2, range 0 to 8. */
	u64 defer_max;
	/* How often the pool's size and VMs' coupling are looked at: 10 ms. */
	u64 window_ns;
	/*
	 * A VM is coupled, and its vCPUs are started together, when one of them
	 * waits for a preempted sibling at least once in this much CPU time.
	 * Default 2 ms, range 10 us to 1 s: with less, all of a slice is likely to
	 * have such a wait in it.
	 */
	u64 gang_event_gap_ns;
	/*
	 * What runs elsewhere gives way to the sibling of a coupled VM's vCPU only
	 * after this. Default 1 ms, range 0 to slice_ns.
	 */
	u64 gang_min_run_ns;
	/*
	 * 1: the host is not told of vCPUs that spin (no PLE), so that nobody knows
	 * which VMs are coupled, and the turns of all are aligned. Default 0.
	 */
	u64 gang_blind;
};

/* What may be switched on and off by itself. Bits; names in corun-policy. */
enum corun_mechanism {
	/* Directed yields are honoured (Debooster). */
	CORUN_MECHANISM_YIELD = 1,
	/* Whom a spinner yields to is chosen here (Strict Boost). */
	CORUN_MECHANISM_STRICT = 2,
	/* Who is sent an IPI while preempted runs before its siblings. */
	CORUN_MECHANISM_IPI = 4,
	/* The same for interrupts of devices. */
	CORUN_MECHANISM_IO = 8,
	/* Urgent vCPUs get short slices at once, in place of other VMs' vCPUs. */
	CORUN_MECHANISM_MICRO = 16,
	/* Guest symbols tell critical sections: choice of targets, deferral. */
	CORUN_MECHANISM_SYMBOLS = 32,
	/* vCPUs of coupled VMs are started together. */
	CORUN_MECHANISM_GANG = 64,
	/* Halt polling follows contention (by user space). */
	CORUN_MECHANISM_HALT = 128,
};

/* A scheduling party: one VM, or (slot 0) all tasks that belong to no VM. */
struct corun_vm {
	/* CPU time used over weight; the VM with the least runs next. */
	u64 vtime_ns;
	/* CPU time used, for reports. */
	u64 used_ns;
	/* vtime of the vCPU that was picked last; where a sleeper starts. */
	u64 vcpu_vtime_now_ns;
	/* CORUN_WEIGHT_MIN to CORUN_WEIGHT_MAX. */
	u32 weight;
	/* Padding that both sides of the FFI know of. */
	u32 reserved;
};

/* One vCPU, or another thread of the host. */
struct corun_vcpu {
	/* CPU time used over weight, within its VM. */
	u64 vtime_ns;
	/* CPU time used, for reports. */
	u64 used_ns;
	/* Weight within its VM: nice levels of host tasks; vCPUs have the default. */
	u32 weight;
	u32 reserved;
};

/* True when vtime @a is before vtime @b, also across a wrap. */
CORUN_INLINE bool corun_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* The later of two vtimes. */
CORUN_INLINE u64 corun_later(u64 a, u64 b)
{
	return corun_before(a, b) ? b : a;
}

#endif /* CORUN_TYPES_H */
