// SPDX-License-Identifier: GPL-2.0-only
//! The schedulers under test.

use super::MS;
use corun_case::SchedulerKind;
use corun_case::sim::{CoschedKind, SchedTunables};

/// A scheduler's settings, and what it promises.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) scheduler: SchedulerKind,
    pub(super) settings: SchedTunables,
    /// Equal VMs get equal time whatever their number of vCPUs.
    pub(super) fair_by_vm: bool,
    /// How long a pCPU may idle while someone waits who may run there.
    pub(super) waste_ns: Option<u64>,
}

/// All schedulers.
pub(super) fn kinds() -> Vec<Kind> {
    let kind = |name, scheduler, waste_ns| Kind {
        name,
        scheduler,
        settings: SchedTunables::default(),
        fair_by_vm: true,
        waste_ns: Some(waste_ns),
    };
    let mut strict = kind("strict", SchedulerKind::Cosched, MS);
    strict.waste_ns = Some(0);
    let mut relaxed = kind("relaxed", SchedulerKind::Cosched, MS);
    relaxed.settings.cosched.kind = CoschedKind::Relaxed;
    let mut balance = kind("balance", SchedulerKind::Cosched, MS);
    balance.settings.cosched.kind = CoschedKind::Balance;
    let mut credit = kind("credit", SchedulerKind::Credit, 10 * MS);
    credit.fair_by_vm = false;
    let mut micro = credit.clone();
    micro.name = "micro";
    micro.settings.credit.micro_pcpus = 1;
    micro.waste_ns = None;
    let mut hrtick = kind(
        "eevdf with high-resolution ticks",
        SchedulerKind::Eevdf,
        4 * MS,
    );
    hrtick.settings.eevdf.tick_ns = 0;
    vec![
        kind("corun", SchedulerKind::Corun, 0),
        kind("cfs", SchedulerKind::Cfs, MS),
        kind("eevdf", SchedulerKind::Eevdf, 4 * MS),
        hrtick,
        credit,
        micro,
        strict,
        relaxed,
        balance,
    ]
}

/// The kind called `name`.
pub(super) fn kind(name: &str) -> Kind {
    let found = kinds().into_iter().find(|k| k.name == name);
    found.expect("a known scheduler")
}
