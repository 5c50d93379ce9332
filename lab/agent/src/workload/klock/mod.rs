// SPDX-License-Identifier: GPL-2.0-only
//! `klock`: the lock algorithms of the guest module `corun_locks`.

mod module;
mod report;

use super::{Setup, ThreadRule, Workload};
use crate::control::Control;
use crate::error::Error;
use crate::params::{Kind, Param, Params};
use crate::session::{Session, Window};
use report::Report;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

pub(super) static WORKLOAD: Workload = Workload {
    name: "klock",
    about: "kernel threads that take one lock of the module corun_locks, whose algorithm is chosen; fails when two hold it",
    unit: "acquisitions",
    latency: "one wait for the lock",
    threads: ThreadRule::Any,
    program: None,
    params: &[
        Param {
            name: "algorithm",
            about: "the lock; qspinlock is the kernel's own, broken excludes nobody",
            kind: Kind::Choice {
                default: "qspinlock",
                of: &["tas", "ticket", "pv-ticket", "pmt", "qspinlock", "broken"],
            },
        },
        nanos_param(
            "hold-ns",
            "work with the lock, in ns of an undisturbed vCPU",
            1000,
        ),
        nanos_param("think-ns", "work between two locks, likewise", 1000),
        Param {
            name: "spin-threshold",
            about: "looks at a pv-ticket lock before its waiter halts",
            kind: Kind::Int {
                default: 8192,
                min: 1,
                max: 1 << 30,
            },
        },
        Param {
            name: "pmt-timeout",
            about: "looks for each waiter ahead before a pmt lock's waiter leaves the line",
            kind: Kind::Int {
                default: 2048,
                min: 0,
                max: 1 << 30,
            },
        },
        Param {
            name: "irqs-off",
            about: "1: the lock is taken with interrupts off, so that only a kick ends a halt",
            kind: Kind::Int {
                default: 0,
                min: 0,
                max: 1,
            },
        },
    ],
    start,
};

const fn nanos_param(name: &'static str, about: &'static str, default: i64) -> Param {
    Param {
        name,
        about,
        kind: Kind::Int {
            default,
            min: 0,
            max: 1_000_000_000,
        },
    }
}

fn start(setup: &Setup) -> Result<Box<dyn Session>, Error> {
    module::load()?;
    configure(&setup.params, setup.threads)?;
    let locks = KernelLocks {
        folder: PathBuf::from(module::FILES),
        threads: setup.threads,
        begin: Instant::now(),
        at_begin: Report::default(),
    };
    // What an agent that was killed has left going on.
    locks.tell("stop")?;
    locks.tell("start")?;
    Ok(Box::new(locks))
}

fn configure(params: &Params, threads: usize) -> Result<(), Error> {
    module::set("algorithm", params.text("algorithm"))?;
    module::set("threads", &threads.to_string())?;
    // Until it is stopped: the agent keeps the time.
    module::set("seconds", "0")?;
    for (parameter, name) in [
        ("hold_ns", "hold-ns"),
        ("think_ns", "think-ns"),
        ("spin_threshold", "spin-threshold"),
        ("pmt_timeout", "pmt-timeout"),
        ("irqs_off", "irqs-off"),
    ] {
        module::set(parameter, &params.int(name).to_string())?;
    }
    Ok(())
}

/// A run of the module; ended when dropped.
struct KernelLocks {
    folder: PathBuf,
    threads: usize,
    begin: Instant,
    at_begin: Report,
}

impl KernelLocks {
    fn tell(&self, word: &str) -> Result<(), Error> {
        fs::write(self.folder.join("control"), word).map_err(|e| {
            let reason = self.report().ok().and_then(|report| report.refusal);
            match reason {
                Some(reason) => Error::Locks { reason },
                None => Error::os(format!("cannot {word} corun_locks"), e),
            }
        })
    }

    fn report(&self) -> Result<Report, Error> {
        let path = self.folder.join("result.json");
        let unreadable = |e| Error::os(format!("cannot read {}", path.display()), e);
        let text = fs::read_to_string(&path).map_err(unreadable)?;
        serde_json::from_str(&text).map_err(|e| unreadable(e.into()))
    }

    /// Fails when the lock did.
    fn check(&self) -> Result<(), Error> {
        let report = self.report()?;
        let reason = if report.overlaps > 0 || report.lost_updates > 0 {
            format!(
                "algorithm {} does not exclude: {} times two threads held the lock",
                report.algorithm, report.overlaps
            )
        } else if report.kicks_failed > 0 {
            format!("KVM refused {} kicks", report.kicks_failed)
        } else {
            return Ok(());
        };
        Err(Error::Locks { reason })
    }
}

impl Session for KernelLocks {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run_until(&mut self, deadline: Option<Instant>, control: &Control) -> Result<(), Error> {
        control.wait_until(deadline)?;
        self.check()
    }

    fn open_window(&mut self) {
        // A report that cannot be read was told by run_until() already.
        self.at_begin = self.report().unwrap_or_default();
        self.begin = Instant::now();
    }

    fn close_window(&mut self) -> Window {
        let report = self.report().unwrap_or_default();
        report.window(&self.at_begin, self.begin)
    }
}

impl Drop for KernelLocks {
    fn drop(&mut self) {
        // The next start stops it if this fails.
        let _ = self.tell("stop");
    }
}
