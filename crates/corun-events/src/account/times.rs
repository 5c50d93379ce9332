// SPDX-License-Identifier: GPL-2.0-only
//! Where a vCPU's time went.

use super::additive::{Additive, additive};
use serde::{Deserialize, Serialize};

/// Time that a vCPU was runnable without a pCPU, by who or what kept it from one: who had
/// the pCPU that it lost, each for as long as it had it. Nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// vCPUs of other VMs had its pCPU.
    pub other_vm_ns: u64,
    /// vCPUs of its own VM had its pCPU.
    pub sibling_ns: u64,
    /// Tasks of the host's had its pCPU.
    pub host_task_ns: u64,
    /// It was woken, and waited for its first pCPU since.
    pub woken_ns: u64,
    /// Its cgroup's CPU bandwidth was used up (`cpu.max`), where the kernel tells.
    pub limited_ns: u64,
    /// Nobody had the pCPU that it lost: it was moved to another one, for example.
    pub other_ns: u64,
}

additive!(Ready {
    other_vm_ns,
    sibling_ns,
    host_task_ns,
    woken_ns,
    limited_ns,
    other_ns
});

/// A field of [`Ready`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadyCause {
    /// A vCPU of another VM.
    OtherVm,
    /// A vCPU of the same VM.
    Sibling,
    /// A task of the host's.
    HostTask,
    /// Waking up.
    Woken,
    /// Bandwidth limit.
    Limited,
    /// Nobody in particular.
    Other,
}

impl ReadyCause {
    /// All causes, in the order of [`Ready`]'s fields.
    pub const ALL: [Self; 6] = [
        Self::OtherVm,
        Self::Sibling,
        Self::HostTask,
        Self::Woken,
        Self::Limited,
        Self::Other,
    ];

    /// Its name, as in JSON and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::OtherVm => "other_vm",
            Self::Sibling => "sibling",
            Self::HostTask => "host_task",
            Self::Woken => "woken",
            Self::Limited => "limited",
            Self::Other => "other",
        }
    }
}

impl Ready {
    /// Adds `other`'s times.
    pub fn add(&mut self, other: &Self) {
        Additive::add(self, other);
    }

    /// The time for one cause. Nanoseconds.
    pub fn of(&self, cause: ReadyCause) -> u64 {
        match cause {
            ReadyCause::OtherVm => self.other_vm_ns,
            ReadyCause::Sibling => self.sibling_ns,
            ReadyCause::HostTask => self.host_task_ns,
            ReadyCause::Woken => self.woken_ns,
            ReadyCause::Limited => self.limited_ns,
            ReadyCause::Other => self.other_ns,
        }
    }

    /// All causes together: what guests call steal, ESX calls ready. Nanoseconds.
    pub fn total_ns(&self) -> u64 {
        ReadyCause::ALL.iter().map(|c| self.of(*c)).sum()
    }

    /// The cause of most of it; `None` without any.
    pub fn main_cause(&self) -> Option<ReadyCause> {
        ReadyCause::ALL
            .into_iter()
            .rev()
            .filter(|c| self.of(*c) > 0)
            .max_by_key(|c| self.of(*c))
    }
}

/// All of a vCPU's time: each nanosecond is in one field. Nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// On a pCPU: in the guest, in KVM or in the VMM; polling not included.
    pub run_ns: u64,
    /// On a pCPU, in KVM's halt polling.
    pub poll_ns: u64,
    /// Runnable without a pCPU.
    pub ready: Ready,
    /// Asleep since its guest halted it.
    pub halted_ns: u64,
    /// Asleep for other reasons: in its VMM, not started, stopped.
    pub blocked_ns: u64,
}

additive!(Times {
    run_ns,
    poll_ns,
    ready,
    halted_ns,
    blocked_ns
});

impl Times {
    /// All of it together. Nanoseconds.
    pub fn total_ns(&self) -> u64 {
        self.run_ns + self.poll_ns + self.ready.total_ns() + self.halted_ns + self.blocked_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_has_each_field_once() {
        let ready = Ready {
            other_vm_ns: 1,
            sibling_ns: 10,
            host_task_ns: 100,
            woken_ns: 1_000,
            limited_ns: 10_000,
            other_ns: 100_000,
        };
        let times = Times {
            run_ns: 1_000_000,
            poll_ns: 10_000_000,
            ready,
            halted_ns: 100_000_000,
            blocked_ns: 1_000_000_000,
        };
        assert_eq!(times.total_ns(), 1_111_111_111);
    }

    #[test]
    fn the_main_cause_is_the_largest_and_the_first_of_equals() {
        let mut ready = Ready::default();
        assert_eq!(ready.main_cause(), None);
        ready.woken_ns = 5;
        assert_eq!(ready.main_cause(), Some(ReadyCause::Woken));
        ready.sibling_ns = 5;
        assert_eq!(ready.main_cause(), Some(ReadyCause::Sibling));
        ready.other_ns = 6;
        assert_eq!(ready.main_cause(), Some(ReadyCause::Other));
    }

    #[test]
    fn names_are_those_of_the_json() {
        for cause in ReadyCause::ALL {
            let json = serde_json::to_string(&cause).expect("json");
            assert_eq!(json, format!("\"{}\"", cause.name()));
        }
    }
}
