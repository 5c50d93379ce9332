// SPDX-License-Identifier: GPL-2.0-only
//! From a case's `[[scheduler]]` to its model.

use super::cfs::Cfs;
use super::corun::Corun;
use super::cosched::Strict;
use super::credit::Credit;
use super::eevdf::Eevdf;
use super::skew::Skew;
use super::{HostScheduler, HostTask};
use corun_case::SchedulerKind;
use corun_case::sim::{CoschedKind, SchedTunables};
use corun_policy::{Mechanisms, Tunables};

/// Options of `corun run`.
#[derive(Debug, Clone, Copy)]
pub struct CorunOptions {
    /// The policy's tunables.
    pub tunables: Tunables,
    /// What is switched on.
    pub mechanisms: Mechanisms,
}

impl Default for CorunOptions {
    fn default() -> Self {
        Self {
            tunables: Tunables::default(),
            mechanisms: Mechanisms::ALL,
        }
    }
}

/// The scheduler `kind` for a host of `nr_cpus` pCPUs and these tasks.
///
/// # Panics
/// For the lab's comparators, which have no model; cases with them are refused.
pub fn build(
    kind: SchedulerKind,
    settings: &SchedTunables,
    corun: CorunOptions,
    nr_cpus: usize,
    tasks: &[HostTask],
) -> Box<dyn HostScheduler> {
    let nr_tasks = tasks.len();
    let nr_vms = tasks.iter().map(|t| t.vm as usize + 1).max().unwrap_or(0);
    let cfs = || Cfs::new(nr_tasks, nr_vms, nr_cpus, settings.cfs.clone());
    match kind {
        SchedulerKind::Kernel | SchedulerKind::Eevdf => {
            let config = settings.eevdf.clone();
            Box::new(Eevdf::new(nr_tasks, nr_vms, nr_cpus, config))
        }
        SchedulerKind::Corun => {
            let CorunOptions {
                tunables,
                mechanisms,
            } = corun;
            Box::new(Corun::new(tasks, nr_cpus, tunables, mechanisms))
        }
        SchedulerKind::Cfs => Box::new(cfs()),
        SchedulerKind::Credit => Box::new(Credit::new(nr_tasks, nr_cpus, settings.credit.clone())),
        SchedulerKind::Cosched => match settings.cosched.kind {
            CoschedKind::Strict => {
                let slice_ns = settings.cosched.slice_ns;
                Box::new(Strict::new(nr_tasks, nr_vms, nr_cpus, slice_ns))
            }
            CoschedKind::Relaxed => {
                let skew = Skew::new(tasks, settings.cosched.max_skew_ns);
                Box::new(cfs().with_skew(skew))
            }
            CoschedKind::Balance => Box::new(cfs().with_siblings_apart()),
        },
        SchedulerKind::ScxBpfland | SchedulerKind::ScxLavd => {
            panic!("{kind:?} has no model")
        }
    }
}
