// SPDX-License-Identifier: GPL-2.0-only
//! The machine: all state of a run, and the loop over its events.
//!
//! The layers are `impl Machine` blocks in their own folders: `host` (pCPUs and
//! the scheduler's calls), `kvm` (exits, halts, pause loops, interrupts) and
//! `guest` (threads, locks, TLB, guest scheduler).

mod build;
mod check;
pub(crate) mod slots;
pub(crate) mod state;
pub(crate) mod stats;

use crate::engine::timers::Timers;
use crate::host::sched::{Host, HostCpu, HostScheduler, HostTask, Requests};
use crate::kvm::steer::HaltSteering;
use crate::outcome::{ACCOUNTS, Accounts, Outcome};
use crate::symbols::{self, Symbols};
use crate::trace::{Event as TraceEvent, Kind, NO_PCPU, Names, Trace, ip_of};
use crate::workload::program::Instr;
use crate::{Scenario, SimError};
use corun_case::sim::{Costs, Kvm};
use slots::{Event, Slots};
use state::{Barrier, Family, Flow, Mode, Pcpu, Place, Queue, Sem, SpinLock, Thread, Vcpu, Vm};
use stats::Stats;

/// All state of a run.
pub(crate) struct Machine<'a> {
    pub(crate) now_ns: u64,
    pub(crate) timers: Timers,
    pub(crate) slots: Slots,
    pub(crate) costs: Costs,
    pub(crate) kvm: Kvm,
    pub(crate) steering: HaltSteering,
    pub(crate) sched: Box<dyn HostScheduler>,
    pub(crate) requests: Requests,
    /// Host tasks: one a vCPU, with its number.
    pub(crate) tasks: Vec<HostTask>,
    pub(crate) cpus: Vec<HostCpu>,
    pub(crate) pcpus: Vec<Pcpu>,
    pub(crate) vcpus: Vec<Vcpu>,
    pub(crate) vms: Vec<Vm>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) codes: Vec<Vec<Instr>>,
    pub(crate) lock_families: Vec<Family>,
    pub(crate) locks: Vec<SpinLock>,
    pub(crate) sem_families: Vec<Family>,
    pub(crate) sems: Vec<Sem>,
    pub(crate) queue_families: Vec<Family>,
    pub(crate) queues: Vec<Queue>,
    pub(crate) barriers: Vec<Barrier>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) stats: Vec<Stats>,
    pub(crate) names: Vec<String>,
    /// The guests' kernel functions and their classes.
    pub(crate) symbols: Symbols,
    pub(crate) trace: Trace<'a>,
    pub(crate) check: bool,
    /// Scratch for lists made while handling an event.
    pub(crate) targets: Vec<usize>,
    events: u64,
    measured_from_ns: u64,
}

/// vCPUs begin to run within this time.
const START_NS: u32 = 50_000_000;

/// How many events pass between two checks of the invariants.
const CHECK_EVERY: u64 = 64;

impl Machine<'_> {
    /// Runs `scenario` to its end.
    pub(crate) fn run(mut self, scenario: &Scenario) -> Result<Outcome, SimError> {
        self.start();
        self.advance(scenario.warmup_ns)?;
        self.reset_stats();
        let end_ns = scenario.warmup_ns + scenario.measure_ns;
        self.advance(end_ns)?;
        self.settle_all();
        self.check_time(end_ns)?;
        Ok(self.into_outcome(scenario))
    }

    /// Handles all events up to `until_ns`.
    fn advance(&mut self, until_ns: u64) -> Result<(), SimError> {
        while let Some((at_ns, slot)) = self.timers.pop(until_ns) {
            self.now_ns = at_ns;
            self.events += 1;
            self.handle(self.slots.event(slot));
            if self.check && self.events.is_multiple_of(CHECK_EVERY) {
                self.check_state()?;
            }
        }
        self.now_ns = until_ns;
        Ok(())
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Work(p) => self.work_done(p),
            Event::Sched(p) => self.sched_timer(p),
            Event::Kick(p) => self.kick_arrives(p),
            Event::Noise(p) => self.noise(p),
            Event::Arrival(v) => self.interrupt_arrives(v),
            Event::Tick(v) => self.raise(v, state::irq::TICK),
            Event::Nap(v) => self.nap_ends(v),
            Event::Thread(t) => self.thread_timer(t),
            Event::Batch(f) => self.batch_arrives(f),
            Event::Ack(f) => self.ack_arrives(f),
            Event::Steer => self.steer(),
        }
    }

    /// The first events: guests with work wake, the host's noise begins.
    fn start(&mut self) {
        for p in 0..self.pcpus.len() {
            self.next_noise(p);
        }
        for f in 0..self.flows.len() {
            self.send_batch(f);
        }
        self.start_steering();
        for v in 0..self.vcpus.len() {
            if self.vcpus[v].queue.is_empty() {
                continue;
            }
            // Guests did not boot in step: turns of their vCPUs must not be
            // aligned by the start.
            let offset = u64::from(self.vcpus[v].rng.below(START_NS));
            self.send_interrupt(v, offset, state::irq::RESCHED);
        }
    }

    fn reset_stats(&mut self) {
        self.settle_all();
        for stats in &mut self.stats {
            stats.reset();
        }
        for pcpu in &mut self.pcpus {
            pcpu.accounts = [0; ACCOUNTS];
        }
        self.measured_from_ns = self.now_ns;
    }

    /// Brings the accounts of all pCPUs up to now.
    fn settle_all(&mut self) {
        for p in 0..self.pcpus.len() {
            self.elapse(p);
            if self.pcpus[p].mode == Mode::Guest {
                self.arm_work(p);
            }
        }
    }

    fn into_outcome(self, scenario: &Scenario) -> Outcome {
        let mut pcpus: Accounts = [0; ACCOUNTS];
        for pcpu in &self.pcpus {
            for (sum, ns) in pcpus.iter_mut().zip(pcpu.accounts) {
                *sum += ns;
            }
        }
        Outcome {
            measured_ns: scenario.measure_ns,
            events: self.events,
            trace_hash: self.trace.hash(),
            pcpus,
            vms: self
                .stats
                .into_iter()
                .zip(self.names)
                .map(|(stats, name)| stats.into_outcome(name))
                .collect(),
        }
    }

    pub(crate) fn arm(&mut self, event: Event, at_ns: u64) {
        self.timers.arm(self.slots.slot(event), at_ns);
    }

    pub(crate) fn cancel(&mut self, event: Event) {
        self.timers.cancel(self.slots.slot(event));
    }

    /// Notes an event of vCPU `v`.
    pub(crate) fn note(&mut self, kind: Kind, v: usize, arg: u64) {
        let event = self.event_of(kind, v, arg);
        self.trace.put(&event);
    }

    /// Shows viewers an event of vCPU `v` that follows from others.
    pub(crate) fn show(&mut self, kind: Kind, v: usize, arg: u64) {
        if self.trace.is_watched() {
            let event = self.event_of(kind, v, arg);
            self.trace.show(&event);
        }
    }

    fn event_of(&self, kind: Kind, v: usize, arg: u64) -> TraceEvent {
        let vcpu = &self.vcpus[v];
        let has_ip = matches!(kind, Kind::Exit | Kind::SwitchOut) && self.trace.is_watched();
        TraceEvent {
            at_ns: self.now_ns,
            kind,
            pcpu: match vcpu.place {
                Place::On(p) => p as u32,
                Place::Blocked | Place::Ready => NO_PCPU,
            },
            vm: vcpu.vm as u32,
            vcpu: vcpu.index as u32,
            arg,
            ip: if has_ip { ip_of(self.top(v).symbol) } else { 0 },
        }
    }

    /// Names of what events have numbers of.
    pub(crate) fn names_of_events(&self) -> Names {
        let vm_of_lock = |lock: &SpinLock| self.stats[lock.vm].name(lock.stat);
        let locks = self
            .locks
            .iter()
            .map(|l| vm_of_lock(l).replacen("lock.", "", 1));
        let symbols = self.symbols.iter().filter(|(s, _)| *s != symbols::USER);
        Names {
            symbols: symbols
                .map(|(symbol, name)| corun_events::Symbol {
                    start: ip_of(symbol),
                    name: name.to_owned(),
                })
                .collect(),
            locks: locks.collect(),
        }
    }

    /// Calls the host scheduler.
    pub(crate) fn with_sched<R>(
        &mut self,
        call: impl FnOnce(&mut dyn HostScheduler, &mut Host<'_>) -> R,
    ) -> R {
        let mut host = Host {
            now_ns: self.now_ns,
            tasks: &self.tasks,
            cpus: &self.cpus,
            requests: &mut self.requests,
        };
        call(self.sched.as_mut(), &mut host)
    }
}
