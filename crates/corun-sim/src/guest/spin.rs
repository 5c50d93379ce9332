// SPDX-License-Identifier: GPL-2.0-only
//! Spinning is computed, not stepped: a spinner's stretch ends when somebody
//! grants what it waits for, or when a limit is reached (PLE window, threshold
//! of a paravirtual lock).

use crate::machine::Machine;
use crate::machine::state::{FOREVER, Mode, Phase, Place, Seg, Then, Why};
use crate::symbols;
use crate::trace::exit;
use corun_case::sim::SpinlockKind;

/// Rounds that a paravirtual ticket lock spins before it halts (seed 001, figure 3).
const TICKET_SPIN_THRESHOLD: u64 = 8192;
/// Rounds that a paravirtual queued lock does (`SPIN_THRESHOLD`).
const QUEUED_SPIN_THRESHOLD: u64 = 1 << 15;
/// A spinner for a sleeping lock looks again after this whether the owner runs.
const OWNER_CHECK_NS: u64 = 20_000;

impl Machine<'_> {
    /// True when the code that `v` would run now is a spin loop.
    pub(crate) fn spins(&self, v: usize) -> bool {
        let vcpu = &self.vcpus[v];
        if vcpu.irq.is_some() || vcpu.soft.is_some() {
            return false;
        }
        vcpu.thread.is_some_and(|t| {
            matches!(
                self.threads[t].phase,
                Phase::LockWait { .. }
                    | Phase::FlushWait
                    | Phase::SemSpin { .. }
                    | Phase::BarrierSpin { .. }
            )
        })
    }

    /// The pCPU on which thread `t` spins at this moment.
    pub(crate) fn active_on(&self, t: usize) -> Option<usize> {
        let v = self.threads[t].vcpu;
        let vcpu = &self.vcpus[v];
        match vcpu.place {
            Place::On(p)
                if vcpu.thread == Some(t) && self.pcpus[p].mode == Mode::Guest && self.spins(v) =>
            {
                Some(p)
            }
            _ => None,
        }
    }

    /// Books `dt_ns` of spinning, which come to `done_ns` at full speed: the PLE window is
    /// of the time-stamp counter's cycles, the spinner's own patience of rounds, which
    /// take longer beside a busy hardware thread.
    pub(crate) fn spun(&mut self, v: usize, dt_ns: u64, done_ns: u64) {
        self.vcpus[v].ple_spun_ns += dt_ns;
        if let Some(t) = self.vcpus[v].thread {
            self.threads[t].spun_ns += done_ns;
        }
    }

    /// Thread `t` begins to spin.
    pub(crate) fn begin_spin(&mut self, t: usize, phase: Phase, seg: Seg) {
        let now_ns = self.now_ns;
        let thread = &mut self.threads[t];
        thread.phase = phase;
        thread.seg = seg;
        thread.spun_ns = 0;
        thread.grant_ns = FOREVER;
        thread.wait_since_ns = now_ns;
        let v = thread.vcpu;
        self.vcpus[v].ple_spun_ns = 0;
    }

    /// What `t` spins for is there; it notices after `delay_ns`.
    pub(crate) fn poke(&mut self, t: usize, delay_ns: u64) {
        self.threads[t].grant_ns = self.now_ns + delay_ns;
        if let Some(p) = self.active_on(t) {
            self.elapse(p);
            self.arm_work(p);
        }
    }

    /// When the spin of `v` on `p` needs attention, from the pCPU's last booking on.
    pub(crate) fn spin_left_ns(&self, v: usize, p: usize) -> u64 {
        let Some(t) = self.vcpus[v].thread else {
            return FOREVER;
        };
        let granted_ns = match self.threads[t].grant_ns {
            FOREVER => FOREVER,
            at_ns => at_ns.saturating_sub(self.now_ns),
        };
        granted_ns
            .min(self.pause_left_ns(v, t))
            .min(self.limit_left_ns(p, t))
    }

    /// Until the pause-loop exit of `t` on `v`. The winner of a test-and-set lock
    /// is inside its cmpxchg and executes no PAUSE any more: one that exits has
    /// not won. Neither do a debugging kernel's spinners nor a barrier's
    /// (`parsec_barrier_wait`).
    fn pause_left_ns(&self, v: usize, t: usize) -> u64 {
        let pauses = match self.threads[t].phase {
            Phase::LockWait { lock, .. } => {
                let l = &self.locks[lock];
                match l.kind {
                    SpinlockKind::Debug => false,
                    SpinlockKind::TestAndSet => l.owner != Some(t),
                    _ => true,
                }
            }
            Phase::BarrierSpin { .. } => false,
            _ => true,
        };
        if pauses { self.ple_left_ns(v) } else { FOREVER }
    }

    /// What is left of the own patience of `t`, which spins on `p`.
    fn limit_left_ns(&self, p: usize, t: usize) -> u64 {
        let thread = &self.threads[t];
        if thread.grant_ns != FOREVER {
            // It has what it waits for and is about to see it.
            return FOREVER;
        }
        let limit_ns = match thread.phase {
            Phase::LockWait { lock, .. } => match self.locks[lock].kind {
                SpinlockKind::PvTicket => self.rounds_ns(TICKET_SPIN_THRESHOLD),
                SpinlockKind::PvQueued | SpinlockKind::PvQueuedFifo => {
                    self.rounds_ns(QUEUED_SPIN_THRESHOLD)
                }
                _ => FOREVER,
            },
            Phase::SemSpin { .. } => OWNER_CHECK_NS,
            Phase::BarrierSpin { barrier, .. } => self.barriers[barrier].spin_ns,
            _ => FOREVER,
        };
        match limit_ns {
            FOREVER => FOREVER,
            ns => self.takes_ns(p, ns.saturating_sub(thread.spun_ns)),
        }
    }

    pub(crate) fn rounds_ns(&self, rounds: u64) -> u64 {
        self.costs.cycles_ns(rounds * self.costs.spin_round_cycles)
    }

    /// Looks after the spin of `v` on `p`. True: it is over, other code is on
    /// top now. False: it goes on, or `v` left the guest.
    pub(crate) fn spin_over(&mut self, v: usize, p: usize) -> bool {
        let Some(t) = self.vcpus[v].thread else {
            return true;
        };
        if self.threads[t].grant_ns <= self.now_ns {
            self.spin_granted(v, t);
            return true;
        }
        if let Phase::LockWait { lock, .. } = self.threads[t].phase
            && self.takes_when_free(t, lock)
        {
            self.spin_granted(v, t);
            return true;
        }
        if self.limit_left_ns(p, t) == 0 {
            return self.patience_ends(v, p, t);
        }
        if self.pause_left_ns(v, t) == 0 {
            self.ple_exit(p, v);
        }
        false
    }

    fn spin_granted(&mut self, v: usize, t: usize) {
        self.end_ple_run(v);
        self.threads[t].grant_ns = FOREVER;
        match self.threads[t].phase {
            Phase::LockWait { lock, hold_ns } => self.lock_taken(v, t, lock, hold_ns),
            Phase::FlushWait => self.shootdown_done(v, t),
            _ => self.proceed(t),
        }
    }

    fn patience_ends(&mut self, v: usize, p: usize, t: usize) -> bool {
        match self.threads[t].phase {
            Phase::LockWait { .. } => {
                self.vcpus[v].pv_wait = true;
                self.vcpus[v].ple_spun_ns = 0;
                self.count_exit(v, exit::HLT);
                self.busy(p, self.costs.exit_ns, 0, Then::Halt);
                false
            }
            Phase::SemSpin { sem } => {
                self.end_ple_run(v);
                self.sem_spin_again(v, t, sem);
                true
            }
            Phase::BarrierSpin { barrier } => {
                self.sleep_for(t, Why::Barrier(barrier));
                true
            }
            _ => false,
        }
    }

    /// A lock's waiter comes back from its halt: the count starts anew.
    pub(crate) fn threads_spin_again(&mut self, v: usize) {
        if let Some(t) = self.vcpus[v].thread {
            self.threads[t].spun_ns = 0;
        }
    }

    /// Lets `t` go on with its next instruction.
    pub(crate) fn proceed(&mut self, t: usize) {
        let thread = &mut self.threads[t];
        thread.phase = Phase::Fetch;
        thread.seg = Seg::kernel(0, symbols::KERNEL);
    }
}
