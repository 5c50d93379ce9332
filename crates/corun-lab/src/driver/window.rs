// SPDX-License-Identifier: GPL-2.0-only
//! One measured window: start the load, start the measured, account, collect.

use super::counters::{Counters, growth};
use super::error::{Context, DriverError, Result};
use super::procfs;
use super::session::Session;
use crate::case::Phase;
use corun_lab_proto::LatencySummary;
use corun_lab_proto::agent::{Command, Event, RunResult, WorkloadSpec};
use corun_lab_proto::control::{Report, VcpuLatency};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How often a window that the runner refuses is measured in all.
const MAX_TRIES: u32 = 3;
/// What a slow, preempted guest may need beyond the window's own length.
const SLACK: Duration = Duration::from_mins(1);

/// What to measure.
#[derive(Debug, Clone, Default)]
pub(super) struct WindowSpec {
    /// Workloads that are measured, by guest.
    pub(super) measured: BTreeMap<String, WorkloadSpec>,
    /// Workloads that only make load, by guest.
    pub(super) load: BTreeMap<String, WorkloadSpec>,
    /// Guest time before the window.
    pub(super) warmup: Duration,
    /// Guest time of the window.
    pub(super) measure: Duration,
}

/// What one window gave.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub(super) window: u32,
    pub(super) results: BTreeMap<String, RunResult>,
    /// Length of the accounted time on L1's clock. CPU times, switches and
    /// counters are of this time, in which all measured guests worked.
    pub(super) elapsed: Duration,
    pub(super) cpu_ns: BTreeMap<String, u64>,
    pub(super) vcpu_switches: u64,
    pub(super) busy_ns: u64,
    pub(super) counters: Counters,
    pub(super) vcpu_latency: BTreeMap<String, VcpuLatency>,
    pub(super) host_task: Option<LatencySummary>,
    pub(super) start_spread: Duration,
    pub(super) redone: u32,
    pub(super) disturbed: bool,
}

/// Measures `spec`; again while the runner says that the machine was disturbed,
/// up to [`MAX_TRIES`] times in all.
pub(super) fn measure(session: &mut Session, spec: &WindowSpec) -> Result<Measured> {
    for redone in 0.. {
        let mut measured = measure_once(session, spec)?;
        let keep = session.control.verdict(measured.window)?;
        measured.redone = redone;
        measured.disturbed = !keep;
        if keep || redone + 1 >= MAX_TRIES {
            return Ok(measured);
        }
    }
    unreachable!("the loop above ends at MAX_TRIES")
}

/// Measures with the guests that have nothing to do frozen. After an error they
/// stay so: the boot is over then.
fn measure_once(session: &mut Session, spec: &WindowSpec) -> Result<Measured> {
    let working: Vec<&String> = spec.measured.keys().chain(spec.load.keys()).collect();
    session.freeze_others(&working, true)?;
    let measured = measure_working(session, spec)?;
    session.freeze_others(&working, false)?;
    Ok(measured)
}

fn measure_working(session: &mut Session, spec: &WindowSpec) -> Result<Measured> {
    let window = session.next_window;
    session.next_window += 1;
    let load = start(session, &spec.load, spec, None)?;
    await_starts(session, &load, spec)?;
    let runs = start(session, &spec.measured, spec, Some(spec.measure))?;
    let mut seen = await_starts(session, &runs, spec)?;

    begin_observing(session)?;
    let before = Snapshot::take(session)?;
    session.report(&Report::WindowBegin { window })?;
    let first = seen.starts.iter().min().copied().unwrap_or(before.at);
    let last = seen.starts.iter().max().copied().unwrap_or(before.at);
    let after = collect(session, &runs, &mut seen, first + spec.measure)?;
    session.report(&Report::WindowEnd { window })?;
    stop(session, &load)?;

    Ok(Measured {
        window,
        results: seen.results,
        elapsed: after.at - before.at,
        cpu_ns: growth(&before.cpu_ns, &after.cpu_ns),
        vcpu_switches: after.vcpu_switches.saturating_sub(before.vcpu_switches),
        busy_ns: after.busy_ns.saturating_sub(before.busy_ns),
        counters: growth(&before.counters, &after.counters),
        vcpu_latency: working(spec, after.vcpu_latency),
        host_task: after.host_task,
        start_spread: last - first,
        redone: 0,
        disturbed: false,
    })
}

/// What is observed from here on belongs to the window.
fn begin_observing(session: &mut Session) -> Result<()> {
    if let Some(latency) = &mut session.latency {
        latency.begin()?;
    }
    if let Some(task) = &session.host_task {
        task.begin();
    }
    Ok(())
}

/// Only of guests that have work: the others are frozen, and no VM of the case's.
fn working<T>(spec: &WindowSpec, of_all: BTreeMap<String, T>) -> BTreeMap<String, T> {
    let works = |g: &String| spec.measured.contains_key(g) || spec.load.contains_key(g);
    of_all.into_iter().filter(|(g, _)| works(g)).collect()
}

/// Starts the work of `phase` in all its guests, for as long as they live.
pub(super) fn start_load(session: &mut Session, phase: &Phase) -> Result<()> {
    let work = phase
        .run
        .iter()
        .map(|(guest, w)| (guest.clone(), w.to_spec()));
    let spec = WindowSpec {
        load: work.collect(),
        ..WindowSpec::default()
    };
    let runs = start(session, &spec.load, &spec, None)?;
    await_starts(session, &runs, &spec).map(|_| ())
}

/// Run numbers, and whose they are.
type Runs = BTreeMap<u64, String>;

fn start(
    session: &mut Session,
    work: &BTreeMap<String, WorkloadSpec>,
    spec: &WindowSpec,
    measure: Option<Duration>,
) -> Result<Runs> {
    let mut runs = Runs::new();
    for (guest, workload) in work {
        let id = session.agents.new_id();
        let command = Command::Run {
            id,
            workload: workload.clone(),
            warmup_ms: millis(spec.warmup),
            measure_ms: measure.map(millis),
        };
        session.send(guest, &command)?;
        runs.insert(id, guest.clone());
    }
    Ok(runs)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What is known of runs in progress.
#[derive(Default)]
struct Seen {
    /// When each began to count.
    starts: Vec<Instant>,
    /// Those that have ended.
    results: BTreeMap<String, RunResult>,
}

/// Waits until each of `runs` counts. A short run may end before a late one
/// begins; its result is kept.
fn await_starts(session: &Session, runs: &Runs, spec: &WindowSpec) -> Result<Seen> {
    let deadline = Instant::now() + spec.warmup + spec.measure + SLACK;
    let mut waiting = runs.clone();
    let mut seen = Seen::default();
    while let Some(guest) = waiting.values().next() {
        match session.next_event(deadline, guest, "starting its workload")? {
            (_, at, Event::Started { id }) if waiting.remove(&id).is_some() => {
                seen.starts.push(at);
            }
            (guest, _, event) => seen.finish(runs, &waiting, guest, event)?,
        }
    }
    Ok(seen)
}

impl Seen {
    fn finish(
        &mut self,
        runs: &Runs,
        not_started: &Runs,
        guest: String,
        event: Event,
    ) -> Result<()> {
        match event {
            Event::Finished { id, result }
                if runs.get(&id) == Some(&guest)
                    && !not_started.contains_key(&id)
                    && !self.results.contains_key(&guest) =>
            {
                self.results.insert(guest, result);
                Ok(())
            }
            event => Err(unexpected(&guest, &event)),
        }
    }
}

/// Waits for the results of all `runs`, and takes the accounts at `account_at`
/// or at the first run's end, whichever comes first: from then on not all guests
/// work.
fn collect(
    session: &Session,
    runs: &Runs,
    seen: &mut Seen,
    account_at: Instant,
) -> Result<Snapshot> {
    let deadline = account_at + SLACK;
    let none = Runs::new();
    if seen.results.is_empty()
        && let Some((guest, _, event)) = session.next_until(account_at)?
    {
        seen.finish(runs, &none, guest, event)?;
    }
    let after = Snapshot::take(session)?;
    while let Some(guest) = runs.values().find(|g| !seen.results.contains_key(*g)) {
        let (guest, _, event) = session.next_event(deadline, guest, "measuring")?;
        seen.finish(runs, &none, guest, event)?;
    }
    Ok(after)
}

/// Ends `runs`; what they did is of no interest.
fn stop(session: &mut Session, runs: &Runs) -> Result<()> {
    for (id, guest) in runs {
        session.send(guest, &Command::Stop { id: *id })?;
    }
    let deadline = Instant::now() + SLACK;
    let mut waiting = runs.clone();
    while let Some(guest) = waiting.values().next() {
        match session.next_event(deadline, guest, "ending its workload")? {
            (_, _, Event::Finished { id, .. }) if waiting.remove(&id).is_some() => {}
            (guest, _, event) => return Err(unexpected(&guest, &event)),
        }
    }
    Ok(())
}

fn unexpected(guest: &str, event: &Event) -> DriverError {
    DriverError::Own(format!(
        "guest {guest} sent what nobody asked for: {event:?}"
    ))
}

/// Accounts at one moment.
struct Snapshot {
    at: Instant,
    cpu_ns: BTreeMap<String, u64>,
    vcpu_switches: u64,
    busy_ns: u64,
    counters: Counters,
    /// Since the window's beginning.
    vcpu_latency: BTreeMap<String, VcpuLatency>,
    host_task: Option<LatencySummary>,
}

impl Snapshot {
    fn take(session: &Session) -> Result<Self> {
        let at = Instant::now();
        let cpu_ns = session.cpu_times()?;
        let mut vcpu_switches = 0;
        for pid in session.pids.values() {
            vcpu_switches +=
                procfs::vcpu_switches(*pid).doing(|| "count vCPU switches".to_owned())?;
        }
        Ok(Self {
            at,
            cpu_ns,
            vcpu_switches,
            busy_ns: procfs::busy_ns().doing(|| "read /proc/stat".to_owned())?,
            counters: session.counters.read()?,
            vcpu_latency: match &session.latency {
                Some(latency) => latency.read(&session.pids)?,
                None => BTreeMap::new(),
            },
            host_task: match &session.host_task {
                Some(task) => Some(task.read()?),
                None => None,
            },
        })
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
