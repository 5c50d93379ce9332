// SPDX-License-Identifier: GPL-2.0-only
/*
 * corun_guest: TLB shootdowns by the hypervisor instead of IPIs.
 *
 * A guest of an unmodified KVM host, started with the CPU options that `corun
 * guest options` prints, need not wait for its preempted vCPUs when it changes
 * page tables. Modes, at load or in /sys/module/corun_guest/parameters/mode:
 *
 *   shoot4u  by hypercall
 *   kernel   as the kernel does, for comparison: counted and timed
 *   count    as the kernel does: counted alone
 */
#include "shoot4u.h"

#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

static const char *const mode_names[] = {
	[S4U_KERNEL] = "kernel",
	[S4U_SHOOT4U] = "shoot4u",
	[S4U_COUNT] = "count",
};

static enum s4u_mode wanted = S4U_SHOOT4U;
/* Set between load and unload; the parameters' lock protects it. */
static bool loaded;

static int enter_shoot4u(void)
{
	const char *why = s4u_check_hypervisor();
	int ret;

	if (why) {
		pr_err("mode shoot4u is not possible: %s\n", why);
		return -EOPNOTSUPP;
	}
	ret = s4u_cpus_start();
	if (ret) {
		pr_err("preparing the CPUs failed (%d)\n", ret);
		return ret;
	}
	ret = s4u_identify(true);
	if (ret) {
		pr_err("the hypervisor does not take our identity (%d)\n", ret);
		s4u_cpus_stop();
		return ret;
	}
	WRITE_ONCE(s4u_mode, S4U_SHOOT4U);
	return 0;
}

static void leave_shoot4u(enum s4u_mode next)
{
	WRITE_ONCE(s4u_mode, next);
	/* Hypercalls are made with preemption off: none is under way after this. */
	synchronize_rcu();
	s4u_identify(false);
	s4u_cpus_stop();
}

static int switch_mode(enum s4u_mode next)
{
	if (next == s4u_mode)
		return 0;
	if (next == S4U_SHOOT4U)
		return enter_shoot4u();
	if (s4u_mode == S4U_SHOOT4U)
		leave_shoot4u(next);
	else
		WRITE_ONCE(s4u_mode, next);
	return 0;
}

static int mode_set(const char *text, const struct kernel_param *kp)
{
	int next =
		__sysfs_match_string(mode_names, ARRAY_SIZE(mode_names), text);
	int ret;

	if (next < 0) {
		pr_err("no mode %s: there are shoot4u, kernel and count\n",
		       text);
		return -EINVAL;
	}
	ret = loaded ? switch_mode(next) : 0;
	if (!ret)
		wanted = next;
	return ret;
}

static int mode_get(char *text, const struct kernel_param *kp)
{
	return sysfs_emit(text, "%s\n", mode_names[wanted]);
}

static const struct kernel_param_ops mode_ops = { .set = mode_set,
						  .get = mode_get };

module_param_cb(mode, &mode_ops, NULL, 0644);
MODULE_PARM_DESC(mode, "shoot4u (default), kernel or count");
module_param_named(max_list, s4u_max_list, uint, 0644);
MODULE_PARM_DESC(
	max_list,
	"longest list of addresses to flush one by one (0 to 15, default 15)");

module_param_named(notify_spin, s4u_notify, bool, 0644);
MODULE_PARM_DESC(
	notify_spin,
	"tell the host of waits for preempted vCPUs, in mode shoot4u (default off)");

#ifdef CORUN_TEST
static unsigned int test_garbage;

module_param(test_garbage, uint, 0444);
MODULE_PARM_DESC(test_garbage,
		 "garbage requests to send to the hypervisor at load");
module_param_named(test_drop, s4u_test_drop, bool, 0644);
MODULE_PARM_DESC(test_drop, "BREAKS the guest: remote CPUs are not flushed");
module_param_named(test_symbol, s4u_test_symbol, charp, 0444);
MODULE_PARM_DESC(test_symbol, "the only function to accept as the kernel's");
#endif

static int __init corun_guest_init(void)
{
	int ret = s4u_check_layout();

	if (ret)
		return ret;
	ret = s4u_stats_start();
	if (ret)
		return ret;
	ret = s4u_hook();
	if (ret)
		goto no_hook;
	kernel_param_lock(THIS_MODULE);
	ret = switch_mode(wanted);
	loaded = !ret;
	kernel_param_unlock(THIS_MODULE);
	if (ret)
		goto no_mode;
#ifdef CORUN_TEST
	if (wanted == S4U_SHOOT4U)
		s4u_send_garbage(test_garbage);
#endif
	s4u_yield_start();
	pr_info("loaded, mode %s\n", mode_names[wanted]);
	return 0;

no_mode:
	s4u_unhook();
no_hook:
	s4u_stats_stop();
	return ret;
}

static void __exit corun_guest_exit(void)
{
	s4u_yield_stop();
	/* The hook first: a shootdown in mode shoot4u needs all the rest. */
	s4u_unhook();
	if (s4u_mode == S4U_SHOOT4U)
		leave_shoot4u(S4U_KERNEL);
	s4u_stats_stop();
}

module_init(corun_guest_init);
module_exit(corun_guest_exit);
MODULE_DESCRIPTION(
	"TLB shootdowns by the hypervisor instead of IPIs (Shoot4U on stock KVM)");
MODULE_LICENSE("GPL");
