// SPDX-License-Identifier: GPL-2.0-only
//! Paravirtual features that a VM was started with, as QEMU's `-cpu` tells.

use serde::Serialize;
use std::collections::BTreeMap;

/// Features that matter where vCPUs are preempted. All but `kvm-steal-time` and
/// `kvm-asyncpf` are off by default for named CPU models, and on for `host` and
/// `max` (QEMU: `kvm_default_props`).
pub(super) const FEATURES: [&str; 5] = [
    "kvm-steal-time",
    "kvm-pv-unhalt",
    "kvm-pv-tlb-flush",
    "kvm-pv-ipi",
    "kvm-pv-sched-yield",
];
/// Says that vCPUs are never preempted: the guest then uses none of the others.
pub(super) const DEDICATED: &str = "kvm-hint-dedicated";
/// Hyper-V's flush: what `Shoot4U` rests on.
pub(super) const HYPERV_FLUSH: &str = "hv-tlbflush";

/// What a VM was started with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pv {
    /// CPU model.
    pub model: String,
    /// On or off, by QEMU's names.
    pub features: BTreeMap<&'static str, bool>,
}

impl Pv {
    /// True when the guest is offered `feature`.
    pub(super) fn has(&self, feature: &str) -> bool {
        self.features.get(feature) == Some(&true)
    }

    /// Those of [`FEATURES`] that are off.
    pub(super) fn lacks(&self) -> Vec<&'static str> {
        FEATURES.into_iter().filter(|f| !self.has(f)).collect()
    }
}

/// Reads a command line; `None` when it is not QEMU's, or names no CPU model.
pub(super) fn of_command_line(args: &[String]) -> Option<Pv> {
    if !args.first()?.contains("qemu") {
        return None;
    }
    let at = args.iter().rposition(|a| a == "-cpu" || a == "--cpu")?;
    let mut parts = args.get(at + 1)?.split(',');
    let model = parts.next()?.to_owned();
    let given: Vec<(String, bool)> = parts.filter_map(property).collect();
    let given = |name: &str| {
        given
            .iter()
            .rev()
            .find(|(n, _)| n == name)
            .map(|(_, on)| *on)
    };
    let all_by_default = matches!(model.as_str(), "host" | "max");
    let hidden = given("kvm") == Some(false);
    let mut features = BTreeMap::new();
    for name in FEATURES {
        let default = all_by_default || name == "kvm-steal-time";
        features.insert(name, !hidden && given(name).unwrap_or(default));
    }
    features.insert(DEDICATED, !hidden && given(DEDICATED).unwrap_or(false));
    let enlightened = given("hv-passthrough").unwrap_or(false);
    features.insert(HYPERV_FLUSH, given(HYPERV_FLUSH).unwrap_or(enlightened));
    Some(Pv { model, features })
}

/// `+name`, `-name`, `name=on` or `name`; QEMU takes `_` for `-`.
fn property(part: &str) -> Option<(String, bool)> {
    let (name, on) = match part.split_once('=') {
        Some((name, value)) => (name, matches!(value, "on" | "yes" | "true" | "y")),
        None if part.starts_with('-') => (part.get(1..)?, false),
        None => (part.strip_prefix('+').unwrap_or(part), true),
    };
    Some((name.replace('_', "-"), on))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pv(cpu: &str) -> Pv {
        let args = ["/usr/bin/qemu-system-x86_64", "-m", "192", "-cpu", cpu];
        of_command_line(&args.map(str::to_owned)).expect("is QEMU's")
    }

    #[test]
    fn named_models_have_steal_time_alone() {
        let named = pv("qemu64,kvm=on,+x2apic");
        assert!(named.has("kvm-steal-time"));
        assert_eq!(named.lacks(), FEATURES[1..]);
    }

    #[test]
    fn host_has_all_and_the_last_word_counts() {
        assert!(pv("host,migratable=off").lacks().is_empty());
        let pv = pv("host,kvm-pv-tlb-flush=off,-kvm_pv_ipi,+kvm-pv-ipi,kvm-hint-dedicated=on");
        assert_eq!(pv.lacks(), ["kvm-pv-tlb-flush"]);
        assert!(pv.has(DEDICATED) && !pv.has(HYPERV_FLUSH));
    }

    #[test]
    fn a_hidden_kvm_offers_nothing_of_its_own() {
        let hidden = pv("host,kvm=off,hv-tlbflush=on");
        assert_eq!(hidden.lacks(), FEATURES);
        assert!(hidden.has(HYPERV_FLUSH));
    }

    #[test]
    fn others_are_not_guessed() {
        let other = ["firecracker", "-cpu", "host"].map(str::to_owned);
        assert_eq!(of_command_line(&other), None);
        let silent = ["qemu-system-x86_64", "-m", "1"].map(str::to_owned);
        assert_eq!(of_command_line(&silent), None);
    }
}
