// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters and latency histograms, per CPU, summed when they are read.
 *
 * A histogram is log-linear: each power of two is cut into 16 equal buckets, so
 * a value is known to 6 %. In /sys/kernel/debug/corun_guest:
 *
 *   counts              "NAME N" per line
 *   latency_kernel      "count N", "sum_ns N", "max_ns N", then
 *   latency_shoot4u     "bucket LOW_NS HIGH_NS N" for each that is not empty
 *   reset               write anything: all counts become zero
 */
#include "shoot4u.h"

#include <linux/debugfs.h>
#include <linux/log2.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#define SUB_BITS 4
#define SUB (1U << SUB_BITS)
/* Values of 2^40 ns (18 minutes) and more share the last bucket. */
#define MAX_BITS 40
#define BUCKETS ((MAX_BITS - SUB_BITS + 1) * SUB)

struct histogram {
	u64 sum_ns;
	u64 max_ns;
	u64 buckets[BUCKETS];
};

struct stats {
	u64 counts[S4U_C_COUNT];
	struct histogram latency[S4U_P_COUNT];
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
};

static unsigned int bucket_of(u64 ns)
{
	unsigned int shift;

	if (ns < SUB)
		return ns;
	if (ns >> MAX_BITS)
		return BUCKETS - 1;
	shift = ilog2(ns) - SUB_BITS;
	return (shift << SUB_BITS) + (ns >> shift);
}

/* Least value of a bucket. */
static u64 low_of(unsigned int bucket)
{
	unsigned int shift = bucket < 2 * SUB ? 0 : (bucket >> SUB_BITS) - 1;

	return (u64)(bucket - (shift << SUB_BITS)) << shift;
}

void s4u_add(enum s4u_count what, u64 n)
{
	this_cpu_add(stats->counts[what], n);
}

void s4u_record(enum s4u_path path, u64 ns)
{
	this_cpu_inc(stats->latency[path].buckets[bucket_of(ns)]);
	this_cpu_add(stats->latency[path].sum_ns, ns);
	/* Two tasks of a CPU may race here; the loss is one maximum. */
	if (ns > this_cpu_read(stats->latency[path].max_ns))
		this_cpu_write(stats->latency[path].max_ns, ns);
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

static void add_up(struct histogram *sum, enum s4u_path path)
{
	unsigned int cpu, i;

	for_each_possible_cpu(cpu) {
		const struct histogram *h =
			&per_cpu_ptr(stats, cpu)->latency[path];

		sum->sum_ns += READ_ONCE(h->sum_ns);
		sum->max_ns = max(sum->max_ns, READ_ONCE(h->max_ns));
		for (i = 0; i < BUCKETS; i++)
			sum->buckets[i] += READ_ONCE(h->buckets[i]);
	}
}

static int latency_show(struct seq_file *out, void *unused)
{
	struct histogram *sum = kzalloc(sizeof(*sum), GFP_KERNEL);
	u64 count = 0;
	unsigned int i;

	if (!sum)
		return -ENOMEM;
	add_up(sum, (long)out->private);
	for (i = 0; i < BUCKETS; i++)
		count += sum->buckets[i];
	seq_printf(out, "count %llu\nsum_ns %llu\nmax_ns %llu\n", count,
		   sum->sum_ns, sum->max_ns);
	for (i = 0; i < BUCKETS; i++)
		if (sum->buckets[i])
			seq_printf(out, "bucket %llu %llu %llu\n", low_of(i),
				   low_of(i + 1), sum->buckets[i]);
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
