// SPDX-License-Identifier: GPL-2.0-only
//! What things cost on the modelled machine.

use serde::{Deserialize, Serialize};

/// Costs in nanoseconds (`_pm`: per mille). Seed 003 gives the halt and IPI path
/// in cycles of a 2.6 GHz Sandy Bridge under Linux 3.11; where a figure comes
/// from elsewhere, its comment says so. "Judgement" marks what no seed gives and
/// no co-run figure was used for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Costs {
    /// VM exit to the start of the handler: 400 cycles.
    pub exit_ns: u64,
    /// Handler's end to guest code. Judgement: as the exit.
    pub entry_ns: u64,
    /// Handler of a write to the APIC's timer: with exit and entry about 1 us
    /// ("4 MSR writes: 3-5 us").
    pub timer_msr_ns: u64,
    /// Handler of an ICR write up to the kick of the target: 1,200 cycles.
    pub icr_ns: u64,
    /// The same for each further target of one multicast.
    pub icr_target_ns: u64,
    /// Handler of another hypercall, for example a pv kick. As the ICR's.
    pub hypercall_ns: u64,
    /// vCPUs that one ICR write reaches: 16 is a cluster of x2APIC ids, 1 the
    /// xAPIC's physical mode.
    pub icr_cluster: u64,
    /// A host IPI from send to receipt. 300 cycles of the polling path.
    pub host_ipi_ns: u64,
    /// Handler of an external-interrupt exit. Judgement.
    pub extint_ns: u64,
    /// From the kick of a halted vCPU on an idle pCPU until its thread is
    /// scheduled in: 8,500 cycles less `host_ipi_ns`.
    pub wake_idle_ns: u64,
    /// How long a pCPU is idle for it to be in its deep idle state when it is kicked
    /// (cpuidle's `target_residency`); 0: it has none. The governor is taken to foresee
    /// how long the pCPU will be idle.
    pub deep_idle_after_ns: u64,
    /// What a kick takes longer then (cpuidle's `exit_latency`, 104 us for a Sandy
    /// Bridge's C6 in `intel_idle`).
    pub deep_idle_ns: u64,
    /// The scheduled-in vCPU thread's return from the halt path to its VM entry:
    /// 3,400 cycles, the switch included.
    pub halt_return_ns: u64,
    /// A polling vCPU's return to its VM entry: 1,300 cycles.
    pub poll_return_ns: u64,
    /// More for an entry that injects an interrupt, up to the handler's first
    /// instruction: 1,100 cycles less `entry_ns`.
    pub inject_ns: u64,
    /// Guest interrupt entry, acknowledge and return. 1,400 cycles, of which
    /// the EOI exit is part.
    pub guest_irq_ns: u64,
    /// Choosing a task when the running one goes on.
    pub pick_ns: u64,
    /// Switch of vCPU threads on a pCPU: about 3 us with VMCS load, FPU and
    /// MSRs (DESIGN.md section 4).
    pub switch_ns: u64,
    /// corun's own programs when a pCPU chooses: `corun_dispatch`, 1,671 instructions
    /// (docs/results/hooks.txt). Here and below at 2.2 instructions a nanosecond,
    /// which is judgement.
    pub hook_pick_ns: u64,
    /// The same, more when the choice is another than who ran: `corun_stopping`,
    /// `corun_running`, `on_vcpu_put`, `on_vcpu_load`: 1,427 instructions.
    pub hook_switch_ns: u64,
    /// The same where a vCPU wakes another: `corun_enqueue`, 640 instructions. What
    /// wakes by timers and devices is woken by nobody here, and for nothing.
    pub hook_wake_ns: u64,
    /// Most work lost to cold caches after another vCPU had the pCPU: no more
    /// than that one ran without spinning, and the code runs at half speed until
    /// it is made up. Judgement: a 256 KB L2 refilled from the LLC.
    pub warmup_ns: u64,
    /// Speed of a hardware thread whose sibling runs, per mille of a lone one.
    /// Judgement: 1.25x for both together.
    pub smt_speed_pm: u64,
    /// PLE exit: the handler without candidates (`kvm_vcpu_on_spin`).
    pub ple_ns: u64,
    /// Each directed yield tried, with both runqueue locks. Seed 002's trace
    /// shows 22 us of host time a round with 15 other vCPUs on 8 pCPUs.
    pub ple_candidate_ns: u64,
    /// What each of them takes longer for every other pCPU that tries some just then:
    /// all lock the same run queues, two at a time (`double_rq_lock` in `yield_to`).
    pub ple_contention_ns: u64,
    /// Speed of a pause loop's clock: PLE windows and spin thresholds are in
    /// cycles of it. MHz.
    pub cpu_mhz: u64,
    /// One round of a guest's spin loop (a PAUSE and a load). Cycles.
    pub spin_round_cycles: u64,
    /// Hand-over of a spinlock to a running waiter: a cache-line transfer.
    pub lock_handover_ns: u64,
    /// The same, more for every other vCPU that spins on the same line: ticket
    /// locks only (Boyd-Wickizer et al., "Non-scalable locks are dangerous").
    pub lock_spinner_ns: u64,
    /// Fetching a cache line that another CPU wrote last, inside a lock that a model gives
    /// `lines`. Judgement: 100 cycles, within a socket.
    pub line_ns: u64,
    /// A TLB flush of the own vCPU with its bookkeeping.
    pub flush_ns: u64,
    /// `Shoot4U`: invalidation by the hypervisor on one target. kvmtlb: at entry.
    pub host_flush_ns: u64,
    /// `Shoot4U`: the hypervisor's call to one more target, beyond the interrupt, the
    /// exit and the flush, and, of an idle pCPU, its waking (`wake_idle_ns`).
    pub host_call_ns: u64,
    /// A paravirtual ticket lock's unlock beyond a native one's.
    pub pv_unlock_ns: u64,
    /// Guest context switch.
    pub guest_switch_ns: u64,
    /// Guest `try_to_wake_up`.
    pub guest_wake_ns: u64,
    /// Futex or semaphore slow path, each way.
    pub futex_ns: u64,
    /// A guest's way into its idle loop up to the HLT, without its timer writes and
    /// with interrupts off: one that comes meanwhile ends the HLT at once.
    pub guest_idle_enter_ns: u64,
    /// A guest's way out of its idle loop, without its timer writes.
    pub guest_idle_exit_ns: u64,
    /// Writes to the APIC's timer on the way into the guest's idle loop, and as
    /// many on the way out: 2 where NOHZ stops the tick, 0 where the idle governor
    /// expects a short sleep and leaves it alone.
    pub idle_timer_writes: u64,
    /// Guest tick handler, without its timer write.
    pub guest_tick_ns: u64,
    /// Network receive: softirq work for one batch of packets.
    pub net_rx_ns: u64,
    /// Host housekeeping (interrupts, kernel threads, the VMM's own threads):
    /// mean time between two bursts on one pCPU; 0: none. Judgement: a quarter
    /// per cent of the pCPU. It also keeps turns on different pCPUs from running
    /// in step for ever.
    pub noise_every_ns: u64,
    /// Mean length of such a burst.
    pub noise_ns: u64,
    /// The burst is a thread's, for which nobody is preempted: it begins when the vCPU on
    /// the pCPU sleeps or its turn ends, and who wakes meanwhile waits for its end.
    /// Schedulers take its pCPU for idle: for pinned vCPUs.
    pub noise_waits: bool,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            exit_ns: 154,
            entry_ns: 154,
            timer_msr_ns: 692,
            icr_ns: 461,
            icr_target_ns: 461,
            icr_cluster: 16,
            hypercall_ns: 461,
            host_ipi_ns: 115,
            extint_ns: 500,
            wake_idle_ns: 3_154,
            deep_idle_after_ns: 0,
            deep_idle_ns: 0,
            halt_return_ns: 1_308,
            poll_return_ns: 500,
            inject_ns: 269,
            guest_irq_ns: 538,
            pick_ns: 200,
            switch_ns: 3_000,
            hook_pick_ns: 760,
            hook_switch_ns: 650,
            hook_wake_ns: 290,
            warmup_ns: 8_000,
            smt_speed_pm: 625,
            ple_ns: 1_000,
            ple_candidate_ns: 1_400,
            ple_contention_ns: 0,
            cpu_mhz: 2_600,
            spin_round_cycles: 12,
            lock_handover_ns: 100,
            lock_spinner_ns: 25,
            line_ns: 40,
            flush_ns: 500,
            host_flush_ns: 300,
            host_call_ns: 461,
            pv_unlock_ns: 0,
            guest_switch_ns: 1_200,
            guest_wake_ns: 800,
            futex_ns: 700,
            guest_idle_enter_ns: 500,
            guest_idle_exit_ns: 500,
            idle_timer_writes: 2,
            guest_tick_ns: 1_500,
            net_rx_ns: 4_000,
            noise_every_ns: 4_000_000,
            noise_ns: 10_000,
            noise_waits: false,
        }
    }
}

impl Costs {
    /// Cycles of the modelled CPU as nanoseconds.
    pub fn cycles_ns(&self, cycles: u64) -> u64 {
        cycles * 1_000 / self.cpu_mhz
    }
}
