// SPDX-License-Identifier: GPL-2.0-only
//! The same small model in our engine, in desque (Rust) and in `SimPy`.
//!
//! Tasks think, then compute in slices on a few CPUs, round robin; times are
//! exponential. An event is the end of a slice or of a thought. In Rust the model
//! is the same code for both; `peer.py` is written as `SimPy` wants it.

use crate::{Sample, Subject};
use corun_sim::engine::dist::Dist;
use corun_sim::engine::rng::{Rng, Stream};
use corun_sim::engine::timers::{Slot, Timers};
use desque::SimState;
use desque::serial::{Event, Simulation};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const TASKS: u32 = 64;
const CPUS: u32 = 16;
const SLICE_NS: u64 = 1_000_000;
const BURST: Dist = Dist::Exp(3_000_000);
const THINK: Dist = Dist::Exp(10_000_000);
const END_NS: u64 = 60_000_000_000;
/// Python's simulated seconds: about as long by the clock.
const PYTHON_SECONDS: &str = "2";

pub(crate) fn subjects(python: Option<&Path>) -> Vec<Subject> {
    let mut subjects = vec![
        Subject::new("corun-sim's engine", || Ok(ours())),
        Subject::new("desque 0.4", others),
    ];
    if let Some(python) = python {
        let python = python.to_owned();
        subjects.push(Subject::new("SimPy 4", move || simpy(&python)));
    }
    subjects
}

/// A stretch of computing begins.
#[derive(Clone, Copy)]
struct Start {
    cpu: u32,
    ns: u64,
}

/// The model.
#[derive(Debug)]
struct Host {
    rngs: Vec<Rng>,
    left_ns: Vec<u64>,
    queue: VecDeque<u32>,
    cpus: Vec<Option<u32>>,
    events: u64,
    bursts: u64,
}

impl Host {
    fn new() -> Self {
        Self {
            rngs: (0..TASKS as usize)
                .map(|t| Rng::new(1, Stream::Thread, t))
                .collect(),
            left_ns: vec![0; TASKS as usize],
            queue: VecDeque::with_capacity(TASKS as usize),
            cpus: vec![None; CPUS as usize],
            events: 0,
            bursts: 0,
        }
    }

    fn think_ns(&mut self, task: u32) -> u64 {
        THINK.sample(&mut self.rngs[task as usize])
    }

    /// `task` wants to compute.
    fn wake(&mut self, task: u32) -> Option<Start> {
        self.events += 1;
        self.left_ns[task as usize] = BURST.sample(&mut self.rngs[task as usize]);
        self.queue.push_back(task);
        let cpu = self.cpus.iter().position(Option::is_none)?;
        self.next(u32::try_from(cpu).ok()?)
    }

    fn next(&mut self, cpu: u32) -> Option<Start> {
        let task = self.queue.pop_front();
        self.cpus[cpu as usize] = task;
        let ns = self.left_ns[task? as usize].min(SLICE_NS);
        Some(Start { cpu, ns })
    }

    /// The slice on `cpu` is over: who thinks now and for how long, who is next.
    fn slice_ends(&mut self, cpu: u32) -> (Option<(u32, u64)>, Option<Start>) {
        self.events += 1;
        let mut thinks = None;
        if let Some(task) = self.cpus[cpu as usize] {
            let left_ns = &mut self.left_ns[task as usize];
            *left_ns -= (*left_ns).min(SLICE_NS);
            if *left_ns == 0 {
                self.bursts += 1;
                thinks = Some((task, self.think_ns(task)));
            } else {
                self.queue.push_back(task);
            }
        }
        (thinks, self.next(cpu))
    }

    fn sample(&self, start: Instant) -> Sample {
        Sample {
            events: self.events,
            seconds: start.elapsed().as_secs_f64(),
        }
    }
}

/// Slots: tasks first, then CPUs.
fn ours() -> Sample {
    let start = Instant::now();
    let mut host = Host::new();
    let mut timers = Timers::new((TASKS + CPUS) as usize);
    for task in 0..TASKS {
        timers.arm(task as Slot, host.think_ns(task));
    }
    while let Some((now_ns, slot)) = timers.pop(END_NS) {
        let begins = if slot < TASKS {
            host.wake(slot)
        } else {
            let (thinks, begins) = host.slice_ends(slot - TASKS);
            if let Some((task, ns)) = thinks {
                timers.arm(task, now_ns + ns);
            }
            begins
        };
        if let Some(Start { cpu, ns }) = begins {
            timers.arm(TASKS + cpu, now_ns + ns);
        }
    }
    host.sample(start)
}

impl SimState<u64> for Host {
    fn is_complete(&self, now_ns: &u64) -> bool {
        *now_ns > END_NS
    }
}

#[derive(Debug)]
struct Wake(u32);

#[derive(Debug)]
struct SliceEnds(u32);

fn begin(sim: &mut Simulation<Host, u64>, begins: Option<Start>) -> desque::Result {
    match begins {
        Some(Start { cpu, ns }) => sim.schedule_with_delay(SliceEnds(cpu), ns),
        None => Ok(()),
    }
}

impl Event<Host, u64> for Wake {
    fn execute(&mut self, sim: &mut Simulation<Host, u64>) -> desque::Result {
        let begins = sim.state_mut().wake(self.0);
        begin(sim, begins)
    }
}

impl Event<Host, u64> for SliceEnds {
    fn execute(&mut self, sim: &mut Simulation<Host, u64>) -> desque::Result {
        let (thinks, begins) = sim.state_mut().slice_ends(self.0);
        if let Some((task, ns)) = thinks {
            sim.schedule_with_delay(Wake(task), ns)?;
        }
        begin(sim, begins)
    }
}

fn others() -> Result<Sample, String> {
    let start = Instant::now();
    let mut sim = Simulation::new(Host::new(), 0);
    for task in 0..TASKS {
        let ns = sim.state_mut().think_ns(task);
        sim.schedule(Wake(task), ns).map_err(|e| e.to_string())?;
    }
    sim.run().map_err(|e| e.to_string())?;
    Ok(sim.state().sample(start))
}

fn simpy(python: &Path) -> Result<Sample, String> {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/speed/peer.py");
    let sizes = [TASKS, CPUS].map(|n| n.to_string());
    let out = Command::new(python)
        .arg(script)
        .args(sizes)
        .arg(PYTHON_SECONDS)
        .output()
        .map_err(|e| format!("{}: {e}", python.display()))?;
    let text = String::from_utf8_lossy(&out.stdout);
    let mut fields = text.split_whitespace();
    let (events, seconds) = (fields.next(), fields.next());
    let sample = events.zip(seconds).and_then(|(events, seconds)| {
        Some(Sample {
            events: events.parse().ok()?,
            seconds: seconds.parse().ok()?,
        })
    });
    sample.ok_or_else(|| format!("peer.py: {}", String::from_utf8_lossy(&out.stderr)))
}
