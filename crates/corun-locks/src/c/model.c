// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the algorithms under a scheduler of our own, which switches threads between
 * any two memory accesses: all schedules with up to so many preemptions, or random
 * ones. Memory is sequentially consistent here; real threads are hammer.c's part.
 *
 * At each access the running thread goes on unless it is preempted. A thread in a
 * spin loop lets the others run first, or the search would never end; that it goes
 * on spinning instead counts as a preemption of them.
 */
#include <string.h>
#include <ucontext.h>

#include "types.h"

static void point(bool spins);
static u32 current_cpu(void);
static void sleep_here(void);
static void wake(u32 cpu);

/* Accesses are indivisible: nobody else runs between two points. */
#define LK_ACCESS(name, type)                                                  \
	static inline type name(const type *p)                                 \
	{                                                                      \
		point(false);                                                  \
		return *p;                                                     \
	}
#define LK_CHANGE(name, type, operator)                                        \
	static inline type name(type *p, type v)                               \
	{                                                                      \
		type old;                                                      \
                                                                               \
		point(false);                                                  \
		old = *p;                                                      \
		*p operator v;                                                 \
		return old;                                                    \
	}

LK_ACCESS(lk_load, u32)
LK_CHANGE(lk_fetch_add, u32, +=)
LK_CHANGE(lk_fetch_or, u32, |=)
LK_CHANGE(lk_fetch_and, u32, &=)
LK_CHANGE(lk_xchg, u32, =)
LK_CHANGE(lk_fetch_add64, u64, +=)
#define lk_store(p, v) ((void)lk_xchg(p, v))

static inline const void *lk_load_ptr(const void *const *p)
{
	point(false);
	return *p;
}

static inline void lk_store_ptr(const void **p, const void *v)
{
	point(false);
	*p = v;
}

static inline bool lk_cmpxchg64(u64 *p, u64 old, u64 new)
{
	point(false);
	if (*p != old)
		return false;
	*p = new;
	return true;
}

#define lk_relax() point(true)
#define lk_cpu() current_cpu()
#define lk_irq_save() 0
#define lk_irq_restore(s) ((void)(s))
#define lk_halt(s) sleep_here()
#define lk_kick(cpu) wake(cpu)

#include "flawed.h"

#define STACK_BYTES 65536
/* Switches of a schedule. No schedule of the tests needs a tenth of it. */
#define MAX_STEPS 20000

struct thread {
	ucontext_t context;
	bool done;
	bool asleep;
	/* A kick that was not used yet. */
	bool kicked;
	struct corun_lock_stats stats;
	char stack[STACK_BYTES] __attribute__((aligned(16)));
};

/* One decision of a schedule: which of so many threads ran. 0 costs nothing. */
struct choice {
	u32 options;
	u32 taken;
};

/* One search at a time: lib.rs sees to it. */
static struct {
	struct spec spec;
	struct corun_lock_tunables tun;
	union corun_lock lock;
	struct corun_pv_waiting waiting[MAX_THREADS];
	struct thread threads[MAX_THREADS];
	ucontext_t scheduler;
	u32 current;
	bool spins;
	/* In the critical section, and what is counted there. */
	u32 inside;
	u64 shared;
	bool overlap;
	/* The schedule: prescribed up to length, then made up. */
	struct choice trail[MAX_STEPS];
	u32 length;
	/* 0: no random choices. */
	u64 random;
} m;

static void point(bool spins)
{
	struct thread *t = &m.threads[m.current];

	m.spins = spins;
	swapcontext(&t->context, &m.scheduler);
}

static u32 current_cpu(void)
{
	return m.current;
}

static void sleep_here(void)
{
	struct thread *t = &m.threads[m.current];

	point(false);
	if (!t->kicked) {
		t->asleep = true;
		swapcontext(&t->context, &m.scheduler);
	}
	t->kicked = false;
}

static void wake(u32 cpu)
{
	point(false);
	m.threads[cpu].kicked = true;
	m.threads[cpu].asleep = false;
}

static void critical_section(void)
{
	u64 seen;

	if (m.inside++)
		m.overlap = true;
	seen = m.shared;
	point(false);
	m.shared = seen + 1;
	m.inside--;
}

static void body(void)
{
	u32 round;

	for (round = 0; round < m.spec.rounds; round++) {
		struct corun_lock_stats *stats = &m.threads[m.current].stats;

		any_acquire(m.spec.kind, &m.lock, &m.tun, stats);
		critical_section();
		any_release(m.spec.kind, &m.lock, &m.tun, stats);
	}
	m.threads[m.current].done = true;
	/* Never comes back. */
	swapcontext(&m.threads[m.current].context, &m.scheduler);
}

static void begin(void)
{
	u32 i;

	memset(&m.lock, 0, sizeof(m.lock));
	memset(m.waiting, 0, sizeof(m.waiting));
	m.inside = 0;
	m.shared = 0;
	m.overlap = false;
	m.current = 0;
	m.spins = false;
	for (i = 0; i < m.spec.threads; i++) {
		struct thread *t = &m.threads[i];

		t->done = t->asleep = t->kicked = false;
		getcontext(&t->context);
		t->context.uc_stack.ss_sp = t->stack;
		t->context.uc_stack.ss_size = STACK_BYTES;
		t->context.uc_link = NULL;
		makecontext(&t->context, body, 0);
	}
}

/* Who can run, in the order in which the search takes them; their number. */
static u32 enabled(u32 *who)
{
	u32 n = m.spec.threads;
	u32 first = m.spins ? m.current + 1 : m.current;
	u32 found = 0;
	u32 i;

	for (i = 0; i < n; i++) {
		struct thread *t = &m.threads[(first + i) % n];

		if (!t->done && !t->asleep)
			who[found++] = (first + i) % n;
	}
	return found;
}

static u32 draw(u32 below)
{
	/* xorshift64* */
	m.random ^= m.random >> 12;
	m.random ^= m.random << 25;
	m.random ^= m.random >> 27;
	return (u32)((m.random * 0x2545f4914f6cdd1dull) >> 40) % below;
}

static u32 choose(u32 step, u32 options)
{
	u32 taken = 0;

	if (step < m.length)
		taken = m.trail[step].taken;
	else if (m.random && !draw(4))
		taken = draw(options);
	m.trail[step].options = options;
	m.trail[step].taken = taken;
	return taken;
}

static enum verdict at_end(void)
{
	u32 i;

	for (i = 0; i < m.spec.threads; i++)
		if (!m.threads[i].done)
			return VERDICT_LOST_WAKEUP;
	if (m.shared != (u64)m.spec.threads * m.spec.rounds)
		return VERDICT_OVERLAP;
	if (!any_is_free(m.spec.kind, &m.lock))
		return VERDICT_NOT_FREE;
	return VERDICT_PASSED;
}

/* One schedule; its length is left in m.length. */
static enum verdict run_once(void)
{
	u32 who[MAX_THREADS];
	u32 step;

	begin();
	for (step = 0; step < MAX_STEPS; step++) {
		u32 options = enabled(who);

		if (!options) {
			m.length = step;
			return at_end();
		}
		m.current = who[choose(step, options)];
		swapcontext(&m.scheduler, &m.threads[m.current].context);
		if (m.overlap)
			return VERDICT_OVERLAP;
	}
	return VERDICT_STUCK;
}

/* The next schedule in the order of the search; false: there is none. */
static bool advance(u32 preemptions)
{
	u32 spent = 0;
	u32 next = m.length;
	u32 i;

	for (i = 0; i < m.length; i++) {
		struct choice *c = &m.trail[i];

		if (c->taken + 1 < c->options &&
		    (c->taken || spent < preemptions))
			next = i;
		spent += c->taken != 0;
	}
	if (next == m.length)
		return false;
	m.trail[next].taken++;
	m.length = next + 1;
	return true;
}

static void prepare(const struct spec *spec)
{
	memset(&m, 0, sizeof(m));
	m.spec = *spec;
	m.tun.pv.waiting = m.waiting;
	m.tun.pv.cpus = spec->threads;
	m.tun.pv.spin_threshold = spec->spin_threshold;
	m.tun.pmt_timeout = spec->pmt_timeout;
}

static void sum_up(struct outcome *out)
{
	u32 i;

	for (i = 0; i < m.spec.threads; i++) {
		out->halts += m.threads[i].stats.halts;
		out->kicks += m.threads[i].stats.kicks;
		out->timeouts += m.threads[i].stats.timeouts;
	}
}

void corun_model_explore(const struct spec *spec, u32 preemptions,
			 struct outcome *out);
void corun_model_sample(const struct spec *spec, u64 seed, u64 schedules,
			struct outcome *out);

/* Tries all schedules with so many preemptions, up to the first that fails. */
void corun_model_explore(const struct spec *spec, u32 preemptions,
			 struct outcome *out)
{
	*out = (struct outcome){ 0 };
	prepare(spec);
	do {
		out->schedules++;
		out->verdict = run_once();
	} while (out->verdict == VERDICT_PASSED && advance(preemptions));
	sum_up(out);
}

/* Tries random schedules. @seed: not 0. */
void corun_model_sample(const struct spec *spec, u64 seed, u64 schedules,
			struct outcome *out)
{
	*out = (struct outcome){ 0 };
	prepare(spec);
	m.random = seed;
	while (out->schedules < schedules && out->verdict == VERDICT_PASSED) {
		m.length = 0;
		out->schedules++;
		out->verdict = run_once();
	}
	sum_up(out);
}
