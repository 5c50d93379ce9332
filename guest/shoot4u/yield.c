// SPDX-License-Identifier: GPL-2.0-only
/*
 * What takes the place of KVM's pv-sched-yield, which is dead while the hypervisor
 * takes us for a guest of Hyper-V's kind: who sends a call-function IPI to a
 * preempted vCPU is going to spin until that has run, and tells the host so
 * (Hyper-V's "notify long spin wait"). KVM then looks for a vCPU of this machine
 * that can use the pCPU better, as it does when the hardware notices a spin.
 *
 * Only what waits for many is told: the kernel's other waits are loops inside of
 * its own functions (a lock's test-and-set, csd_lock_wait), with no place for a
 * module to be called from.
 */
#include "shoot4u.h"

#include <asm/qspinlock.h>
#include <asm/smp.h>
#include <linux/rcupdate.h>

/* Off unless asked for: a hint that helps nobody is an exit for nothing. */
bool s4u_notify;

static void (*kernels)(const struct cpumask *cpus);

/* The kernel calls this with preemption off. */
static void send_and_notify(const struct cpumask *cpus)
{
	unsigned int cpu;

	kernels(cpus);
	if (!READ_ONCE(s4u_notify) || READ_ONCE(s4u_mode) != S4U_SHOOT4U)
		return;
	for_each_cpu(cpu, cpus) {
		if (!vcpu_is_preempted(cpu))
			continue;
		s4u_add(S4U_C_NOTIFIED, 1);
		s4u_notify_spin();
		return;
	}
}

void s4u_yield_start(void)
{
	kernels = smp_ops.send_call_func_ipi;
	WRITE_ONCE(smp_ops.send_call_func_ipi, send_and_notify);
}

/* On return nobody is in send_and_notify() any more. */
void s4u_yield_stop(void)
{
	WRITE_ONCE(smp_ops.send_call_func_ipi, kernels);
	synchronize_rcu();
}
