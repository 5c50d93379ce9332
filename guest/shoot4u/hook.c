// SPDX-License-Identifier: GPL-2.0-only
/*
 * Takes the place of the kernel's function for remote shootdowns, by ftrace, in
 * the way of live patches: its entry is redirected to ours, which calls it for
 * what it does not do itself.
 *
 * Unloading is safe under load: unregistering waits until every task that was
 * in our function has left it (RCU tasks; nothing in there sleeps).
 */
#include "shoot4u.h"

#include <asm/paravirt.h>
#include <linux/ftrace.h>
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/timekeeping.h>

typedef void (*flush_fn)(const struct cpumask *cpus,
			 const struct s4u_info *info);

enum s4u_mode s4u_mode = S4U_KERNEL;

static flush_fn original;

#ifdef CORUN_TEST
/* Leaves remote CPUs with their stale translations. */
bool s4u_test_drop;
/* Pretends that this is the name of the function that we must find. */
char *s4u_test_symbol;

static bool remote_done(const struct cpumask *cpus, const struct s4u_info *info)
{
	return READ_ONCE(s4u_test_drop) || s4u_flush_remote(cpus, info);
}
#else
#define remote_done s4u_flush_remote
#endif

/*
 * redirect() tells our calls of the original from the kernel's by the address that
 * they return to, so it must be an address in this module. What follows the call
 * keeps the compiler from turning it into a jump.
 */
static noinline void call_original(const struct cpumask *cpus,
				   const struct s4u_info *info)
{
	original(cpus, info);
	barrier();
}

/* Returns false when nothing was flushed at all. */
static bool shoot(const struct cpumask *cpus, const struct s4u_info *info)
{
	unsigned int self;
	bool done;

	preempt_disable();
	done = READ_ONCE(s4u_mode) == S4U_SHOOT4U && remote_done(cpus, info);
	if (done) {
		self = smp_processor_id();
		call_original(cpumask_test_cpu(self, cpus) ? cpumask_of(self)
							   : cpu_none_mask,
			      info);
	}
	preempt_enable();
	return done;
}

static void flush_tlb_multi_hooked(const struct cpumask *cpus,
				   const struct s4u_info *info)
{
	enum s4u_mode mode = READ_ONCE(s4u_mode);
	enum s4u_path path = S4U_P_SHOOT4U;
	u64 begin;

	s4u_add(S4U_C_REQUESTS, 1);
	if (mode == S4U_COUNT) {
		call_original(cpus, info);
		return;
	}
	begin = ktime_get_mono_fast_ns();
	if (mode != S4U_SHOOT4U || !shoot(cpus, info)) {
		path = S4U_P_KERNEL;
		call_original(cpus, info);
	}
	s4u_record(path, ktime_get_mono_fast_ns() - begin);
}

static void notrace redirect(unsigned long ip, unsigned long parent_ip,
			     struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	int bit = ftrace_test_recursion_trylock(ip, parent_ip);

	if (bit < 0)
		return;
	/* Our own call of the original must reach it. */
	if (!within_module(parent_ip, THIS_MODULE))
		ftrace_regs_set_instruction_pointer(
			fregs, (unsigned long)flush_tlb_multi_hooked);
	ftrace_test_recursion_unlock(bit);
}

static struct ftrace_ops ops = {
	.func = redirect,
	.flags = FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT
#ifndef CONFIG_HAVE_DYNAMIC_FTRACE_WITH_ARGS
		 | FTRACE_OPS_FL_SAVE_REGS
#endif
	,
};

static bool is_expected(const char *name)
{
#ifdef CORUN_TEST
	if (s4u_test_symbol)
		return !strcmp(name, s4u_test_symbol);
#endif
	return !strcmp(name, "native_flush_tlb_multi") ||
	       !strcmp(name, "kvm_flush_tlb_multi");
}

int s4u_hook(void)
{
	unsigned long target = (unsigned long)pv_ops.mmu.flush_tlb_multi;
	char name[KSYM_SYMBOL_LEN];
	int ret;

	sprint_symbol_no_offset(name, target);
	if (!is_expected(name)) {
		pr_err("this kernel shoots down by %s, which is not a function that is known to be replaceable: do not load the module on this kernel, and report it\n",
		       name);
		return -EOPNOTSUPP;
	}
	original = (flush_fn)target;
	ret = ftrace_set_filter_ip(&ops, target, 0, 0);
	if (!ret)
		ret = register_ftrace_function(&ops);
	if (ret)
		pr_err("%s cannot be hooked (%d): enable kernel.ftrace_enabled, and unload live patches of that function\n",
		       name, ret);
	return ret;
}

void s4u_unhook(void)
{
	unregister_ftrace_function(&ops);
	ftrace_free_filter(&ops);
}
