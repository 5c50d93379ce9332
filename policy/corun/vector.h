/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One entry for every decision, so that the same test vectors can be put
 * through every build of the policy: native and BPF.
 */
#ifndef CORUN_VECTOR_H
#define CORUN_VECTOR_H

#include "gang.h"
#include "pool.h"
#include "halt.h"
#include "share.h"
#include "types.h"
#include "urgent.h"
#include "yield.h"

/* Which decision a vector asks for; names as in policy/vectors/. */
enum corun_vector_op {
	CORUN_OP_SHARE_VTIME = 0,
	CORUN_OP_SHARE_CHARGE = 1,
	CORUN_OP_SHARE_WAKE = 2,
	CORUN_OP_SHARE_PREEMPTS_IN = 3,
	CORUN_OP_SHARE_KEEPS = 4,
	CORUN_OP_YIELD_DECIDE = 5,
	CORUN_OP_YIELD_SLICE = 6,
	CORUN_OP_YIELD_FRESH = 7,
	CORUN_OP_YIELD_SCORE = 8,
	CORUN_OP_URGENT_DECIDE = 9,
	CORUN_OP_URGENT_TAKES = 10,
	CORUN_OP_URGENT_DEFERS = 11,
	CORUN_OP_POOL_NEXT = 12,
	CORUN_OP_GANG_COUPLED = 13,
	CORUN_OP_GANG_PULLS = 14,
	CORUN_OP_GANG_SLICE = 15,
	CORUN_OP_HALT_JUDGE = 16,
	CORUN_OP_HALT_STEP = 17,
	CORUN_OP_SHARE_RESUMES = 18,
	CORUN_OP_GANG_ALIGN = 19,
	CORUN_OP_GANG_FOLLOWS = 20,
	CORUN_OP_GANG_CROWDED = 21,
	CORUN_OP_YIELD_AFFORDS = 22,
	CORUN_OP_HALT_NOTE_LOAD = 23,
	CORUN_OP_NR = 24,
};

#define CORUN_VECTOR_IN 10
#define CORUN_VECTOR_OUT 2

/* A decision's inputs, and what it said. The order is that of its arguments. */
struct corun_vector {
	u32 op;
	/* Set to 1 by a run that knew the op. */
	u32 done;
	u64 in[CORUN_VECTOR_IN];
	u64 out[CORUN_VECTOR_OUT];
	struct corun_tunables tun;
};

CORUN_INLINE void corun_vector_resumes(struct corun_vector *v)
{
	struct corun_vm vm = { .vtime_ns = v->in[0], .weight = (u32)v->in[1] };
	struct corun_vm host = { .vtime_ns = v->in[2],
				 .weight = (u32)v->in[3] };

	v->out[0] = corun_share_resumes(&vm, v->in[4] ? &host : 0, v->in[5],
					&v->tun);
}

CORUN_INLINE void corun_vector_share(struct corun_vector *v)
{
	struct corun_vm a = { .vtime_ns = v->in[0], .weight = (u32)v->in[1] };
	struct corun_vcpu x = { .vtime_ns = v->in[2], .weight = (u32)v->in[3] };
	struct corun_vm b = { .vtime_ns = v->in[4], .weight = (u32)v->in[5] };
	struct corun_vcpu y = { .vtime_ns = v->in[6], .weight = (u32)v->in[7] };

	if (v->op == CORUN_OP_SHARE_PREEMPTS_IN)
		v->out[0] = corun_share_preempts_in(&a, &x, &b, &y,
						    (enum corun_wakeup)v->in[8],
						    v->in[9], &v->tun);
	else
		v->out[0] = corun_share_keeps(&a, &x, v->in[8] & 1 ? &b : 0,
					      v->in[8] & 2, v->in[9]);
}

CORUN_INLINE void corun_vector_charge(struct corun_vector *v)
{
	struct corun_vcpu x = { .vtime_ns = v->in[0], .weight = (u32)v->in[1] };

	corun_share_charge_vcpu(&x, v->in[2]);
	v->out[0] = x.vtime_ns;
	v->out[1] = x.used_ns;
}

CORUN_INLINE void corun_vector_yield(struct corun_vector *v)
{
	struct corun_yield_input in = {
		.directed = v->in[0],
		.same_vm = v->in[1],
		.allowed_here = v->in[2],
	};

	v->out[0] = corun_yield_decide(&in);
}

CORUN_INLINE void corun_vector_urgent(struct corun_vector *v)
{
	struct corun_vm vm = { .vtime_ns = v->in[0] };
	struct corun_vm best = { .vtime_ns = v->in[1] };
	struct corun_victim victim = {
		.vm_vtime_ns = v->in[1],
		.urgent_end_ns = v->in[2],
		.sibling_or_host = v->in[3],
		.taken = v->in[4],
	};

	switch (v->op) {
	case CORUN_OP_URGENT_DECIDE:
		v->out[0] = corun_urgent_decide(v->in[0], v->in[1], v->in[2],
						v->in[3], &v->tun);
		break;
	case CORUN_OP_URGENT_TAKES:
		v->out[0] = corun_urgent_takes(&vm, &victim, v->in[5], &v->tun);
		break;
	default:
		v->out[0] = corun_urgent_defers((u32)v->in[2], v->in[3], &vm,
						&best, &v->tun);
	}
}

CORUN_INLINE void corun_vector_pool(struct corun_vector *v)
{
	struct corun_pool pool = { .size = (u32)v->in[0],
				   .calm = (u32)v->in[1] };
	struct corun_pool_window w = {
		.window_ns = v->in[2],
		.busy_ns = v->in[3],
		.waited_ns = v->in[4],
		.events = v->in[5],
		.served = v->in[6],
		.nr_cpus = v->in[7],
	};

	pool = corun_pool_next(pool, &w, &v->tun);
	v->out[0] = pool.size;
	v->out[1] = pool.calm;
}

CORUN_INLINE void corun_vector_gang(struct corun_vector *v)
{
	struct corun_vm vm = { .vtime_ns = v->in[0] };
	struct corun_vm other = { .vtime_ns = v->in[1],
				  .weight = (u32)v->in[2] };

	switch (v->op) {
	case CORUN_OP_GANG_COUPLED:
		v->out[0] = corun_gang_coupled(v->in[0], v->in[1], v->in[2],
					       &v->tun);
		break;
	case CORUN_OP_GANG_PULLS:
		v->out[0] = corun_gang_pulls(&vm, &other, v->in[3], &v->tun);
		break;
	default:
		v->out[0] = corun_gang_slice(v->in[0], &v->tun);
	}
}

CORUN_INLINE void corun_vector_score(struct corun_vector *v)
{
	struct corun_sibling s = {
		.waits_since_ns = v->in[0],
		.region = (u32)v->in[1],
		.in_kernel = v->in[2],
		.ipi_from_spinner = v->in[3],
	};

	v->out[0] = corun_yield_score(&s, v->in[4]);
}

/* in[3]: somebody waits. */
CORUN_INLINE void corun_vector_affords(struct corun_vector *v)
{
	struct corun_vm vm = { .vtime_ns = v->in[0], .weight = (u32)v->in[1] };
	struct corun_vm other = { .vtime_ns = v->in[4] };

	v->out[0] = corun_yield_affords(&vm, v->in[3] ? &other : NULL,
					(u32)v->in[2], &v->tun);
}

CORUN_INLINE void corun_vector_halt_judge(struct corun_vector *v)
{
	const struct corun_halt_tunables tun = CORUN_HALT_TUNABLES_DEFAULT;
	struct corun_halt_window win = {
		.cpu_ns = v->in[0],
		.waiting_ns = v->in[1],
		.polls = v->in[2],
		.hits = v->in[3],
		.hit_ns = v->in[4],
		.vain_ns = v->in[5],
	};

	v->out[0] = corun_halt_judge(&win, &tun);
}

/* out: other | quiet_windows << 8, and hold_windows | wakeups_per_s << 32. */
CORUN_INLINE void corun_vector_halt_note_load(struct corun_vector *v)
{
	const struct corun_halt_tunables tun = CORUN_HALT_TUNABLES_DEFAULT;
	struct corun_halt_window win = {
		.cpu_ns = v->in[3],
		.wakeups = v->in[4],
	};
	struct corun_halt halt = {
		.mode = (u32)v->in[0],
		.quiet_windows = (u32)v->in[5],
		.hold_windows = (u32)v->in[1],
		.wakeups_per_s = (u32)v->in[2],
	};

	v->out[0] = corun_halt_note_load(&halt, &win, &tun);
	v->out[0] |= (u64)halt.quiet_windows << 8;
	v->out[1] = halt.hold_windows | (u64)halt.wakeups_per_s << 32;
}

/* out[1]: mode | quiet_windows << 8 | hold_windows << 32. */
CORUN_INLINE void corun_vector_halt_step(struct corun_vector *v)
{
	const struct corun_halt_tunables tun = CORUN_HALT_TUNABLES_DEFAULT;
	struct corun_halt halt = {
		.poll_ns = v->in[0],
		.mode = (u32)v->in[1],
		.quiet_windows = (u32)v->in[2],
		.hold_windows = (u32)v->in[3],
	};

	corun_halt_step(&halt, (u32)v->in[4], v->in[5], &tun);
	v->out[0] = halt.poll_ns;
	v->out[1] = halt.mode | (u64)halt.quiet_windows << 8 |
		    (u64)halt.hold_windows << 32;
}

/* Runs the decision that @v names. */
CORUN_INLINE void corun_vector_run(struct corun_vector *v)
{
	v->done = v->op < CORUN_OP_NR;
	switch (v->op) {
	case CORUN_OP_SHARE_VTIME:
		v->out[0] = corun_share_vtime(v->in[0], (u32)v->in[1]);
		break;
	case CORUN_OP_SHARE_CHARGE:
		corun_vector_charge(v);
		break;
	case CORUN_OP_SHARE_WAKE:
		v->out[0] = corun_share_wake(v->in[0], v->in[1], (u32)v->in[2],
					     &v->tun);
		break;
	case CORUN_OP_SHARE_PREEMPTS_IN:
	case CORUN_OP_SHARE_KEEPS:
		corun_vector_share(v);
		break;
	case CORUN_OP_SHARE_RESUMES:
		corun_vector_resumes(v);
		break;
	case CORUN_OP_YIELD_DECIDE:
		corun_vector_yield(v);
		break;
	case CORUN_OP_YIELD_SLICE:
		v->out[0] = corun_yield_slice(v->in[0], &v->tun);
		break;
	case CORUN_OP_YIELD_FRESH:
		v->out[0] = corun_yield_hint_fresh(v->in[0], v->in[1], &v->tun);
		break;
	case CORUN_OP_YIELD_AFFORDS:
		corun_vector_affords(v);
		break;
	case CORUN_OP_YIELD_SCORE:
		corun_vector_score(v);
		break;
	case CORUN_OP_URGENT_DECIDE:
	case CORUN_OP_URGENT_TAKES:
	case CORUN_OP_URGENT_DEFERS:
		corun_vector_urgent(v);
		break;
	case CORUN_OP_POOL_NEXT:
		corun_vector_pool(v);
		break;
	case CORUN_OP_GANG_COUPLED:
	case CORUN_OP_GANG_PULLS:
	case CORUN_OP_GANG_SLICE:
		corun_vector_gang(v);
		break;
	case CORUN_OP_GANG_ALIGN:
		v->out[0] = corun_gang_align(v->in[0], v->in[1], &v->tun);
		break;
	case CORUN_OP_GANG_FOLLOWS:
		v->out[0] = corun_gang_follows(v->in[0], v->in[1], &v->tun);
		break;
	case CORUN_OP_GANG_CROWDED:
		v->out[0] = corun_gang_crowded(v->in[0], (u32)v->in[1],
					       (u32)v->in[2], &v->tun);
		break;
	case CORUN_OP_HALT_JUDGE:
		corun_vector_halt_judge(v);
		break;
	case CORUN_OP_HALT_STEP:
		corun_vector_halt_step(v);
		break;
	case CORUN_OP_HALT_NOTE_LOAD:
		corun_vector_halt_note_load(v);
		break;
	}
}

#endif /* CORUN_VECTOR_H */
