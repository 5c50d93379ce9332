// SPDX-License-Identifier: GPL-2.0-only
//! What the host schedulers owe their guests, checked on the trace at every
//! event: no pCPU idles beside a vCPU that it could run, and no guest falls far
//! behind its share.

mod common;

use common::{Build, random};
use corun_case::SchedulerKind;
use corun_sim::trace::{Event, Kind, Sink};
use corun_sim::{Scenario, run_traced};
use proptest::prelude::*;

/// What a vCPU does.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Blocked,
    Ready { since_ns: u64 },
    On(usize),
}

/// Follows who is where.
struct Places {
    /// The first vCPU of each VM.
    first: Vec<usize>,
    vcpus: Vec<Place>,
    /// Since when each pCPU is idle; `None`: it is not.
    idle_since_ns: Vec<Option<u64>>,
}

impl Places {
    fn new(scenario: &Scenario) -> Self {
        let first = scenario.vms.iter().scan(0, |sum, vm| {
            let first = *sum;
            *sum += vm.vcpus as usize;
            Some(first)
        });
        let first: Vec<usize> = first.collect();
        let vcpus = scenario.vms.iter().map(|vm| vm.vcpus as usize).sum();
        Self {
            first,
            vcpus: vec![Place::Blocked; vcpus],
            idle_since_ns: vec![Some(0); scenario.pcpus as usize],
        }
    }

    /// The vCPU that `event` is about.
    fn vcpu(&self, event: &Event) -> usize {
        self.first[event.vm as usize] + event.vcpu as usize
    }

    fn follow(&mut self, event: &Event) {
        let v = self.vcpu(event);
        let since_ns = event.at_ns;
        match event.kind {
            Kind::Wake => self.vcpus[v] = Place::Ready { since_ns },
            Kind::SwitchIn => {
                let p = event.pcpu as usize;
                self.vcpus[v] = Place::On(p);
                self.idle_since_ns[p] = None;
            }
            Kind::SwitchOut => {
                if let Place::On(p) = self.vcpus[v] {
                    self.idle_since_ns[p] = Some(since_ns);
                }
                self.vcpus[v] = match event.arg {
                    0 => Place::Blocked,
                    _ => Place::Ready { since_ns },
                };
            }
            _ => {}
        }
    }
}

/// The longest time that a pCPU was idle beside a vCPU that it could run.
struct Conservation {
    places: Places,
    pinned: Vec<Option<usize>>,
    worst_ns: u64,
    worst: String,
}

impl Conservation {
    fn new(scenario: &Scenario) -> Self {
        let pcpus = scenario.pcpus as usize;
        let pinned = scenario.vms.iter().flat_map(|vm| {
            let pinned = vm.kernel.pinned;
            (0..vm.vcpus as usize).map(move |i| pinned.then_some(i % pcpus))
        });
        Self {
            places: Places::new(scenario),
            pinned: pinned.collect(),
            worst_ns: 0,
            worst: String::new(),
        }
    }
}

impl Sink for Conservation {
    fn take(&mut self, event: &Event) {
        let idle = self.places.idle_since_ns.iter().enumerate();
        for (p, idle_ns) in idle.filter_map(|(p, since)| Some((p, (*since)?))) {
            for (v, place) in self.places.vcpus.iter().enumerate() {
                let Place::Ready { since_ns } = *place else {
                    continue;
                };
                let both_ns = event.at_ns - idle_ns.max(since_ns);
                if both_ns > self.worst_ns && self.pinned[v].is_none_or(|only| only == p) {
                    self.worst_ns = both_ns;
                    let at_ns = event.at_ns;
                    self.worst = format!("pCPU {p} idle, vCPU {v} waiting at {at_ns} ns");
                }
            }
        }
        self.places.follow(event);
    }
}

/// How long a pCPU may be idle beside a vCPU that it could run.
fn limit_ns(scenario: &Scenario) -> Option<u64> {
    let settings = &scenario.scheduler.settings;
    // At most all vCPUs but one.
    let vcpus: u64 = scenario.vms.iter().map(|vm| u64::from(vm.vcpus)).sum();
    let waiters = (vcpus - 1).max(1);
    // From the kick of an idle pCPU until it picks.
    let wake_ns = scenario.costs.wake_idle_ns;
    Some(match scenario.scheduler.kind {
        // Whoever is queued kicks an idle pCPU at once. That may take a pinned
        // vCPU instead that woke meanwhile, and kicks the next one then.
        SchedulerKind::Corun if scenario.vms.iter().any(|vm| vm.kernel.pinned) => waiters * wake_ns,
        SchedulerKind::Corun => wake_ns,
        // Where somebody waits, each tick has an idle pCPU take one: the last of
        // them waits as many ticks.
        SchedulerKind::Cfs => waiters * settings.cfs.tick_ns + wake_ns,
        SchedulerKind::Eevdf | SchedulerKind::Kernel => waiters * settings.eevdf.tick_ns + wake_ns,
        SchedulerKind::Credit => waiters * 10_000_000 + wake_ns,
        // Gangs leave pCPUs idle: that is their price. The others have no model.
        SchedulerKind::Cosched | SchedulerKind::ScxBpfland | SchedulerKind::ScxLavd => {
            return None;
        }
    })
}

proptest! {
    #![proptest_config(random::config())]

    #[test]
    fn no_pcpu_idles_beside_work(mut scenario in random::scenario()) {
        // A thread of the host's that waited has a pCPU that schedulers take for idle.
        scenario.costs.noise_waits = false;
        let mut seen = Conservation::new(&scenario);
        run_traced(&scenario, &mut seen).expect("runs");
        let limit_ns = limit_ns(&scenario).unwrap_or(u64::MAX);
        let kind = scenario.scheduler.kind;
        prop_assert!(
            seen.worst_ns <= limit_ns,
            "{:?}: {} for {} ns, at most {}", kind, seen.worst, seen.worst_ns, limit_ns
        );
    }
}

/// How far any guest is from its share, as CPU time, once all are up: nothing is
/// owed for the time before.
struct Lag {
    places: Places,
    weights: Vec<u64>,
    /// CPU time of each guest, up to the last event.
    used_ns: Vec<u64>,
    last_ns: u64,
    /// All guests are up.
    from_ns: u64,
    worst_ns: u64,
    /// How far each guest was behind at most.
    worst_behind_ns: Vec<u64>,
}

impl Lag {
    fn new(scenario: &Scenario) -> Self {
        Self {
            places: Places::new(scenario),
            weights: scenario.vms.iter().map(|vm| vm.weight.into()).collect(),
            used_ns: vec![0; scenario.vms.len()],
            last_ns: 0,
            from_ns: scenario.warmup_ns,
            worst_ns: 0,
            worst_behind_ns: vec![0; scenario.vms.len()],
        }
    }
}

impl Sink for Lag {
    fn take(&mut self, event: &Event) {
        let passed_ns = event.at_ns - self.last_ns;
        self.last_ns = event.at_ns;
        if event.at_ns < self.from_ns {
            self.places.follow(event);
            return;
        }
        for (v, place) in self.places.vcpus.iter().enumerate() {
            if let Place::On(_) = place {
                let vm = self.places.first.partition_point(|&first| first <= v) - 1;
                self.used_ns[vm] += passed_ns;
            }
        }
        self.places.follow(event);
        let all_ns: u64 = self.used_ns.iter().sum();
        let weights: u64 = self.weights.iter().sum();
        for (vm, (used_ns, weight)) in self.used_ns.iter().zip(&self.weights).enumerate() {
            let due_ns = all_ns * weight / weights;
            self.worst_ns = self.worst_ns.max(due_ns.abs_diff(*used_ns));
            let behind_ns = &mut self.worst_behind_ns[vm];
            *behind_ns = (*behind_ns).max(due_ns.saturating_sub(*used_ns));
        }
    }
}

/// Guests that always compute, by vCPUs and weight, each with vCPUs enough to
/// use its share, and some with far more. A guest's claim is looked at when a
/// slice ends, and it may have slices running on all pCPUs then: so far it may be
/// from its share, however long the run.
#[test]
fn no_guest_falls_behind() {
    for guests in [
        &[(4, 100), (6, 100), (8, 100), (16, 100)][..],
        &[(8, 100), (8, 100)],
        &[(8, 100), (16, 300)],
        &[(4, 50), (8, 100), (16, 400)],
    ] {
        for seed in 1..=3 {
            let mut build = Build::new(8, SchedulerKind::Corun).seconds(2.0);
            for (i, (vcpus, _)) in guests.iter().enumerate() {
                build = build.fixed_vm(&format!("vm{i}"), *vcpus, &["burn"]);
            }
            let mut scenario = build.scenario();
            scenario.seed = seed;
            for (vm, (_, weight)) in scenario.vms.iter_mut().zip(guests) {
                vm.weight = *weight;
            }
            let mut lag = Lag::new(&scenario);
            run_traced(&scenario, &mut lag).expect("runs");
            let limit_ns = u64::from(scenario.pcpus) * scenario.scheduler.tunables.slice_ns;
            assert!(
                lag.worst_ns <= limit_ns,
                "{guests:?}, seed {seed}: a guest is {} ns from its share, at most {limit_ns}",
                lag.worst_ns
            );
        }
    }
}

/// Beside a guest whose vCPUs send each other IPIs without end, with all
/// mechanisms on. What it takes out of turn it may be ahead by, and by the urgent slices
/// under way on other pCPUs, which are charged when they end; the others, which compute,
/// are behind by no more.
#[test]
fn boosts_put_nobody_further_behind_than_the_debt() {
    for seed in 1..=3 {
        let build = Build::new(8, SchedulerKind::Corun).seconds(2.0);
        let build = build.fixed_vm("burn", 8, &["burn"]);
        let mut scenario = build.fixed_vm("storm", 8, &["storm", "burn"]).scenario();
        scenario.seed = seed;
        let mut lag = Lag::new(&scenario);
        run_traced(&scenario, &mut lag).expect("runs");
        let tunables = scenario.scheduler.tunables;
        let under_way_ns = tunables.slice_ns + tunables.urgent_slice_ns;
        let limit_ns = u64::from(scenario.pcpus) * under_way_ns + tunables.boost_debt_ns;
        assert!(
            lag.worst_behind_ns[0] <= limit_ns,
            "seed {seed}: {} ns behind its share, at most {limit_ns}",
            lag.worst_behind_ns[0]
        );
    }
}
