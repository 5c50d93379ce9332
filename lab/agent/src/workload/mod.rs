// SPDX-License-Identifier: GPL-2.0-only
//! The workloads: one table, one module each.

mod cpu;
mod forkexec;
mod hackbench;
mod hostile;
mod klock;
mod lock;
mod pingpong;
mod shell;
mod stale;
mod stress_ng;
mod sysbench;
mod timer;
mod tlb;

use crate::affinity;
use crate::control::Control;
use crate::error::Error;
use crate::external::Program;
use crate::params::{Param, Params, describe};
use crate::session::Session;
use corun_lab_proto::agent::WorkloadSpec;
use std::fmt::Write as _;
use std::sync::Arc;

/// Most worker threads of one run.
const MAX_THREADS: usize = 256;

/// All workloads.
pub(crate) static ALL: &[&Workload] = &[
    &cpu::WORKLOAD,
    &tlb::WORKLOAD,
    &lock::WORKLOAD,
    &klock::WORKLOAD,
    &hackbench::WORKLOAD,
    &pingpong::WORKLOAD,
    &timer::WORKLOAD,
    &forkexec::WORKLOAD,
    &stress_ng::WORKLOAD,
    &sysbench::WORKLOAD,
    &shell::WORKLOAD,
    &stale::WORKLOAD,
    &hostile::ipi_storm::WORKLOAD,
    &hostile::halt_storm::WORKLOAD,
    &hostile::fake_spin::WORKLOAD,
    &hostile::forged_rip::WORKLOAD,
];

/// One workload.
pub(crate) struct Workload {
    /// Its name in a case file.
    pub(crate) name: &'static str,
    /// What it does and why, in one sentence.
    pub(crate) about: &'static str,
    /// What is counted.
    pub(crate) unit: &'static str,
    /// What one latency sample measures.
    pub(crate) latency: &'static str,
    /// How many threads it uses.
    pub(crate) threads: ThreadRule,
    /// The program it needs, if any.
    pub(crate) program: Option<Program>,
    /// Its parameters.
    pub(crate) params: &'static [Param],
    /// Starts it.
    pub(crate) start: fn(&Setup) -> Result<Box<dyn Session>, Error>,
}

/// How many threads a workload uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadRule {
    /// As many as asked for; one per vCPU by default.
    Any,
    /// An even number, at least two.
    Pairs,
    /// Its parameters say it; a thread count is refused.
    ByParams,
}

/// All that a workload needs to start.
pub(crate) struct Setup {
    /// Worker threads to use.
    pub(crate) threads: usize,
    /// vCPUs to pin them to, round robin.
    pub(crate) cpus: Vec<usize>,
    /// Checked parameters.
    pub(crate) params: Params,
    /// Takes the failures of workers.
    pub(crate) control: Arc<Control>,
}

impl Workload {
    /// Starts the workload as `spec` says; nothing of it runs on an error.
    pub(crate) fn start(
        &self,
        spec: &WorkloadSpec,
        control: &Arc<Control>,
    ) -> Result<Box<dyn Session>, Error> {
        let params = Params::check(self.params, &spec.params).map_err(|problem| Error::Param {
            workload: self.name,
            problem,
            known: describe(self.params),
        })?;
        let cpus = affinity::cpus();
        let threads = self
            .threads
            .count(spec.threads, cpus.len())
            .map_err(|problem| Error::Threads {
                workload: self.name,
                problem,
            })?;
        (self.start)(&Setup {
            threads,
            cpus,
            params,
            control: Arc::clone(control),
        })
    }

    /// Whether its program is there.
    pub(crate) fn available(&self) -> bool {
        self.program.is_none_or(|program| program.find().is_ok())
    }
}

impl ThreadRule {
    fn count(self, asked: Option<u32>, vcpus: usize) -> Result<usize, String> {
        let asked = asked.map(|n| n as usize);
        if let Some(n) = asked.filter(|n| !(1..=MAX_THREADS).contains(n)) {
            return Err(format!("cannot use {n} threads: 1 to {MAX_THREADS}"));
        }
        match (self, asked) {
            (Self::ByParams, Some(_)) => {
                Err("takes no thread count: its parameters say it".to_owned())
            }
            (Self::ByParams, None) => Ok(0),
            (Self::Any, asked) => Ok(asked.unwrap_or(vcpus)),
            (Self::Pairs, Some(n)) if n % 2 == 1 => {
                Err(format!("threads work in pairs: {n} is odd"))
            }
            (Self::Pairs, Some(n)) => Ok(n),
            (Self::Pairs, None) => Ok((vcpus / 2 * 2).max(2)),
        }
    }
}

/// The workload called `name`.
pub(crate) fn find(name: &str) -> Result<&'static Workload, Error> {
    ALL.iter()
        .find(|w| w.name == name)
        .copied()
        .ok_or_else(|| Error::UnknownWorkload {
            name: name.to_owned(),
            known: ALL.iter().map(|w| w.name).collect::<Vec<_>>().join(", "),
        })
}

/// The text of `--list`.
pub(crate) fn list() -> String {
    let mut text = String::new();
    for w in ALL {
        let threads = match w.threads {
            ThreadRule::Any => "one per vCPU unless told",
            ThreadRule::Pairs => "pairs, one pair per two vCPUs unless told",
            ThreadRule::ByParams => "by its parameters",
        };
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "{}\n    {}\n    work: {}\n    latency: {}\n    threads: {threads}\n",
            w.name, w.about, w.unit, w.latency
        );
        if let Some(program) = w.program {
            let found = if w.available() { "found" } else { "MISSING" };
            let _ = writeln!(
                text,
                "    program: {} (Debian package {}), {found}",
                program.name, program.package
            );
        }
        for param in w.params {
            let _ = writeln!(text, "    param {param}: {}", param.about);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_found() {
        let names: BTreeSet<_> = ALL.iter().map(|w| w.name).collect();
        assert_eq!(names.len(), ALL.len());
        for name in names {
            assert_eq!(find(name).expect("in the table").name, name);
        }
    }

    #[test]
    fn unknown_name_lists_all() {
        let message = find("zap").err().expect("unknown").to_string();
        assert!(ALL.iter().all(|w| message.contains(w.name)), "{message}");
    }

    #[test]
    fn defaults_are_in_their_range() {
        for w in ALL {
            Params::check(w.params, &std::collections::BTreeMap::new()).expect(w.name);
        }
    }

    #[test]
    fn thread_rules() {
        assert_eq!(ThreadRule::Any.count(None, 3), Ok(3));
        assert_eq!(ThreadRule::Any.count(Some(5), 3), Ok(5));
        assert!(ThreadRule::Any.count(Some(0), 3).is_err());
        assert_eq!(ThreadRule::Pairs.count(None, 3), Ok(2));
        assert_eq!(ThreadRule::Pairs.count(None, 1), Ok(2));
        assert!(ThreadRule::Pairs.count(Some(3), 4).is_err());
        assert!(ThreadRule::ByParams.count(Some(1), 4).is_err());
    }

    #[test]
    fn list_names_every_parameter() {
        let text = list();
        for w in ALL {
            assert!(
                w.params.iter().all(|p| text.contains(&p.to_string())),
                "{}",
                w.name
            );
        }
    }
}
