// SPDX-License-Identifier: GPL-2.0-only
/*
 * A run's results. They can be read while it goes on: each figure is right then,
 * but they are of slightly different moments.
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "bench.h"
#include "fairness.h"
#include "kvm.h"
#include "report.h"

/* Sums over the threads of a run. */
struct totals {
	u64 elapsed_ns;
	u64 acquisitions;
	u64 overlaps;
	/* Increments under the lock that got lost; known at the end alone. */
	u64 lost_updates;
	u32 jain_permille;
	struct corun_fairness fairness;
	struct corun_lock_stats stats;
	struct corun_hist wait;
};

static bool ended(const struct corun_bench *b)
{
	return b->end_ns;
}

static u32 jain(const struct corun_bench *b, const struct corun_fairness *f)
{
	u32 shift = corun_fairness_shift(f);
	u64 sum = 0, squares = 0;
	u32 i;

	for (i = 0; i < b->set.threads; i++) {
		u64 x = READ_ONCE(b->threads[i].acquisitions) >> shift;

		sum += x;
		squares += x * x;
	}
	return corun_fairness_jain(sum, squares, b->set.threads);
}

static void add_up(const struct corun_bench *b, struct totals *t)
{
	u32 i;

	for (i = 0; i < b->set.threads; i++) {
		const struct corun_bench_thread *th = &b->threads[i];

		corun_fairness_add(&t->fairness, READ_ONCE(th->acquisitions));
		corun_hist_merge(&t->wait, &th->wait);
		t->stats.halts += th->stats.halts;
		t->stats.kicks += th->stats.kicks;
		t->stats.kicks_vain += th->stats.kicks_vain;
		t->stats.timeouts += th->stats.timeouts;
	}
	t->acquisitions = t->fairness.sum;
	t->jain_permille = jain(b, &t->fairness);
	t->overlaps = atomic64_read(&b->shared.overlaps);
	if (ended(b))
		t->lost_updates = t->acquisitions - b->shared.counter;
	t->elapsed_ns = (b->end_ns ?: ktime_get_ns()) - b->begin_ns;
}

/* To be freed by kvfree(); NULL: no memory, which @m then says. */
static struct totals *totals_of(const struct corun_bench *b)
{
	/* The histogram is too large for the stack. */
	struct totals *t = kvzalloc(sizeof(*t), GFP_KERNEL);

	if (t)
		add_up(b, t);
	return t;
}

static u64 per_second(u64 count, u64 elapsed_ns)
{
	return div64_u64(count * 1000,
			 max(div64_u64(elapsed_ns, 1000000), 1ULL));
}

static u64 mean(const struct corun_hist *h)
{
	return h->count ? div64_u64(h->sum, h->count) : 0;
}

static void text_settings(struct seq_file *m, const struct corun_bench *b)
{
	const struct corun_settings *set = &b->set;

	seq_printf(m, "algorithm       %s\n", corun_settings_name(set->kind));
	seq_printf(m, "state           %s\n", ended(b) ? "ended" : "running");
	seq_printf(m, "threads         %u on CPUs %*pbl\n", set->threads,
		   cpumask_pr_args(&set->cpus));
	seq_printf(m, "hold_ns         %u\nthink_ns        %u\n", set->hold_ns,
		   set->think_ns);
	if (set->kind == CORUN_LOCK_PV_TICKET)
		seq_printf(m, "spin_threshold  %u\n", set->spin_threshold);
	if (set->kind == CORUN_LOCK_PMT)
		seq_printf(m, "pmt_timeout     %u\n", set->pmt_timeout);
	if (set->irqs_off)
		seq_puts(m, "irqs_off        Y\n");
}

static void text_threads(struct seq_file *m, const struct corun_bench *b,
			 const struct totals *t)
{
	u32 i;

	seq_puts(
		m,
		"\n thread    cpu acquisitions per_second  mean_wait_ns  max_wait_ns\n");
	for (i = 0; i < b->set.threads; i++) {
		const struct corun_bench_thread *th = &b->threads[i];
		u64 served = READ_ONCE(th->acquisitions);

		seq_printf(m, "%7u %6u %12llu %10llu %13llu %12llu\n", i,
			   th->cpu, served, per_second(served, t->elapsed_ns),
			   mean(&th->wait), th->wait.max);
	}
}

void corun_report_text(struct seq_file *m, const struct corun_bench *b,
		       const char *refusal)
{
	struct totals *t;

	if (refusal)
		seq_printf(m, "not started: %s\n", refusal);
	if (!b) {
		seq_puts(m, "no run yet: echo run > control\n");
		return;
	}
	t = totals_of(b);
	if (!t)
		return;
	text_settings(m, b);
	seq_printf(m, "elapsed_ns      %llu\n", t->elapsed_ns);
	seq_printf(m, "acquisitions    %llu, %llu per second\n",
		   t->acquisitions, per_second(t->acquisitions, t->elapsed_ns));
	seq_printf(
		m,
		"fairness        min %llu max %llu per thread, Jain 0.001 * %u\n",
		t->fairness.min, t->fairness.max, t->jain_permille);
	seq_printf(
		m,
		"wait_ns         mean %llu p50 %llu p90 %llu p99 %llu p99.9 %llu max %llu\n",
		mean(&t->wait), corun_hist_quantile(&t->wait, 500),
		corun_hist_quantile(&t->wait, 900),
		corun_hist_quantile(&t->wait, 990),
		corun_hist_quantile(&t->wait, 999), t->wait.max);
	seq_printf(
		m,
		"halts           %llu, kicks %llu (%llu found nobody, %llu refused by the hypervisor)\n",
		t->stats.halts, t->stats.kicks, t->stats.kicks_vain,
		corun_kvm_failed_kicks());
	seq_printf(m, "timeouts        %llu\n", t->stats.timeouts);
	seq_printf(m, "exclusion       %s: %llu overlaps, %llu lost updates\n",
		   t->overlaps || t->lost_updates ? "BROKEN" : "kept",
		   t->overlaps, t->lost_updates);
	text_threads(m, b, t);
	kvfree(t);
}

static void json_threads(struct seq_file *m, const struct corun_bench *b)
{
	u32 i;

	seq_puts(m, "\"per_thread\":[");
	for (i = 0; i < b->set.threads; i++) {
		const struct corun_bench_thread *th = &b->threads[i];

		seq_printf(
			m,
			"%s{\"cpu\":%u,\"acquisitions\":%llu,\"wait_sum_ns\":%llu,\"wait_max_ns\":%llu}",
			i ? "," : "", th->cpu, READ_ONCE(th->acquisitions),
			th->wait.sum, th->wait.max);
	}
	seq_puts(m, "]");
}

/* Pairs of a bucket's least value and its count; empty ones are left out. */
static void json_histogram(struct seq_file *m, const struct corun_hist *h)
{
	const char *between = "";
	u32 i;

	seq_puts(m, "\"wait_ns\":[");
	for (i = 0; i < CORUN_HIST_BUCKETS; i++) {
		if (!h->buckets[i])
			continue;
		seq_printf(m, "%s[%llu,%llu]", between, corun_hist_lower(i),
			   h->buckets[i]);
		between = ",";
	}
	seq_puts(m, "]");
}

static void json_settings(struct seq_file *m, const struct corun_bench *b)
{
	const struct corun_settings *set = &b->set;

	seq_printf(
		m,
		"\"algorithm\":\"%s\",\"running\":%s,\"threads\":%u,\"cpus\":\"%*pbl\",",
		corun_settings_name(set->kind), ended(b) ? "false" : "true",
		set->threads, cpumask_pr_args(&set->cpus));
	seq_printf(
		m,
		"\"hold_ns\":%u,\"think_ns\":%u,\"spin_threshold\":%u,\"pmt_timeout\":%u,\"irqs_off\":%s,",
		set->hold_ns, set->think_ns, set->spin_threshold,
		set->pmt_timeout, set->irqs_off ? "true" : "false");
	seq_printf(m, "\"calibration_ns\":%llu,", b->calibration_ns);
}

/* No text in it needs escapes: names and reasons are the module's own. */
void corun_report_json(struct seq_file *m, const struct corun_bench *b,
		       const char *refusal)
{
	struct totals *t;

	if (!b || refusal) {
		seq_printf(m, "{\"refusal\":\"%s\"}\n", refusal ?: "");
		return;
	}
	t = totals_of(b);
	if (!t)
		return;
	seq_puts(m, "{");
	json_settings(m, b);
	seq_printf(
		m,
		"\"elapsed_ns\":%llu,\"acquisitions\":%llu,\"min\":%llu,\"max\":%llu,\"jain_permille\":%u,",
		t->elapsed_ns, t->acquisitions, t->fairness.min,
		t->fairness.max, t->jain_permille);
	seq_printf(
		m,
		"\"halts\":%llu,\"kicks\":%llu,\"kicks_vain\":%llu,\"kicks_failed\":%llu,\"timeouts\":%llu,",
		t->stats.halts, t->stats.kicks, t->stats.kicks_vain,
		corun_kvm_failed_kicks(), t->stats.timeouts);
	seq_printf(
		m,
		"\"overlaps\":%llu,\"lost_updates\":%llu,\"wait_max_ns\":%llu,",
		t->overlaps, t->lost_updates, t->wait.max);
	json_threads(m, b);
	seq_puts(m, ",");
	json_histogram(m, &t->wait);
	seq_puts(m, "}\n");
	kvfree(t);
}
