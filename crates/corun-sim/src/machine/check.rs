// SPDX-License-Identifier: GPL-2.0-only
//! Invariants that can be checked while the machine runs.

use super::Machine;
use super::state::{Mode, Place, ThreadState};
use crate::SimError;
use crate::host::sched::TaskState;

impl Machine<'_> {
    fn broken(&self, what: String) -> SimError {
        SimError::Invariant {
            at_ns: self.now_ns,
            what,
        }
    }

    /// No task is lost, and a vCPU has one pCPU at most.
    pub(super) fn check_state(&self) -> Result<(), SimError> {
        for v in 0..self.vcpus.len() {
            self.check_vcpu(v)?;
        }
        for p in 0..self.pcpus.len() {
            self.check_pcpu(p)?;
        }
        self.check_threads()
    }

    fn check_vcpu(&self, v: usize) -> Result<(), SimError> {
        let task = &self.tasks[v];
        let (state, queued) = match self.vcpus[v].place {
            Place::Blocked => (TaskState::Blocked, 0),
            Place::Ready => (TaskState::Queued, 1),
            Place::On(p) => {
                if self.cpus[p].current != Some(v as u32) {
                    return Err(self.broken(format!("vCPU {v} thinks that it has pCPU {p}")));
                }
                (TaskState::Running, 0)
            }
        };
        if task.state != state {
            return Err(self.broken(format!("task {v} is {:?}, not {state:?}", task.state)));
        }
        let times = self.sched.queued(v as u32);
        if times != queued {
            return Err(self.broken(format!("task {v}, {state:?}, is {times} times in queues")));
        }
        Ok(())
    }

    fn check_pcpu(&self, p: usize) -> Result<(), SimError> {
        let idle = self.pcpus[p].mode == Mode::Idle;
        let own_work = self.now_ns <= self.pcpus[p].stolen_until_ns;
        match self.cpus[p].current {
            None if !idle && !own_work => Err(self.broken(format!("pCPU {p} works for nobody"))),
            Some(v) if idle => Err(self.broken(format!("pCPU {p} is idle and has vCPU {v}"))),
            Some(v) if self.vcpus[v as usize].place != Place::On(p) => {
                Err(self.broken(format!("pCPU {p} has vCPU {v}, which is elsewhere")))
            }
            _ => Ok(()),
        }
    }

    fn check_threads(&self) -> Result<(), SimError> {
        for (t, thread) in self.threads.iter().enumerate() {
            let vcpu = &self.vcpus[thread.vcpu];
            let queued = vcpu.queue.iter().filter(|q| **q == t).count();
            let running = vcpu.thread == Some(t);
            let right = match thread.state {
                ThreadState::Running => running && queued == 0,
                ThreadState::Queued => !running && queued == 1,
                ThreadState::Asleep => !running && queued == 0,
            };
            if !right {
                return Err(self.broken(format!(
                    "thread {t} is {:?}, and {queued} times in its vCPU's queue",
                    thread.state
                )));
            }
        }
        Ok(())
    }

    /// Every nanosecond of every pCPU is in exactly one account.
    pub(super) fn check_time(&self, end_ns: u64) -> Result<(), SimError> {
        let expected = end_ns - self.measured_from_ns;
        for (p, pcpu) in self.pcpus.iter().enumerate() {
            let sum: u64 = pcpu.accounts.iter().sum();
            if sum != expected {
                return Err(
                    self.broken(format!("pCPU {p}: accounts hold {sum} ns of {expected} ns"))
                );
            }
        }
        Ok(())
    }
}
