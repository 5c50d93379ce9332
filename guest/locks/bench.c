// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads bound to CPUs that take one lock, hold it, give it back and think, over
 * and over. Started and stopped from debugfs; a run that is in the way of unloading
 * is stopped.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "bench.h"
#include "kvm.h"
#include "work.h"

/* Guards all below but what the threads of a run write. */
static DEFINE_MUTEX(mutex);
static struct corun_bench *bench;
static const char *refusal;
/* A run is going on. Read without the mutex by those that wait for its end. */
static bool running;
static DECLARE_WAIT_QUEUE_HEAD(ended);

static void time_is_up(struct work_struct *work);
static DECLARE_DELAYED_WORK(timer, time_is_up);

static __always_inline void acquire(struct corun_bench *b,
				    struct corun_bench_thread *t)
{
	if (b->set.kind == CORUN_LOCK_QSPIN)
		raw_spin_lock(&b->shared.qspin);
	else
		corun_lock_acquire(b->set.kind, &b->shared.lock, &b->tun,
				   &t->stats);
}

static __always_inline void release(struct corun_bench *b,
				    struct corun_bench_thread *t)
{
	if (b->set.kind == CORUN_LOCK_QSPIN)
		raw_spin_unlock(&b->shared.qspin);
	else
		corun_lock_release(b->set.kind, &b->shared.lock, &b->tun,
				   &t->stats);
}

/*
 * Works with the lock held. Two that are here at once are noticed twice: one finds
 * the other's name, and one of two increments of the counter is lost.
 */
static __always_inline void critical_section(struct corun_bench *b, u32 me)
{
	struct corun_bench_shared *s = &b->shared;
	u64 seen = READ_ONCE(s->counter);

	if (READ_ONCE(s->owner))
		atomic64_inc(&s->overlaps);
	WRITE_ONCE(s->owner, me);
	corun_work(b->hold_loops);
	if (READ_ONCE(s->owner) != me)
		atomic64_inc(&s->overlaps);
	WRITE_ONCE(s->owner, 0);
	WRITE_ONCE(s->counter, seen + 1);
}

static void one_turn(struct corun_bench *b, struct corun_bench_thread *t)
{
	unsigned long irqs = 0;
	u64 asked_ns, got_ns;

	preempt_disable();
	if (b->set.irqs_off)
		local_irq_save(irqs);
	asked_ns = ktime_get_ns();
	acquire(b, t);
	got_ns = ktime_get_ns();
	critical_section(b, t - b->threads + 1);
	release(b, t);
	if (b->set.irqs_off)
		local_irq_restore(irqs);
	preempt_enable();
	corun_hist_add(&t->wait, got_ns - asked_ns);
	t->acquisitions++;
}

static int thread_main(void *data)
{
	struct corun_bench_thread *t = data;
	struct corun_bench *b = t->bench;

	while (!READ_ONCE(b->stopping)) {
		one_turn(b, t);
		corun_work(b->think_loops);
		cond_resched();
	}
	/* Who stops us expects us to be there. */
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static void free_bench(struct corun_bench *b)
{
	if (!b)
		return;
	kfree(b->tun.pv.waiting);
	kvfree(b->threads);
	kfree(b);
}

/* The threads, none of them awake yet. */
static int make_threads(struct corun_bench *b)
{
	u32 i, cpu = cpumask_first(&b->set.cpus);

	for (i = 0; i < b->set.threads; i++) {
		struct corun_bench_thread *t = &b->threads[i];

		t->bench = b;
		t->cpu = cpu;
		t->task = kthread_create_on_node(
			thread_main, t, cpu_to_node(cpu), "corun_locks/%u", i);
		if (IS_ERR(t->task)) {
			int error = PTR_ERR(t->task);

			t->task = NULL;
			return error;
		}
		kthread_bind(t->task, cpu);
		cpu = cpumask_next(cpu, &b->set.cpus);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(&b->set.cpus);
	}
	return 0;
}

static void stop_threads(struct corun_bench *b)
{
	u32 i;

	b->end_ns = ktime_get_ns();
	WRITE_ONCE(b->stopping, true);
	for (i = 0; i < b->set.threads; i++) {
		if (!b->threads[i].task)
			continue;
		kthread_stop(b->threads[i].task);
		b->threads[i].task = NULL;
	}
}

/* Room for a run of @set, with everything at zero. */
static struct corun_bench *make_bench(const struct corun_settings *set)
{
	struct corun_bench *b = kzalloc(sizeof(*b), GFP_KERNEL);

	if (!b)
		return NULL;
	b->set = *set;
	b->threads = kvcalloc(set->threads, sizeof(*b->threads), GFP_KERNEL);
	b->tun.pv.waiting =
		kcalloc(nr_cpu_ids, sizeof(*b->tun.pv.waiting), GFP_KERNEL);
	if (!b->threads || !b->tun.pv.waiting) {
		free_bench(b);
		return NULL;
	}
	b->tun.pv.cpus = nr_cpu_ids;
	b->tun.pv.spin_threshold = set->spin_threshold;
	b->tun.pmt_timeout = set->pmt_timeout;
	raw_spin_lock_init(&b->shared.qspin);
	b->calibration_ns = corun_work_calibrate_ns();
	b->hold_loops = corun_work_loops(set->hold_ns, b->calibration_ns);
	b->think_loops = corun_work_loops(set->think_ns, b->calibration_ns);
	return b;
}

static void launch(struct corun_bench *b)
{
	u32 i;

	corun_kvm_forget();
	b->begin_ns = ktime_get_ns();
	for (i = 0; i < b->set.threads; i++)
		wake_up_process(b->threads[i].task);
	/* The last run's may be pending still. */
	cancel_delayed_work(&timer);
	if (b->set.seconds)
		schedule_delayed_work(&timer, b->set.seconds * HZ);
	WRITE_ONCE(running, true);
}

static int start_locked(void)
{
	struct corun_bench *b;
	struct corun_settings *set;
	int error;

	refusal = NULL;
	if (running) {
		refusal = "a run is going on: stop it first";
		return -EBUSY;
	}
	/* A cpumask may be too large for the stack. */
	set = kzalloc(sizeof(*set), GFP_KERNEL);
	if (!set)
		return -ENOMEM;
	error = corun_settings_read(set, &refusal);
	b = error ? NULL : make_bench(set);
	kfree(set);
	if (error)
		return error;
	if (!b)
		return -ENOMEM;
	error = make_threads(b);
	if (error) {
		stop_threads(b);
		free_bench(b);
		return error;
	}
	free_bench(bench);
	bench = b;
	launch(b);
	return 0;
}

int corun_bench_start(void)
{
	int error;

	mutex_lock(&mutex);
	error = start_locked();
	if (refusal)
		pr_err("not started: %s\n", refusal);
	mutex_unlock(&mutex);
	return error;
}

static void stop_locked(void)
{
	if (!running)
		return;
	stop_threads(bench);
	WRITE_ONCE(running, false);
	wake_up_all(&ended);
}

void corun_bench_stop(void)
{
	mutex_lock(&mutex);
	stop_locked();
	mutex_unlock(&mutex);
}

/* May be early by a tick, or late and meet the next run already. */
static void time_is_up(struct work_struct *work)
{
	u64 length_ns, passed_ns;

	mutex_lock(&mutex);
	if (running && bench->set.seconds) {
		length_ns = bench->set.seconds * (u64)NSEC_PER_SEC;
		passed_ns = ktime_get_ns() - bench->begin_ns;
		if (passed_ns >= length_ns)
			stop_locked();
		else
			schedule_delayed_work(
				&timer,
				nsecs_to_jiffies(length_ns - passed_ns) + 1);
	}
	mutex_unlock(&mutex);
}

int corun_bench_wait(void)
{
	if (!wait_event_interruptible(ended, !READ_ONCE(running)))
		return 0;
	corun_bench_stop();
	return -EINTR;
}

const struct corun_bench *corun_bench_get(void)
{
	mutex_lock(&mutex);
	return bench;
}

void corun_bench_put(void)
{
	mutex_unlock(&mutex);
}

const char *corun_bench_refusal(void)
{
	return refusal;
}

void corun_bench_exit(void)
{
	corun_bench_stop();
	cancel_delayed_work_sync(&timer);
	free_bench(bench);
	bench = NULL;
}
