// SPDX-License-Identifier: GPL-2.0-only
//! Pause-loop exiting: its window, and whom the pCPU is given to
//! (`kvm_vcpu_on_spin` in the generations that seed 002 dates).

use crate::host::sched::CpuId;
use crate::machine::Machine;
use crate::machine::state::{FOREVER, Mode, Place, Then};
use crate::machine::stats::{counter, hist};
use crate::outcome::Account;
use crate::trace::{Kind, exit};
use corun_case::sim::{Hypervisor, SpinHandler};

/// How long the spinner of 2009 sleeps (`kvm_vcpu_on_spin` before 2.6.39).
const NAP_NS: u64 = 100_000;
/// Failed directed yields after which the handler gives up (since 3.10).
const TRIES: u32 = 3;

/// Bit of a vCPU's number among those who sent an IPI: 64 have one of their own.
fn sender_bit(index: usize) -> u64 {
    1 << (index % 64)
}

impl Machine<'_> {
    /// What is left of the PLE window of `v`.
    pub(crate) fn ple_left_ns(&self, v: usize) -> u64 {
        if self.kvm.ple.is_none() {
            return FOREVER;
        }
        let vcpu = &self.vcpus[v];
        vcpu.ple_window_ns.saturating_sub(vcpu.ple_spun_ns)
    }

    /// The window of a vCPU that gets a pCPU again (`shrink_ple_window`).
    pub(crate) fn shrink_ple_window(&mut self, v: usize) {
        let Some(ple) = self.kvm.ple else { return };
        let base_ns = self.costs.cycles_ns(ple.window_cycles);
        let vcpu = &mut self.vcpus[v];
        vcpu.ple_window_ns = if ple.grow < 2 || ple.shrink < 1 {
            base_ns
        } else {
            (vcpu.ple_window_ns / ple.shrink).max(base_ns)
        };
    }

    fn grow_ple_window(&mut self, v: usize) {
        let Some(ple) = self.kvm.ple else { return };
        if ple.grow > 1 {
            let max_ns = self.costs.cycles_ns(ple.max_cycles);
            let vcpu = &mut self.vcpus[v];
            vcpu.ple_window_ns = (vcpu.ple_window_ns * ple.grow).min(max_ns);
        }
    }

    /// The spin of `v` ended: its run of pause exits does, too.
    pub(crate) fn end_ple_run(&mut self, v: usize) {
        let run = std::mem::take(&mut self.vcpus[v].ple_run);
        self.vcpus[v].ple_spun_ns = 0;
        if run == 0 {
            return;
        }
        let stats = &mut self.stats[self.vcpus[v].vm];
        stats.record(hist::PLE_RUN, run);
        if run > 1 {
            stats.counters[counter::PLE_IN_RUNS] += run;
        }
    }

    /// vCPU `v` spun on `p` for its whole window.
    pub(crate) fn ple_exit(&mut self, p: usize, v: usize) {
        self.count_exit(v, exit::PAUSE);
        self.vcpus[v].ple_spun_ns = 0;
        self.vcpus[v].ple_run += 1;
        self.grow_ple_window(v);
        let exit_ns = self.costs.exit_ns + self.costs.ple_ns;
        if self.kvm.hypervisor == Hypervisor::Xen {
            self.charge(p);
            self.see_guest(v);
            self.with_sched(|s, host| s.yield_any(host, p as CpuId, v as u32));
            self.grant_requests(Some(p));
            self.busy(p, exit_ns, 0, Then::Schedule);
            return;
        }
        self.charge(p);
        let handed = self.with_sched(|s, host| s.spins(host, p as CpuId, v as u32));
        self.grant_requests(Some(p));
        if self.kvm.spin_handler == SpinHandler::Y2009 {
            self.busy(p, exit_ns, 0, Then::Nap(NAP_NS));
            return;
        }
        let (yielded, tried) = self.on_spin(p, v);
        let exit_ns = exit_ns + self.locking_ns(p, tried);
        if yielded || handed {
            self.busy(p, exit_ns, 0, Then::Schedule);
        } else {
            self.busy(p, exit_ns + self.costs.entry_ns, 0, Then::Enter);
        }
    }

    /// How long the handler on `p` holds and awaits run queues' locks that asks `tried`
    /// vCPUs. From now on it does, until its work is done.
    fn locking_ns(&mut self, p: usize, tried: u64) -> u64 {
        if tried == 0 {
            return 0;
        }
        let others = self.pcpus.iter().filter(|other| other.yielding).count() as u64;
        self.pcpus[p].yielding = true;
        tried * (self.costs.ple_candidate_ns + others * self.costs.ple_contention_ns)
    }

    /// Round robin over the siblings, from behind the one boosted last. Returns
    /// whether one was boosted, and how many were asked for.
    fn on_spin(&mut self, p: usize, v: usize) -> (bool, u64) {
        let (first, n) = {
            let vm = &self.vms[self.vcpus[v].vm];
            (vm.first_vcpu, vm.vcpus)
        };
        self.vcpus[v].spun_last = true;
        let start = self.vms[self.vcpus[v].vm].last_boosted;
        let (mut tried, mut failed) = (0, 0);
        let mut yielded = false;
        for i in 1..=n {
            let to = first + (start + i) % n;
            if to == v || !self.is_candidate(v, to) {
                continue;
            }
            tried += 1;
            if self.directed_yield(p, v, to) {
                let vm = self.vcpus[v].vm;
                self.vms[vm].last_boosted = to - first;
                yielded = true;
                break;
            }
            failed += 1;
            if failed == TRIES && self.kvm.spin_handler > SpinHandler::Y2012 {
                break;
            }
        }
        if !yielded {
            self.vcpus[v].spun_last = false;
        }
        (yielded, tried)
    }

    /// Does this generation of the handler ask for `to`?
    fn is_candidate(&mut self, from: usize, to: usize) -> bool {
        let vcpu = &self.vcpus[to];
        let ready = vcpu.place == Place::Ready;
        let preempted = ready && vcpu.preempted;
        match self.kvm.spin_handler {
            SpinHandler::Y2009 => false,
            SpinHandler::Y2011 => self.is_worth_locking(to),
            SpinHandler::Y2012 => self.is_worth_locking(to) && self.may_boost_again(to),
            SpinHandler::Y2013 => preempted && self.may_boost_again(to),
            SpinHandler::Y2017 => preempted && self.in_kernel(to) && self.may_boost_again(to),
            SpinHandler::Y2019 => {
                let woken = ready && !vcpu.preempted && vcpu.pending != 0;
                (woken || preempted && self.in_kernel(to)) && self.may_boost_again(to)
            }
            SpinHandler::Strict => self.is_strict_candidate(from, to),
        }
    }

    /// Strict Boost, as the authors' second patch has it: who is preempted in kernel
    /// mode, or was sent an IPI by the spinner while it had no pCPU. Whom a spinner
    /// passes over because it is not preempted counts as sent one by it from then on,
    /// until it gets a pCPU.
    fn is_strict_candidate(&mut self, from: usize, to: usize) -> bool {
        let sent = sender_bit(self.vcpus[from].index);
        let vcpu = &mut self.vcpus[to];
        let ready = vcpu.place == Place::Ready;
        let was_sent = vcpu.ipi_from & sent != 0;
        if !ready || !vcpu.preempted && !was_sent {
            vcpu.ipi_from |= sent;
            return false;
        }
        (was_sent || self.in_kernel(to)) && self.may_boost_again(to)
    }

    /// For Strict Boost: `from` sends `to` an IPI (`mark_ipi_receiver` of its patch).
    pub(crate) fn mark_ipi_receiver(&mut self, from: usize, to: usize) {
        if !matches!(self.vcpus[to].place, Place::On(_)) {
            self.vcpus[to].ipi_from |= sender_bit(self.vcpus[from].index);
        }
    }

    /// `kvm_vcpu_yield_to` of 2011 and 2012: `PF_VCPU` spares it those in guest
    /// mode. Others that run are found out only with both run queues locked.
    fn is_worth_locking(&self, to: usize) -> bool {
        match self.vcpus[to].place {
            Place::Blocked => false,
            Place::Ready => true,
            Place::On(p) => self.pcpus[p].mode != Mode::Guest,
        }
    }

    /// `kvm_vcpu_eligible_for_directed_yield`: one that spun itself is passed
    /// over every second time.
    fn may_boost_again(&mut self, to: usize) -> bool {
        let vcpu = &mut self.vcpus[to];
        if !vcpu.spun_last {
            return true;
        }
        vcpu.boost_passed = !vcpu.boost_passed;
        !vcpu.boost_passed
    }

    pub(crate) fn in_kernel(&self, v: usize) -> bool {
        self.top(v).account != Account::User
    }

    /// Asks the host scheduler to run `to` instead of `from`, which has `p`.
    pub(crate) fn directed_yield(&mut self, p: usize, from: usize, to: usize) -> bool {
        let vm = self.vcpus[from].vm;
        self.stats[vm].count(counter::YIELD_ASKED);
        self.note(Kind::YieldAsk, from, self.vcpus[to].index as u64);
        let force = self.kvm.debooster;
        let yielded =
            self.with_sched(|s, host| s.yield_to(host, p as CpuId, from as u32, to as u32, force));
        self.grant_requests(Some(p));
        if yielded {
            self.stats[vm].count(counter::YIELD_HONOURED);
            self.note(Kind::YieldGrant, from, self.vcpus[to].index as u64);
        }
        yielded
    }
}
