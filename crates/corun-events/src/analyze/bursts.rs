// SPDX-License-Identifier: GPL-2.0-only
//! Spinning vCPUs: runs of pause exits at one place (seed 002: "continuous PLE
//! events"), by length, place and cause.
//!
//! A run goes on while the same vCPU spins in the same function. Interrupts of
//! the host do not end it, nor does losing the pCPU; any other exit does, so does
//! getting what was waited for, where the recording says so, and so does time in
//! the guest between two exits that is longer than a spin's: KVM doubles the
//! window at most.

use super::share;
use crate::{Event, Header, Kind, Place, Symbols, Times, TimesSummary};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Exits by a pause loop.
const PAUSE_EXITS: [&str; 1] = ["pause"];
/// Exits that the guest does not cause.
const HOST_EXITS: [&str; 3] = ["external", "nmi", "smi"];

/// Time in the guest between two exits of a run may always be this long: windows
/// of processors are some microseconds, those of emulated ones some more.
/// Nanoseconds.
const GAP_MIN_NS: u64 = 20_000;
/// ... or so many times what it was before: the doubled window, and interrupts.
const GAP_GROWTH: u64 = 3;

/// Runs of pause exits of a VM.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Bursts {
    /// Pause exits and guests' own words that they spin.
    pub spins: u64,
    /// Runs, those of one exit too.
    pub runs: u64,
    /// Share of the exits that are in runs of more than one, 0 to 1.
    pub share_in_runs: f64,
    /// Runs by length in exits: 1, 2 to 9, 10 to 99, 100 and more.
    pub by_length: [u64; 4],
    /// The longest, in exits.
    pub longest: u64,
    /// From a run's first exit to its last, for runs of more than one.
    pub lasted: TimesSummary,
    /// By the function that spins, most exits first.
    pub places: Vec<AtPlace>,
}

/// Spinning in one function.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AtPlace {
    /// The function.
    pub symbol: String,
    /// Its class: lock-wait is a spinlock, ack-wait a TLB shootdown or another
    /// function call.
    pub class: corun_policy::Region,
    /// Exits.
    pub spins: u64,
    /// Runs.
    pub runs: u64,
    /// Time from runs' first exits to their last. Nanoseconds.
    pub lasted_ns: u64,
}

/// A run that goes on.
#[derive(Debug, Clone)]
struct Run {
    place: Place,
    first_ns: u64,
    last_ns: u64,
    spins: u64,
    /// Time in the guest between the last two exits. Nanoseconds.
    gap_ns: u64,
}

/// A vCPU's time in the guest since it spun last.
#[derive(Debug, Default)]
struct InGuest {
    ns: u64,
    since_ns: Option<u64>,
}

impl InGuest {
    fn leave(&mut self, at_ns: u64) {
        if let Some(since_ns) = self.since_ns.take() {
            self.ns += at_ns.saturating_sub(since_ns);
        }
    }
}

#[derive(Debug, Default)]
struct OfVm {
    spins: u64,
    in_runs: u64,
    by_length: [u64; 4],
    longest: u64,
    lasted: Times,
    places: BTreeMap<Place, (u64, u64, u64)>,
}

/// Collects runs.
#[derive(Debug)]
pub(super) struct Collector {
    pause: Vec<bool>,
    host: Vec<bool>,
    runs: HashMap<(u32, u32), Run>,
    guest: HashMap<(u32, u32), InGuest>,
    /// vCPUs whose last exit was a pause exit: [`Kind::Spin`] repeats it.
    paused: HashMap<(u32, u32), u64>,
    vms: BTreeMap<u32, OfVm>,
}

impl Collector {
    pub(super) fn new(header: &Header) -> Self {
        let is = |names: &[&str], number| names.contains(&header.exit_name(number));
        let count = header.exits.len().max(crate::EXITS.len()) as u64;
        Self {
            pause: (0..count).map(|n| is(&PAUSE_EXITS, n)).collect(),
            host: (0..count).map(|n| is(&HOST_EXITS, n)).collect(),
            runs: HashMap::new(),
            guest: HashMap::new(),
            paused: HashMap::new(),
            vms: BTreeMap::new(),
        }
    }

    pub(super) fn take(&mut self, event: &Event, symbols: &Symbols) {
        let vcpu = (event.vm, event.vcpu);
        let reason = usize::try_from(event.reason()).unwrap_or(usize::MAX);
        self.follow(event);
        match event.kind {
            Kind::Exit if self.pause.get(reason) == Some(&true) => {
                self.paused.insert(vcpu, event.ip);
                self.spins(event, event.ip, symbols);
            }
            Kind::Exit if self.host.get(reason) == Some(&true) => {}
            Kind::Exit => {
                self.paused.remove(&vcpu);
                // The hypercall of a guest that says it spins comes next.
                if self
                    .runs
                    .get(&vcpu)
                    .is_some_and(|r| event.ip == 0 || !same(r, event, symbols))
                {
                    self.end_run(vcpu);
                }
            }
            Kind::Spin if self.paused.remove(&vcpu).is_none() => {
                self.spins(event, event.ip, symbols);
            }
            Kind::LockTaken | Kind::ShootdownEnd | Kind::Halt => self.end_run(vcpu),
            _ => {}
        }
    }

    /// Keeps the time in the guest.
    fn follow(&mut self, event: &Event) {
        let guest = self.guest.entry((event.vm, event.vcpu)).or_default();
        match event.kind {
            Kind::Enter => guest.since_ns = Some(event.at_ns),
            Kind::Exit | Kind::SwitchOut => guest.leave(event.at_ns),
            _ => {}
        }
    }

    fn spins(&mut self, event: &Event, ip: u64, symbols: &Symbols) {
        let vcpu = (event.vm, event.vcpu);
        let place = symbols.place(event.vm, ip);
        let gap_ns = std::mem::take(&mut self.guest.entry(vcpu).or_default().ns);
        let goes_on =
            |run: &Run| run.place == place && gap_ns <= GAP_MIN_NS.max(run.gap_ns * GAP_GROWTH);
        if self.runs.get(&vcpu).is_some_and(|run| !goes_on(run)) {
            self.end_run(vcpu);
        }
        let run = self.runs.entry(vcpu).or_insert(Run {
            place,
            first_ns: event.at_ns,
            last_ns: event.at_ns,
            spins: 0,
            gap_ns: 0,
        });
        run.spins += 1;
        run.gap_ns = gap_ns;
        run.last_ns = event.at_ns;
    }

    fn end_run(&mut self, vcpu: (u32, u32)) {
        let Some(run) = self.runs.remove(&vcpu) else {
            return;
        };
        let lasted_ns = run.last_ns - run.first_ns;
        let vm = self.vms.entry(vcpu.0).or_default();
        vm.spins += run.spins;
        vm.longest = vm.longest.max(run.spins);
        vm.by_length[length_class(run.spins)] += 1;
        if run.spins > 1 {
            vm.in_runs += run.spins;
            vm.lasted.record(lasted_ns);
        }
        let (spins, runs, ns) = vm.places.entry(run.place).or_default();
        *spins += run.spins;
        *runs += 1;
        *ns += lasted_ns;
    }

    /// The recording is over: so are all runs.
    pub(super) fn end(&mut self) {
        let open: Vec<_> = self.runs.keys().copied().collect();
        for vcpu in open {
            self.end_run(vcpu);
        }
    }

    pub(super) fn of(&self, vm: u32) -> Bursts {
        let Some(of) = self.vms.get(&vm) else {
            return Bursts::default();
        };
        let places = of.places.iter();
        let mut places: Vec<AtPlace> = places
            .map(|(place, (spins, runs, lasted_ns))| AtPlace {
                symbol: place.name.clone(),
                class: place.region,
                spins: *spins,
                runs: *runs,
                lasted_ns: *lasted_ns,
            })
            .collect();
        places.sort_by_key(|p| std::cmp::Reverse(p.spins));
        Bursts {
            spins: of.spins,
            runs: of.by_length.iter().sum(),
            share_in_runs: share(of.in_runs, of.spins),
            by_length: of.by_length,
            longest: of.longest,
            lasted: of.lasted.summary(),
            places,
        }
    }
}

/// Is `event` at the place of `run`?
fn same(run: &Run, event: &Event, symbols: &Symbols) -> bool {
    symbols.place(event.vm, event.ip) == run.place
}

fn length_class(spins: u64) -> usize {
    match spins {
        0..=1 => 0,
        2..=9 => 1,
        10..=99 => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{IN_CALL, IN_SPIN, at, at_ip, header};
    use super::*;
    use crate::exit;
    use corun_policy::Region;
    use corun_symbols::Library;

    const PAUSE: u64 = exit::PAUSE as u64;

    fn bursts(events: &[Event]) -> Bursts {
        let header = header();
        let symbols = Symbols::new(&header, &Library::default()).expect("no maps");
        let mut collector = Collector::new(&header);
        for event in events {
            collector.take(event, &symbols);
        }
        collector.end();
        collector.of(0)
    }

    #[test]
    fn a_run_is_many_exits_at_one_place() {
        let mut events: Vec<Event> = (0..120)
            .map(|i| at_ip(i * 26, 0, Kind::Exit, PAUSE, IN_SPIN))
            .collect();
        events.push(at(4000, 0, Kind::Exit, exit::EXTERNAL as u64));
        events.push(at_ip(4001, 0, Kind::Exit, PAUSE, IN_SPIN + 4));
        events.push(at_ip(4002, 0, Kind::Exit, PAUSE, IN_CALL));
        let b = bursts(&events);
        assert_eq!((b.spins, b.runs, b.longest), (122, 2, 121));
        assert_eq!(b.by_length, [1, 0, 0, 1]);
        assert!((b.share_in_runs - 121.0 / 122.0).abs() < 1e-9);
        assert_eq!(b.lasted.count, 1);
        let first = &b.places[0];
        assert_eq!(
            (first.class, first.lasted_ns),
            (Region::LockWait, 4_001_000)
        );
        assert_eq!(b.places[1].class, Region::AckWait);
    }

    #[test]
    fn getting_the_lock_or_doing_something_else_ends_a_run() {
        let pause = |us| at_ip(us, 0, Kind::Exit, PAUSE, IN_SPIN);
        let b = bursts(&[pause(1), at(2, 0, Kind::LockTaken, 0), pause(3)]);
        assert_eq!((b.runs, b.by_length[0]), (2, 2));
        let b = bursts(&[
            pause(1),
            at(2, 0, Kind::Exit, exit::TIMER_MSR as u64),
            pause(3),
        ]);
        assert_eq!(b.runs, 2);
        let b = bursts(&[pause(1), at(2, 0, Kind::SwitchOut, 1), pause(3)]);
        assert_eq!(b.runs, 1);
    }

    #[test]
    fn time_for_other_things_ends_a_run_and_a_longer_window_does_not() {
        let spin = |from, to| {
            [
                at(from, 0, Kind::Enter, 0),
                at_ip(to, 0, Kind::Exit, PAUSE, IN_SPIN),
            ]
        };
        let doubling = [spin(0, 15), spin(16, 46), spin(47, 107)];
        assert_eq!(bursts(&doubling.concat()).by_length, [0, 1, 0, 0]);
        let apart = [spin(0, 15), spin(16, 30), spin(31, 107)];
        assert_eq!(bursts(&apart.concat()).by_length, [1, 1, 0, 0]);
    }

    #[test]
    fn the_handler_does_not_count_an_exit_twice_and_hypercalls_once() {
        let spin = |us| at_ip(us, 0, Kind::Spin, 1, IN_SPIN);
        let b = bursts(&[at_ip(1, 0, Kind::Exit, PAUSE, IN_SPIN), spin(1)]);
        assert_eq!(b.spins, 1);
        let call = |us| at_ip(us, 0, Kind::Exit, exit::HYPERCALL as u64, IN_SPIN);
        let b = bursts(&[call(1), spin(1), call(2), spin(2)]);
        assert_eq!((b.spins, b.runs), (2, 1));
    }
}
