// SPDX-License-Identifier: GPL-2.0-only
//! Machines that cases may run on without saying so: what things cost there, as
//! a file, for `--machine`.

use crate::SimError;
use corun_case::sim::{Costs, Eevdf, GuestKernel, Kvm};
use corun_case::{Override, OverrideError, hint};
use include_dir::{Dir, include_dir};
use serde::Deserialize;
use std::path::Path;
use toml::{Table, Value};

/// The machines that come with corun.
static SHIPPED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/machines");

/// A machine.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Name for `--machine`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Where its figures come from.
    pub derivation: String,
    /// What a case's `time_scale = "auto"` means on it.
    pub time_scale: f64,
    /// What the names of the models begin with that stand for the lab's workloads on it.
    #[serde(default = "lab")]
    pub lab_models: String,
    /// Its costs of exits and switches are those that each boot measured; otherwise they
    /// are the same in all, and stay as they are.
    #[serde(default)]
    measured_by_boots: bool,
    /// Keys of `[sim.costs]`.
    #[serde(default)]
    costs: Table,
    /// Keys of `[sim.kvm]`.
    #[serde(default)]
    kvm: Table,
    /// Keys of `sim.eevdf` of schedulers of kind "kernel" and "eevdf".
    #[serde(default)]
    eevdf: Table,
    /// Keys of `[sim.guest.NAME]` of all guests.
    #[serde(default)]
    guest: Table,
}

fn lab() -> String {
    "lab".to_owned()
}

impl Machine {
    /// The machine called `name`, or in the file of that name.
    pub fn find(name: &str) -> Result<Self, SimError> {
        if let Some(text) = shipped(name) {
            return Self::parse(name, text);
        }
        let file = Path::new(name);
        if file.is_file() {
            let text = std::fs::read_to_string(file)
                .map_err(|e| SimError::Scenario(format!("machine {name}: cannot read: {e}")))?;
            return Self::parse(name, &text);
        }
        let names = names();
        let known = || names.iter().map(String::as_str);
        Err(SimError::Scenario(format!(
            "no machine {name:?}: neither a file nor one of {}{}",
            names.join(", "),
            hint(name, known())
        )))
    }

    /// The machine in `text`; `from` is for messages.
    pub fn parse(from: &str, text: &str) -> Result<Self, SimError> {
        let bad = |what: String| SimError::Scenario(format!("machine {from}: {what}"));
        let machine: Self = toml::from_str(text).map_err(|e| bad(e.to_string()))?;
        if !(1.0..=corun_case::MAX_FACTOR).contains(&machine.time_scale) {
            return Err(bad(format!(
                "time_scale {}: expected 1 to {}",
                machine.time_scale,
                corun_case::MAX_FACTOR
            )));
        }
        reads::<Costs>(&machine.costs).map_err(|e| bad(format!("[costs]: {e}")))?;
        reads::<Kvm>(&machine.kvm).map_err(|e| bad(format!("[kvm]: {e}")))?;
        reads::<GuestKernel>(&machine.guest).map_err(|e| bad(format!("[guest]: {e}")))?;
        reads::<Eevdf>(&machine.eevdf).map_err(|e| bad(format!("[eevdf]: {e}")))?;
        Ok(machine)
    }

    /// Puts measured figures in the place of the file's: the factor, an exit with
    /// its entry, and a switch with exit and entry. Nanoseconds. What the file's
    /// entries cost more than its exits, measured loops of exits do not show: it
    /// stays.
    pub fn calibrate(&mut self, factor: f64, exit_ns: u64, switch_ns: u64) {
        self.time_scale = factor;
        if !self.measured_by_boots {
            return;
        }
        let ours = |key: &str| {
            let value = self.costs.get(key).and_then(Value::as_integer);
            value.unwrap_or(0).max(0).cast_unsigned()
        };
        let more_ns = ours("entry_ns").saturating_sub(ours("exit_ns"));
        let entry_ns = exit_ns - exit_ns / 2 + more_ns;
        let around_ns = exit_ns / 2 + entry_ns + ours("pick_ns");
        for (key, ns) in [
            ("exit_ns", exit_ns / 2),
            ("entry_ns", entry_ns),
            ("switch_ns", switch_ns.saturating_sub(around_ns)),
        ] {
            let value = Value::Integer(ns.cast_signed());
            self.costs.insert(key.to_owned(), value);
        }
    }

    /// What it is under the kernel of that release ("7.2.13+deb14-cloud-amd64"): before 7.3
    /// EEVDF knew nothing of `sim.eevdf.concur`.
    pub fn run_kernel(&mut self, release: &str) {
        let mut numbers = release.split(['.', '-', '+']).map(str::parse::<u32>);
        if let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next())
            && (major, minor) < (7, 3)
        {
            self.eevdf.remove("concur");
        }
    }

    /// What makes the case in `text` one on this machine. Keys that the case
    /// itself sets stay as they are.
    pub fn overrides(&self, text: &str) -> Result<Vec<Override>, SimError> {
        let case: Table =
            toml::from_str(text).map_err(|e| SimError::Scenario(format!("case: {e}")))?;
        let mut sets = Vec::new();
        let scale = case.get("case").and_then(|c| c.get("time_scale"));
        if scale.is_none_or(|s| s.as_str() == Some("auto")) {
            sets.push(format!("case.time_scale={}", self.time_scale));
        }
        let sim = case.get("sim");
        for (section, keys) in [("costs", &self.costs), ("kvm", &self.kvm)] {
            let own = sim.and_then(|s| s.get(section));
            add(&mut sets, &format!("sim.{section}"), keys, own);
        }
        let guests = case.get("guest").and_then(Value::as_array);
        let names = guests.into_iter().flatten().filter_map(|g| g.get("name"));
        for name in names.filter_map(Value::as_str) {
            let own = sim.and_then(|s| s.get("guest")).and_then(|g| g.get(name));
            add(&mut sets, &format!("sim.guest.{name}"), &self.guest, own);
        }
        let schedulers = case.get("scheduler").and_then(Value::as_array);
        for (i, scheduler) in schedulers.into_iter().flatten().enumerate() {
            let kind = scheduler.get("kind").and_then(Value::as_str);
            if matches!(kind, Some("kernel" | "eevdf")) {
                let own = scheduler.get("sim").and_then(|s| s.get("eevdf"));
                add(
                    &mut sets,
                    &format!("scheduler[{i}].sim.eevdf"),
                    &self.eevdf,
                    own,
                );
            }
        }
        let parsed: Result<_, OverrideError> = sets.iter().map(|s| s.parse()).collect();
        parsed.map_err(|e| SimError::Scenario(format!("machine {}: {e}", self.name)))
    }
}

/// Names of the machines that come with corun.
pub fn names() -> Vec<String> {
    let stem = |path: &Path| Some(path.file_stem()?.to_str()?.to_owned());
    let files = SHIPPED.files().filter(|f| is_toml(f.path()));
    files.filter_map(|f| stem(f.path())).collect()
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "toml")
}

fn shipped(name: &str) -> Option<&'static str> {
    SHIPPED.get_file(format!("{name}.toml"))?.contents_utf8()
}

/// Keys of `table` that are not what `T` has are noticed when the file is read.
fn reads<T: for<'de> Deserialize<'de>>(table: &Table) -> Result<(), toml::de::Error> {
    table.clone().try_into::<T>().map(drop)
}

/// Sets all of `keys` under `prefix` that `own` does not have.
fn add(sets: &mut Vec<String>, prefix: &str, keys: &Table, own: Option<&Value>) {
    let missing = keys
        .iter()
        .filter(|(key, _)| own.is_none_or(|own| own.get(key.as_str()).is_none()));
    sets.extend(missing.map(|(key, value)| format!("{prefix}.{key}={value}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: &str = r#"
[case]
name = "x"
[[scheduler]]
label = "corun"
kind = "corun"
[[scheduler]]
label = "eevdf"
kind = "kernel"
[sim.costs]
exit_ns = 7
"#;

    #[test]
    fn all_shipped_machines_are_read_and_called_like_their_files() {
        for name in names() {
            assert_eq!(Machine::find(&name).expect("reads").name, name);
        }
        assert!(names().contains(&"lab".to_owned()));
    }

    #[test]
    fn the_default_machine_changes_nothing() {
        let machine = Machine::find("default").expect("reads");
        let sets = machine.overrides(CASE).expect("overrides");
        let texts: Vec<String> = sets.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["case.time_scale=1"]);
    }

    #[test]
    fn a_case_keeps_what_it_says_itself() {
        let mut machine = Machine::find("lab").expect("reads");
        machine.calibrate(100.0, 41_000, 300_000);
        let sets = machine.overrides(CASE).expect("overrides");
        let texts: Vec<String> = sets.iter().map(ToString::to_string).collect();
        let has = |text: &str| texts.iter().any(|t| t == text);
        assert!(has("case.time_scale=100"), "{texts:?}");
        assert!(has("sim.costs.entry_ns=50500"), "{texts:?}");
        assert!(has("sim.costs.switch_ns=227000"), "{texts:?}");
        assert!(has("sim.kvm.ple=false"), "{texts:?}");
        assert!(has("scheduler[1].sim.eevdf.base_slice_ns=3000000"));
        assert!(!texts.iter().any(|t| t.starts_with("scheduler[0]")));
        assert!(!texts.iter().any(|t| t.contains("exit_ns=20")), "{texts:?}");

        let fixed = CASE.replace("name = \"x\"", "name = \"x\"\ntime_scale = 3");
        let sets = machine.overrides(&fixed).expect("overrides");
        assert!(!sets.iter().any(|s| s.key() == "case.time_scale"));
    }

    #[test]
    fn wrong_machines_are_refused_with_the_reason() {
        let error = |text: &str| Machine::parse("m.toml", text).unwrap_err().to_string();
        let head = "name = \"m\"\ntitle = \"\"\nderivation = \"\"\n";
        assert!(error(&format!("{head}time_scale = 0.0")).contains("expected 1 to 300"));
        let wrong = error(&format!("{head}time_scale = 1.0\n[costs]\nexits = 1"));
        assert!(
            wrong.contains("m.toml") && wrong.contains("exits"),
            "{wrong}"
        );
        let none = Machine::find("lap").unwrap_err().to_string();
        assert!(none.contains("default, lab"), "{none}");
    }

    #[test]
    fn older_kernels_weigh_vms_as_one() {
        for (release, concur) in [
            ("7.3.4+deb13", true),
            ("7.2.13-1", false),
            ("6.12.9", false),
        ] {
            let mut machine = Machine::find("lab-icount").expect("shipped");
            machine.run_kernel(release);
            assert_eq!(machine.eevdf.contains_key("concur"), concur, "{release}");
        }
    }
}
