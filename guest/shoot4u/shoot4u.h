/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * corun_guest: the parts of the module and what they ask of each other.
 *
 *   main.c    modes, parameters, load and unload
 *   check.c   whether this virtual machine is one that the module can serve
 *   layout.c  whether the kernel's private structures are what we think
 *   hook.c    takes the place of the kernel's shootdown function
 *   flush.c   the remote part of a shootdown by hypercall, and its safety rules
 *   cpus.c    per CPU: its number for the hypervisor, and memory for requests
 *   yield.c   tells the host who waits for preempted vCPUs
 *   stats.c   counters, latency histograms, debugfs
 */
#ifndef CORUN_SHOOT4U_H
#define CORUN_SHOOT4U_H

#undef pr_fmt
#define pr_fmt(fmt) "corun_guest: " fmt

#include <linux/cpumask.h>
#include <linux/percpu.h>
#include <linux/types.h>

/* What the module does with a shootdown. */
enum s4u_mode {
	S4U_KERNEL, /* the kernel's own path, counted and timed */
	S4U_SHOOT4U, /* remote CPUs by hypercall, counted and timed */
	S4U_COUNT, /* the kernel's own path, counted alone */
};

/*
 * The kernel's struct flush_tlb_info, which its headers hide from modules.
 * layout.c refuses to load where the running kernel's is different.
 */
struct s4u_info {
	struct mm_struct *mm; /* NULL: all address spaces */
	unsigned long start;
	unsigned long end; /* S4U_ALL: the whole address space */
	u64 new_tlb_gen;
	unsigned int initiating_cpu;
	u8 stride_shift; /* log2 of the size of the pages in the range */
	u8 freed_tables; /* page tables go, not only pages */
};

#define S4U_ALL (~0UL)

/* The kernel's struct tlb_state_shared, of the exported cpu_tlbstate_shared. */
struct s4u_tlb_shared {
	bool is_lazy;
};

/* What the hypervisor must be told of a CPU, and with what. */
struct s4u_cpu {
	u32 vp; /* the hypervisor's number for it, or S4U_NO_VP */
	void *input; /* one page, written with interrupts off */
	u64 banks[64]; /* vCPUs to flush, 64 each; zero between calls */
};

#define S4U_NO_VP (~0U)

/* Counters, in the order in which debugfs shows them. */
enum s4u_count {
	S4U_C_REQUESTS, /* shootdowns */
	S4U_C_HYPERCALLS, /* hypercalls issued */
	S4U_C_TARGETS, /* vCPUs named in them */
	S4U_C_NO_TARGET, /* requests that no other CPU needed */
	S4U_C_SKIPPED_LAZY, /* CPUs left out because they are lazy */
	S4U_C_LIST, /* requests for a list of addresses */
	S4U_C_FULL_RANGE, /* full: the kernel asked, or the range is long */
	S4U_C_FULL_TABLES, /* full: page tables are freed */
	S4U_C_FULL_BATCH, /* full: many address spaces */
	S4U_C_FULL_HUGE, /* full: pages larger than 4 KiB */
	S4U_C_FALLBACK_CPU, /* by IPI: a CPU has no number or memory yet */
	S4U_C_FALLBACK_STATUS, /* by IPI: the hypervisor refused */
	S4U_C_NOTIFIED, /* the host was told of a wait for a preempted vCPU */
	S4U_C_COUNT
};

/* Which path a shootdown took; each has a histogram. */
enum s4u_path { S4U_P_KERNEL, S4U_P_SHOOT4U, S4U_P_COUNT };

/* check.c: NULL, or why mode shoot4u is impossible and what to do about it. */
const char *s4u_check_hypervisor(void);
bool s4u_has_ex(void);

/* layout.c: 0, or an error that has been reported. */
int s4u_check_layout(void);

/* cpus.c */
DECLARE_PER_CPU(struct s4u_cpu, s4u_cpus);
int s4u_cpus_start(void);
void s4u_cpus_stop(void);
int s4u_identify(bool on);

/* flush.c: false when the IPIs of the kernel must do it. Preemption is off. */
bool s4u_flush_remote(const struct cpumask *cpus, const struct s4u_info *info);
extern unsigned int s4u_max_list;
void s4u_notify_spin(void);

/* hook.c */
int s4u_hook(void);
void s4u_unhook(void);
extern enum s4u_mode s4u_mode;

/* yield.c */
void s4u_yield_start(void);
void s4u_yield_stop(void);
extern bool s4u_notify;

/* stats.c */
int s4u_stats_start(void);
void s4u_stats_stop(void);
void s4u_add(enum s4u_count what, u64 n);
void s4u_record(enum s4u_path path, u64 ns);

#ifdef CORUN_TEST
extern bool s4u_test_drop;
extern char *s4u_test_symbol;
void s4u_send_garbage(unsigned int n);
#endif

#endif
