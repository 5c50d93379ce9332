// SPDX-License-Identifier: GPL-2.0-only
//! The machine that the figures are from, and who else used it.

use serde_json::{Value, json};

/// Facts at one moment.
pub(crate) struct Facts {
    cpu: String,
    cores: usize,
    load: String,
    /// Ticks of all CPUs since boot, and those that the hypervisor took.
    ticks: u64,
    stolen: u64,
}

/// Reads them.
pub(crate) fn read() -> Result<Facts, String> {
    let file = |name: &str| std::fs::read_to_string(name).map_err(|e| format!("{name}: {e}"));
    let cpuinfo = file("/proc/cpuinfo")?;
    let models = cpuinfo.lines().filter_map(|l| l.split_once(':'));
    let cpu = models
        .filter(|(key, _)| key.trim() == "model name")
        .map(|(_, model)| model.trim().to_owned())
        .next();
    let load = file("/proc/loadavg")?;
    let stat = file("/proc/stat")?;
    let all = stat.lines().next().unwrap_or_default();
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user.
    let fields = all.split_whitespace().skip(1).take(8);
    let ticks: Vec<u64> = fields.filter_map(|f| f.parse().ok()).collect();
    Ok(Facts {
        cpu: cpu.unwrap_or_default(),
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        load: load
            .split_whitespace()
            .take(3)
            .collect::<Vec<_>>()
            .join(" "),
        ticks: ticks.iter().sum(),
        stolen: ticks.get(7).copied().unwrap_or(0),
    })
}

impl Facts {
    fn steal_percent(&self, before: &Facts) -> f64 {
        let ticks = self.ticks.saturating_sub(before.ticks).max(1);
        100.0 * self.stolen.saturating_sub(before.stolen) as f64 / ticks as f64
    }

    pub(crate) fn line(&self, before: &Facts) -> String {
        format!(
            "{}, {} cores; load {} before, {} after; steal {:.1} %",
            self.cpu,
            self.cores,
            before.load,
            self.load,
            self.steal_percent(before)
        )
    }

    pub(crate) fn json(&self, before: &Facts) -> Value {
        json!({
            "cpu": self.cpu, "cores": self.cores,
            "load_before": before.load, "load_after": self.load,
            "steal_percent": (self.steal_percent(before) * 10.0).round() / 10.0,
        })
    }
}
