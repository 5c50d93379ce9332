// SPDX-License-Identifier: GPL-2.0-only
//! Sleeping locks: mutexes and reader-writer semaphores, with or without
//! spinning while the owner runs (`mutex_optimistic_spin`,
//! `rwsem_optimistic_spin`).

use crate::machine::Machine;
use crate::machine::state::{FOREVER, Phase, Seg, ThreadState, Why};
use crate::outcome::Account;
use crate::symbols;

impl Machine<'_> {
    /// Thread `t` on `v` wants `sem`. It has it at once, spins, or sleeps.
    pub(crate) fn down(&mut self, v: usize, t: usize, sem: usize, shared: bool) {
        if self.sem_try(t, sem, shared) {
            self.proceed(t);
        } else if !shared && self.sem_worth_spinning(v, sem) {
            self.sems[sem].spinners.push_back(t);
            self.begin_spin(
                t,
                Phase::SemSpin { sem },
                Seg::new(FOREVER, Account::KernelLock, symbols::OWNER_SPIN),
            );
        } else {
            self.sems[sem].sleepers.push_back((t, shared));
            self.sleep_for(t, Why::Sem { sem, shared });
        }
    }

    /// Takes `sem` if it is free. Readers do not pass a writer that sleeps.
    fn sem_try(&mut self, t: usize, sem: usize, shared: bool) -> bool {
        let s = &mut self.sems[sem];
        if s.writer.is_some() || !shared && s.readers > 0 {
            return false;
        }
        if shared && s.sleepers.front().is_some_and(|(_, shared)| !shared) {
            return false;
        }
        self.sem_give(t, sem, shared);
        true
    }

    fn sem_give(&mut self, t: usize, sem: usize, shared: bool) {
        let s = &mut self.sems[sem];
        if shared {
            s.readers += 1;
        } else {
            s.writer = Some(t);
        }
        self.threads[t].held.push((sem, shared));
    }

    /// The owner seems to run: the guest cannot see that its vCPU may not.
    fn sem_worth_spinning(&self, v: usize, sem: usize) -> bool {
        let s = &self.sems[sem];
        s.spin
            && !self.vcpus[v].need_resched
            && s.writer
                .is_some_and(|w| self.threads[w].state == ThreadState::Running)
    }

    /// A spinner's patience ended: is there still reason to spin?
    pub(crate) fn sem_spin_again(&mut self, v: usize, t: usize, sem: usize) {
        if self.sem_worth_spinning(v, sem) {
            self.threads[t].spun_ns = 0;
            return;
        }
        self.sems[sem].spinners.retain(|s| *s != t);
        self.down(v, t, sem, false);
    }

    /// Thread `t` releases the sleeping lock that it took last.
    pub(crate) fn up(&mut self, v: usize, t: usize) {
        let Some((sem, shared)) = self.threads[t].held.pop() else {
            return;
        };
        let s = &mut self.sems[sem];
        if shared {
            s.readers -= 1;
        } else {
            s.writer = None;
        }
        if s.writer.is_some() || s.readers > 0 {
            return;
        }
        let spinner = self.sems[sem]
            .spinners
            .iter()
            .copied()
            .find(|w| self.active_on(*w).is_some());
        if let Some(winner) = spinner {
            self.sems[sem].spinners.retain(|w| *w != winner);
            self.sem_give(winner, sem, false);
            self.poke(winner, self.costs.lock_handover_ns);
            return;
        }
        self.sem_wake(v, sem);
    }

    /// Wakes a writer, which then tries again, or all readers at the front,
    /// which have the lock.
    fn sem_wake(&mut self, v: usize, sem: usize) {
        match self.sems[sem].sleepers.front().copied() {
            None => {}
            Some((t, false)) => {
                if !self.sems[sem].wakes_one {
                    self.sems[sem].sleepers.pop_front();
                }
                self.wake_thread(t, Some(v));
            }
            Some((_, true)) => {
                while let Some((t, true)) = self.sems[sem].sleepers.front().copied() {
                    self.sems[sem].sleepers.pop_front();
                    self.sem_give(t, sem, true);
                    self.wake_thread(t, Some(v));
                }
            }
        }
    }

    /// A woken sleeper: it was given the lock, or tries for it.
    pub(crate) fn sem_retry(&mut self, t: usize, sem: usize, shared: bool) {
        let given = self.threads[t].held.last() == Some(&(sem, shared)) && shared;
        let taken = given || self.sem_try(t, sem, shared);
        let sleepers = &mut self.sems[sem].sleepers;
        let in_line = sleepers.front() == Some(&(t, shared));
        if taken {
            if in_line {
                sleepers.pop_front();
            }
            self.proceed(t);
        } else {
            if !in_line {
                sleepers.push_front((t, shared));
            }
            self.sleep_for(t, Why::Sem { sem, shared });
        }
    }
}
