// SPDX-License-Identifier: GPL-2.0-only
//! The first line of a recording: what was recorded, where, and what is missing.

use crate::EXITS;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the format that is written.
pub(crate) const VERSION: u32 = 3;
/// Oldest version that is read.
pub(crate) const VERSION_OLDEST: u32 = 1;

/// The first line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the format; readers refuse others.
    pub corun_events: u32,
    /// What recorded it: "sim" or "host".
    pub source: String,
    /// What was recorded, for people.
    pub title: String,
    /// pCPUs of the host.
    pub pcpus: u32,
    /// VMs, by number.
    pub vms: Vec<Vm>,
    /// Length of the recording. Nanoseconds; 0 when not known.
    #[serde(default)]
    pub duration_ns: u64,
    /// The clock: "simulated", or the kernel's name of it.
    #[serde(default)]
    pub clock: String,
    /// What that clock showed when the recording began. Nanoseconds.
    #[serde(default)]
    pub start_ns: u64,
    /// The host's name; empty for the simulator.
    #[serde(default)]
    pub host: String,
    /// The host's kernel, or the simulated scheduler.
    #[serde(default)]
    pub kernel: String,
    /// Names of exit reasons by number; empty: [`EXITS`].
    #[serde(default)]
    pub exits: Vec<String>,
    /// Names of guests' spinlocks by number; empty when not known.
    #[serde(default)]
    pub locks: Vec<String>,
    /// Kernel functions of all guests, by address; empty when not known.
    #[serde(default)]
    pub symbols: Vec<Symbol>,
    /// Names of the host's tasks, by thread id.
    #[serde(default)]
    pub tasks: BTreeMap<u32, String>,
    /// Marks of the user, by number.
    #[serde(default)]
    pub marks: Vec<String>,
    /// Events that found the buffer full, by pCPU. They are not in the recording.
    #[serde(default)]
    pub drops: Vec<u64>,
    /// What this host cannot show, for people: kinds of events without a source.
    #[serde(default)]
    pub missing: Vec<String>,
}

/// A VM of the header.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vm {
    /// Its name.
    pub name: String,
    /// Its vCPUs.
    pub vcpus: u32,
    /// Process of its VMM; 0 in the simulator.
    #[serde(default)]
    pub pid: u32,
    /// Threads of its vCPUs, by number; 0 for one that was not seen.
    #[serde(default)]
    pub tids: Vec<u32>,
    /// Its LSTAR MSR, where a guest's kernel is entered; 0 when not known.
    #[serde(default)]
    pub lstar: u64,
    /// Where one of its vCPUs halted last; 0 when not known.
    #[serde(default)]
    pub halt_rip: u64,
}

/// A kernel function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symbol {
    /// Its first address; it ends where the next one begins.
    pub start: u64,
    /// Its name.
    pub name: String,
}

impl Header {
    /// A header of this version.
    pub fn new(source: &str, title: &str, pcpus: u32, vms: Vec<Vm>) -> Self {
        Self {
            corun_events: VERSION,
            source: source.to_owned(),
            title: title.to_owned(),
            pcpus,
            vms,
            ..Self::default()
        }
    }

    /// The name of exit reason `number`.
    pub fn exit_name(&self, number: u64) -> &str {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let known = if self.exits.is_empty() {
            EXITS.get(index).copied()
        } else {
            self.exits.get(index).map(String::as_str)
        };
        known.unwrap_or("unknown")
    }

    /// The name of VM `number`.
    pub fn vm_name(&self, number: u32) -> &str {
        self.vms
            .get(number as usize)
            .map_or("unknown", |vm| vm.name.as_str())
    }

    /// Events that the recording lacks because a buffer was full.
    pub fn dropped(&self) -> u64 {
        self.drops.iter().sum()
    }
}

impl Vm {
    /// A VM of which no more is known.
    pub fn new(name: &str, vcpus: u32) -> Self {
        Self {
            name: name.to_owned(),
            vcpus,
            ..Self::default()
        }
    }
}
