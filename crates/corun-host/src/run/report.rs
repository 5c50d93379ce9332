// SPDX-License-Identifier: GPL-2.0-only
//! What `corun run` prints: lines for people, or one JSON object per line.

use crate::counters::Counters;
use crate::error::{During, Result};
use crate::options::RunOptions;
use crate::preflight::Feature;
use crate::vms::Vm;
use corun_policy::Tunables;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;

pub(super) struct Reporter {
    json: bool,
}

impl Reporter {
    pub(super) fn new(json: bool) -> Self {
        Self { json }
    }

    pub(super) fn host(&self, release: &str, features: &[Feature]) -> Result<()> {
        // Writing to a String cannot fail.
        let mut text = format!("corun {} on kernel {release}\n", env!("CARGO_PKG_VERSION"));
        for f in features {
            let mark = if f.found { '+' } else { '-' };
            let _ = writeln!(text, "  {mark} {:<13} {}", f.name, f.detail);
        }
        let version = env!("CARGO_PKG_VERSION");
        self.print(
            &text,
            &json!({"event": "host", "version": version, "kernel": release, "features": features}),
        )
    }

    pub(super) fn scheduling(&self, options: &RunOptions, tunables: &Tunables) -> Result<()> {
        let text = format!(
            "corun: scheduling (slice {:.3} ms, time scale {}, directed yield {})\n",
            tunables.slice_ns as f64 / 1e6,
            options.time_scale,
            if options.directed_yield { "on" } else { "off" },
        );
        self.print(
            &text,
            &json!({
                "event": "scheduling",
                "slice_ns": tunables.slice_ns,
                "time_scale": options.time_scale,
                "directed_yield": options.directed_yield,
            }),
        )
    }

    pub(super) fn vm(&self, change: &str, vm: &Vm) -> Result<()> {
        let text = format!(
            "corun: VM {:?} {change}: pid {}, {} vCPUs, weight {}, {:.3} s of CPU\n",
            vm.name,
            vm.pid,
            vm.vcpus,
            vm.weight,
            vm.used_ns as f64 / 1e9,
        );
        self.print(&text, &json!({"event": "vm", "change": change, "vm": vm}))
    }

    pub(super) fn stats(&self, counters: &Counters) -> Result<()> {
        let mut text = String::from("corun: counters\n");
        for (name, value) in counters {
            let _ = writeln!(text, "  {name:<26} {value}");
        }
        self.print(&text, &json!({"event": "stats", "counters": counters}))
    }

    pub(super) fn kvm_arrived(&self) -> Result<()> {
        self.print(
            "corun: kvm was loaded: reloading with VM discovery\n",
            &json!({"event": "kvm_arrived"}),
        )
    }

    pub(super) fn left(&self) -> Result<()> {
        self.print(
            "corun: left; the kernel's own scheduler is back\n",
            &json!({"event": "left"}),
        )
    }

    fn print(&self, text: &str, value: &Value) -> Result<()> {
        let mut out = std::io::stdout().lock();
        let line = if self.json {
            format!("{value}\n")
        } else {
            text.to_owned()
        };
        out.write_all(line.as_bytes())
            .and_then(|()| out.flush())
            .during("writing to standard output")
    }
}
