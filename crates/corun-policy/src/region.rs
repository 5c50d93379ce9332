// SPDX-License-Identifier: GPL-2.0-only
//! Classes of guest code (`policy/corun/region.h`).

use crate::ffi;
use serde::Serialize;
use std::fmt;

/// `enum corun_region`: what a vCPU was doing, told by its instruction pointer.
///
/// Ordered as in the header; where several names of one address disagree, the
/// greater one counts.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Region {
    /// Nothing is known: no symbols, or no instruction pointer.
    Unknown = 0,
    /// User mode.
    User = 1,
    /// Kernel code that nobody is known to wait for.
    Kernel = 2,
    /// The idle loop, on its way to HLT.
    Idle = 3,
    /// Spins for a lock that another vCPU holds.
    LockWait = 4,
    /// Spins for the acknowledgement of an IPI.
    AckWait = 5,
    /// Wakes or picks tasks.
    Sched = 6,
    /// The page allocator, page freeing, the sender's side of a TLB flush.
    Mm = 7,
    /// Interrupt entry, exit and handlers.
    Irq = 8,
    /// Flushes its TLB.
    Tlb = 9,
    /// Holds or hands on a lock.
    LockHeld = 10,
}

impl Region {
    /// All classes in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Unknown,
        Self::User,
        Self::Kernel,
        Self::Idle,
        Self::LockWait,
        Self::AckWait,
        Self::Sched,
        Self::Mm,
        Self::Irq,
        Self::Tlb,
        Self::LockHeld,
    ];

    /// The class of a number from a map or a trace; `None` past the last.
    pub fn from_number(number: u32) -> Option<Self> {
        let index = usize::try_from(number).ok()?;
        Self::ALL.get(index).copied()
    }

    /// Its number, as maps and traces carry it.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Are siblings likely to wait for a vCPU that was stopped here
    /// (`corun_region_critical`)?
    pub fn is_critical(self) -> bool {
        // SAFETY: takes a plain value.
        unsafe { ffi::corun_native_region_critical(self.number()) }
    }

    /// How much a sibling that spins gains when a vCPU stopped here runs, 0
    /// (nothing) to 4 (`corun_region_rank`).
    pub fn rank(self) -> u32 {
        // SAFETY: takes a plain value.
        unsafe { ffi::corun_native_region_rank(self.number()) }
    }

    /// Name in tables, counters and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::User => "user",
            Self::Kernel => "kernel",
            Self::Idle => "idle",
            Self::LockWait => "lock-wait",
            Self::AckWait => "ack-wait",
            Self::Sched => "sched",
            Self::Mm => "mm",
            Self::Irq => "irq",
            Self::Tlb => "tlb",
            Self::LockHeld => "lock-held",
        }
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

// native.c asserts the same numbers of the header's names.
const _: () = {
    let mut i = 0;
    while i < Region::ALL.len() {
        assert!(Region::ALL[i] as usize == i);
        i += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::Region;

    #[test]
    fn numbers_and_names_lead_back() {
        for region in Region::ALL {
            assert_eq!(Region::from_number(region.number()), Some(region));
            let json = serde_json::to_string(&region).unwrap();
            assert_eq!(json, format!("\"{}\"", region.name()));
        }
        assert_eq!(Region::from_number(11), None);
    }

    #[test]
    fn critical_code_is_worth_more_than_any_other() {
        let (critical, others): (Vec<_>, Vec<_>) =
            Region::ALL.into_iter().partition(|r| r.is_critical());
        let names: Vec<_> = critical.iter().map(|r| r.name()).collect();
        assert_eq!(names, ["sched", "mm", "irq", "tlb", "lock-held"]);
        let least = critical.iter().map(|r| r.rank()).min();
        let most = others.iter().map(|r| r.rank()).max();
        assert!(least > most, "{least:?} > {most:?}");
    }

    #[test]
    fn who_spins_or_idles_gains_nobody_anything() {
        for region in [Region::Idle, Region::LockWait, Region::AckWait] {
            assert_eq!(region.rank(), 0, "{region}");
        }
    }
}
