// SPDX-License-Identifier: GPL-2.0-only
//! Measures what exits and switches cost here, and scales time by it.

use super::error::{Context, DriverError, Result};
use super::session::Session;
use super::window::{self, Measured, WindowSpec};
use crate::case::{Case, MAX_FACTOR, TimeScale};
use corun_lab_proto::agent::{Command, Event, WorkloadSpec};
use corun_lab_proto::control::Calibration;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// What a vCPU switch costs on hardware: with [`SLICE_NS`] the ratio that the
/// scaled lab keeps, 1000 : 1.
const HARDWARE_SWITCH_NS: f64 = 3_000.0;
/// Slice of both schedulers at factor 1. corun's own default is the same.
const SLICE_NS: f64 = 3_000_000.0;
/// Short slices while the switch is measured, so that there are many switches.
const PROBE_SLICE_NS: u64 = 1_000_000;
/// CPUID exits that are timed.
const EXITS: u64 = 2_000;
const WARMUP: Duration = Duration::from_millis(300);
const WINDOW: Duration = Duration::from_secs(1);
/// Windows of each kind, interleaved: a slow drift of the machine hits both.
const ROUNDS: usize = 2;
/// The kernel's slice, before it is scaled by the number of CPUs: a write sets
/// the effective value.
const BASE_SLICE: &str = "/sys/kernel/debug/sched/base_slice_ns";

/// Measures the costs, chooses the factor of `case`, and sets the kernel's slice.
pub(super) fn calibrate(session: &mut Session, case: &Case) -> Result<Calibration> {
    let kernel_slice_ns = read_slice(Path::new(BASE_SLICE))?;
    let exit_ns = time_exits(session, &case.guests[0].name)?;
    write_slice(Path::new(BASE_SLICE), PROBE_SLICE_NS)?;
    let switch_ns = time_switches(session, case)?.max(exit_ns);
    let auto_factor = factor_for(switch_ns);
    let factor = match case.case.time_scale {
        TimeScale::Auto => auto_factor,
        TimeScale::Factor(f) => f,
    };
    let slice_ns = slice_for(factor);
    write_slice(Path::new(BASE_SLICE), slice_ns)?;
    Ok(Calibration {
        exit_ns,
        switch_ns,
        auto_factor,
        factor,
        slice_ns,
        kernel_slice_ns: Some(kernel_slice_ns),
    })
}

/// The factor that keeps slice : switch what it is on hardware, in whole
/// numbers: the measurement is not better than that.
fn factor_for(switch_ns: f64) -> f64 {
    (switch_ns / HARDWARE_SWITCH_NS)
        .round()
        .clamp(1.0, MAX_FACTOR)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // At most 0.9 s.
fn slice_for(factor: f64) -> u64 {
    (SLICE_NS * factor).round() as u64
}

/// The cost of one exit on an otherwise idle host. Nanoseconds.
fn time_exits(session: &mut Session, guest: &str) -> Result<f64> {
    let id = session.agents.new_id();
    session.send(guest, &Command::TimeExits { id, count: EXITS })?;
    let deadline = Instant::now() + Duration::from_mins(1);
    match session.next_event(deadline, guest, "timing exits")? {
        (_, _, Event::ExitsTimed { id: i, min_ns, .. }) if i == id => Ok(min_ns),
        (guest, _, event) => Err(DriverError::Own(format!(
            "guest {guest} was to time exits and sent {event:?}"
        ))),
    }
}

/// The cost of one switch between two burning vCPUs on one pCPU. Nanoseconds.
/// One burner alone on the pCPU tells what it can do without switches; what two
/// burners together lack of it was lost in switches.
fn time_switches(session: &mut Session, case: &Case) -> Result<f64> {
    let names: Vec<&String> = case.guests.iter().map(|g| &g.name).take(2).collect();
    pin(session, &[0])?;
    // With one guest, two of its own vCPUs switch.
    let (one, two) = match names.as_slice() {
        [a, b] => (burners(&[(a, 1)]), burners(&[(a, 1), (b, 1)])),
        [a] if case.guests[0].vcpus >= 2 => (burners(&[(a, 1)]), burners(&[(a, 2)])),
        _ => return Ok(0.0),
    };
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let order = [(&one, &mut alone), (&two, &mut together)];
        let mut measure = |(spec, all): (&WindowSpec, &mut Vec<Measured>)| {
            all.push(window::measure(session, spec)?);
            Ok(())
        };
        let [first, second] = order;
        if round % 2 == 0 {
            measure(first).and_then(|()| measure(second))?;
        } else {
            measure(second).and_then(|()| measure(first))?;
        }
    }
    let all: Vec<usize> = (0..case.host.pcpus as usize).collect();
    pin(session, &all)?;
    Ok(lost_per_switch(&alone, &together))
}

fn pin(session: &Session, cpus: &[usize]) -> Result<()> {
    session.vmms.values().try_for_each(|v| v.pin(cpus))
}

fn burners(threads: &[(&str, u32)]) -> WindowSpec {
    let burner = |n: u32| WorkloadSpec {
        name: "cpu".to_owned(),
        threads: Some(n),
        params: BTreeMap::new(),
    };
    WindowSpec {
        measured: threads
            .iter()
            .map(|(g, n)| ((*g).to_owned(), burner(*n)))
            .collect(),
        warmup: WARMUP,
        measure: WINDOW,
        ..WindowSpec::default()
    }
}

/// What the windows `together` did less than those `alone`, as time per switch.
fn lost_per_switch(alone: &[Measured], together: &[Measured]) -> f64 {
    let work = |m: &Measured| m.results.values().map(|r| r.rate_per_s).sum::<f64>();
    let rate = |all: &[Measured]| all.iter().map(work).sum::<f64>() / all.len().max(1) as f64;
    let switches: u64 = together.iter().map(|m| m.vcpu_switches).sum();
    let elapsed: f64 = together.iter().map(|m| m.elapsed.as_secs_f64()).sum();
    if rate(alone) <= 0.0 || switches == 0 {
        return 0.0;
    }
    let lost = (1.0 - rate(together) / rate(alone)).max(0.0);
    lost * elapsed * 1e9 / switches as f64
}

fn read_slice(file: &Path) -> Result<u64> {
    let doing = || format!("read {}", file.display());
    fs::read_to_string(file)
        .doing(doing)?
        .trim()
        .parse()
        .doing(doing)
}

/// Sets the slice, and reads it back: a kernel that clamps it would make the
/// comparison unfair in silence.
fn write_slice(file: &Path, slice_ns: u64) -> Result<()> {
    fs::write(file, slice_ns.to_string()).doing(|| format!("write {}", file.display()))?;
    let found = read_slice(file)?;
    if found == slice_ns {
        return Ok(());
    }
    Err(DriverError::Own(format!(
        "{}: the kernel made {found} of {slice_ns}",
        file.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    #[test]
    fn the_factor_keeps_the_ratio_within_bounds() {
        let is = |switch_ns: f64, factor: f64| {
            assert!((factor_for(switch_ns) - factor).abs() < 1e-9, "{switch_ns}");
        };
        is(0.0, 1.0);
        is(3_000.0, 1.0);
        is(300_000.0, 100.0);
        is(9e9, MAX_FACTOR);
    }

    #[test]
    fn the_slice_is_three_milliseconds_at_factor_one() {
        assert_eq!(slice_for(1.0), 3_000_000);
        assert_eq!(slice_for(100.0), 300_000_000);
        // The kernel's variable has 32 bits.
        assert!(u32::try_from(slice_for(MAX_FACTOR)).is_ok());
    }

    #[test]
    fn what_two_burners_lack_was_lost_in_switches() {
        let measure = |names: &[&str], rate: f64, switches: u64| {
            let (mut session, _reports) = fake::session(vec![]);
            for n in names {
                fake::add_guest(&mut session, n, fake::worker(rate));
            }
            let pairs: Vec<(&str, u32)> = names.iter().map(|n| (*n, 1)).collect();
            let mut spec = burners(&pairs);
            spec.measure = Duration::from_millis(1);
            let mut m = window::measure(&mut session, &spec).expect("measures");
            m.elapsed = Duration::from_secs(2);
            m.vcpu_switches = switches;
            m
        };
        let alone = measure(&["a"], 100.0, 3);
        let together = measure(&["a", "b"], 40.0, 1000);
        // 20 % of 2 s in 1000 switches.
        assert!(
            (lost_per_switch(std::slice::from_ref(&alone), &[together]) - 400_000.0).abs() < 1e-3
        );
        let none = measure(&["a", "b"], 40.0, 0);
        assert!(lost_per_switch(&[alone], &[none]).abs() < 1e-9);
    }

    #[test]
    fn a_clamped_slice_is_an_error() {
        let dir = tempfile::tempdir().expect("tempdir");
        let file = dir.path().join("base_slice_ns");
        assert!(write_slice(&file, 5).is_ok());
        // Like a kernel that has its own idea.
        assert!(write_slice(Path::new("/dev/null"), 5).is_err());
    }
}
