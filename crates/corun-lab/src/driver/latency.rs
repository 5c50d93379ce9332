// SPDX-License-Identifier: GPL-2.0-only
//! What the guests' vCPUs wait for, window by window.

use super::error::{Context, Result};
use corun_host::latency::{Distribution, LatencyObserver, VmLatency};
use corun_lab_proto::control::VcpuLatency;
use corun_lab_proto::{HistogramError, LatencySummary};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// The host's latency observer.
pub(super) struct Latency {
    observer: LatencyObserver,
}

impl Latency {
    /// Attaches it; once per boot, before there are guests.
    pub(super) fn attach() -> Result<Self> {
        let observer = LatencyObserver::attach().map_err(|e| chain(&e));
        Ok(Self {
            observer: observer.doing(|| "observe the latencies of vCPUs".to_owned())?,
        })
    }

    /// A window begins.
    pub(super) fn begin(&mut self) -> Result<()> {
        let begun = self.observer.reset().map_err(|e| chain(&e));
        begun.doing(|| "begin to observe latencies".to_owned())
    }

    /// What was seen since then of the guests whose VMMs are `pids`.
    pub(super) fn read(
        &self,
        pids: &BTreeMap<String, u32>,
    ) -> Result<BTreeMap<String, VcpuLatency>> {
        let doing = || "read the latencies of vCPUs".to_owned();
        let vms = self.observer.read().map_err(|e| chain(&e)).doing(doing)?;
        let mut by_guest = BTreeMap::new();
        for (guest, pid) in pids {
            if let Some(vm) = vms.iter().find(|vm| vm.pid == *pid) {
                by_guest.insert(guest.clone(), on_the_wire(vm).doing(doing)?);
            }
        }
        Ok(by_guest)
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn on_the_wire(vm: &VmLatency) -> std::result::Result<VcpuLatency, HistogramError> {
    let times = vm.times.iter().filter(|(_, d)| d.count > 0);
    Ok(VcpuLatency {
        times: times
            .map(|(name, d)| LatencySummary::from_histogram(name, &histogram(d)?))
            .collect::<std::result::Result<_, _>>()?,
        sums_ns: vm
            .times
            .iter()
            .map(|(n, d)| (n.clone(), d.sum_ns))
            .collect(),
        counts: vm.counts.clone(),
    })
}

/// The form that all latencies of a result have, so that they merge alike.
fn histogram(d: &Distribution) -> std::result::Result<Histogram<u64>, HistogramError> {
    let bad = |e: &dyn std::fmt::Debug| HistogramError(format!("{e:?}"));
    let mut h = Histogram::new(3).map_err(|e| bad(&e))?;
    for (ns, count) in d.samples() {
        h.record_n(ns, count).map_err(|e| bad(&e))?;
    }
    Ok(h)
}
