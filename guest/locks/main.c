// SPDX-License-Identifier: GPL-2.0-only
/*
 * corun_locks: lock algorithms for virtual CPUs that may be preempted, and a
 * benchmark of them, in /sys/kernel/debug/corun_locks:
 *
 *   control		write "run" (until the end or a signal), "start" or "stop"
 *   result		the run that is going on, or the last one
 *   result.json	the same for programs, with the histogram of waits
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "bench.h"
#include "report.h"

static struct dentry *folder;

static int obey(const char *word)
{
	int error;

	if (sysfs_streq(word, "stop")) {
		corun_bench_stop();
		return 0;
	}
	if (sysfs_streq(word, "start"))
		return corun_bench_start();
	if (!sysfs_streq(word, "run"))
		return -EINVAL;
	error = corun_bench_start();
	return error ?: corun_bench_wait();
}

static ssize_t control_write(struct file *file, const char __user *from,
			     size_t count, loff_t *pos)
{
	char word[8] = "";
	int error;

	if (count >= sizeof(word))
		return -EINVAL;
	if (copy_from_user(word, from, count))
		return -EFAULT;
	error = obey(word);
	return error ?: count;
}

static const struct file_operations control_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = control_write,
	.llseek = noop_llseek,
};

static int result_show(struct seq_file *m, void *unused)
{
	const struct corun_bench *bench = corun_bench_get();

	corun_report_text(m, bench, corun_bench_refusal());
	corun_bench_put();
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(result);

static int result_json_show(struct seq_file *m, void *unused)
{
	const struct corun_bench *bench = corun_bench_get();

	corun_report_json(m, bench, corun_bench_refusal());
	corun_bench_put();
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(result_json);

static int __init corun_locks_init(void)
{
	folder = debugfs_create_dir("corun_locks", NULL);
	if (IS_ERR(folder)) {
		pr_err("no debugfs, and so no way to use this module: a kernel with CONFIG_DEBUG_FS is needed\n");
		return PTR_ERR(folder);
	}
	debugfs_create_file("control", 0200, folder, NULL, &control_fops);
	debugfs_create_file("result", 0400, folder, NULL, &result_fops);
	debugfs_create_file("result.json", 0400, folder, NULL,
			    &result_json_fops);
	return 0;
}

static void __exit corun_locks_exit(void)
{
	/* No new run can be asked for once the files are gone. */
	debugfs_remove(folder);
	corun_bench_exit();
}

module_init(corun_locks_init);
module_exit(corun_locks_exit);
MODULE_DESCRIPTION("Lock algorithms for virtual CPUs, and a benchmark of them");
MODULE_LICENSE("GPL");
