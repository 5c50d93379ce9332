// SPDX-License-Identifier: GPL-2.0-only
//! The ways in which a tiny VM ends: what its vCPUs' threads do when its process,
//! its descriptors, or they themselves go away.

use super::error::TinyVmError;
use super::program::Program;
use super::tasks::{self, VcpuThread, until};
use super::vm::{Kvm, TinyVm};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid};
use std::path::Path;
use std::sync::Arc;

/// How a VM ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// The process exits before any vCPU ran.
    Created,
    /// The process exits while a vCPU executes its guest.
    Guest,
    /// The process is killed (SIGKILL) while all vCPUs are preempted.
    Preempted,
    /// The process exits while all vCPUs are halted in KVM.
    Halted,
    /// The process exits while all vCPUs' threads are in the VMM.
    User,
    /// The process is killed at any moment, amid IPIs or exits to the VMM.
    Killed,
    /// One vCPU's thread ends and another takes its vCPU over; the VM lives on,
    /// and its process exits later.
    ThreadEnds,
    /// Another thread takes a vCPU over while the first one lives on.
    ThreadLeaves,
    /// All descriptors are closed while the vCPUs run; they run on, and the
    /// process exits.
    Closed,
    /// All descriptors are closed and the vCPUs' threads leave: the VM is gone, and
    /// the threads live on for a while.
    Outlived,
}

impl Ending {
    /// All endings.
    pub const ALL: [Self; 10] = [
        Self::Created,
        Self::Guest,
        Self::Preempted,
        Self::Halted,
        Self::User,
        Self::Killed,
        Self::ThreadEnds,
        Self::ThreadLeaves,
        Self::Closed,
        Self::Outlived,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Guest => "guest",
            Self::Preempted => "preempted",
            Self::Halted => "halted",
            Self::User => "user",
            Self::Killed => "killed",
            Self::ThreadEnds => "thread-ends",
            Self::ThreadLeaves => "thread-leaves",
            Self::Closed => "closed",
            Self::Outlived => "outlived",
        }
    }

    /// What it is, for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Created => "exit before any vCPU ran",
            Self::Guest => "exit while a vCPU is in its guest",
            Self::Preempted => "SIGKILL while all vCPUs are preempted",
            Self::Halted => "exit while all vCPUs are halted",
            Self::User => "exit while all vCPU threads are in the VMM",
            Self::Killed => "SIGKILL amid IPIs or exits to the VMM",
            Self::ThreadEnds => "a vCPU's thread ends, another one takes over",
            Self::ThreadLeaves => "a vCPU's thread is replaced and lives on",
            Self::Closed => "descriptors closed under running vCPUs",
            Self::Outlived => "VM gone, its vCPUs' threads live on",
        }
    }

    /// True when the process is killed rather than exits.
    pub(super) fn is_kill(self) -> bool {
        matches!(self, Self::Preempted | Self::Killed)
    }

    fn program(self, round: u32) -> Program {
        match self {
            Self::Halted => Program::Halt,
            Self::Killed if round.is_multiple_of(2) => Program::Ipi,
            Self::User | Self::Killed => Program::Io,
            _ => Program::Spin,
        }
    }

    /// Starts a VM of `vcpus` vCPUs and brings it to its end. On success the
    /// calling process must exit at once, with the vCPUs as they are. `round`
    /// varies what may vary.
    pub(super) fn live(self, kvm: &Kvm, vcpus: u32, round: u32) -> Result<(), TinyVmError> {
        let vm = Arc::new(TinyVm::new(kvm, vcpus, self.program(round))?);
        if self == Self::Created {
            return Ok(());
        }
        tasks::take_kicks()?;
        let life = Life {
            threads: (0..vcpus)
                .map(|id| VcpuThread::start(&vm, id, self == Self::User))
                .collect(),
            vm,
        };
        until("all vCPUs to run", || !life.progress().contains(&0))?;
        match self {
            Self::Created => Ok(()),
            Self::Guest => life.watch_one_run(),
            Self::Preempted => life.preempt_all().and_then(|()| die()),
            Self::Halted => life.all_sleep(),
            Self::User => until("exits to the VMM", || {
                life.threads.iter().all(VcpuThread::is_parked)
            }),
            Self::Killed => die(),
            Self::ThreadEnds => life.replace_a_thread(false),
            Self::ThreadLeaves => life.replace_a_thread(true),
            Self::Closed => {
                life.vm.close();
                life.all_progress()
            }
            Self::Outlived => life.outlive(),
        }
    }
}

/// Ends this process as the kernel's out-of-memory killer would.
fn die() -> Result<(), TinyVmError> {
    kill(getpid(), Signal::SIGKILL).map_err(|e| TinyVmError::Os("killing this process", e))
}

/// A VM that runs.
struct Life {
    vm: Arc<TinyVm>,
    threads: Vec<VcpuThread>,
}

impl Life {
    fn progress(&self) -> Vec<u32> {
        let ids = self.vm.vcpus.iter().map(|vcpu| vcpu.id);
        ids.map(|id| self.vm.memory.progress(id)).collect()
    }

    /// Waits until each vCPU has gone through its loop, once more.
    fn all_progress(&self) -> Result<(), TinyVmError> {
        let before = self.progress();
        until("all vCPUs to run", || {
            self.progress()
                .iter()
                .zip(&before)
                .all(|(now, was)| now != was)
        })
    }

    /// Returns when a vCPU has just been seen executing on another pCPU.
    fn watch_one_run(&self) -> Result<(), TinyVmError> {
        if let [first, second, ..] = tasks::pcpus()?[..] {
            tasks::bind(Pid::from_raw(0), first)?;
            for thread in &self.threads {
                tasks::bind(thread.tid()?, second)?;
            }
        }
        until("a vCPU to run", || {
            let before = self.progress();
            // Without sleeping: what moves now runs now.
            (0..1000).any(|_| self.progress() != before)
        })
    }

    /// Leaves all vCPUs runnable on the pCPU that this thread runs on.
    fn preempt_all(&self) -> Result<(), TinyVmError> {
        let cpu = tasks::pcpus()?.last().copied().unwrap_or_default();
        tasks::bind(Pid::from_raw(0), cpu)?;
        for thread in &self.threads {
            tasks::bind(thread.tid()?, cpu)?;
        }
        self.all_progress()
    }

    fn all_sleep(&self) -> Result<(), TinyVmError> {
        for thread in &self.threads {
            let tid = thread.tid()?;
            until("a vCPU to halt", || tasks::sleeps(tid))?;
        }
        Ok(())
    }

    /// Gives the last vCPU to a new thread; the old one ends, or lives on
    /// without it until the process exits.
    fn replace_a_thread(mut self, lives_on: bool) -> Result<(), TinyVmError> {
        let Some(old) = self.threads.pop() else {
            return Ok(());
        };
        old.leave()?;
        let id = u32::try_from(self.threads.len()).unwrap_or_default();
        let replaced = if lives_on {
            Some(old)
        } else {
            old.end()?;
            None
        };
        self.threads.push(VcpuThread::start(&self.vm, id, false));
        self.all_progress()?;
        // Now the first thread ends before the one that runs the vCPU.
        replaced.map_or(Ok(()), VcpuThread::end)?;
        self.all_progress()
    }

    /// Ends the VM, and shows that it is gone, before its threads end.
    fn outlive(self) -> Result<(), TinyVmError> {
        let shown = self
            .vm
            .number()
            .map(|fd| format!("/sys/kernel/debug/kvm/{}-{fd}", getpid()));
        self.vm.close();
        for thread in &self.threads {
            thread.leave()?;
        }
        if let Some(shown) = shown {
            until("the VM to be gone", || !Path::new(&shown).exists())?;
        }
        self.threads.into_iter().try_for_each(VcpuThread::end)
    }
}
