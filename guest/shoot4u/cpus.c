// SPDX-License-Identifier: GPL-2.0-only
/* Per CPU: its number for the hypervisor, and memory for requests. */
#include "shoot4u.h"

#include <asm/msr.h>
#include <linux/cpuhotplug.h>
#include <linux/gfp.h>
#include <linux/version.h>

#define HV_MSR_GUEST_OS_ID 0x40000000
#define HV_MSR_VP_INDEX 0x40000002
/* Bits 63-48 of the identity: an open-source system, Linux. */
#define HV_LINUX 0x8100

DEFINE_PER_CPU(struct s4u_cpu, s4u_cpus) = { .vp = S4U_NO_VP };

static enum cpuhp_state state;

/*
 * Runs on the CPU itself. The number stays when a CPU goes: a flush for one that
 * is not there is harmless, while a gap would send all requests to IPIs.
 */
static int cpu_online_here(unsigned int cpu)
{
	struct s4u_cpu *me = per_cpu_ptr(&s4u_cpus, cpu);
	u32 low, high;

	if (!me->input) {
		void *page = (void *)get_zeroed_page(GFP_KERNEL);

		if (!page)
			return -ENOMEM;
		WRITE_ONCE(me->input, page);
	}
	if (rdmsr_safe(HV_MSR_VP_INDEX, &low, &high)) {
		pr_err("CPU %u: the hypervisor does not tell its number (MSR 0x%x)\n",
		       cpu, HV_MSR_VP_INDEX);
		return -EIO;
	}
	WRITE_ONCE(me->vp, low);
	return 0;
}

static void free_inputs(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct s4u_cpu *it = per_cpu_ptr(&s4u_cpus, cpu);

		free_page((unsigned long)it->input);
		it->input = NULL;
		it->vp = S4U_NO_VP;
	}
}

/* Prepares all CPUs, present and future. */
int s4u_cpus_start(void)
{
	int ret = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "corun/shoot4u:online",
				    cpu_online_here, NULL);

	if (ret < 0) {
		free_inputs();
		return ret;
	}
	state = ret;
	return 0;
}

/* Nobody flushes any more when this is called. */
void s4u_cpus_stop(void)
{
	cpuhp_remove_state(state);
	free_inputs();
}

/*
 * Says who we are, or takes it back. The identity belongs to the whole virtual
 * machine. While it is set, KVM takes every hypercall for one of Hyper-V's.
 */
int s4u_identify(bool on)
{
	u32 high = on ? HV_LINUX << 16 | LINUX_VERSION_CODE >> 16 : 0;
	u32 low = on ? (LINUX_VERSION_CODE & 0xffff) << 16 : 0;

	return wrmsr_safe(HV_MSR_GUEST_OS_ID, low, high);
}
