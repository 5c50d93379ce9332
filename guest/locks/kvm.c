// SPDX-License-Identifier: GPL-2.0-only
/* KVM's kick hypercall, and whether it will be answered. */
#include <linux/bits.h>
#include <linux/kvm_para.h>
#include <linux/string.h>
#include <asm/cpufeature.h>
#include <asm/msr.h>
#include <asm/smp.h>
/* The home of cpuid() until 6.16 or so is included by others. */
#if __has_include(<asm/cpuid/api.h>)
#include <asm/cpuid/api.h>
#else
#include <asm/processor.h>
#endif

#include "env.h"
#include "kvm.h"

/* HV_X64_MSR_GUEST_OS_ID; the kernel's header for it comes and goes. */
#define GUEST_OS_ID_MSR 0x40000000

/* Where hypervisors present themselves, one each 0x100 leaves. */
#define FIRST_BASE 0x40000000
#define LAST_BASE 0x40010000

static atomic64_t failed_kicks;

void corun_kvm_kick(u32 cpu)
{
	if (kvm_hypercall2(KVM_HC_KICK_CPU, 0, cpu_physical_id(cpu)))
		atomic64_inc(&failed_kicks);
}

u64 corun_kvm_failed_kicks(void)
{
	return (u64)atomic64_read(&failed_kicks);
}

void corun_kvm_forget(void)
{
	atomic64_set(&failed_kicks, 0);
}

/* KVM is not first where it presents itself as Hyper-V as well. 0: no KVM. */
static u32 kvm_base(void)
{
	u32 base, max, sig[3];

	if (!boot_cpu_has(X86_FEATURE_HYPERVISOR))
		return 0;
	for (base = FIRST_BASE; base < LAST_BASE; base += 0x100) {
		cpuid(base, &max, &sig[0], &sig[1], &sig[2]);
		if (!memcmp(sig, KVM_SIGNATURE, sizeof(sig)))
			return base;
	}
	return 0;
}

static bool is_hyperv_guest(void)
{
	u32 low, high;

	if (rdmsr_safe(GUEST_OS_ID_MSR, &low, &high))
		return false;
	return low || high;
}

const char *corun_kvm_no_kicks(void)
{
	u32 base = kvm_base();

	if (!base)
		return "this is no KVM guest, so a halted CPU cannot be kicked: use another algorithm";
	if (is_hyperv_guest())
		return "this guest has told KVM that it is a Hyper-V guest, and KVM then answers none of its own hypercalls, kicks among them: unload corun_guest first, or give it mode kernel";
	if (!(cpuid_eax(base | KVM_CPUID_FEATURES) &
	      BIT(KVM_FEATURE_PV_UNHALT)))
		return "the VM has no pv-unhalt, so a halted vCPU cannot be kicked: start it with -cpu ...,kvm-pv-unhalt=on (libvirt: <pvspinlock state='on'/>)";
	return NULL;
}
