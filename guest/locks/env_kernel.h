/* SPDX-License-Identifier: GPL-2.0-only */
/* What env.h asks for, from the kernel. */
#ifndef CORUN_LOCKS_ENV_KERNEL_H
#define CORUN_LOCKS_ENV_KERNEL_H

#include <linux/atomic.h>
#include <linux/irqflags.h>
#include <linux/processor.h>
#include <linux/smp.h>
#include <linux/types.h>

#define lk_load(p) smp_load_acquire(p)
#define lk_load_ptr(p) smp_load_acquire(p)
#define lk_store(p, v) smp_store_release(p, v)
#define lk_store_ptr(p, v) smp_store_release(p, v)
#define lk_xchg(p, v) xchg(p, v)
#define lk_relax() cpu_relax()
#define lk_cpu() smp_processor_id()
#define lk_irq_restore(s) local_irq_restore(s)
#define lk_kick(cpu) corun_kvm_kick(cpu)

static __always_inline u32 lk_fetch_add(u32 *p, u32 v)
{
	return (u32)atomic_fetch_add((int)v, (atomic_t *)p);
}

static __always_inline u32 lk_fetch_or(u32 *p, u32 v)
{
	return (u32)atomic_fetch_or((int)v, (atomic_t *)p);
}

static __always_inline u64 lk_fetch_add64(u64 *p, u64 v)
{
	return (u64)atomic64_fetch_add((s64)v, (atomic64_t *)p);
}

static __always_inline bool lk_cmpxchg64(u64 *p, u64 old, u64 new)
{
	return try_cmpxchg(p, &old, new);
}

static __always_inline unsigned long lk_irq_save(void)
{
	unsigned long state;

	local_irq_save(state);
	return state;
}

/* With interrupts off before, nothing but a kick (or an NMI) ends the halt. */
static __always_inline void lk_halt(unsigned long irqs)
{
	if (irqs_disabled_flags(irqs))
		halt();
	else
		safe_halt();
}

/* kvm.c */
void corun_kvm_kick(u32 cpu);

#endif /* CORUN_LOCKS_ENV_KERNEL_H */
