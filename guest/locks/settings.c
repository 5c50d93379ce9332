// SPDX-License-Identifier: GPL-2.0-only
/* The module's parameters: writable at any time, read when a run begins. */
#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "kvm.h"
#include "locks.h"
#include "settings.h"

/* Order of enum corun_lock_kind. */
static const char *const names[] = {
	"tas", "ticket", "pv-ticket", "pmt", "broken", "qspinlock",
};

static char *algorithm = "qspinlock";
module_param(algorithm, charp, 0644);
MODULE_PARM_DESC(
	algorithm,
	"tas, ticket, pv-ticket, pmt, qspinlock (the kernel's own), or broken (excludes nobody: shows that the counters notice)");

static char *cpus = "";
module_param(cpus, charp, 0644);
MODULE_PARM_DESC(
	cpus,
	"CPUs to bind threads to, as 0-3,5 (default: all that are online)");

static uint threads;
module_param(threads, uint, 0644);
MODULE_PARM_DESC(
	threads,
	"threads, bound to the CPUs round robin, up to 1024 (0, the default: one for each CPU)");

static uint hold_ns = 1000;
module_param(hold_ns, uint, 0644);
MODULE_PARM_DESC(
	hold_ns,
	"work with the lock, ns of an undisturbed CPU, up to 1000000000 (default 1000)");

static uint think_ns = 1000;
module_param(think_ns, uint, 0644);
MODULE_PARM_DESC(think_ns, "work between two locks, likewise (default 1000)");

static uint seconds = 10;
module_param(seconds, uint, 0644);
MODULE_PARM_DESC(
	seconds,
	"length of a run, up to 86400; 0: until it is stopped (default 10)");

static uint spin_threshold = 8192;
module_param(spin_threshold, uint, 0644);
MODULE_PARM_DESC(
	spin_threshold,
	"looks at a pv-ticket lock before its waiter halts (default 8192)");

static uint pmt_timeout = 2048;
module_param(pmt_timeout, uint, 0644);
MODULE_PARM_DESC(
	pmt_timeout,
	"looks for each waiter ahead before a pmt lock's waiter leaves the line (default 2048)");

static bool irqs_off;
module_param(irqs_off, bool, 0644);
MODULE_PARM_DESC(
	irqs_off,
	"take the lock with interrupts off; a lost wake-up of pv-ticket then stops its CPU for good (default N)");

const char *corun_settings_name(u32 kind)
{
	return names[kind];
}

/* Both strings may be replaced at any time, but for this lock. */
static int read_strings(struct corun_settings *set, const char **why)
{
	int kind, failed = 0;

	kernel_param_lock(THIS_MODULE);
	/* Written by echo, it ends in a newline. */
	kind = sysfs_match_string(names, algorithm);
	if (!*skip_spaces(cpus))
		cpumask_copy(&set->cpus, cpu_online_mask);
	else
		failed = cpulist_parse(cpus, &set->cpus);
	kernel_param_unlock(THIS_MODULE);

	if (kind < 0) {
		*why = "there is no such algorithm: see modinfo -p corun_locks";
		return -EINVAL;
	}
	set->kind = kind;
	cpumask_and(&set->cpus, &set->cpus, cpu_online_mask);
	if (failed || cpumask_empty(&set->cpus)) {
		*why = "cpus: expected a list as 0-3,5 with an online CPU in it";
		return -EINVAL;
	}
	return 0;
}

static const char *check(const struct corun_settings *set)
{
	if (set->threads > CORUN_MAX_THREADS)
		return "threads: at most 1024";
	if (set->hold_ns > CORUN_MAX_WORK_NS ||
	    set->think_ns > CORUN_MAX_WORK_NS)
		return "hold_ns, think_ns: at most 1000000000";
	if (set->seconds > 86400)
		return "seconds: at most 86400";
	if (!set->spin_threshold || set->spin_threshold > CORUN_MAX_LOOKS)
		return "spin_threshold: 1 to 1073741824";
	if (set->pmt_timeout > CORUN_MAX_LOOKS)
		return "pmt_timeout: at most 1073741824";
	return NULL;
}

int corun_settings_read(struct corun_settings *set, const char **why)
{
	int failed = read_strings(set, why);

	if (failed)
		return failed;
	set->threads = READ_ONCE(threads) ?: cpumask_weight(&set->cpus);
	set->hold_ns = READ_ONCE(hold_ns);
	set->think_ns = READ_ONCE(think_ns);
	set->seconds = READ_ONCE(seconds);
	set->spin_threshold = READ_ONCE(spin_threshold);
	set->pmt_timeout = READ_ONCE(pmt_timeout);
	set->irqs_off = READ_ONCE(irqs_off);
	*why = check(set);
	if (*why)
		return -EINVAL;
	if (set->kind == CORUN_LOCK_PV_TICKET)
		*why = corun_kvm_no_kicks();
	return *why ? -EOPNOTSUPP : 0;
}
