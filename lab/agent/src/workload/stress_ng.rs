// SPDX-License-Identifier: GPL-2.0-only
//! `stress-ng`: any of Debian's stressors, in slices of a few seconds.

use super::{Setup, ThreadRule, Workload};
use crate::error::{Error, tail};
use crate::external::{External, Figures, Program};
use crate::params::{Kind, Param};
use crate::scratch::Scratch;
use crate::session::Session;
use std::fs;
use std::time::Duration;

const STRESS_NG: Program = Program {
    name: "stress-ng",
    package: "stress-ng",
};

pub(super) static WORKLOAD: Workload = Workload {
    name: "stress-ng",
    about: "one stressor of stress-ng, an instance per thread, run in slices; its start counts as time without work",
    unit: "bogo operations",
    latency: "one bogo operation of one instance, mean over a slice (one sample per slice)",
    threads: ThreadRule::Any,
    program: Some(STRESS_NG),
    params: &[
        Param {
            name: "stressor",
            about: "which one, as stress-ng names it",
            kind: Kind::Word { default: "mutex" },
        },
        Param {
            name: "slice_s",
            about: "length of one slice in seconds, to which its start comes: some seconds in a guest",
            kind: Kind::Int {
                default: 5,
                min: 1,
                max: 3600,
            },
        },
    ],
    start,
};

fn start(setup: &Setup) -> Result<Box<dyn Session>, Error> {
    let stressor = setup.params.text("stressor").to_owned();
    let folder = Scratch::new()?;
    let report = folder.join("report.yaml");
    let args = vec![
        format!("--{stressor}"),
        setup.threads.to_string(),
        "--timeout".to_owned(),
        format!("{}s", setup.params.int("slice_s")),
        "--metrics".to_owned(),
        "--temp-path".to_owned(),
        folder.path().display().to_string(),
        "--yaml".to_owned(),
        report.display().to_string(),
    ];
    let threads = setup.threads;
    let parse = move |output: &str, _: Duration| {
        let yaml = fs::read_to_string(folder.join("report.yaml")).unwrap_or_default();
        figures(&yaml, &stressor, threads).ok_or_else(|| Error::Unparsable {
            program: STRESS_NG.name,
            what: "the stressor's metrics",
            tail: tail(output, 12),
        })
    };
    Ok(Box::new(External::new(
        STRESS_NG,
        args,
        setup.threads,
        Box::new(parse),
    )?))
}

/// Figures of `stressor` in stress-ng's report. Not a general YAML reader: each
/// stressor's figures are the lines after its name up to the next one's.
fn figures(yaml: &str, stressor: &str, instances: usize) -> Option<Figures> {
    let mut lines = yaml.lines().map(str::trim);
    lines.find(|line| {
        line.strip_prefix("- stressor:")
            .is_some_and(|name| name.trim() == stressor)
    })?;
    let (mut ops, mut seconds) = (None, None);
    for line in lines.take_while(|line| !line.starts_with("- ") && !line.is_empty()) {
        match line.split_once(':') {
            Some(("bogo-ops", value)) => ops = value.trim().parse::<f64>().ok(),
            Some(("wall-clock-time", value)) => seconds = value.trim().parse::<f64>().ok(),
            _ => {}
        }
    }
    let (ops, seconds) = (ops?, seconds?);
    let latency = if ops > 0.0 {
        let each = Duration::try_from_secs_f64(seconds * instances as f64 / ops).ok()?;
        vec![(crate::sync::nanos(each), 1)]
    } else {
        Vec::new()
    };
    Some(Figures { work: ops, latency })
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "---
system-info:
      stress-ng-version: 0.18
metrics:
    - stressor: futex
      bogo-ops: 7
      wall-clock-time: 1.0
    - stressor: mutex
      bogo-ops: 2000
      bogo-ops-per-second-usr-sys-time: 1.5
      bogo-ops-per-second-real-time: 1000.0
      wall-clock-time: 2.000000
      user-time: 1.0

times:
      run-time: 2.1
";

    #[test]
    fn the_right_stressor_is_read() {
        let found = figures(YAML, "mutex", 2).expect("there");
        assert_eq!(
            found,
            Figures {
                work: 2000.0,
                latency: vec![(2_000_000, 1)]
            }
        );
        assert_eq!(figures(YAML, "futex", 1).map(|f| f.latency.len()), Some(1));
    }

    #[test]
    fn missing_figures_are_noticed() {
        assert_eq!(figures(YAML, "switch", 2), None);
        assert_eq!(figures("", "mutex", 2), None);
        assert_eq!(figures("- stressor: a\n  bogo-ops: 5\n", "a", 1), None);
    }

    #[test]
    fn no_operation_has_no_latency() {
        let yaml = "- stressor: a\n  bogo-ops: 0\n  wall-clock-time: 1.0\n";
        assert_eq!(
            figures(yaml, "a", 1),
            Some(Figures {
                work: 0.0,
                latency: Vec::new()
            })
        );
    }
}
