// SPDX-License-Identifier: GPL-2.0-only
//! What the scheduler's BPF programs cost: instructions to verify, runs, time.

use crate::error::{During, Result};
use libbpf_rs::libbpf_sys::{BPF_STATS_RUN_TIME, bpf_enable_stats};
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use libbpf_rs::{MapCore, MapHandle};
use serde::Serialize;
use std::os::fd::{FromRawFd, OwnedFd};

/// The kernel counts BPF programs' runs and time while this lives; a few percent
/// of what they cost themselves.
pub(crate) struct HookCosts {
    _stats: OwnedFd,
    /// Map by which our programs are told from others.
    ours: u32,
}

/// One program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HookCost {
    /// Its name, cut off at 15 characters by the kernel.
    pub name: String,
    /// Instructions that the verifier looked at, over all paths.
    pub verified_insns: u32,
    /// Instructions of the program as loaded, without the global functions that
    /// it calls.
    pub insns: usize,
    /// Runs since counting began.
    pub runs: u64,
    /// Their time. Nanoseconds.
    pub run_time_ns: u64,
}

/// Bytes of a BPF instruction (`struct bpf_insn`).
const INSN_BYTES: usize = 8;

impl HookCosts {
    /// Begins to count the programs that use `map`.
    pub(crate) fn start(map: &MapHandle) -> Result<Self> {
        let step = "counting BPF programs' run time (kernel 5.8 or later, root)";
        let ours = map.info().during(step)?.info.id;
        // SAFETY: takes a plain value, returns a new descriptor or an error.
        let fd = unsafe { bpf_enable_stats(BPF_STATS_RUN_TIME) };
        if fd < 0 {
            return Err(std::io::Error::last_os_error()).during(step);
        }
        // SAFETY: the descriptor is new, and nobody else has it.
        let stats = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self {
            _stats: stats,
            ours,
        })
    }

    /// All programs that ran, the most expensive ones first.
    pub(crate) fn read(&self) -> Vec<HookCost> {
        let options = ProgInfoQueryOptions::default()
            .include_map_ids(true)
            .include_xlated_prog_insns(true);
        let mut costs: Vec<_> = ProgInfoIter::with_query_opts(options)
            .filter(|p| p.map_ids.contains(&self.ours))
            .map(|p| cost(&p))
            .collect();
        costs.sort_by_key(|c| std::cmp::Reverse(c.run_time_ns));
        costs
    }
}

fn cost(p: &ProgramInfo) -> HookCost {
    HookCost {
        name: p.name.to_string_lossy().into_owned(),
        verified_insns: p.verified_insns,
        insns: p.xlated_prog_insns.len() / INSN_BYTES,
        runs: p.run_cnt,
        run_time_ns: p.run_time_ns,
    }
}

impl HookCost {
    /// Time of one run. Nanoseconds.
    pub fn mean_ns(&self) -> u64 {
        self.run_time_ns.checked_div(self.runs).unwrap_or(0)
    }
}
