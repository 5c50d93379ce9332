// SPDX-License-Identifier: GPL-2.0-only
//! The hypervisor's settings.

use serde::{Deserialize, Serialize};

/// `[sim.kvm]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Kvm {
    /// KVM, or Xen's reaction to the same exits.
    pub hypervisor: Hypervisor,
    /// Pause-loop exiting; `false`: the CPU has none.
    #[serde(with = "ple_or_false")]
    pub ple: Option<Ple>,
    /// Whom a spinning vCPU's pCPU is given to.
    pub spin_handler: SpinHandler,
    /// Debooster (seed 002, the authors' patch of kernel/sched/fair.c): a spinner that gets a
    /// directed yield to a sibling on its own run queue is put so far back that this is not
    /// too unfair.
    pub debooster: bool,
    /// What a halted vCPU does before it sleeps.
    pub halt_poll: HaltPoll,
    /// Interrupts reach a running vCPU without an exit.
    pub posted_interrupts: bool,
}

impl Default for Kvm {
    fn default() -> Self {
        Self {
            hypervisor: Hypervisor::Kvm,
            ple: Some(Ple::default()),
            spin_handler: SpinHandler::Y2019,
            debooster: false,
            halt_poll: HaltPoll::Adaptive,
            posted_interrupts: false,
        }
    }
}

/// Which hypervisor handles the exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hypervisor {
    /// Linux KVM.
    Kvm,
    /// Xen: a pause-loop exit is a plain yield of the vCPU.
    Xen,
}

/// Pause-loop exiting (`ple_gap` and `ple_window` of `kvm_intel`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ple {
    /// Spinning longer than this exits. Cycles.
    pub window_cycles: u64,
    /// The window is multiplied by this on a PLE exit; 0 or 1: stays.
    pub grow: u64,
    /// The window is divided by this when the vCPU is scheduled in; 0: reset
    /// to `window_cycles`.
    pub shrink: u64,
    /// Most that it grows to. Cycles.
    pub max_cycles: u64,
}

impl Default for Ple {
    /// `kvm_intel` since Linux 3.18 (`__grow_ple_window`).
    fn default() -> Self {
        Self {
            window_cycles: 4_096,
            grow: 2,
            shrink: 0,
            max_cycles: u64::MAX >> 32,
        }
    }
}

/// Generations of `kvm_vcpu_on_spin`, as seed 002 dates them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SpinHandler {
    /// The spinner sleeps for 100 us; nobody is boosted.
    #[serde(rename = "2009")]
    Y2009,
    /// Directed yield, round robin over all siblings.
    #[serde(rename = "2011")]
    Y2011,
    /// Siblings that spun themselves are passed over every second time.
    #[serde(rename = "2012")]
    Y2012,
    /// Only preempted siblings.
    #[serde(rename = "2013")]
    Y2013,
    /// Only those preempted in kernel mode.
    #[serde(rename = "2017")]
    Y2017,
    /// Also halted ones with a pending interrupt.
    #[serde(rename = "2019")]
    Y2019,
    /// Strict Boost (seed 002, the authors' patch of `kvm_vcpu_on_spin`): those preempted in
    /// kernel mode, or in user mode with an IPI from the spinner; halted ones that were
    /// woken only with such an IPI.
    #[serde(rename = "strict")]
    Strict,
}

/// Halt polling (`kvm_vcpu_halt`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HaltPoll {
    /// Sleep at once.
    Never,
    /// Poll until the interrupt comes, whatever it takes.
    Always,
    /// Poll for this long. Nanoseconds.
    Fixed(u64),
    /// Start at 10 us, double after short halts up to 200 us, drop to 0 after
    /// long ones (`halt_poll_ns_grow`, `halt_poll_ns_shrink`).
    Adaptive,
    /// The same, up to what corun makes of `halt_poll_ns` (`corun run
    /// --halt-poll steer`): 0 while others want the CPU.
    Steered,
}

/// TOML has no null, and an absent key means the default: `ple = false` says
/// that there is none.
mod ple_or_false {
    use super::Ple;
    use serde::de::value::MapAccessDeserializer;
    use serde::de::{Error, MapAccess, Unexpected, Visitor};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::fmt;

    #[expect(clippy::ref_option, reason = "serde's signature")]
    pub(super) fn serialize<S: Serializer>(ple: &Option<Ple>, s: S) -> Result<S::Ok, S::Error> {
        match ple {
            Some(ple) => ple.serialize(s),
            None => s.serialize_bool(false),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Ple>, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Option<Ple>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("false, or a table such as { window_cycles = 4096 }")
            }
            fn visit_bool<E: Error>(self, on: bool) -> Result<Option<Ple>, E> {
                if on {
                    return Err(E::invalid_value(Unexpected::Bool(true), &self));
                }
                Ok(None)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Option<Ple>, A::Error> {
                Ple::deserialize(MapAccessDeserializer::new(map)).map(Some)
            }
        }
        d.deserialize_any(V)
    }
}
