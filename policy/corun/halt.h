/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Halt polling: how long a halted vCPU may keep its pCPU and look for the
 * interrupt that ends the halt (kvm's halt_poll_ns), for the host as a whole.
 *
 * Polling spares the sleep and the wake-up, which are most of the latency of
 * message passing (seed 003: 5.7 us with them, 1.7 us without), and costs CPU
 * time, the polling VM's own: its account is charged. KVM adapts the length per vCPU
 * below the parameter, and gives up when its runqueue has a second task; a task that
 * waits in a shared queue counts where it ran last, so vCPUs poll while others wait.
 * What KVM cannot see is decided here, once a window, in two steps: a window is
 * judged, and the value follows the verdict.
 *
 * While others want the CPU, polling goes on where it pays: where polls take no more
 * time than the sleeps that they spare are worth, and where most polls succeed. There a
 * guest passes messages; one that uses less than its share is up to 1.7 times as fast
 * with polls, and others lose 2 to 6 % of what they have beyond their shares
 * (simulator). Elsewhere polls are in vain, and there are none.
 *
 * Down is fast, up is slow: a wrong "no" costs some wake-ups a few microseconds,
 * a wrong "yes" costs others their turn. An attempt to go up that is regretted
 * before it is as old as the wait before it doubles that wait, so that polling
 * which causes the very contention that ends it is tried ever more seldom. What was
 * regretted, was for what the guests did then: when vCPUs sleep twice or half as often
 * as before, the next attempt is near.
 */
#ifndef CORUN_HALT_H
#define CORUN_HALT_H

#include "types.h"

/* Of halt polling; not in struct corun_tunables, which BPF hooks carry. */
struct corun_halt_tunables {
	/*
	 * Most that success may grow the parameter to. Default 200 us, range 0
	 * to 1 s: KVM_HALT_POLL_NS_DEFAULT of x86 and the length that seed 003
	 * measured. An operator's larger value is kept.
	 */
	u64 max_ns;
	/*
	 * Least that polling in vain shrinks it to. Default 10 us, range 1 to
	 * max_ns: KVM's halt_poll_ns_grow_start; below it a vCPU never polls.
	 */
	u64 floor_ns;
	/*
	 * What a poll that succeeds spares: a sleep and the wake-up after it. Default
	 * 10 us, range 0 to 1 s: 5 us of CPU time (the 4 us of seed 003's path, and a
	 * switch), and as much for whoever waits for what the vCPU does next.
	 */
	u64 sleep_ns;
	/*
	 * Somebody waits: runnable tasks waited for more than this part of the
	 * host's CPU time. Default 10, range 1 to 1000: 1 % is a tick's worth of
	 * waiting in each 100 ticks, more than plain wake-ups need.
	 */
	u32 wanted_permille;
	/*
	 * Nobody waits: no more than this part. Default 2, range 0 to
	 * wanted_permille; what lies between changes nothing.
	 */
	u32 calm_permille;
	/*
	 * Polling in vain may cost this part of the host's CPU time. Default 10,
	 * range 1 to 1000: seed 003's cost of idle vCPUs at 200 us.
	 */
	u32 vain_permille;
	/*
	 * Polling is useful when this part of the polls succeeds. Default 500,
	 * range 1 to 1000: more wake-ups saved than missed.
	 */
	u32 hit_permille;
	/*
	 * Windows that speak for it before a step up. Default 5, range 1 to
	 * hold_max_windows: half a second of windows of 100 ms.
	 */
	u32 calm_windows;
	/*
	 * Most that regretted steps up make it. Default 50, range
	 * calm_windows to 2^23: polling on trial is at most 2 % of the time.
	 */
	u32 hold_max_windows;
};

#define CORUN_HALT_TUNABLES_DEFAULT                                            \
	{                                                                      \
		.max_ns = 200000,                                              \
		.floor_ns = 10000,                                             \
		.sleep_ns = 10000,                                             \
		.wanted_permille = 10,                                         \
		.calm_permille = 2,                                            \
		.vain_permille = 10,                                           \
		.hit_permille = 500,                                           \
		.calm_windows = 5,                                             \
		.hold_max_windows = 50,                                        \
	}

/* What was seen of the host in one window. */
struct corun_halt_window {
	/* CPU time that the host had: length times online pCPUs. */
	u64 cpu_ns;
	/* Time that runnable tasks waited for a pCPU, summed over tasks. */
	u64 waiting_ns;
	/* Halts in which KVM polled, and those that it ended without sleeping. */
	u64 polls;
	u64 hits;
	/* CPU time of polls that ended so, and of those followed by a sleep. */
	u64 hit_ns;
	u64 vain_ns;
	/* vCPUs that were woken from a sleep (kvm's halt_wakeup). */
	u64 wakeups;
};

/* What a window says. Stable: counters and vectors carry it. */
enum corun_halt_verdict {
	/* Between two verdicts: nothing follows. */
	CORUN_HALT_UNCLEAR = 0,
	/* Others wanted the CPU, and polling did not pay. */
	CORUN_HALT_WANTED = 1,
	/* Too much was polled in vain. */
	CORUN_HALT_WASTED = 2,
	/* Nobody waited, and polling was cheap or did not occur. */
	CORUN_HALT_QUIET = 3,
	/* Quiet, and most polls succeeded. */
	CORUN_HALT_USEFUL = 4,
	/* Others wanted the CPU, but polling paid, or hardly occurred. */
	CORUN_HALT_PAYS = 5,
};

enum corun_halt_mode {
	/* The value has proved itself, or is the operator's. */
	CORUN_HALT_STEADY = 0,
	/* Raised of late. */
	CORUN_HALT_TRIED = 1,
	/* 0, for others wanted the CPU. */
	CORUN_HALT_OFF = 2,
};

/* What is kept between windows. */
struct corun_halt {
	/* Value of the parameter. */
	u64 poll_ns;
	/* enum corun_halt_mode. */
	u32 mode;
	/* Windows in a row since the last change that were quiet, or in which it paid. */
	u32 quiet_windows;
	/* How many of them the next step up needs. */
	u32 hold_windows;
	/* Wake-ups in a second of CPU time without polls, of late; 0: not known. */
	u32 wakeups_per_s;
};

/* Begins with the operator's value. */
CORUN_INLINE void corun_halt_init(struct corun_halt *halt, u64 operator_ns,
				  const struct corun_halt_tunables *tun)
{
	halt->poll_ns = operator_ns;
	halt->mode = CORUN_HALT_STEADY;
	halt->quiet_windows = 0;
	halt->hold_windows = tun->calm_windows;
	halt->wakeups_per_s = 0;
}

/*
 * Is polling worth its time in a window in which others wanted the CPU? Where it took a
 * tenth of a percent nothing can be said.
 */
CORUN_INLINE bool corun_halt_pays(const struct corun_halt_window *win,
				  const struct corun_halt_tunables *tun)
{
	u64 unit_ns = win->cpu_ns / 1000;
	u64 spent_ns = win->hit_ns + win->vain_ns;

	if (spent_ns <= unit_ns || spent_ns <= win->hits * tun->sleep_ns)
		return true;
	return win->hits * 1000 >= win->polls * tun->hit_permille &&
	       win->vain_ns <= unit_ns * tun->vain_permille;
}

/* Judges a window. */
CORUN_INLINE enum corun_halt_verdict
corun_halt_judge(const struct corun_halt_window *win,
		 const struct corun_halt_tunables *tun)
{
	u64 unit_ns = win->cpu_ns / 1000;
	u64 vain_max_ns = unit_ns * tun->vain_permille;

	if (!unit_ns)
		return CORUN_HALT_UNCLEAR;
	if (win->waiting_ns > unit_ns * tun->wanted_permille)
		return corun_halt_pays(win, tun) ? CORUN_HALT_PAYS
						 : CORUN_HALT_WANTED;
	if (win->vain_ns > vain_max_ns && win->vain_ns > win->hit_ns)
		return CORUN_HALT_WASTED;
	if (win->waiting_ns > unit_ns * tun->calm_permille)
		return CORUN_HALT_UNCLEAR;
	/* A doubled poll must not be one that is regretted. */
	if (win->vain_ns > vain_max_ns / 2)
		return CORUN_HALT_UNCLEAR;
	if (win->polls && win->hits * 1000 >= win->polls * tun->hit_permille)
		return CORUN_HALT_USEFUL;
	return CORUN_HALT_QUIET;
}

/* Leaves the present value for a lower one. */
CORUN_INLINE void corun_halt_regret(struct corun_halt *halt, u32 mode,
				    const struct corun_halt_tunables *tun)
{
	u32 hold = halt->hold_windows;

	if (halt->mode == CORUN_HALT_TRIED) {
		hold = hold < tun->hold_max_windows / 2 ? hold * 2
							: tun->hold_max_windows;
		halt->hold_windows = hold;
	}
	halt->mode = mode;
	halt->quiet_windows = 0;
}

/*
 * Wake-ups in a second of CPU time that say nothing: an idle guest's clocks and
 * daemons have some tens.
 */
#define CORUN_HALT_FEW_WAKEUPS 200

/*
 * Windows in which another load is seen before polling is tried for it: the first may
 * have been half of the one before.
 */
#define CORUN_HALT_NEW_LOAD_WINDOWS 2

/*
 * Forgets regrets when the guests do something else than then: without polls every
 * halt ends by a wake-up, so their rates can be compared. True if it did. To be asked
 * of each window before its verdict is followed.
 */
CORUN_INLINE bool corun_halt_note_load(struct corun_halt *halt,
				       const struct corun_halt_window *win,
				       const struct corun_halt_tunables *tun)
{
	u64 before = halt->wakeups_per_s;
	u64 cpu_ms = win->cpu_ns / 1000000;
	bool other;
	u64 now;

	if (halt->mode != CORUN_HALT_OFF || !cpu_ms)
		return false;
	now = win->wakeups * 1000 / cpu_ms;
	if (now > 0xffffffff)
		now = 0xffffffff;
	if (!now)
		now = 1;
	if (!before)
		before = now;
	other = now > before * 2 + CORUN_HALT_FEW_WAKEUPS ||
		before > now * 2 + CORUN_HALT_FEW_WAKEUPS;
	halt->wakeups_per_s = (u32)(other ? now : (before * 3 + now) / 4);
	if (!other)
		return false;
	halt->hold_windows = tun->calm_windows;
	if (halt->quiet_windows + CORUN_HALT_NEW_LOAD_WINDOWS <
	    tun->calm_windows)
		halt->quiet_windows =
			tun->calm_windows - CORUN_HALT_NEW_LOAD_WINDOWS;
	return true;
}

/* A doubled value, at least @floor_ns and at most @ceiling_ns. */
CORUN_INLINE u64 corun_halt_doubled(u64 poll_ns, u64 floor_ns, u64 ceiling_ns)
{
	if (poll_ns >= ceiling_ns / 2)
		return ceiling_ns;
	return poll_ns * 2 < floor_ns ? floor_ns : poll_ns * 2;
}

/* Nothing speaks against polling: who has lasted is on trial no more, or is resumed. */
CORUN_INLINE void corun_halt_lasts(struct corun_halt *halt, u64 operator_ns,
				   const struct corun_halt_tunables *tun)
{
	if (halt->quiet_windows < tun->hold_max_windows)
		halt->quiet_windows++;
	if (halt->quiet_windows < halt->hold_windows)
		return;
	if (halt->mode == CORUN_HALT_OFF) {
		halt->poll_ns = operator_ns;
		halt->mode = CORUN_HALT_TRIED;
		halt->quiet_windows = 0;
	} else if (halt->mode == CORUN_HALT_TRIED) {
		halt->mode = CORUN_HALT_STEADY;
		halt->hold_windows = tun->calm_windows;
	}
}

/* Nobody waits, and has not for as long as a step up from a lasting value needs. */
CORUN_INLINE void corun_halt_raise(struct corun_halt *halt, bool useful,
				   u64 operator_ns, u64 floor_ns,
				   const struct corun_halt_tunables *tun)
{
	u64 ceiling_ns = operator_ns;

	if (halt->mode != CORUN_HALT_STEADY ||
	    halt->quiet_windows < halt->hold_windows)
		return;
	if (useful && tun->max_ns > operator_ns)
		ceiling_ns = tun->max_ns;
	if (halt->poll_ns >= ceiling_ns)
		return;
	halt->poll_ns = corun_halt_doubled(halt->poll_ns, floor_ns, ceiling_ns);
	halt->mode = CORUN_HALT_TRIED;
	halt->quiet_windows = 0;
}

/*
 * Takes note of a window's @verdict; halt->poll_ns is the value from now on.
 * @operator_ns: the value that was set before us, or by others since. 0 is an
 * order not to poll.
 */
CORUN_INLINE void corun_halt_step(struct corun_halt *halt, u32 verdict,
				  u64 operator_ns,
				  const struct corun_halt_tunables *tun)
{
	u64 floor_ns = tun->floor_ns < operator_ns ? tun->floor_ns
						   : operator_ns;

	if (!operator_ns) {
		corun_halt_init(halt, 0, tun);
		return;
	}
	switch (verdict) {
	case CORUN_HALT_WANTED:
		corun_halt_regret(halt, CORUN_HALT_OFF, tun);
		halt->poll_ns = 0;
		break;
	case CORUN_HALT_WASTED:
		/* What is off already was wasted before. */
		if (halt->mode == CORUN_HALT_OFF)
			break;
		corun_halt_regret(halt, CORUN_HALT_STEADY, tun);
		halt->poll_ns /= 2;
		if (halt->poll_ns < floor_ns)
			halt->poll_ns = floor_ns;
		break;
	case CORUN_HALT_PAYS:
		corun_halt_lasts(halt, operator_ns, tun);
		break;
	case CORUN_HALT_QUIET:
	case CORUN_HALT_USEFUL:
		corun_halt_lasts(halt, operator_ns, tun);
		corun_halt_raise(halt, verdict == CORUN_HALT_USEFUL,
				 operator_ns, floor_ns, tun);
		break;
	default:
		halt->quiet_windows = 0;
		break;
	}
}

#endif /* CORUN_HALT_H */
