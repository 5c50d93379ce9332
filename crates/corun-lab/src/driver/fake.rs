// SPDX-License-Identifier: GPL-2.0-only
//! Guests and a runner made of threads, for tests.

use super::control::Control;
use super::counters::{CounterSource, Counters};
use super::error::Result;
use super::qemu::Places;
use super::session::Session;
use corun_lab_proto::agent::{Command, Event, RunResult};
use corun_lab_proto::control::{Order, Report};
use corun_lab_proto::{from_line, to_line};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// Counters that grow by one at each reading.
struct Ticks(AtomicU64);

impl CounterSource for Ticks {
    fn read(&self) -> Result<Counters> {
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        Ok([("yield.asked".to_owned(), n)].into())
    }
}

/// A session whose runner answers the verdicts `keep` in turn (then "keep"), and
/// what that runner heard.
pub(super) fn session(keep: Vec<bool>) -> (Session, Receiver<Report>) {
    let (ours, theirs) = UnixStream::pair().expect("socketpair");
    let input = ours.try_clone().expect("dup");
    let (heard, reports) = channel();
    thread::spawn(move || {
        let mut out = theirs.try_clone().expect("dup");
        let mut keep = keep.into_iter();
        for line in BufReader::new(theirs)
            .lines()
            .map_while(std::result::Result::ok)
        {
            let report: Report = from_line(&line).expect("a report");
            let ended = match &report {
                Report::WindowEnd { window } => Some(*window),
                _ => None,
            };
            // First: after the verdict the test may look at what was heard.
            if heard.send(report).is_err() {
                return;
            }
            if let Some(window) = ended {
                let keep = keep.next().unwrap_or(true);
                say(&mut out, &Order::Verdict { window, keep });
            }
        }
    });
    let control = Control::over(input, Box::new(ours));
    let counters = Box::new(Ticks(AtomicU64::new(0)));
    let places = Places {
        run: "/nonexistent".into(),
        ..Places::default()
    };
    (Session::new(control, counters, places), reports)
}

/// Adds a guest that answers each command by what `answer` says.
pub(super) fn add_guest(
    session: &mut Session,
    name: &str,
    mut answer: impl FnMut(Command) -> Vec<Event> + Send + 'static,
) {
    let (ours, theirs) = UnixStream::pair().expect("socketpair");
    session.agents.add(name, ours).expect("listens");
    session.pids.insert(name.to_owned(), std::process::id());
    thread::spawn(move || {
        let mut out = theirs.try_clone().expect("dup");
        for line in BufReader::new(theirs)
            .lines()
            .map_while(std::result::Result::ok)
        {
            for event in answer(from_line(&line).expect("a command")) {
                say(&mut out, &event);
            }
        }
    });
}

fn say(out: &mut UnixStream, message: &impl serde::Serialize) {
    let line = to_line(message).expect("encodes");
    // The other side may be gone already, when a test ends early.
    let _ = out.write_all(line.as_bytes());
}

/// A well-behaved agent that works at `rate`.
pub(super) fn worker(rate: f64) -> impl FnMut(Command) -> Vec<Event> + Send {
    move |command| match command {
        Command::Run {
            id,
            measure_ms: None,
            ..
        } => vec![Event::Started { id }],
        Command::Run { id, .. } => vec![Event::Started { id }, finished(id, rate)],
        Command::Stop { id } => vec![finished(id, rate)],
        Command::TimeExits { id, .. } => vec![Event::ExitsTimed {
            id,
            mean_ns: 2000.0,
            min_ns: 1000.0,
        }],
        Command::LoadModule { id, .. } => vec![Event::ModuleLoaded { id }],
        Command::PowerOff => Vec::new(),
    }
}

/// The end of run `id`, whose work went at `rate`.
pub(super) fn finished(id: u64, rate: f64) -> Event {
    Event::Finished {
        id,
        result: RunResult {
            workload: "cpu".to_owned(),
            threads: 1,
            work: rate,
            unit: "units".to_owned(),
            elapsed_ns: 1_000_000_000,
            rate_per_s: rate,
            latency: Vec::new(),
            steal_ns: 0,
            interrupts: BTreeMap::new(),
            module_counts: BTreeMap::new(),
        },
    }
}
