// SPDX-License-Identifier: GPL-2.0-only
//! Many VMs come and go, each in a process of its own, a few at once, on a host
//! that others keep busy.

use super::ending::Ending;
use super::error::{Doing, TinyVmError};
use super::program::Program;
use super::vm::{Kvm, TinyVm};
use nix::libc;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, alarm, fork};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Instant;

/// A VM that is not done by then has hung. Seconds.
const VM_WITHIN_S: u32 = 120;
/// Smallest and largest VM; sizes take turns.
const VCPUS: std::ops::RangeInclusive<u32> = 2..=4;

/// What [`churn`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChurnOptions {
    /// VMs to start and end; the endings take turns.
    pub vms: u32,
    /// VMs at the same time, at least 1.
    pub at_once: u32,
    /// Processes that keep the host busy meanwhile.
    pub burners: u32,
}

/// What [`churn`] did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChurnReport {
    /// VMs that ended as they should.
    pub ended: u32,
    /// VMs that did not.
    pub failed: u32,
    /// Those that ended as they should, by ending.
    pub endings: BTreeMap<&'static str, u32>,
    /// Duration. Seconds.
    pub took_s: f64,
}

/// Starts and ends VMs. The calling process must have no other thread: it forks.
pub fn churn(options: ChurnOptions) -> Result<ChurnReport, TinyVmError> {
    let begin = Instant::now();
    let kvm = Kvm::open()?;
    // While it lives, KVM's static keys stay as they are: each change patches the
    // kernel's text, which is no part of what is tried here.
    let _holder = TinyVm::new(&kvm, 1, Program::Halt)?;
    let _burners = Burners::start(options.burners)?;
    let mut report = ChurnReport {
        ended: 0,
        failed: 0,
        endings: Ending::ALL.map(|e| (e.name(), 0)).into(),
        took_s: 0.0,
    };
    let mut alive = BTreeMap::new();
    let mut started = 0;
    while started < options.vms || !alive.is_empty() {
        let room = alive.len() < usize::try_from(options.at_once.max(1)).unwrap_or(1);
        if started < options.vms && room {
            let (ending, vcpus, round) = nth(started);
            let pid = in_child(|| ending.live(&kvm, vcpus, round))?;
            alive.insert(pid, ending);
            started += 1;
            continue;
        }
        let status = waitpid(None, None).doing("waiting for a VM to end")?;
        let Some(ending) = status.pid().and_then(|pid| alive.remove(&pid)) else {
            continue;
        };
        if as_expected(ending, status) {
            report.ended += 1;
            *report.endings.entry(ending.name()).or_default() += 1;
        } else {
            eprintln!("VM that should end {:?}: {status:?}", ending.name());
            report.failed += 1;
        }
    }
    report.took_s = begin.elapsed().as_secs_f64();
    Ok(report)
}

/// How VM number `n` ends, how many vCPUs it has, and how often all endings had
/// their turn before.
fn nth(n: u32) -> (Ending, u32, u32) {
    let endings = Ending::ALL.len();
    let at = usize::try_from(n).unwrap_or_default();
    let sizes = VCPUS.end() - VCPUS.start() + 1;
    // Each ending meets each size.
    let round = u32::try_from(at / endings).unwrap_or_default();
    let vcpus = VCPUS.start() + (n + round) % sizes;
    (Ending::ALL[at % endings], vcpus, round)
}

fn as_expected(ending: Ending, status: WaitStatus) -> bool {
    match status {
        WaitStatus::Exited(_, code) => code == 0 && !ending.is_kill(),
        WaitStatus::Signaled(_, signal, _) => signal == Signal::SIGKILL && ending.is_kill(),
        _ => false,
    }
}

/// Runs `what` in a child process, which then exits without any clean-up.
fn in_child(what: impl FnOnce() -> Result<(), TinyVmError>) -> Result<Pid, TinyVmError> {
    // SAFETY: this process has one thread, so the child may do as it likes.
    match unsafe { fork() }.doing("starting a process")? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            alarm::set(VM_WITHIN_S);
            let result =
                prctl::set_pdeathsig(Signal::SIGKILL).doing("asking to end with the parent");
            let code = match result.and_then(|()| what()) {
                Ok(()) => 0,
                Err(e) => {
                    eprintln!("VM: {e}");
                    1
                }
            };
            // SAFETY: ends the process at once; that threads run is the point.
            unsafe { libc::_exit(code) }
        }
    }
}

/// Processes that compute; ended when dropped.
struct Burners(Vec<Pid>);

impl Burners {
    fn start(count: u32) -> Result<Self, TinyVmError> {
        let mut new = Self(Vec::new());
        for _ in 0..count {
            new.0.push(in_child(|| {
                alarm::cancel();
                loop {
                    std::hint::spin_loop();
                }
            })?);
        }
        Ok(new)
    }
}

impl Drop for Burners {
    fn drop(&mut self) {
        for pid in &self.0 {
            // One that is gone needs no signal, and no waiting.
            let _ = kill(*pid, Signal::SIGKILL);
            let _ = waitpid(*pid, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_ending_meets_every_size() {
        let met = (0..30).map(|n| (nth(n).0, nth(n).1));
        assert_eq!(met.collect::<BTreeSet<_>>().len(), 30);
    }

    #[test]
    fn a_vm_must_end_in_its_own_way() {
        let pid = Pid::from_raw(1);
        let exited = WaitStatus::Exited(pid, 0);
        let killed = WaitStatus::Signaled(pid, Signal::SIGKILL, false);
        assert!(as_expected(Ending::Guest, exited));
        assert!(!as_expected(Ending::Guest, killed));
        assert!(as_expected(Ending::Preempted, killed));
        assert!(!as_expected(Ending::Killed, exited));
        assert!(!as_expected(Ending::Halted, WaitStatus::Exited(pid, 1)));
        let hung = WaitStatus::Signaled(pid, Signal::SIGALRM, false);
        assert!(!as_expected(Ending::Killed, hung));
    }
}
