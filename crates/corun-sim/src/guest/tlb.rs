// SPDX-License-Identifier: GPL-2.0-only
//! TLB shootdowns: by IPI (`flush_tlb_others`, `smp_call_function_many`), by
//! kvmtlb (seed 001, figures 9 and 10; and as seed 000 had it), by `Shoot4U` (seed 000,
//! section 4).

use crate::host::sched::CpuId;
use crate::machine::Machine;
use crate::machine::state::{FOREVER, Mode, Phase, Place, Seg, Then, irq};
use crate::machine::stats::{counter, hist};
use crate::outcome::Account;
use crate::symbols;
use crate::trace::{Kind, exit};
use corun_case::sim::TlbKind;

impl Machine<'_> {
    /// Thread `t` on `v` changed a mapping: first its own TLB.
    pub(crate) fn shootdown(&mut self, v: usize, t: usize) {
        self.vcpus[v].shootdown_ns = self.now_ns;
        self.note(Kind::ShootdownStart, v, 0);
        let vm = self.vcpus[v].vm;
        self.stats[vm].count(counter::SHOOTDOWN);
        self.threads[t].phase = Phase::FlushSelf;
        self.threads[t].seg = Seg::new(self.costs.flush_ns, Account::KernelTlb, symbols::FLUSH);
    }

    /// The own TLB is flushed; now the others'.
    pub(crate) fn shootdown_others(&mut self, v: usize, t: usize) {
        self.find_targets(v, t);
        let tlb = self.vms[self.vcpus[v].vm].tlb;
        if matches!(tlb, TlbKind::Kvmtlb | TlbKind::KvmtlbV4) {
            self.queue_flushes(tlb);
        }
        if self.targets.is_empty() {
            self.shootdown_done(v, t);
        } else if tlb == TlbKind::Shoot4u {
            self.hypervisor_flushes(v, t);
        } else {
            self.call_targets(v, t);
        }
    }

    /// The vCPUs that have the address space of `t` loaded, lazily or not.
    fn find_targets(&mut self, v: usize, t: usize) {
        let mm = self.threads[t].mm;
        let vm = &self.vms[self.vcpus[v].vm];
        self.targets.clear();
        for to in vm.first_vcpu..vm.first_vcpu + vm.vcpus {
            let lazy = vm.lazy_tlb && self.vcpus[to].thread.is_none();
            if to != v && self.vcpus[to].mm == mm && !lazy {
                self.targets.push(to);
            }
        }
    }

    /// kvmtlb: a target outside of guest mode flushes when it enters. In seed 000's guests
    /// the interrupt is sent as well, unless a flush had been queued before: what
    /// `cmpxchg` returns, the state before, is taken for whether it succeeded.
    fn queue_flushes(&mut self, tlb: TlbKind) {
        let mut targets = std::mem::take(&mut self.targets);
        targets.retain(|&to| {
            if self.runs_guest(to) {
                return true;
            }
            let queued = std::mem::replace(&mut self.vcpus[to].flush_queued, true);
            tlb == TlbKind::KvmtlbV4 && !queued
        });
        self.targets = targets;
    }

    /// True when `to` runs guest code on a pCPU that the host does not use for itself.
    fn runs_guest(&self, to: usize) -> bool {
        let Place::On(p) = self.vcpus[to].place else {
            return false;
        };
        let pcpu = &self.pcpus[p];
        pcpu.mode == Mode::Guest && pcpu.stolen_until_ns <= self.now_ns
    }

    fn call_targets(&mut self, v: usize, t: usize) {
        let targets = std::mem::take(&mut self.targets);
        let vm = self.vcpus[v].vm;
        self.vcpus[v].acks = targets.len() as u32;
        self.begin_spin(
            t,
            Phase::FlushWait,
            Seg::new(FOREVER, Account::KernelTlb, symbols::CALL_WAIT),
        );
        let mut preempted = None;
        for (nth, to) in targets.iter().enumerate() {
            self.stats[vm].count(counter::CALL_SENT);
            if self.vcpus[*to].place == Place::Ready {
                self.stats[vm].count(counter::CALL_PREEMPTED);
                preempted = preempted.or(Some(*to));
                self.tasks[*to].critical = true;
            }
            self.vcpus[*to].calls.push(v);
            self.send_ipi(v, *to, irq::CALL, self.multicast_ns(vm, nth));
        }
        self.owe_multicast(v, targets.len());
        if let Some(to) = preempted
            && self.vms[vm].pv.sched_yield
            && targets.len() > 1
        {
            self.pv_yield(v, to);
        }
        self.targets = targets;
    }

    /// When the target number `nth` of a multicast is sent its interrupt, from
    /// the start on.
    fn multicast_ns(&self, vm: usize, nth: usize) -> u64 {
        let nth = nth as u64;
        let before = if self.vms[vm].pv.ipi {
            0
        } else {
            nth / self.costs.icr_cluster.max(1)
        };
        let write_ns = self.costs.exit_ns + self.costs.icr_ns + self.costs.entry_ns;
        before * write_ns + (nth - before) * self.costs.icr_target_ns
    }

    /// Exits of a multicast: one ICR write a cluster, or one pv hypercall.
    fn owe_multicast(&mut self, v: usize, targets: usize) {
        let pv = self.vms[self.vcpus[v].vm].pv.ipi;
        let cluster = self.costs.icr_cluster.max(1) as usize;
        let writes = if pv { 1 } else { targets.div_ceil(cluster) };
        let reason = if pv { exit::HYPERCALL } else { exit::ICR };
        for _ in 0..writes {
            self.owe_exit(v, reason, self.costs.icr_ns);
        }
        self.vcpus[v].exit_debt_ns +=
            self.costs.icr_target_ns * targets.saturating_sub(writes) as u64;
    }

    /// `KVM_HC_SCHED_YIELD`: the guest asks for a preempted target of its IPIs.
    fn pv_yield(&mut self, v: usize, to: usize) {
        let Place::On(p) = self.vcpus[v].place else {
            return;
        };
        self.owe_exit(v, exit::HYPERCALL, self.costs.hypercall_ns);
        self.charge(p);
        let handed = self.with_sched(|s, host| s.guest_yields(host, p as CpuId, to as u32));
        self.grant_requests(Some(p));
        if self.directed_yield(p, v, to) || handed {
            self.pcpus[p].need_resched = true;
        }
    }

    /// `Shoot4U`: the hypervisor invalidates. It calls the pCPU of each target, the one
    /// where it was last if it does not run, and waits for it, one after another
    /// (`kvm_pv_shoot4u_op` of the authors' patch). An idle pCPU wakes first.
    fn hypervisor_flushes(&mut self, v: usize, t: usize) {
        let targets = std::mem::take(&mut self.targets);
        let here = self.tasks[v].cpu as usize;
        let mut wake_ns = 0;
        for to in &targets {
            let p = self.tasks[*to].cpu as usize;
            if self.pcpus[p].mode == Mode::Idle {
                wake_ns += self.costs.wake_idle_ns + self.deep_idle_ns(p);
            } else if p != here {
                self.disturb(p);
            }
        }
        let call_ns = self.costs.host_call_ns
            + self.costs.host_ipi_ns
            + self.costs.exit_ns
            + self.costs.host_flush_ns;
        let handler_ns = self.costs.hypercall_ns + call_ns * targets.len() as u64 + wake_ns;
        self.owe_exit(v, exit::HYPERCALL, handler_ns);
        self.threads[t].phase = Phase::FlushReturn;
        self.threads[t].seg = Seg::new(0, Account::KernelTlb, symbols::FLUSH);
        self.targets = targets;
    }

    /// The guest on `p` exits for a moment: the host flushes for it.
    fn disturb(&mut self, p: usize) {
        if self.pcpus[p].mode != Mode::Guest {
            return;
        }
        self.elapse(p);
        let exit_ns = self.costs.exit_ns + self.costs.host_flush_ns + self.costs.entry_ns;
        self.busy(p, exit_ns, 0, Then::Enter);
    }

    /// All TLBs are flushed.
    pub(crate) fn shootdown_done(&mut self, v: usize, t: usize) {
        let took_ns = self.now_ns - self.vcpus[v].shootdown_ns;
        let vm = self.vcpus[v].vm;
        self.stats[vm].record(hist::TLB, took_ns);
        self.note(Kind::ShootdownEnd, v, took_ns);
        self.proceed(t);
    }

    /// `v` did what those asked who wait for it.
    pub(crate) fn acknowledge_calls(&mut self, v: usize) {
        while let Some(caller) = self.vcpus[v].calls.pop() {
            let waiting = &mut self.vcpus[caller];
            waiting.acks -= 1;
            if waiting.acks == 0
                && let Some(t) = waiting.thread
            {
                self.poke(t, self.costs.lock_handover_ns);
            }
        }
        if self.vcpus[v].thread.is_none() {
            // leave_mm(): an idle vCPU gets out of later shootdowns.
            self.vcpus[v].mm = 0;
        }
    }
}
