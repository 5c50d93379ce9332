// SPDX-License-Identifier: GPL-2.0-only
//! `corun doctor`: what this host has and lacks, which VMs lose time and why, and
//! what to do about it. Reads, measures for some seconds, changes nothing unless
//! asked to repair.

mod host;
mod judge;
mod left;
mod pv;
mod report;
mod sample;
mod setup;
mod targets;
mod text;
#[cfg(test)]
pub(crate) mod tree;
mod vm;

pub use pv::Pv;
pub use report::{Finding, REPORT_VERSION, Report, Sampled, Severity, Unseen, Verdict};
pub use text::text;
pub use vm::{CpuLimit, VmReport};

use crate::accounts::AccountOptions;
use crate::halt::Places;
use crate::root::Root;
use crate::{counters, features, hazards};
use report::Notes;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Put right what a killed corun left.
    pub repair: bool,
    /// How long to watch the VMs; none: not at all.
    pub watch: Option<Duration>,
}

/// What files do not tell; tests give their own.
struct Sources<'a> {
    /// A task with a core-scheduling cookie, and its name.
    cookie: Option<(i32, String)>,
    /// Whether a killed corun left its counters' map.
    left_map: bool,
    /// Removes it.
    unpin: fn(),
    /// Reads accounts, or says why not.
    accounts: sample::Accounts<'a>,
}

/// Examines this host. `stop` ends the watching early.
pub fn examine(options: &Options, stop: &AtomicBool) -> Report {
    let root = Root::default();
    let sources = Sources {
        cookie: hazards::first_task_with_cookie(),
        left_map: counters::is_pinned() && !crate::host_info::corun_is_loaded(),
        unpin: counters::unpin,
        accounts: &mut crate::account_reader(AccountOptions::default()),
    };
    report_of(&root, options, sources, |length| sample::wait(length, stop))
}

fn report_of(
    root: &Root,
    options: &Options,
    sources: Sources<'_>,
    watch: impl FnOnce(Duration),
) -> Report {
    let mut notes = Notes::default();
    left::halt_polling(&Places::below(root.folder()), options.repair, &mut notes);
    left::pinned_map(sources.left_map, options.repair, sources.unpin, &mut notes);
    host::check(root, sources.cookie, &mut notes);
    targets::check(root, &mut notes);
    let mut found = vm::find(root);
    if found.closed_processes > 0 {
        notes.blind(
            "whether processes of other users are VMs",
            format!(
                "the descriptors of {} processes may not be read; run `corun doctor` as root",
                found.closed_processes
            ),
        );
    }
    setup::check(&found.vms, setup::online(root).as_ref(), &mut notes);
    let watched = options.watch.filter(|_| !found.vms.is_empty());
    let sampled = watched.and_then(|length| {
        let watch = || watch(length);
        let sample = sample::take(root, &found.vms, sources.accounts, watch, &mut notes);
        judged(&mut found.vms, sample.as_ref(), &mut notes)
    });
    notes.rank();
    Report {
        corun_doctor: REPORT_VERSION,
        version: env!("CARGO_PKG_VERSION"),
        kernel: root.kernel_release(),
        verdict: notes.verdict(),
        features: features::all(root),
        vms: found.vms,
        sampled,
        findings: notes.findings,
        repaired: notes.repaired,
        unseen: notes.unseen,
    }
}

/// Gives VMs their accounts and judges them.
fn judged(
    vms: &mut [VmReport],
    sample: Option<&sample::Sample>,
    notes: &mut Notes,
) -> Option<Sampled> {
    let Some(sample) = sample else {
        notes.blind(
            "what VMs do",
            "neither BPF nor /proc tells how long vCPUs ran and waited: the kernel counts it with \
             CONFIG_SCHEDSTATS, and the VMM must name its threads",
        );
        return None;
    };
    for vm in &mut *vms {
        let of_vm = |seen: &&corun_events::account::Vm| seen.pid == vm.pid.unsigned_abs();
        vm.account = sample
            .interval
            .vms
            .iter()
            .find(of_vm)
            .map(corun_events::account::Vm::total)
            // No vCPU of it was seen: nothing is known.
            .filter(|account| account.wall_ns > 0);
    }
    for missing in &sample.interval.missing {
        notes.unknown("an event of the kernel's", missing.clone());
    }
    let drops = sample.interval.drops;
    if drops.vcpus > 0 {
        notes.unknown(
            "vCPUs beyond the accounts' table",
            format!("{} looks at vCPUs without a place", drops.vcpus),
        );
    }
    judge::check(vms, sample, notes);
    Some(Sampled {
        length_s: sample.interval.length_ns as f64 / 1e9,
        by_bpf: sample.causes_known,
    })
}

#[cfg(test)]
mod tests;
