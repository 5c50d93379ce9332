// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the algorithms on real threads and the machine's own memory order. A halt
 * sleeps on a condition variable until a kick, with no time-out that could hide a
 * lost one; when all threads that are left sleep, no kick can come any more, and
 * that is said at once, without a clock.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "types.h"

static u32 current_cpu(void);
static void relax_here(void);
static void nap(void);
static void sleep_here(void);
static void wake(u32 cpu);

#define lk_load(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define lk_load_ptr(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define lk_store(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define lk_store_ptr(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define lk_fetch_add(p, v) __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)
#define lk_fetch_add64(p, v) __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)
#define lk_fetch_or(p, v) (nap(), __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST))
#define lk_fetch_and(p, v) __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST)
#define lk_xchg(p, v) __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)
#define lk_relax() relax_here()
#define lk_cpu() current_cpu()
#define lk_irq_save() 0
#define lk_irq_restore(s) ((void)(s))
#define lk_halt(s) sleep_here()
#define lk_kick(cpu) wake(cpu)

static inline bool lk_cmpxchg64(u64 *p, u64 old, u64 new)
{
	return __atomic_compare_exchange_n(p, &old, new, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

#include "flawed.h"

/* Looks of a spin loop between two offers to run another thread. */
#define SPINS_PER_YIELD 64
/* Slow paths between two that are interrupted before they set the flag. */
#define SLOW_PATHS_PER_NAP 64

struct worker {
	pthread_t thread;
	u32 cpu;
	u32 spins;
	u32 slow_paths;
	bool asleep;
	bool kicked;
	pthread_cond_t woken;
	struct corun_lock_stats stats;
};

/* One test at a time: lib.rs sees to it. */
static struct {
	struct spec spec;
	struct corun_lock_tunables tun;
	struct corun_pv_waiting waiting[MAX_THREADS];
	struct worker workers[MAX_THREADS];
	/* Guards asleep, kicked, sleeping, left and lost. */
	pthread_mutex_t mutex;
	u32 sleeping;
	u32 left;
	bool lost;
	pthread_barrier_t start;
	/* Each on cache lines of its own. */
	union corun_lock lock __attribute__((aligned(128)));
	u32 inside __attribute__((aligned(128)));
	u64 overlaps;
	/* Not atomic: only the lock guards it. */
	volatile u64 shared __attribute__((aligned(128)));
} h;

static _Thread_local struct worker *self;

static u32 current_cpu(void)
{
	return self->cpu;
}

/* There may be fewer CPUs than threads. */
static void relax_here(void)
{
	if (++self->spins % SPINS_PER_YIELD == 0)
		sched_yield();
	else
		__builtin_ia32_pause();
}

/* Long enough for the lock to be released between a waiter's last look and its flag. */
static void nap(void)
{
	if (self->slow_paths++ % SLOW_PATHS_PER_NAP == 0)
		usleep(100);
}

/* With the mutex held. */
static void look_for_the_last(void)
{
	u32 i;

	if (!h.left || h.sleeping < h.left)
		return;
	h.lost = true;
	for (i = 0; i < h.spec.threads; i++)
		pthread_cond_signal(&h.workers[i].woken);
}

static void sleep_here(void)
{
	pthread_mutex_lock(&h.mutex);
	if (!self->kicked) {
		self->asleep = true;
		h.sleeping++;
		look_for_the_last();
		while (!self->kicked && !h.lost)
			pthread_cond_wait(&self->woken, &h.mutex);
	}
	self->kicked = false;
	pthread_mutex_unlock(&h.mutex);
	if (h.lost)
		pthread_exit(NULL);
}

static void wake(u32 cpu)
{
	struct worker *w = &h.workers[cpu];

	pthread_mutex_lock(&h.mutex);
	/* Counted here and not by the one woken, who may be late. */
	if (w->asleep) {
		w->asleep = false;
		h.sleeping--;
	}
	w->kicked = true;
	pthread_cond_signal(&w->woken);
	pthread_mutex_unlock(&h.mutex);
}

static void critical_section(u32 round)
{
	u64 seen;

	if (__atomic_fetch_add(&h.inside, 1, __ATOMIC_SEQ_CST))
		__atomic_fetch_add(&h.overlaps, 1, __ATOMIC_RELAXED);
	seen = h.shared;
	/* A holder that is preempted, now and then. */
	if (round % 256 == self->cpu)
		sched_yield();
	h.shared = seen + 1;
	__atomic_fetch_sub(&h.inside, 1, __ATOMIC_SEQ_CST);
}

static void *body(void *argument)
{
	u32 round;

	self = argument;
	pthread_barrier_wait(&h.start);
	for (round = 0; round < h.spec.rounds; round++) {
		any_acquire(h.spec.kind, &h.lock, &h.tun, &self->stats);
		critical_section(round);
		any_release(h.spec.kind, &h.lock, &h.tun, &self->stats);
	}
	pthread_mutex_lock(&h.mutex);
	h.left--;
	look_for_the_last();
	pthread_mutex_unlock(&h.mutex);
	return NULL;
}

static void prepare(const struct spec *spec)
{
	memset(&h, 0, sizeof(h));
	h.spec = *spec;
	h.tun.pv.waiting = h.waiting;
	h.tun.pv.cpus = spec->threads;
	h.tun.pv.spin_threshold = spec->spin_threshold;
	h.tun.pmt_timeout = spec->pmt_timeout;
	h.left = spec->threads;
	pthread_mutex_init(&h.mutex, NULL);
	pthread_barrier_init(&h.start, NULL, spec->threads);
}

static enum verdict judge(void)
{
	if (h.lost)
		return VERDICT_LOST_WAKEUP;
	if (h.overlaps || h.shared != (u64)h.spec.threads * h.spec.rounds)
		return VERDICT_OVERLAP;
	return any_is_free(h.spec.kind, &h.lock) ? VERDICT_PASSED
						 : VERDICT_NOT_FREE;
}

void corun_hammer(const struct spec *spec, struct outcome *out);

/* Aborts when the system has no thread left for the test. */
void corun_hammer(const struct spec *spec, struct outcome *out)
{
	u32 i;

	prepare(spec);
	for (i = 0; i < spec->threads; i++) {
		struct worker *w = &h.workers[i];

		w->cpu = i;
		pthread_cond_init(&w->woken, NULL);
		if (pthread_create(&w->thread, NULL, body, w))
			abort();
	}
	*out = (struct outcome){ .schedules = 1 };
	for (i = 0; i < spec->threads; i++) {
		struct worker *w = &h.workers[i];

		pthread_join(w->thread, NULL);
		out->halts += w->stats.halts;
		out->kicks += w->stats.kicks;
		out->timeouts += w->stats.timeouts;
	}
	out->verdict = judge();
}
