// SPDX-License-Identifier: GPL-2.0-only
//! corun's steering of `halt_poll_ns`: the policy that `corun run` asks, called
//! as it calls it.

use crate::machine::Machine;
use crate::machine::slots::Event;
use corun_case::sim::HaltPoll;
use corun_policy::halt::{Halt, HaltTunables, HaltWindow, judge};

/// Length of a window: the shortest of `corun run`.
const WINDOW_NS: u64 = 100_000_000;
/// `halt_poll_ns` as nobody has set it (`KVM_HALT_POLL_NS_DEFAULT` of x86).
pub(super) const DEFAULT_NS: u64 = 200_000;

/// The module parameter, and what the window has shown so far.
#[derive(Debug)]
pub(crate) struct HaltSteering {
    halt: Halt,
    tunables: HaltTunables,
    window: HaltWindow,
}

impl Default for HaltSteering {
    fn default() -> Self {
        let tunables = HaltTunables::default();
        Self {
            halt: Halt::new(DEFAULT_NS, &tunables),
            tunables,
            window: HaltWindow::default(),
        }
    }
}

impl HaltSteering {
    /// `halt_poll_ns` now.
    pub(super) fn poll_ns(&self) -> u64 {
        self.halt.poll_ns
    }

    /// A poll ended after `ns`, with the interrupt or without.
    pub(super) fn polled(&mut self, ns: u64, hit: bool) {
        self.window.polls += 1;
        self.window.hits += u64::from(hit);
        *(if hit {
            &mut self.window.hit_ns
        } else {
            &mut self.window.vain_ns
        }) += ns;
    }

    /// A halted vCPU that slept is woken.
    pub(crate) fn woken(&mut self) {
        self.window.wakeups += 1;
    }

    /// A task got a pCPU that it waited for.
    pub(crate) fn waited(&mut self, ns: u64) {
        self.window.waiting_ns += ns;
    }

    fn close_window(&mut self, pcpus: u64) {
        let mut window = std::mem::take(&mut self.window);
        window.cpu_ns = WINDOW_NS * pcpus;
        let verdict = judge(&window, &self.tunables);
        self.halt.note_load(&window, &self.tunables);
        self.halt.step(verdict, DEFAULT_NS, &self.tunables);
    }
}

impl Machine<'_> {
    /// The first window begins, if anybody steers.
    pub(crate) fn start_steering(&mut self) {
        if self.kvm.halt_poll == HaltPoll::Steered {
            self.arm(Event::Steer, self.now_ns + WINDOW_NS);
        }
    }

    /// A window ends.
    pub(crate) fn steer(&mut self) {
        self.steering.close_window(self.pcpus.len() as u64);
        self.start_steering();
    }
}
