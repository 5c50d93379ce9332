// SPDX-License-Identifier: GPL-2.0-only
//! How fast the simulator is: its engine alone, whole machines, the same small
//! model beside two other simulators, and hosts of growing size.
//!
//! Subjects take turns, so that a disturbance of the machine meets all of them;
//! medians are reported with the range. `scripts/sim-bench` runs it.

#[path = "../../tests/common/mod.rs"]
mod common;

mod engine;
mod facts;
mod machine;
mod peers;
mod report;
mod scale;

use report::{Sample, Subject};
use serde_json::json;
use std::path::PathBuf;

/// What the command line asks for.
struct Options {
    rounds: usize,
    out: Option<PathBuf>,
    /// A Python with `SimPy`.
    python: Option<PathBuf>,
    /// This process measures one host of the growing ones.
    child: Option<(String, u32)>,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        rounds: 7,
        out: None,
        python: None,
        child: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg}: a value is missing"));
        let number = |text: String| text.parse().map_err(|e| format!("{text}: {e}"));
        match arg.as_str() {
            // Cargo's.
            "--bench" => {}
            "--rounds" => options.rounds = number(value()?)? as usize,
            "--out" => options.out = Some(value()?.into()),
            "--python" => options.python = Some(value()?.into()),
            "--host" => options.child = Some((value()?, number(value()?)?)),
            _ => return Err(format!("unknown option {arg}")),
        }
    }
    if options.rounds == 0 {
        return Err("--rounds: expected at least 1".to_owned());
    }
    Ok(options)
}

/// Runs all subjects `rounds` times, in turns.
fn in_turns(subjects: &mut [Subject], rounds: usize) -> Result<(), String> {
    for _ in 0..rounds {
        for subject in subjects.iter_mut() {
            let sample = (subject.run)()?;
            subject.samples.push(sample);
        }
    }
    Ok(())
}

fn bench(options: &Options) -> Result<(), String> {
    let before = facts::read()?;
    let mut groups = vec![
        ("engine alone", engine::subjects()),
        ("machine", machine::subjects()),
        ("peers", peers::subjects(options.python.as_deref())),
    ];
    for (title, subjects) in &mut groups {
        in_turns(subjects, options.rounds)?;
        report::print(title, subjects);
    }
    let hosts = scale::measure(options.rounds.min(3))?;
    scale::print(&hosts);
    let after = facts::read()?;
    println!("\n{}", after.line(&before));
    if let Some(out) = &options.out {
        let groups = groups.iter().map(|(title, subjects)| {
            let subjects: Vec<_> = subjects.iter().map(Subject::json).collect();
            (*title, subjects)
        });
        let all = json!({
            "machine": after.json(&before),
            "rounds": options.rounds,
            "events_per_second": groups.collect::<std::collections::BTreeMap<_, _>>(),
            "hosts": hosts,
        });
        let text = serde_json::to_string_pretty(&all).map_err(|e| e.to_string())?;
        std::fs::write(out, text + "\n").map_err(|e| format!("{}: {e}", out.display()))?;
    }
    Ok(())
}

fn main() -> Result<(), String> {
    let options = options()?;
    match &options.child {
        Some((kind, pcpus)) => scale::child(kind, *pcpus),
        None => bench(&options),
    }
}
