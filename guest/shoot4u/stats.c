// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters and latency histograms, per CPU, summed when they are read. In
 * /sys/kernel/debug/corun_guest:
 *
 *   counts              "NAME N" per line
 *   latency_kernel      "count N", "sum_ns N", "max_ns N", then
 *   latency_shoot4u     "bucket LOW_NS HIGH_NS N" for each that is not empty
 *   reset               write anything: all counts become zero
 */
#include "shoot4u.h"
#include "../histogram.h"

#include <linux/debugfs.h>
#include <linux/irqflags.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

struct stats {
	u64 counts[S4U_C_COUNT];
	struct corun_hist latency[S4U_P_COUNT]; /* ns */
};

static struct stats __percpu *stats;
static struct dentry *dir;

static const char *const names[S4U_C_COUNT] = {
	[S4U_C_REQUESTS] = "requests",
	[S4U_C_HYPERCALLS] = "hypercalls",
	[S4U_C_TARGETS] = "targets",
	[S4U_C_NO_TARGET] = "no_target",
	[S4U_C_SKIPPED_LAZY] = "skipped_lazy",
	[S4U_C_LIST] = "list",
	[S4U_C_FULL_RANGE] = "full_range",
	[S4U_C_FULL_TABLES] = "full_tables",
	[S4U_C_FULL_BATCH] = "full_batch",
	[S4U_C_FULL_HUGE] = "full_huge",
	[S4U_C_FALLBACK_CPU] = "fallback_cpu",
	[S4U_C_FALLBACK_STATUS] = "fallback_status",
	[S4U_C_NOTIFIED] = "notified",
};

void s4u_add(enum s4u_count what, u64 n)
{
	this_cpu_add(stats->counts[what], n);
}

/* Interrupts are off, so that this CPU's histogram has one writer. */
void s4u_record(enum s4u_path path, u64 ns)
{
	unsigned long flags;

	local_irq_save(flags);
	corun_hist_add(&this_cpu_ptr(stats)->latency[path], ns);
	local_irq_restore(flags);
}

static int counts_show(struct seq_file *out, void *unused)
{
	unsigned int cpu, i;

	for (i = 0; i < S4U_C_COUNT; i++) {
		u64 n = 0;

		for_each_possible_cpu(cpu)
			n += READ_ONCE(per_cpu_ptr(stats, cpu)->counts[i]);
		seq_printf(out, "%s %llu\n", names[i], n);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counts);

static int latency_show(struct seq_file *out, void *unused)
{
	struct corun_hist *sum = kzalloc(sizeof(*sum), GFP_KERNEL);
	long path = (long)out->private;
	unsigned int cpu;
	u32 i;

	if (!sum)
		return -ENOMEM;
	for_each_possible_cpu(cpu)
		corun_hist_merge(sum, &per_cpu_ptr(stats, cpu)->latency[path]);
	seq_printf(out, "count %llu\nsum_ns %llu\nmax_ns %llu\n", sum->count,
		   sum->sum, sum->max);
	for (i = 0; i < CORUN_HIST_BUCKETS; i++)
		if (sum->buckets[i])
			seq_printf(out, "bucket %llu %llu %llu\n",
				   corun_hist_lower(i), corun_hist_lower(i + 1),
				   sum->buckets[i]);
	kfree(sum);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(latency);

static ssize_t reset_write(struct file *file, const char __user *text,
			   size_t size, loff_t *at)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(stats, cpu), 0, sizeof(struct stats));
	return size;
}

static const struct file_operations reset_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = reset_write,
};

int s4u_stats_start(void)
{
	stats = alloc_percpu(struct stats);
	if (!stats)
		return -ENOMEM;
	/* Without debugfs the module works, unseen. */
	dir = debugfs_create_dir("corun_guest", NULL);
	debugfs_create_file("counts", 0444, dir, NULL, &counts_fops);
	debugfs_create_file("latency_kernel", 0444, dir, (void *)S4U_P_KERNEL,
			    &latency_fops);
	debugfs_create_file("latency_shoot4u", 0444, dir, (void *)S4U_P_SHOOT4U,
			    &latency_fops);
	debugfs_create_file("reset", 0200, dir, NULL, &reset_fops);
	return 0;
}

void s4u_stats_stop(void)
{
	debugfs_remove_recursive(dir);
	free_percpu(stats);
}
