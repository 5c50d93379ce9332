// SPDX-License-Identifier: GPL-2.0-only
//! HLT: polling and sleeping (`kvm_vcpu_halt`, `kvm_vcpu_block`).

use super::steer;
use crate::host::sched::CpuId;
use crate::machine::Machine;
use crate::machine::slots::Event;
use crate::machine::state::{FOREVER, Mode, Place, Then, irq};
use crate::machine::stats::counter;
use crate::trace::Kind;
use corun_case::sim::{HaltPoll, Hypervisor, SpinlockKind};

/// `halt_poll_ns_grow_start`.
const GROW_START_NS: u64 = 10_000;

impl Machine<'_> {
    /// The current vCPU of `p` executed HLT and the exit is done.
    pub(crate) fn halt(&mut self, p: usize) {
        let Some(v) = self.current(p) else { return };
        let vm = self.vcpus[v].vm;
        self.stats[vm].count(counter::HALT);
        self.vcpus[v].halt_start_ns = self.now_ns;
        self.show(Kind::Halt, v, 0);
        if self.wakeable(v) {
            self.show(Kind::HaltEnd, v, 0);
            self.busy(p, self.costs.entry_ns, 0, Then::Enter);
            return;
        }
        if self.vcpus[v].pv_wait {
            self.donate(p, v);
        }
        let poll_ns = self.poll_length_ns(v);
        let wanted = self.pcpus[p].need_resched
            || self.with_sched(|s, host| s.has_waiting(host, p as CpuId));
        if poll_ns == 0 || wanted {
            self.block(p, v);
            return;
        }
        self.set_mode(p, Mode::Poll);
        if poll_ns == FOREVER {
            self.cancel(Event::Work(p));
        } else {
            self.arm(Event::Work(p), self.now_ns + poll_ns);
        }
    }

    /// A waiter for a paravirtual ticket lock that halts gives its time to a sibling
    /// that was kicked and has no pCPU (seed 001, figures 6 and 8; what Linux 3.12
    /// took of these patches does not).
    fn donate(&mut self, p: usize, v: usize) {
        let vm = &self.vms[self.vcpus[v].vm];
        if vm.spinlock != SpinlockKind::PvTicket {
            return;
        }
        let mut siblings = vm.first_vcpu..vm.first_vcpu + vm.vcpus;
        let kicked = siblings.find(|to| {
            let to = &self.vcpus[*to];
            to.place == Place::Ready && to.pending & irq::KICK != 0
        });
        if let Some(to) = kicked {
            self.charge(p);
            self.directed_yield(p, v, to);
        }
    }

    /// Something is pending that ends a halt. A paravirtual lock that waits with
    /// interrupts off is ended by its kick alone.
    pub(crate) fn wakeable(&self, v: usize) -> bool {
        let vcpu = &self.vcpus[v];
        let deaf = vcpu.pv_wait && self.irqs_off(v);
        vcpu.pending & if deaf { irq::KICK } else { u32::MAX } != 0
    }

    fn poll_length_ns(&self, v: usize) -> u64 {
        if self.kvm.hypervisor == Hypervisor::Xen {
            return 0;
        }
        match self.kvm.halt_poll {
            HaltPoll::Never => 0,
            HaltPoll::Always => FOREVER,
            HaltPoll::Fixed(ns) => ns,
            HaltPoll::Adaptive => self.vcpus[v].poll_ns,
            HaltPoll::Steered => self.vcpus[v].poll_ns.min(self.steering.poll_ns()),
        }
    }

    /// `halt_poll_ns`: most that adaptive polling polls.
    fn max_poll_ns(&self) -> u64 {
        if self.kvm.halt_poll == HaltPoll::Steered {
            self.steering.poll_ns()
        } else {
            steer::DEFAULT_NS
        }
    }

    fn polled(&mut self, v: usize, hit: bool) {
        let polled_ns = self.now_ns - self.vcpus[v].halt_start_ns;
        self.steering.polled(polled_ns, hit);
    }

    /// Polling was in vain, or somebody else wants the pCPU.
    pub(crate) fn poll_times_out(&mut self, p: usize) {
        let Some(v) = self.current(p) else { return };
        let vm = self.vcpus[v].vm;
        self.stats[vm].count(counter::POLL_MISS);
        self.polled(v, false);
        self.elapse(p);
        self.set_mode(p, Mode::Host);
        self.block(p, v);
    }

    /// The interrupt came while it polled.
    pub(crate) fn poll_succeeds(&mut self, p: usize, v: usize) {
        let vm = self.vcpus[v].vm;
        self.stats[vm].count(counter::POLL_HIT);
        self.polled(v, true);
        self.elapse(p);
        self.halt_ended(v);
        self.show(Kind::HaltEnd, v, 0);
        self.busy(
            p,
            self.costs.poll_return_ns + self.costs.entry_ns,
            0,
            Then::Enter,
        );
    }

    /// Adapts the vCPU's polling to how long it was halted
    /// (`grow_halt_poll_ns`, `shrink_halt_poll_ns`).
    pub(crate) fn halt_ended(&mut self, v: usize) {
        let max_ns = self.max_poll_ns();
        let vcpu = &mut self.vcpus[v];
        let halted_ns = self.now_ns - vcpu.halt_start_ns;
        if halted_ns > max_ns {
            vcpu.poll_ns = 0;
        } else if halted_ns > vcpu.poll_ns && vcpu.poll_ns < max_ns {
            vcpu.poll_ns = (vcpu.poll_ns * 2).max(GROW_START_NS).min(max_ns);
        }
    }

    /// The current vCPU of `p` sleeps for `ns`, whatever comes.
    pub(crate) fn nap(&mut self, p: usize, ns: u64) {
        let Some(v) = self.current(p) else { return };
        self.vcpus[v].halt_start_ns = self.now_ns;
        self.arm(Event::Nap(v), self.now_ns + ns);
        self.block(p, v);
    }

    pub(crate) fn nap_ends(&mut self, v: usize) {
        if self.vcpus[v].place == Place::Blocked {
            self.wake_vcpu(v, false);
        }
    }
}
