// SPDX-License-Identifier: GPL-2.0-only
//! Threads: what they do next.

use crate::machine::Machine;
use crate::machine::slots::Event;
use crate::machine::state::{Phase, QueueOp, Seg, ThreadState, Why};
use crate::machine::stats::hist;
use crate::outcome::Account;
use crate::symbols;
use crate::trace::Kind;
use crate::workload::program::Instr;

impl Machine<'_> {
    /// What thread `t` on `v` was doing is done.
    pub(crate) fn thread_step(&mut self, v: usize, t: usize) {
        match self.threads[t].phase {
            Phase::Fetch => {
                if !self.preempt(v, t) {
                    self.fetch(v, t);
                }
            }
            Phase::LockHold { lock } => {
                self.proceed(t);
                if let Some((phase, seg)) = self.threads[t].after_unlock.take() {
                    self.threads[t].phase = phase;
                    self.threads[t].seg = seg;
                }
                self.unlock(v, lock);
            }
            Phase::FlushSelf => self.shootdown_others(v, t),
            Phase::FlushReturn => self.shootdown_done(v, t),
            Phase::Sleep(why) => self.fall_asleep(v, t, why),
            Phase::Woken(why) => self.woken(t, why),
            // Spins end elsewhere.
            Phase::LockWait { .. }
            | Phase::FlushWait
            | Phase::SemSpin { .. }
            | Phase::BarrierSpin { .. } => {}
        }
    }

    /// Executes the next instruction.
    fn fetch(&mut self, v: usize, t: usize) {
        let thread = &mut self.threads[t];
        let instr = self.codes[thread.code][thread.pc];
        thread.pc += 1;
        match instr {
            Instr::User(time) => {
                let ns = time.sample(&mut thread.rng);
                thread.seg = Seg::new(ns, Account::User, symbols::USER);
            }
            Instr::Kernel(time, symbol) => {
                let ns = time.sample(&mut thread.rng);
                thread.seg = Seg::kernel(ns, symbol);
            }
            Instr::Lock {
                family,
                hold,
                lines,
                lockref,
            } => {
                let lines_ns = u64::from(lines) * self.costs.line_ns;
                let hold_ns = hold.sample(&mut thread.rng) + lines_ns;
                let family = self.lock_families[thread.base.lock_family + family as usize];
                let lock = family.first + thread.rng.below(family.count) as usize;
                if !lockref || self.lockref_needs(lock) {
                    self.lock(v, t, lock, hold_ns);
                }
            }
            Instr::Uncontended(locks) => {
                let ns = u64::from(locks) * self.unlock_cost_ns(v);
                self.threads[t].seg = Seg::new(ns, Account::KernelLock, symbols::SPIN);
            }
            Instr::Down { family, shared } => {
                let family = self.sem_families[thread.base.sem_family + family as usize];
                let sem = family.first + thread.rng.below(family.count) as usize;
                self.down(v, t, sem, shared);
            }
            Instr::Up => self.up(v, t),
            Instr::Shootdown => self.shootdown(v, t),
            Instr::Push { family } => {
                let q = self.own_queue(t, family);
                self.use_queue(v, t, QueueOp::Push(q));
            }
            Instr::Pop { family } => {
                let q = self.own_queue(t, family);
                self.use_queue(v, t, QueueOp::Pop(q));
            }
            Instr::Barrier { barrier } => {
                let barrier = thread.base.barrier + barrier as usize;
                self.arrive(v, t, barrier);
            }
            Instr::Sleep(time) => {
                let ns = time.sample(&mut thread.rng);
                self.sleep_for(t, Why::Timer(ns));
            }
            Instr::Receive { flow } => {
                let flow = thread.base.flow + flow as usize;
                if self.receive(t, flow) {
                    self.proceed(t);
                }
            }
            Instr::Unit => self.unit(v, t),
            Instr::Maybe { .. } | Instr::Again { .. } | Instr::Restart => self.jump(t, instr),
        }
    }

    fn jump(&mut self, t: usize, instr: Instr) {
        let thread = &mut self.threads[t];
        match instr {
            Instr::Maybe { chance_pm, over } => {
                if !thread.rng.chance_pm(chance_pm) {
                    thread.pc += over as usize;
                }
            }
            Instr::Again { times, back, slot } => {
                let rounds = &mut thread.rounds[slot as usize];
                *rounds += 1;
                if *rounds < times {
                    thread.pc -= back as usize + 1;
                } else {
                    *rounds = 0;
                }
            }
            _ => thread.pc = 0,
        }
    }

    /// Queues of a family belong to threads by number.
    fn own_queue(&self, t: usize, family: u32) -> usize {
        let thread = &self.threads[t];
        let family = self.queue_families[thread.base.queue_family + family as usize];
        family.first + thread.number % family.count as usize
    }

    fn unit(&mut self, v: usize, t: usize) {
        let now_ns = self.now_ns;
        let thread = &mut self.threads[t];
        let took_ns = now_ns - thread.last_unit_ns;
        thread.last_unit_ns = now_ns;
        let stats = &mut self.stats[thread.vm];
        stats.units[thread.work] += 1;
        stats.record(hist::UNIT, took_ns);
        self.note(Kind::Unit, v, t as u64);
    }

    /// Thread `t` goes to sleep: first the system call's own work.
    pub(crate) fn sleep_for(&mut self, t: usize, why: Why) {
        let thread = &mut self.threads[t];
        thread.phase = Phase::Sleep(why);
        thread.granted = false;
        thread.seg = Seg::kernel(self.costs.futex_ns, symbols::FUTEX);
    }

    fn fall_asleep(&mut self, v: usize, t: usize, why: Why) {
        let thread = &mut self.threads[t];
        if std::mem::take(&mut thread.granted) {
            self.woken(t, why);
            return;
        }
        thread.phase = Phase::Woken(why);
        thread.seg = Seg::kernel(self.costs.futex_ns, symbols::FUTEX);
        thread.state = ThreadState::Asleep;
        self.switch_away(v);
        if let Why::Timer(ns) = why {
            self.arm(Event::Thread(t), self.now_ns + ns);
        }
    }

    /// Thread `t` runs again after it slept.
    fn woken(&mut self, t: usize, why: Why) {
        match why {
            Why::Barrier(barrier) => {
                self.wake_released(barrier, self.threads[t].vcpu);
                self.proceed(t);
            }
            Why::Sem { sem, shared } => self.sem_retry(t, sem, shared),
            Why::Packet(flow) => self.receive_again(t, flow),
            Why::Push | Why::Pop | Why::Timer(_) => self.proceed(t),
        }
    }
}
