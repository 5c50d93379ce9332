// SPDX-License-Identifier: GPL-2.0-only
//! Follows every vCPU through a recording: where its time went, what it waited
//! for, what happened to its VM.

use super::bins::Bins;
use super::counts;
use super::timeline::{Interval, Timeline};
use crate::latency;
use corun_events::{Event, Header, Kind};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// VMs that have curves and colours of their own; the others share the last.
pub(crate) const OWN: usize = 6;

/// A vCPU's states; the numbers index [`Tally::states_ns`] and [`STATES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// On a pCPU.
    Running = 0,
    /// Lost its pCPU and wants it.
    Preempted = 1,
    /// Woke up and wants one.
    Woken = 2,
    /// Halted.
    Halted = 3,
    /// Before its first event.
    Unseen = 4,
}

/// Names of [`State`], for people.
pub(crate) const STATES: [&str; 5] = [
    "running",
    "preempted",
    "waiting after wake-up",
    "halted",
    "not seen yet",
];

/// Kinds of times; the numbers index [`Times::histograms`].
pub(crate) const TIMES: [&str; 6] = [
    "from wake-up to running",
    "preempted, until it runs again",
    "a stretch on a pCPU",
    "an IPI, from sending until its target takes it",
    "a TLB shootdown",
    "spinning for a lock",
];

/// What a vCPU takes where vectors are not known, as bits: requests to look whom
/// to run and to call a function come from siblings.
const IPI_BITS: u64 = 3;

/// IPIs to one vCPU that wait to be taken; older ones are forgotten.
const PENDING: usize = 1024;

/// What one VM did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(crate) name: String,
    pub(crate) vcpus: u32,
    /// Time of all its vCPUs, by [`State`]. Nanoseconds.
    pub(crate) states_ns: [u64; STATES.len()],
    /// Events by kind.
    pub(crate) counts: BTreeMap<counts::Key, u64>,
}

/// Distributions of one VM, or of several that share a colour.
#[derive(Debug)]
pub(crate) struct Times {
    pub(crate) name: String,
    /// By [`TIMES`]. Nanoseconds.
    pub(crate) histograms: Vec<Histogram<u64>>,
}

#[derive(Debug)]
struct Vcpu {
    vm: usize,
    number: u32,
    state: State,
    since_ns: u64,
    pcpu: u32,
    states_ns: [u64; STATES.len()],
    /// When IPIs were sent to it that it has not taken, and their vectors.
    ipis: Vec<(u64, u64)>,
    spins_since: Option<u64>,
}

/// All of it.
#[derive(Debug)]
pub(crate) struct Tracker {
    pub(crate) vms: Vec<Tally>,
    pub(crate) times: Vec<Times>,
    vcpus: Vec<Vcpu>,
    /// Index in `vcpus` of each VM's first.
    first: Vec<usize>,
    /// Kinds of events by number.
    pub(super) kinds: BTreeMap<u8, Kind>,
    /// A lane of running and a lane of waiting time for each of `times`.
    pub(super) bins: Bins,
    pub(super) timeline: Timeline,
}

impl Tracker {
    pub(crate) fn new(header: &Header) -> Self {
        let (mut vms, mut vcpus, mut first) = (Vec::new(), Vec::new(), Vec::new());
        for (vm, of) in header.vms.iter().enumerate() {
            first.push(vcpus.len());
            vcpus.extend((0..of.vcpus).map(|number| Vcpu::new(vm, number)));
            vms.push(Tally {
                name: of.name.clone(),
                vcpus: of.vcpus,
                ..Tally::default()
            });
        }
        let groups = if vms.len() > OWN { OWN } else { vms.len() };
        let times = (0..groups).map(|group| Times::new(group, &vms));
        Self {
            times: times.collect(),
            bins: Bins::new(groups * 2),
            timeline: Timeline::default(),
            kinds: BTreeMap::new(),
            vms,
            vcpus,
            first,
        }
    }

    /// Whether the event's vCPU is in the header.
    pub(crate) fn knows(&self, event: &Event) -> bool {
        let vm = self.vms.get(event.vm as usize);
        vm.is_some_and(|vm| event.vcpu < vm.vcpus)
    }

    /// The next event; [`Tracker::knows`] its vCPU.
    pub(crate) fn take(&mut self, event: &Event) {
        let vcpu = self.first[event.vm as usize] + event.vcpu as usize;
        let at = event.at_ns;
        self.kinds.entry(event.kind as u8).or_insert(event.kind);
        let counts = &mut self.vms[event.vm as usize].counts;
        *counts.entry(counts::key(event)).or_default() += 1;
        match event.kind {
            Kind::SwitchIn => self.enter(vcpu, State::Running, at, event.pcpu),
            Kind::SwitchOut if event.arg == 0 => self.enter(vcpu, State::Halted, at, event.pcpu),
            Kind::SwitchOut => self.enter(vcpu, State::Preempted, at, event.pcpu),
            Kind::Wake if matches!(self.vcpus[vcpu].state, State::Halted | State::Unseen) => {
                self.enter(vcpu, State::Woken, at, event.pcpu);
            }
            Kind::IpiSend => self.send(event),
            Kind::IpiTake => self.receive(vcpu, event),
            Kind::ShootdownEnd => self.record(vcpu, 4, event.arg),
            Kind::LockSpin => self.vcpus[vcpu].spins_since = Some(at),
            Kind::LockTaken => {
                if let Some(since) = self.vcpus[vcpu].spins_since.take() {
                    self.record(vcpu, 5, at.saturating_sub(since));
                }
            }
            _ => {}
        }
    }

    fn send(&mut self, event: &Event) {
        let vm = event.vm as usize;
        let (target, vector) = ipi(event.arg);
        if target < u64::from(self.vms[vm].vcpus) {
            let target = usize::try_from(target).unwrap_or_default();
            let ipis = &mut self.vcpus[self.first[vm] + target].ipis;
            if ipis.len() < PENDING {
                ipis.push((event.at_ns, vector));
            }
        }
    }

    /// The vCPU takes one vector, or, where vectors are not known, all that
    /// waits unless it is no IPI.
    fn receive(&mut self, vcpu: usize, event: &Event) {
        let (bits, vector) = ipi(event.arg);
        let taken = |sent: u64| sent == vector && (vector != 0 || bits & IPI_BITS != 0);
        let ipis = std::mem::take(&mut self.vcpus[vcpu].ipis);
        let (now, later): (Vec<_>, Vec<_>) = ipis.into_iter().partition(|(_, v)| taken(*v));
        self.vcpus[vcpu].ipis = later;
        for (sent, _) in now {
            self.record(vcpu, 3, event.at_ns.saturating_sub(sent));
        }
    }

    fn record(&mut self, vcpu: usize, what: usize, ns: u64) {
        let group = self.group(self.vcpus[vcpu].vm);
        // Cannot fail: the histograms resize themselves.
        let _ = self.times[group].histograms[what].record(ns);
    }

    fn group(&self, vm: usize) -> usize {
        vm.min(self.times.len().saturating_sub(1))
    }

    /// The vCPU changes its state. A turn that goes on is no change.
    fn enter(&mut self, vcpu: usize, state: State, at_ns: u64, pcpu: u32) {
        let of = &self.vcpus[vcpu];
        if of.state == state && (state != State::Running || of.pcpu == pcpu) {
            return;
        }
        let ended = of.interval(at_ns);
        self.account(vcpu, &ended);
        let length = ended.to_ns.saturating_sub(ended.from_ns);
        match ended.state {
            State::Woken if state == State::Running => self.record(vcpu, 0, length),
            State::Preempted if state == State::Running => self.record(vcpu, 1, length),
            State::Running => self.record(vcpu, 2, length),
            _ => {}
        }
        let of = &mut self.vcpus[vcpu];
        (of.state, of.since_ns, of.pcpu) = (state, at_ns, pcpu);
        if self.timeline.push(ended) {
            let open = self.vcpus.iter().map(|v| v.interval(at_ns));
            self.timeline.keep(open);
        }
    }

    fn account(&mut self, vcpu: usize, ended: &Interval) {
        let length = ended.to_ns.saturating_sub(ended.from_ns);
        let of = &mut self.vcpus[vcpu];
        of.states_ns[ended.state as usize] += length;
        let vm = of.vm;
        self.vms[vm].states_ns[ended.state as usize] += length;
        let lane = self.group(vm) * 2;
        match ended.state {
            State::Running => self.bins.add(lane, ended.from_ns, ended.to_ns),
            State::Preempted | State::Woken => {
                self.bins.add(lane + 1, ended.from_ns, ended.to_ns);
            }
            State::Halted | State::Unseen => {}
        }
    }

    /// The recording ends: what is open is closed.
    pub(crate) fn finish(&mut self, at_ns: u64) {
        for vcpu in 0..self.vcpus.len() {
            let ended = self.vcpus[vcpu].interval(at_ns);
            self.account(vcpu, &ended);
        }
    }

    /// VM, number, and time by state of each vCPU.
    pub(super) fn vcpus(&self) -> impl Iterator<Item = (usize, u32, &[u64; STATES.len()])> {
        self.vcpus.iter().map(|v| (v.vm, v.number, &v.states_ns))
    }
}

impl Vcpu {
    fn new(vm: usize, number: u32) -> Self {
        Self {
            vm,
            number,
            state: State::Unseen,
            since_ns: 0,
            pcpu: corun_events::NO_PCPU,
            states_ns: [0; STATES.len()],
            ipis: Vec::new(),
            spins_since: None,
        }
    }

    /// What it does, until `to_ns`.
    fn interval(&self, to_ns: u64) -> Interval {
        Interval {
            vm: self.vm,
            vcpu: self.number,
            pcpu: self.pcpu,
            state: self.state,
            from_ns: self.since_ns,
            to_ns: to_ns.max(self.since_ns),
        }
    }
}

impl Times {
    fn new(group: usize, vms: &[Tally]) -> Self {
        let shared = vms.len() > OWN && group == OWN - 1;
        let name = if shared {
            format!("{} other VMs", vms.len() - group)
        } else {
            vms[group].name.clone()
        };
        Self {
            name,
            histograms: TIMES.iter().map(|_| latency::empty()).collect(),
        }
    }
}

/// Target or bits, and the vector: 0 where it is not known.
fn ipi(arg: u64) -> (u64, u64) {
    (arg & u64::from(u32::MAX), arg >> 32)
}
