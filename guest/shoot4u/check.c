// SPDX-License-Identifier: GPL-2.0-only
/* Whether this virtual machine is one that mode shoot4u can serve. */
#include "shoot4u.h"

#include <asm/cpufeature.h>
#include <asm/hypervisor.h>
#include <asm/kvm_para.h>
#include <asm/processor.h>
#include <linux/cc_platform.h>

#define LEAF_FIRST 0x40000000U
#define LEAF_LAST 0x40010000U
#define LEAF_STEP 0x100U

/* Leaf +3 EAX, leaf +4 EAX of the Hyper-V interface. */
#define HV_HAS_HYPERCALLS BIT(5)
#define HV_HAS_VP_INDEX BIT(6)
#define HV_WANTS_FLUSH_CALLS BIT(2)
#define HV_HAS_SPARSE_SETS BIT(11)

#define NEXT "; start the VM with the options that `corun guest options` prints"

static bool sparse_sets;

/* Whether hypercalls take sets of vCPUs above the 64th. */
bool s4u_has_ex(void)
{
	return sparse_sets;
}

/* Finds an interface by its signature of 12 bytes; 0 when there is none. */
static u32 find_interface(const char *signature)
{
	u32 leaf, eax, sig[3];

	for (leaf = LEAF_FIRST; leaf < LEAF_LAST; leaf += LEAF_STEP) {
		cpuid(leaf, &eax, &sig[0], &sig[1], &sig[2]);
		if (!memcmp(sig, signature, 12))
			return leaf;
	}
	return 0;
}

static const char *check_hyperv(void)
{
	u32 base = find_interface("Microsoft Hv");
	u32 max, ebx, ecx, edx, features, hints;

	if (!base)
		return "the hypervisor does not offer the Hyper-V interface" NEXT;
	cpuid(base, &max, &ebx, &ecx, &edx);
	if (max < base + 4)
		return "the Hyper-V interface is incomplete" NEXT;
	cpuid(base + 3, &features, &ebx, &ecx, &edx);
	cpuid(base + 4, &hints, &ebx, &ecx, &edx);
	if (!(features & HV_HAS_HYPERCALLS) || !(features & HV_HAS_VP_INDEX))
		return "the hypervisor lacks hypercalls or hv-vpindex" NEXT;
	if (!(hints & HV_WANTS_FLUSH_CALLS))
		return "the hypervisor does not offer flush hypercalls (hv-tlbflush)" NEXT;
	sparse_sets = hints & HV_HAS_SPARSE_SETS;
	if (nr_cpu_ids > 64 && !sparse_sets)
		return "more than 64 CPUs, and the hypervisor takes but sets of 64 (hv-tlbflush-ext)" NEXT;
	return NULL;
}

/* What stops working while KVM takes all hypercalls for Hyper-V's. */
static const char *check_kvm(u32 base)
{
	u32 features, ebx, ecx, edx;

	cpuid(base + 1, &features, &ebx, &ecx, &edx);
	if (features & BIT(KVM_FEATURE_PV_UNHALT))
		return "this guest wakes waiters of locks by KVM's hypercalls, which stop working: start the VM with -kvm-pv-unhalt, or keep that and leave this mode off";
	if (features & BIT(KVM_FEATURE_PV_SEND_IPI))
		return "this guest sends IPIs by KVM's hypercalls, which stop working: start the VM with -kvm-pv-ipi";
	if (features & BIT(KVM_FEATURE_PV_SCHED_YIELD))
		return "this guest yields by KVM's hypercalls, which stop working: start the VM with -kvm-pv-sched-yield";
	return NULL;
}

const char *s4u_check_hypervisor(void)
{
	u32 kvm = find_interface("KVMKVMKVM\0\0\0");
	const char *why;

	if (!boot_cpu_has(X86_FEATURE_HYPERVISOR))
		return "this is no virtual machine: there is nobody to flush for it";
	if (!kvm || !hypervisor_is_type(X86_HYPER_KVM))
		return "the kernel does not run as a guest of KVM: this works on KVM alone; keep the KVM signature on (kvm=on)";
	if (cc_platform_has(CC_ATTR_GUEST_MEM_ENCRYPT))
		return "the guest's memory is encrypted: the hypervisor cannot read our requests";
#ifdef X86_FEATURE_INVLPGB
	if (boot_cpu_has(X86_FEATURE_INVLPGB))
		return "the CPU invalidates remote TLBs itself (INVLPGB): there is nothing to gain";
#endif
	why = check_hyperv();
	return why ? why : check_kvm(kvm);
}
