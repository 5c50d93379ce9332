// SPDX-License-Identifier: GPL-2.0-only
//! What `corun run` prints: lines for people, or one JSON object per line.

use crate::counters::Counters;
use crate::error::{During, Result};
use crate::features::Feature;
use crate::halt::{HaltReport, Note};
use crate::hook_costs::HookCost;
use crate::in_use::InUse;
use crate::kernel_exit::KernelExit;
use crate::options::RunOptions;
use crate::vms::Vm;
use corun_policy::Tunables;
use corun_symbols::{Library, NoMatch};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;

/// What `--stats` prints.
pub(crate) struct Stats<'a> {
    pub(crate) counters: Counters,
    pub(crate) vms: Vec<Vm>,
    pub(crate) in_use: InUse,
    pub(crate) halt_polling: Option<&'a HaltReport>,
}

pub(crate) struct Reporter {
    json: bool,
}

impl Reporter {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    pub(crate) fn host(&self, release: &str, features: &[Feature]) -> Result<()> {
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

    pub(crate) fn scheduling(&self, options: &RunOptions, tunables: &Tunables) -> Result<()> {
        let text = format!(
            "corun: scheduling (slice {:.3} ms, time scale {}, mechanisms: {})\n",
            tunables.slice_ns as f64 / 1e6,
            options.time_scale,
            options.mechanisms,
        );
        self.print(
            &text,
            &json!({
                "event": "scheduling",
                "slice_ns": tunables.slice_ns,
                "time_scale": options.time_scale,
                "mechanisms": options.mechanisms.names().collect::<Vec<_>>(),
            }),
        )
    }

    /// What is lost for want of events that the kernel does not have.
    pub(crate) fn missing(&self, missing: &[String]) -> Result<()> {
        for event in missing {
            self.print(
                &format!("corun: no {event}\n"),
                &json!({"event": "missing", "what": event}),
            )?;
        }
        Ok(())
    }

    pub(crate) fn vm(&self, change: &str, vm: &Vm) -> Result<()> {
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

    pub(crate) fn symbols(&self, library: &Library) -> Result<()> {
        for map in library.skipped() {
            self.print(
                &format!("corun: symbols: {map}\n"),
                &json!({"event": "symbols_skipped", "why": map.to_string()}),
            )?;
        }
        for image in library.images() {
            let ranges = image.ranges.len();
            self.print(
                &format!("corun: symbols: {} ({ranges} ranges)\n", image.name),
                &json!({"event": "symbols", "name": image.name, "ranges": ranges}),
            )?;
        }
        Ok(())
    }

    /// What is known of the kernel of `vm`: its map and address, or why none.
    pub(crate) fn kernel(
        &self,
        vm: &str,
        found: std::result::Result<(&str, u64), &NoMatch>,
    ) -> Result<()> {
        match found {
            Ok((name, base)) => self.print(
                &format!("corun: VM {vm:?} runs {name} at {base:#x}\n"),
                &json!({"event": "kernel", "vm": vm, "symbols": name, "text_base": base}),
            ),
            Err(why) => self.print(
                &format!("corun: no symbols: {why}\n"),
                &json!({"event": "kernel", "vm": vm, "symbols": null, "why": why.to_string()}),
            ),
        }
    }

    pub(crate) fn stats(&self, stats: &Stats<'_>) -> Result<()> {
        let mut text = String::from("corun: counters\n");
        for (name, value) in &stats.counters {
            let _ = writeln!(text, "  {name:<26} {value}");
        }
        for vm in &stats.vms {
            let used_s = vm.used_ns as f64 / 1e9;
            let _ = writeln!(text, "corun: VM {:?}: {used_s:.3} s of CPU", vm.name);
        }
        let _ = write!(text, "corun: in use: {}", stats.in_use);
        if let Some(halt) = stats.halt_polling {
            let _ = writeln!(text, "corun: {halt}");
        }
        self.print(
            &text,
            &json!({
                "event": "stats",
                "counters": stats.counters,
                "vms": stats.vms,
                "in_use": stats.in_use,
                "halt_polling": stats.halt_polling,
            }),
        )
    }

    pub(crate) fn halt(&self, notes: &[Note]) -> Result<()> {
        for note in notes {
            let value = json!({"event": "halt_polling", "note": note.to_string()});
            self.print(&format!("corun: {note}\n"), &value)?;
        }
        Ok(())
    }

    pub(crate) fn hook_costs(&self, costs: &[HookCost]) -> Result<()> {
        let mut text = String::from(
            "corun: BPF programs\n  program           verified    insns        runs   ns a run\n",
        );
        for c in costs {
            let _ = writeln!(
                text,
                "  {:<16} {:>9} {:>8} {:>11} {:>10}",
                c.name,
                c.verified_insns,
                c.insns,
                c.runs,
                c.mean_ns()
            );
        }
        self.print(&text, &json!({"event": "hook_costs", "programs": costs}))
    }

    pub(crate) fn kvm_arrived(&self) -> Result<()> {
        self.print(
            "corun: kvm was loaded: reloading with VM discovery\n",
            &json!({"event": "kvm_arrived"}),
        )
    }

    pub(crate) fn kvm_leaves(&self) -> Result<()> {
        self.print(
            "corun: kvm is no longer in use: reloading without VM discovery, so that it can be \
             unloaded\n",
            &json!({"event": "kvm_leaves"}),
        )
    }

    /// The kernel ended the scheduler; the error that follows says it to people.
    pub(crate) fn ended(&self, exit: &KernelExit) -> Result<()> {
        self.print("", &json!({"event": "ended", "exit": exit}))
    }

    pub(crate) fn left(&self) -> Result<()> {
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
