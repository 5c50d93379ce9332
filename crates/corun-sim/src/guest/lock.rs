// SPDX-License-Identifier: GPL-2.0-only
//! Spinlocks of guest kernels.

use crate::machine::Machine;
use crate::machine::state::{FOREVER, IdleState, Phase, Seg, irq};
use crate::machine::stats::counter;
use crate::outcome::Account;
use crate::symbols;
use crate::trace::{Kind, exit};
use corun_case::sim::SpinlockKind;

/// Preemptable ticket lock: how many rounds a waiter spins for each place before it
/// that does not move (`pmtlock_timeout_shift`, 8, of the authors' patch for Linux 3.12
/// and later).
const PMT_PLACE_ROUNDS: u64 = 1 << 8;

impl Machine<'_> {
    /// Thread `t` on `v` wants `lock` for `hold_ns`.
    pub(crate) fn lock(&mut self, v: usize, t: usize, lock: usize, hold_ns: u64) {
        self.threads[t].wait_since_ns = self.now_ns;
        let l = &mut self.locks[lock];
        if l.owner.is_none() {
            let overtaken = match l.kind {
                SpinlockKind::Pmt => l.waiters.len() as u64,
                _ => 0,
            };
            l.owner = Some(t);
            let delay_ns = overtaken * self.rounds_ns(PMT_PLACE_ROUNDS);
            self.hold(v, t, lock, hold_ns + delay_ns);
            return;
        }
        l.waiters.push_back(t);
        self.note(Kind::LockSpin, v, lock as u64);
        self.begin_spin(
            t,
            Phase::LockWait { lock, hold_ns },
            Seg::new(FOREVER, Account::KernelLock, symbols::SPIN),
        );
    }

    /// Takes a reference count's change the lock beside it? Only where somebody holds
    /// it, or where lock and count do not fit into one word.
    pub(crate) fn lockref_needs(&self, lock: usize) -> bool {
        let l = &self.locks[lock];
        l.owner.is_some() || l.kind == SpinlockKind::Debug
    }

    fn hold(&mut self, v: usize, t: usize, lock: usize, hold_ns: u64) {
        let waited_ns = self.now_ns - self.threads[t].wait_since_ns;
        if waited_ns > 0 {
            // As lockstat does, which does not count a lock that was free.
            let vm = self.vcpus[v].vm;
            self.stats[vm].record(self.locks[lock].stat, waited_ns);
        }
        let hold_ns = hold_ns + self.unlock_cost_ns(v);
        let symbol = self.locks[lock].symbol;
        if let Some(op) = self.threads[t].locked_op.take() {
            self.queue_op(v, t, op);
            let thread = &mut self.threads[t];
            thread.after_unlock = Some((thread.phase, thread.seg));
        }
        let thread = &mut self.threads[t];
        thread.phase = Phase::LockHold { lock };
        thread.seg = Seg::kernel(hold_ns, symbol);
    }

    /// What an unlock costs beyond a native one's.
    pub(crate) fn unlock_cost_ns(&self, v: usize) -> u64 {
        match self.vms[self.vcpus[v].vm].spinlock {
            SpinlockKind::PvTicket => self.costs.pv_unlock_ns,
            _ => 0,
        }
    }

    /// A waiter that spins sees that `lock` is its own.
    pub(crate) fn lock_taken(&mut self, v: usize, t: usize, lock: usize, hold_ns: u64) {
        self.note(Kind::LockTaken, v, lock as u64);
        self.hold(v, t, lock, hold_ns);
    }

    /// A waiter that just got to run finds the lock free, and its kind lets it
    /// take it.
    pub(crate) fn takes_when_free(&mut self, t: usize, lock: usize) -> bool {
        let l = &mut self.locks[lock];
        if l.owner.is_some() {
            return false;
        }
        l.owner = Some(t);
        l.waiters.retain(|w| *w != t);
        true
    }

    /// Thread `t` on `v` releases `lock`.
    pub(crate) fn unlock(&mut self, v: usize, lock: usize) {
        self.locks[lock].owner = None;
        if self.locks[lock].waiters.is_empty() {
            return;
        }
        match self.locks[lock].kind {
            SpinlockKind::Ticket | SpinlockKind::Queued => self.hand_to_next(lock),
            SpinlockKind::PvTicket | SpinlockKind::PvQueuedFifo => {
                self.kick_waiter(v, lock);
                self.hand_to_next(lock);
            }
            SpinlockKind::PvQueued => self.hand_or_leave(v, lock),
            SpinlockKind::TestAndSet | SpinlockKind::Debug => self.hand_to_any(v, lock),
            SpinlockKind::Pmt => self.hand_to_running(lock),
        }
    }

    /// FIFO: the next one has it, whether it runs or not.
    fn hand_to_next(&mut self, lock: usize) {
        let delay_ns = self.handover_ns(lock);
        let l = &mut self.locks[lock];
        l.owner = l.waiters.pop_front();
        if let Some(next) = l.owner {
            self.poke(next, delay_ns);
        }
    }

    /// Each spinner's copy of a ticket's cache line has to be invalidated and
    /// fetched again; queued spinners look at lines of their own.
    fn handover_ns(&self, lock: usize) -> u64 {
        let l = &self.locks[lock];
        let base_ns = self.costs.lock_handover_ns;
        if matches!(
            l.kind,
            SpinlockKind::Queued | SpinlockKind::PvQueued | SpinlockKind::PvQueuedFifo
        ) {
            return base_ns;
        }
        let spinners = l.waiters.iter().filter(|w| self.active_on(**w).is_some());
        base_ns + self.costs.lock_spinner_ns * spinners.count() as u64
    }

    /// Kicks the first waiter if it halted (seed 001, figures 4, 5 and 7).
    fn kick_waiter(&mut self, v: usize, lock: usize) {
        let Some(next) = self.locks[lock].waiters.front().copied() else {
            return;
        };
        let target = self.threads[next].vcpu;
        if !self.vcpus[target].pv_wait {
            return;
        }
        let vm = self.vcpus[v].vm;
        self.stats[vm].count(counter::KICK);
        self.owe_exit(v, exit::HYPERCALL, self.costs.hypercall_ns);
        let latency_ns = self.costs.exit_ns + self.costs.hypercall_ns + self.costs.host_ipi_ns;
        self.send_interrupt(target, latency_ns, irq::KICK);
    }

    /// Paravirtual queued lock: a head that spins gets it; one that halted is
    /// kicked, and until it runs the lock is free to whoever comes.
    fn hand_or_leave(&mut self, v: usize, lock: usize) {
        let head = self.locks[lock].waiters.front().copied();
        if head.is_some_and(|h| self.active_on(h).is_some()) {
            self.hand_to_next(lock);
        } else {
            self.kick_waiter(v, lock);
        }
    }

    /// Test and set, or trylock: any spinner may win.
    fn hand_to_any(&mut self, v: usize, lock: usize) {
        let running = |m: &Self, w: &usize| m.active_on(*w).is_some();
        let waiters = &self.locks[lock].waiters;
        let spinners = waiters.iter().filter(|w| running(self, w)).count();
        if spinners == 0 {
            return;
        }
        let nth = self.vcpus[v].rng.below(spinners as u32) as usize;
        let waiters = &self.locks[lock].waiters;
        let winner = waiters
            .iter()
            .copied()
            .filter(|w| running(self, w))
            .nth(nth);
        if let Some(winner) = winner {
            self.hand_to(lock, winner, 0);
        }
    }

    /// Preemptable ticket lock: the first waiter that runs, after it has waited
    /// for those before it.
    fn hand_to_running(&mut self, lock: usize) {
        let waiters = &self.locks[lock].waiters;
        let first = waiters
            .iter()
            .copied()
            .enumerate()
            .find(|(_, w)| self.active_on(*w).is_some());
        if let Some((place, winner)) = first {
            let delay_ns = place as u64 * self.rounds_ns(PMT_PLACE_ROUNDS);
            self.hand_to(lock, winner, delay_ns);
        }
    }

    fn hand_to(&mut self, lock: usize, winner: usize, delay_ns: u64) {
        let delay_ns = delay_ns + self.handover_ns(lock);
        let l = &mut self.locks[lock];
        l.owner = Some(winner);
        l.waiters.retain(|w| *w != winner);
        self.poke(winner, delay_ns);
    }

    /// The thread on `v` is inside a spinlock.
    pub(crate) fn holds_spinlock(&self, v: usize) -> bool {
        self.vcpus[v]
            .thread
            .is_some_and(|t| matches!(self.threads[t].phase, Phase::LockHold { .. }))
    }

    /// `v` has interrupts off: its thread, or its idle loop on the way to the HLT
    /// (`do_idle`, up to the `sti; hlt` of `default_idle`).
    pub(crate) fn irqs_off(&self, v: usize) -> bool {
        let vcpu = &self.vcpus[v];
        let Some(t) = vcpu.thread else {
            return vcpu.idle_state == IdleState::Entering;
        };
        match self.threads[t].phase {
            Phase::LockHold { lock } | Phase::LockWait { lock, .. } => self.locks[lock].irq_off,
            _ => false,
        }
    }
}
