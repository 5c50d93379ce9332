// SPDX-License-Identifier: GPL-2.0-only
/* The policy's header text as linkable symbols, and its layouts asserted. */
#include <stddef.h>

#include "corun/region.h"
#include "corun/vector.h"

_Static_assert(sizeof(struct corun_tunables) == 128, "Tunables in lib.rs");
_Static_assert(sizeof(struct corun_vm) == 32, "Vm in lib.rs");
_Static_assert(offsetof(struct corun_vm, weight) == 24, "Vm in lib.rs");
_Static_assert(sizeof(struct corun_vcpu) == 24, "Vcpu in lib.rs");
_Static_assert(offsetof(struct corun_vcpu, weight) == 16, "Vcpu in lib.rs");
_Static_assert(sizeof(struct corun_sibling) == 16, "Sibling in boost.rs");
_Static_assert(offsetof(struct corun_sibling, in_kernel) == 12,
	       "Sibling in boost.rs");
_Static_assert(sizeof(struct corun_victim) == 24, "Victim in boost.rs");
_Static_assert(sizeof(struct corun_pool) == 8, "Pool in boost.rs");
_Static_assert(sizeof(struct corun_pool_window) == 48,
	       "PoolWindow in boost.rs");
_Static_assert(CORUN_GANG_MIN_GAPS == 2, "GANG_MIN_GAPS in boost.rs");
_Static_assert(sizeof(struct corun_yield_input) == 3, "YieldInput in lib.rs");
_Static_assert(sizeof(struct corun_vector) == 232, "Vector in vector.rs");
_Static_assert(offsetof(struct corun_vector, tun) == 104,
	       "Vector in vector.rs");
_Static_assert(CORUN_REGION_UNKNOWN == 0, "Region in region.rs");
_Static_assert(CORUN_REGION_USER == 1, "Region in region.rs");
_Static_assert(CORUN_REGION_KERNEL == 2, "Region in region.rs");
_Static_assert(CORUN_REGION_IDLE == 3, "Region in region.rs");
_Static_assert(CORUN_REGION_LOCK_WAIT == 4, "Region in region.rs");
_Static_assert(CORUN_REGION_ACK_WAIT == 5, "Region in region.rs");
_Static_assert(CORUN_REGION_SCHED == 6, "Region in region.rs");
_Static_assert(CORUN_REGION_MM == 7, "Region in region.rs");
_Static_assert(CORUN_REGION_IRQ == 8, "Region in region.rs");
_Static_assert(CORUN_REGION_TLB == 9, "Region in region.rs");
_Static_assert(CORUN_REGION_LOCK_HELD == 10, "Region in region.rs");
_Static_assert(CORUN_REGION_NR == 11, "Region in region.rs");

_Static_assert(CORUN_MECHANISM_YIELD == 1 && CORUN_MECHANISM_STRICT == 2 &&
		       CORUN_MECHANISM_IPI == 4 && CORUN_MECHANISM_IO == 8 &&
		       CORUN_MECHANISM_MICRO == 16 &&
		       CORUN_MECHANISM_SYMBOLS == 32 &&
		       CORUN_MECHANISM_GANG == 64 &&
		       CORUN_MECHANISM_HALT == 128,
	       "Mechanisms in mechanisms.rs");
_Static_assert(sizeof(struct corun_halt_tunables) == 48, "in halt.rs");
_Static_assert(offsetof(struct corun_halt_tunables, hold_max_windows) == 44,
	       "in halt.rs");
_Static_assert(sizeof(struct corun_halt_window) == 56, "in halt.rs");
_Static_assert(sizeof(struct corun_halt) == 24, "in halt.rs");
_Static_assert(offsetof(struct corun_halt, hold_windows) == 16, "in halt.rs");

u64 corun_native_share_vtime(u64 delta_ns, u32 weight);
void corun_native_share_charge_vcpu(struct corun_vcpu *vcpu, u64 delta_ns);
u64 corun_native_share_wake(u64 vtime_ns, u64 now_ns, u32 lanes,
			    const struct corun_tunables *tun);
bool corun_native_share_first(const struct corun_vm *a,
			      const struct corun_vm *b);
u64 corun_native_share_preempts_in(const struct corun_vm *waking_vm,
				   const struct corun_vcpu *waking,
				   const struct corun_vm *running_vm,
				   const struct corun_vcpu *running, u32 wakeup,
				   u64 ran_ns,
				   const struct corun_tunables *tun);
bool corun_native_share_keeps(const struct corun_vm *vm,
			      const struct corun_vcpu *vcpu,
			      const struct corun_vm *best, bool has_head,
			      u64 head_vtime_ns);
bool corun_native_share_resumes(const struct corun_vm *vm,
				const struct corun_vm *host, u64 left_ns,
				const struct corun_tunables *tun);
bool corun_native_before(u64 a, u64 b);
u32 corun_native_yield_decide(const struct corun_yield_input *in);
bool corun_native_yield_hint_fresh(u64 made_ns, u64 now_ns,
				   const struct corun_tunables *tun);
u64 corun_native_yield_slice(u64 left_ns, const struct corun_tunables *tun);
bool corun_native_yield_affords(const struct corun_vm *vm,
				const struct corun_vm *other, u32 lanes,
				const struct corun_tunables *tun);
u64 corun_native_yield_score(const struct corun_sibling *s, u64 now_ns);
u32 corun_native_urgent_decide(u64 waits_since_ns, u64 urgent_ns,
			       u64 boosted_ns, u64 now_ns,
			       const struct corun_tunables *tun);
bool corun_native_urgent_takes(const struct corun_vm *vm,
			       const struct corun_victim *victim, u64 now_ns,
			       const struct corun_tunables *tun);
bool corun_native_urgent_defers(u32 region, u64 done, const struct corun_vm *vm,
				const struct corun_vm *best,
				const struct corun_tunables *tun);
struct corun_pool corun_native_pool_next(struct corun_pool pool,
					 const struct corun_pool_window *w,
					 const struct corun_tunables *tun);
bool corun_native_gang_coupled(bool was, u64 events, u64 used_ns,
			       const struct corun_tunables *tun);
bool corun_native_gang_pulls(const struct corun_vm *vm,
			     const struct corun_vm *other, u64 ran_ns,
			     const struct corun_tunables *tun);
u64 corun_native_gang_align(bool coupled, u64 left_ns,
			    const struct corun_tunables *tun);
bool corun_native_gang_follows(bool coupled, u64 age_ns,
			       const struct corun_tunables *tun);
u64 corun_native_gang_crowded(bool coupled, u32 vcpus, u32 pcpus,
			      const struct corun_tunables *tun);
u64 corun_native_gang_slice(u64 leader_left_ns,
			    const struct corun_tunables *tun);
bool corun_native_region_critical(u32 region);
u32 corun_native_region_rank(u32 region);
void corun_native_halt_defaults(struct corun_halt_tunables *tun);
void corun_native_halt_init(struct corun_halt *halt, u64 operator_ns,
			    const struct corun_halt_tunables *tun);
u32 corun_native_halt_judge(const struct corun_halt_window *win,
			    const struct corun_halt_tunables *tun);
void corun_native_halt_step(struct corun_halt *halt, u32 verdict,
			    u64 operator_ns,
			    const struct corun_halt_tunables *tun);
bool corun_native_halt_note_load(struct corun_halt *halt,
				 const struct corun_halt_window *win,
				 const struct corun_halt_tunables *tun);
void corun_native_vector_run(struct corun_vector *v);

u64 corun_native_share_vtime(u64 delta_ns, u32 weight)
{
	return corun_share_vtime(delta_ns, weight);
}

void corun_native_share_charge_vcpu(struct corun_vcpu *vcpu, u64 delta_ns)
{
	corun_share_charge_vcpu(vcpu, delta_ns);
}

u64 corun_native_share_wake(u64 vtime_ns, u64 now_ns, u32 lanes,
			    const struct corun_tunables *tun)
{
	return corun_share_wake(vtime_ns, now_ns, lanes, tun);
}

bool corun_native_share_first(const struct corun_vm *a,
			      const struct corun_vm *b)
{
	return corun_share_first(a, b);
}

u64 corun_native_share_preempts_in(const struct corun_vm *waking_vm,
				   const struct corun_vcpu *waking,
				   const struct corun_vm *running_vm,
				   const struct corun_vcpu *running, u32 wakeup,
				   u64 ran_ns, const struct corun_tunables *tun)
{
	return corun_share_preempts_in(waking_vm, waking, running_vm, running,
				       (enum corun_wakeup)wakeup, ran_ns, tun);
}

bool corun_native_share_keeps(const struct corun_vm *vm,
			      const struct corun_vcpu *vcpu,
			      const struct corun_vm *best, bool has_head,
			      u64 head_vtime_ns)
{
	return corun_share_keeps(vm, vcpu, best, has_head, head_vtime_ns);
}

bool corun_native_share_resumes(const struct corun_vm *vm,
				const struct corun_vm *host, u64 left_ns,
				const struct corun_tunables *tun)
{
	return corun_share_resumes(vm, host, left_ns, tun);
}

bool corun_native_before(u64 a, u64 b)
{
	return corun_before(a, b);
}

u32 corun_native_yield_decide(const struct corun_yield_input *in)
{
	return corun_yield_decide(in);
}

bool corun_native_yield_hint_fresh(u64 made_ns, u64 now_ns,
				   const struct corun_tunables *tun)
{
	return corun_yield_hint_fresh(made_ns, now_ns, tun);
}

u64 corun_native_yield_slice(u64 left_ns, const struct corun_tunables *tun)
{
	return corun_yield_slice(left_ns, tun);
}

bool corun_native_yield_affords(const struct corun_vm *vm,
				const struct corun_vm *other, u32 lanes,
				const struct corun_tunables *tun)
{
	return corun_yield_affords(vm, other, lanes, tun);
}

u64 corun_native_yield_score(const struct corun_sibling *s, u64 now_ns)
{
	return corun_yield_score(s, now_ns);
}

u32 corun_native_urgent_decide(u64 waits_since_ns, u64 urgent_ns,
			       u64 boosted_ns, u64 now_ns,
			       const struct corun_tunables *tun)
{
	return corun_urgent_decide(waits_since_ns, urgent_ns, boosted_ns,
				   now_ns, tun);
}

bool corun_native_urgent_takes(const struct corun_vm *vm,
			       const struct corun_victim *victim, u64 now_ns,
			       const struct corun_tunables *tun)
{
	return corun_urgent_takes(vm, victim, now_ns, tun);
}

bool corun_native_urgent_defers(u32 region, u64 done, const struct corun_vm *vm,
				const struct corun_vm *best,
				const struct corun_tunables *tun)
{
	return corun_urgent_defers(region, done, vm, best, tun);
}

struct corun_pool corun_native_pool_next(struct corun_pool pool,
					 const struct corun_pool_window *w,
					 const struct corun_tunables *tun)
{
	return corun_pool_next(pool, w, tun);
}

bool corun_native_gang_coupled(bool was, u64 events, u64 used_ns,
			       const struct corun_tunables *tun)
{
	return corun_gang_coupled(was, events, used_ns, tun);
}

bool corun_native_gang_pulls(const struct corun_vm *vm,
			     const struct corun_vm *other, u64 ran_ns,
			     const struct corun_tunables *tun)
{
	return corun_gang_pulls(vm, other, ran_ns, tun);
}

u64 corun_native_gang_align(bool coupled, u64 left_ns,
			    const struct corun_tunables *tun)
{
	return corun_gang_align(coupled, left_ns, tun);
}

u64 corun_native_gang_crowded(bool coupled, u32 vcpus, u32 pcpus,
			      const struct corun_tunables *tun)
{
	return corun_gang_crowded(coupled, vcpus, pcpus, tun);
}

bool corun_native_gang_follows(bool coupled, u64 age_ns,
			       const struct corun_tunables *tun)
{
	return corun_gang_follows(coupled, age_ns, tun);
}

u64 corun_native_gang_slice(u64 leader_left_ns,
			    const struct corun_tunables *tun)
{
	return corun_gang_slice(leader_left_ns, tun);
}

bool corun_native_region_critical(u32 region)
{
	return corun_region_critical(region);
}

u32 corun_native_region_rank(u32 region)
{
	return corun_region_rank(region);
}

void corun_native_halt_defaults(struct corun_halt_tunables *tun)
{
	*tun = (struct corun_halt_tunables)CORUN_HALT_TUNABLES_DEFAULT;
}

void corun_native_halt_init(struct corun_halt *halt, u64 operator_ns,
			    const struct corun_halt_tunables *tun)
{
	corun_halt_init(halt, operator_ns, tun);
}

u32 corun_native_halt_judge(const struct corun_halt_window *win,
			    const struct corun_halt_tunables *tun)
{
	return corun_halt_judge(win, tun);
}

void corun_native_halt_step(struct corun_halt *halt, u32 verdict,
			    u64 operator_ns,
			    const struct corun_halt_tunables *tun)
{
	corun_halt_step(halt, verdict, operator_ns, tun);
}

bool corun_native_halt_note_load(struct corun_halt *halt,
				 const struct corun_halt_window *win,
				 const struct corun_halt_tunables *tun)
{
	return corun_halt_note_load(halt, win, tun);
}

void corun_native_vector_run(struct corun_vector *v)
{
	corun_vector_run(v);
}
