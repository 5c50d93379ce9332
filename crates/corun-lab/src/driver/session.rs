// SPDX-License-Identifier: GPL-2.0-only
//! What a boot's driver holds: guests, channels, counters.

use super::agents::{Agents, Arrival, What};
use super::control::Control;
use super::counters::CounterSource;
use super::error::{Context, DriverError, Result};
use super::host_task::HostTask;
use super::latency::Latency;
use super::qemu::{self, Places, Vmm};
use super::sched_ext::SchedExt;
use super::{cgroup, procfs};
use corun_lab_proto::agent::{Command, Event};
use corun_lab_proto::control::Report;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How often a wait looks for an order to abort.
const ABORT_POLL: Duration = Duration::from_millis(250);

/// How long a runnable vCPU may be without CPU time before it counts as starved:
/// longer than any slice in scaled time.
const STARVED: Duration = Duration::from_secs(5);

/// A boot in progress.
pub(super) struct Session {
    pub(super) control: Control,
    pub(super) agents: Agents,
    pub(super) counters: Box<dyn CounterSource>,
    /// What measures the vCPUs' waiting, if the case asks for it.
    pub(super) latency: Option<Latency>,
    /// The host's own task, if the case asks for it.
    pub(super) host_task: Option<HostTask>,
    /// Process of each guest's VMM.
    pub(super) pids: BTreeMap<String, u32>,
    /// The VMMs themselves; empty in tests, where guests are made of threads.
    pub(super) vmms: BTreeMap<String, Vmm>,
    pub(super) places: Places,
    pub(super) next_window: u32,
}

impl Session {
    /// A session without guests.
    pub(super) fn new(control: Control, counters: Box<dyn CounterSource>, places: Places) -> Self {
        Self {
            control,
            agents: Agents::new(),
            counters,
            latency: None,
            host_task: None,
            pids: BTreeMap::new(),
            vmms: BTreeMap::new(),
            places,
            next_window: 0,
        }
    }

    /// Sends a report to the runner.
    pub(super) fn report(&mut self, report: &Report) -> Result<()> {
        self.control.send(report)
    }

    /// Sends `command` to `guest`.
    pub(super) fn send(&mut self, guest: &str, command: &Command) -> Result<()> {
        match self.agents.send(guest, command) {
            Ok(()) => Ok(()),
            Err(e) => Err(self.suspect(guest, &format!("does not take commands: {e}"))),
        }
    }

    /// The next event of any guest. A guest's own failure is an error; so is
    /// silence of `awaited` until `deadline` while `doing` something.
    pub(super) fn next_event(
        &self,
        deadline: Instant,
        awaited: &str,
        doing: &str,
    ) -> Result<(String, Instant, Event)> {
        match self.next_until(deadline)? {
            Some(arrival) => Ok(arrival),
            None => Err(self.silent(awaited, doing)),
        }
    }

    /// The same without a claim to hear anything: `None` at `deadline`.
    pub(super) fn next_until(&self, deadline: Instant) -> Result<Option<(String, Instant, Event)>> {
        loop {
            if self.control.aborted() {
                return Err(DriverError::Aborted);
            }
            let poll = deadline.min(Instant::now() + ABORT_POLL);
            match self.agents.next(poll) {
                Some(arrival) => return self.judge(arrival).map(Some),
                None if Instant::now() >= deadline => return Ok(None),
                None => {}
            }
        }
    }

    fn judge(&self, arrival: Arrival) -> Result<(String, Instant, Event)> {
        let Arrival { guest, at, what } = arrival;
        match what {
            What::Event(Event::Failed { message, .. }) => {
                Err(DriverError::Own(format!("guest {guest}: {message}")))
            }
            What::Event(event) => Ok((guest, at, event)),
            What::Closed => Err(self.suspect(&guest, "is gone: its VMM closed the channel")),
            What::Garbage(line) => Err(DriverError::Own(format!("guest {guest}: {line}"))),
        }
    }

    /// `guest` said nothing for too long. A VM that wants to run and gets no CPU
    /// time is starved by the scheduler under test, which must never pass for an
    /// emulator fault; a VM that runs, or waits for ever, may be one.
    fn silent(&self, guest: &str, doing: &str) -> DriverError {
        let what = format!("is silent while {doing}");
        let Some(pid) = self.pids.get(guest) else {
            return self.suspect(guest, &what);
        };
        match procfs::starved(*pid, STARVED) {
            Ok(true) => DriverError::Own(format!(
                "guest {guest} {what}: all its runnable vCPUs got no CPU time in {} s; \
                 the scheduler starves it (sched_ext is {:?})",
                STARVED.as_secs(),
                SchedExt::now().state
            )),
            _ => self.suspect(guest, &what),
        }
    }

    /// An error that names `guest` and shows the end of its serial log, and of
    /// its VMM's output.
    pub(super) fn suspect(&self, guest: &str, what: &str) -> DriverError {
        // A kernel's report on an init that died is some 40 lines, and what init said
        // comes before it.
        let log = qemu::tail(&self.places.log(guest), 60);
        let vmm = qemu::tail(&self.places.vmm_output(guest), 5);
        let ending = self
            .pids
            .get(guest)
            .map_or("never began".to_owned(), |pid| qemu::ending(*pid));
        DriverError::EmulatorSuspect(format!(
            "guest {guest} {what} (its VMM {ending}); end of its serial log:\n{log}\nend of its \
             VMM's output:\n{vmm}"
        ))
    }

    /// Freezes, or thaws, the VMs of all guests but those in `working`. Even an
    /// idle guest takes 5 to 10 % of a pCPU here, for its timer ticks: a guest
    /// that is to run alone must have the host alone.
    pub(super) fn freeze_others(&self, working: &[&String], frozen: bool) -> Result<()> {
        for guest in self.vmms.keys().filter(|g| !working.contains(g)) {
            cgroup::freeze(&self.places.cgroups, guest, frozen)?;
        }
        Ok(())
    }

    /// CPU time of each VM so far. Nanoseconds.
    pub(super) fn cpu_times(&self) -> Result<BTreeMap<String, u64>> {
        let read = |(name, pid): (&String, &u32)| {
            let time = procfs::cpu_time_ns(*pid);
            let time = time.doing(|| format!("read the CPU time of guest {name}"))?;
            Ok((name.clone(), time))
        };
        self.pids.iter().map(read).collect()
    }

    /// Ends all VMMs.
    pub(super) fn stop_guests(&mut self) {
        self.vmms.clear();
        self.pids.clear();
    }
}
