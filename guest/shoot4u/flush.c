// SPDX-License-Identifier: GPL-2.0-only
/*
 * The remote part of a shootdown by hypercall.
 *
 * KVM implements Hyper-V's "flush virtual address space" and "... list": it
 * queues the request for each named vCPU, kicks those that are in the guest and
 * waits until they have left it. A vCPU flushes before it enters the guest
 * again, so a preempted one is never waited for.
 *
 * Safety, case by case. What comes here is what the kernel sends to
 * flush_tlb_multi: shootdowns of user address spaces.
 *
 * - Kernel mappings, flush_tlb_all() and the IPIs that end a lock-free page
 *   table walk do not come here. They stay IPIs.
 * - The CPU that asks flushes itself by the kernel's own function: the hook
 *   calls it with a mask of this CPU alone. Its tlb_gen stays exact.
 * - The tlb_gen of remote CPUs is left behind, which the kernel allows for
 *   paravirtual flushes: at worst such a CPU flushes once more than it must.
 * - KVM flushes a vCPU's addresses or its whole guest TLB, whatever the PCID:
 *   never less than what was asked for, with PTI's second PCID too.
 * - Lazy CPUs are left out when only pages go: they look at tlb_gen before
 *   they use the address space again. The mm's tlb_gen was raised with a full
 *   barrier before we read is_lazy. When page tables go, they are flushed:
 *   they could walk the freed tables speculatively.
 * - Freed page tables: full. A flush by address need not drop the cached
 *   entries of upper levels.
 * - No mm (reclaim's batches): full, and all address spaces.
 * - Pages larger than 4 KiB: full. The host may back them by small pages, and
 *   its flush by address drops but the small one at that address.
 * - Ranges of more than max_list addresses: full. KVM does the same above 15.
 * - A CPU with a bit in the mask of an mm that it no longer uses is flushed,
 *   too. The kernel's IPI would also clear the bit; here it stays until the
 *   kernel's next chance, and costs a needless flush.
 * - Offline CPUs are left out, as IPIs do: they begin with an empty TLB.
 * - Any doubt - a CPU that has no number yet, an error from the hypervisor, a
 *   host that forgot our identity - falls back to the kernel's IPIs, for the
 *   whole request. Flushing a CPU twice is harmless.
 * - No allocation and no sleeping; the request's page is used with interrupts
 *   off, so nothing can come between. Nothing here runs in NMI: the kernel
 *   does not shoot down from there.
 */
#include "shoot4u.h"

#include <asm/io.h>
#include <asm/kvm_para.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/random.h>

/* Hypercalls and their input, from the Hyper-V functional specification. */
#define HV_FLUSH_SPACE 0x0002
#define HV_FLUSH_LIST 0x0003
#define HV_LONG_SPIN 0x0008
#define HV_FLUSH_SPACE_EX 0x0013
#define HV_FLUSH_LIST_EX 0x0014
#define HV_ALL_SPACES BIT(1)
/* The input is in registers: for the notification, how long has been spun. */
#define HV_FAST BIT(16)
#define HV_VARHEAD_SHIFT 17
#define HV_REPS_SHIFT 32
#define HV_STATUS_MASK 0xffff
#define HV_SPARSE_4K 0
/* An entry of a list names up to this many pages. */
#define HV_ENTRY_PAGES 4096
#define HV_MAX_LIST 15

/* Set bits of 64 vCPUs. */
struct hv_flush {
	u64 space;
	u64 flags;
	u64 vcpus;
	u64 list[];
};

/* Any set of vCPUs: the banks that are not empty, then the list. */
struct hv_flush_ex {
	u64 space;
	u64 flags;
	u64 format;
	u64 valid_banks;
	u64 rest[];
};

/* Longest list of addresses; 0 flushes in full always. */
unsigned int s4u_max_list = HV_MAX_LIST;

DECLARE_PER_CPU_SHARED_ALIGNED(struct s4u_tlb_shared, cpu_tlbstate_shared);

#if !defined(CONFIG_MMU_GATHER_RCU_TABLE_FREE) && !defined(CONFIG_PARAVIRT)
#error "this kernel frees page tables under the protection of shootdown IPIs"
#endif

/* What a request flushes. */
struct extent {
	unsigned int entries; /* of the list; 0: everything */
	enum s4u_count kind;
};

static struct extent extent_of(const struct s4u_info *info)
{
	unsigned long pages;
	unsigned int entries;

	if (info->freed_tables)
		return (struct extent){ 0, S4U_C_FULL_TABLES };
	if (!info->mm)
		return (struct extent){ 0, S4U_C_FULL_BATCH };
	if (info->end == S4U_ALL || info->end <= info->start)
		return (struct extent){ 0, S4U_C_FULL_RANGE };
	if (info->stride_shift != PAGE_SHIFT)
		return (struct extent){ 0, S4U_C_FULL_HUGE };
	pages = (PAGE_ALIGN(info->end) - (info->start & PAGE_MASK)) >>
		PAGE_SHIFT;
	if (pages > (unsigned long)HV_MAX_LIST * HV_ENTRY_PAGES)
		return (struct extent){ 0, S4U_C_FULL_RANGE };
	entries = DIV_ROUND_UP(pages, HV_ENTRY_PAGES);
	if (entries > min_t(unsigned int, s4u_max_list, HV_MAX_LIST))
		return (struct extent){ 0, S4U_C_FULL_RANGE };
	return (struct extent){ entries, S4U_C_LIST };
}

/* The low 12 bits of an entry are the number of pages after the first. */
static void fill_list(u64 *list, const struct s4u_info *info)
{
	unsigned long at = info->start & PAGE_MASK;
	unsigned long end = PAGE_ALIGN(info->end);

	while (at < end) {
		unsigned long pages = min((end - at) >> PAGE_SHIFT,
					  (unsigned long)HV_ENTRY_PAGES);

		*list++ = at | (pages - 1);
		at += pages << PAGE_SHIFT;
	}
}

/* Sets the bits of the vCPUs to flush; returns the banks in use. */
static bool gather(struct s4u_cpu *me, const struct cpumask *cpus,
		   const struct s4u_info *info, u64 *valid_banks)
{
	unsigned int cpu, self = smp_processor_id();
	u64 targets = 0, lazy = 0;
	bool complete = true;

	for_each_cpu(cpu, cpus) {
		u32 vp;

		if (cpu == self || !cpu_online(cpu))
			continue;
		if (!info->freed_tables &&
		    READ_ONCE(per_cpu(cpu_tlbstate_shared, cpu).is_lazy)) {
			lazy++;
			continue;
		}
		vp = READ_ONCE(per_cpu(s4u_cpus, cpu).vp);
		if (vp >= 64 * ARRAY_SIZE(me->banks) ||
		    (vp >= 64 && !s4u_has_ex())) {
			complete = false;
			break;
		}
		me->banks[vp / 64] |= BIT_ULL(vp % 64);
		*valid_banks |= BIT_ULL(vp / 64);
		targets++;
	}
	s4u_add(S4U_C_SKIPPED_LAZY, lazy);
	if (complete)
		s4u_add(S4U_C_TARGETS, targets);
	return complete;
}

/*
 * rax is preset to a number that is no hypercall of KVM's: a host that lost our
 * identity (a reset, a migration that failed to keep it) takes the call for one
 * of KVM's own and answers with an error.
 */
static u64 hypercall(u64 control, phys_addr_t input)
{
	u64 status = ~0ULL;

	asm volatile(KVM_HYPERCALL
		     : "+a"(status), "+c"(control), "+d"(input)
		     :
		     : "r8", "r9", "r10", "r11", "memory", "cc");
	return status;
}

/* Tells the host that this vCPU waits for another. A hint: it cannot fail. */
void s4u_notify_spin(void)
{
	hypercall(HV_LONG_SPIN | HV_FAST, 0);
}

static u64 call_small(struct s4u_cpu *me, const struct s4u_info *info,
		      unsigned int entries)
{
	struct hv_flush *flush = me->input;

	flush->space = info->mm ? __pa(info->mm->pgd) : 0;
	flush->flags = info->mm ? 0 : HV_ALL_SPACES;
	flush->vcpus = me->banks[0];
	if (!entries)
		return hypercall(HV_FLUSH_SPACE, virt_to_phys(flush));
	fill_list(flush->list, info);
	return hypercall(HV_FLUSH_LIST | (u64)entries << HV_REPS_SHIFT,
			 virt_to_phys(flush));
}

static u64 call_ex(struct s4u_cpu *me, u64 valid_banks,
		   const struct s4u_info *info, unsigned int entries)
{
	struct hv_flush_ex *flush = me->input;
	u64 control, banks = 0, rest = valid_banks;

	flush->space = info->mm ? __pa(info->mm->pgd) : 0;
	flush->flags = info->mm ? 0 : HV_ALL_SPACES;
	flush->format = HV_SPARSE_4K;
	flush->valid_banks = valid_banks;
	for (; rest; rest &= rest - 1)
		flush->rest[banks++] = me->banks[__ffs64(rest)];
	control = banks << HV_VARHEAD_SHIFT;
	if (!entries)
		return hypercall(HV_FLUSH_SPACE_EX | control,
				 virt_to_phys(flush));
	fill_list(&flush->rest[banks], info);
	control |= (u64)entries << HV_REPS_SHIFT;
	return hypercall(HV_FLUSH_LIST_EX | control, virt_to_phys(flush));
}

static bool flush_targets(struct s4u_cpu *me, u64 valid_banks,
			  const struct s4u_info *info)
{
	struct extent extent = extent_of(info);
	u64 status;

	s4u_add(extent.kind, 1);
	s4u_add(S4U_C_HYPERCALLS, 1);
	if (valid_banks == 1)
		status = call_small(me, info, extent.entries);
	else
		status = call_ex(me, valid_banks, info, extent.entries);
	if (!(status & HV_STATUS_MASK))
		return true;
	s4u_add(S4U_C_FALLBACK_STATUS, 1);
	return false;
}

/* Flushes @info on all of @cpus but this one. */
bool s4u_flush_remote(const struct cpumask *cpus, const struct s4u_info *info)
{
	u64 valid_banks = 0, rest;
	struct s4u_cpu *me;
	unsigned long flags;
	bool done;

	local_irq_save(flags);
	me = this_cpu_ptr(&s4u_cpus);
	done = me->input && gather(me, cpus, info, &valid_banks);
	if (!done)
		s4u_add(S4U_C_FALLBACK_CPU, 1);
	else if (!valid_banks)
		s4u_add(S4U_C_NO_TARGET, 1);
	else
		done = flush_targets(me, valid_banks, info);
	for (rest = valid_banks; rest; rest &= rest - 1)
		me->banks[__ffs64(rest)] = 0;
	local_irq_restore(flags);
	return done;
}

#ifdef CORUN_TEST
/*
 * Sends @n flush requests full of garbage: unknown sets, absurd counts, addresses
 * that are no memory. The host must survive, and so must other guests.
 */
void s4u_send_garbage(unsigned int n)
{
	static const u16 codes[] = {
		HV_FLUSH_SPACE,
		HV_FLUSH_LIST,
		HV_FLUSH_SPACE_EX,
		HV_FLUSH_LIST_EX,
	};
	unsigned int refused = 0, i;

	for (i = 0; i < n; i++) {
		/* Not "fast": arguments in vector registers belong to the task. */
		u64 control = get_random_u64() & ~0x1ffffULL;
		unsigned long flags;
		phys_addr_t input;

		control |= codes[i % ARRAY_SIZE(codes)];
		local_irq_save(flags);
		get_random_bytes(this_cpu_ptr(&s4u_cpus)->input, PAGE_SIZE);
		input = virt_to_phys(this_cpu_ptr(&s4u_cpus)->input);
		/* Some with correct headers, so that their content is looked at. */
		if (i % 3 == 0)
			control &= 0x0000001f03ffffffULL;
		if (hypercall(control, i % 7 ? input : get_random_u64()) &
		    HV_STATUS_MASK)
			refused++;
		local_irq_restore(flags);
	}
	pr_info("%u of %u garbage requests were refused\n", refused, n);
}
#endif
