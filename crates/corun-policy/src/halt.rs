// SPDX-License-Identifier: GPL-2.0-only
//! Halt polling: `policy/corun/halt.h`.

use crate::ffi;

/// `struct corun_halt_tunables`; the header has units, ranges and reasons.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "documented where they are defined, in policy/corun/halt.h"
)]
pub struct HaltTunables {
    pub max_ns: u64,
    pub floor_ns: u64,
    pub sleep_ns: u64,
    pub wanted_permille: u32,
    pub calm_permille: u32,
    pub vain_permille: u32,
    pub hit_permille: u32,
    pub calm_windows: u32,
    pub hold_max_windows: u32,
}

impl Default for HaltTunables {
    fn default() -> Self {
        let mut tunables = std::mem::MaybeUninit::uninit();
        // SAFETY: the callee writes the whole struct, whose layout is asserted.
        unsafe {
            ffi::corun_native_halt_defaults(tunables.as_mut_ptr());
            tunables.assume_init()
        }
    }
}

/// `struct corun_halt_window`: what was seen of the host in one window.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HaltWindow {
    /// CPU time that the host had: length times online pCPUs.
    pub cpu_ns: u64,
    /// Time that runnable tasks waited for a pCPU, summed over tasks.
    pub waiting_ns: u64,
    /// Halts in which KVM polled.
    pub polls: u64,
    /// ... and did not need to sleep.
    pub hits: u64,
    /// CPU time of those.
    pub hit_ns: u64,
    /// CPU time of polls that a sleep followed.
    pub vain_ns: u64,
    /// vCPUs that were woken from a sleep.
    pub wakeups: u64,
}

/// `struct corun_halt`: what is kept between windows.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Halt {
    /// Value of KVM's `halt_poll_ns`.
    pub poll_ns: u64,
    /// `enum corun_halt_mode`.
    pub mode: u32,
    /// Windows in a row since the last change that were quiet, or in which it paid.
    pub quiet_windows: u32,
    /// How many of them the next step up needs.
    pub hold_windows: u32,
    /// Wake-ups in a second of CPU time without polls, of late.
    pub wakeups_per_s: u32,
}

/// `enum corun_halt_verdict`: what a window says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HaltVerdict {
    /// Between two verdicts.
    Unclear,
    /// Others wanted the CPU, and polling did not pay.
    Wanted,
    /// Too much was polled in vain.
    Wasted,
    /// Nobody waited, and polling was cheap.
    Quiet,
    /// Quiet, and most polls succeeded.
    Useful,
    /// Others wanted the CPU, but polling paid, or hardly occurred.
    Pays,
}

// The same sizes and offsets are asserted in native.c.
const _: () = assert!(
    size_of::<HaltTunables>() == 48 && std::mem::offset_of!(HaltTunables, hold_max_windows) == 44
);
const _: () = assert!(size_of::<HaltWindow>() == 56);
const _: () = assert!(size_of::<Halt>() == 24 && std::mem::offset_of!(Halt, hold_windows) == 16);

impl Halt {
    /// Begins with the value that the operator set (`corun_halt_init`).
    pub fn new(operator_ns: u64, tunables: &HaltTunables) -> Self {
        let mut halt = Self::default();
        // SAFETY: both references are valid for the call.
        unsafe { ffi::corun_native_halt_init(&raw mut halt, operator_ns, tunables) };
        halt
    }

    /// Forgets regrets if the guests do something else than then; true if it did
    /// (`corun_halt_note_load`). For each window, before [`Self::step`].
    pub fn note_load(&mut self, window: &HaltWindow, tunables: &HaltTunables) -> bool {
        // SAFETY: the references are valid for the call, this one exclusively.
        unsafe { ffi::corun_native_halt_note_load(self, window, tunables) }
    }

    /// Takes note of a window; returns the value from now on
    /// (`corun_halt_step`).
    pub fn step(&mut self, verdict: HaltVerdict, operator_ns: u64, tunables: &HaltTunables) -> u64 {
        // SAFETY: the references are valid for the call, this one exclusively.
        unsafe { ffi::corun_native_halt_step(self, verdict as u32, operator_ns, tunables) };
        self.poll_ns
    }
}

/// Judges a window (`corun_halt_judge`).
pub fn judge(window: &HaltWindow, tunables: &HaltTunables) -> HaltVerdict {
    // SAFETY: the references are valid for the call.
    match unsafe { ffi::corun_native_halt_judge(window, tunables) } {
        1 => HaltVerdict::Wanted,
        2 => HaltVerdict::Wasted,
        3 => HaltVerdict::Quiet,
        4 => HaltVerdict::Useful,
        5 => HaltVerdict::Pays,
        _ => HaltVerdict::Unclear,
    }
}
