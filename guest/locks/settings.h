/* SPDX-License-Identifier: GPL-2.0-only */
/* What a run is to do, from the module's parameters. */
#ifndef CORUN_LOCKS_SETTINGS_H
#define CORUN_LOCKS_SETTINGS_H

#include <linux/cpumask.h>
#include <linux/types.h>

/* Least and most of what can be asked for. */
#define CORUN_MAX_THREADS 1024
#define CORUN_MAX_WORK_NS (1000 * 1000 * 1000)
#define CORUN_MAX_LOOKS (1 << 30)

struct corun_settings {
	/* enum corun_lock_kind. */
	u32 kind;
	u32 threads;
	/* Work with the lock, and between two locks. */
	u32 hold_ns;
	u32 think_ns;
	/* 0: until it is stopped. */
	u32 seconds;
	u32 spin_threshold;
	u32 pmt_timeout;
	bool irqs_off;
	/* Threads are bound to these, round robin. */
	struct cpumask cpus;
};

/*
 * Reads the parameters. 0, or -EINVAL or -EOPNOTSUPP with the reason in @why.
 */
int corun_settings_read(struct corun_settings *set, const char **why);

/* The name of an algorithm, as the parameter takes it. */
const char *corun_settings_name(u32 kind);

#endif /* CORUN_LOCKS_SETTINGS_H */
