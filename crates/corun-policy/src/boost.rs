// SPDX-License-Identifier: GPL-2.0-only
//! Who runs out of turn: spinners' targets, urgent vCPUs, the pool that serves
//! them, gangs (`yield.h`, `urgent.h`, `pool.h`, `gang.h`).

use crate::{Tunables, Vm, ffi};

/// CPU time below which a window tells nothing of a VM, in event gaps
/// (`CORUN_GANG_MIN_GAPS`).
pub const GANG_MIN_GAPS: u64 = 2;

/// `struct corun_sibling`: a sibling of a spinner.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sibling {
    /// It waits for a pCPU since then; 0: it runs, or it sleeps. Nanoseconds.
    pub waits_since_ns: u64,
    /// Where it was stopped (`enum corun_region`).
    pub region: u32,
    /// It was stopped in kernel mode.
    pub in_kernel: bool,
    /// The spinner sent it an IPI that it has not taken.
    pub ipi_from_spinner: bool,
}

/// `enum corun_urgent_verdict`: may a vCPU become urgent?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrgentVerdict {
    /// It becomes urgent.
    Yes,
    /// It runs, or it sleeps.
    NotWaiting,
    /// It had an urgent slice a moment ago.
    TooSoon,
    /// It is urgent already.
    Again,
}

/// `struct corun_victim`: a pCPU and what runs there, as a boost sees it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Victim {
    /// vtime of its VM with what is not charged yet. Nanoseconds.
    pub vm_vtime_ns: u64,
    /// End of the last urgent slice there; 0: none. Nanoseconds.
    pub urgent_end_ns: u64,
    /// A sibling of the urgent one runs there, or a host task.
    pub sibling_or_host: bool,
    /// A kick is on its way, or an urgent vCPU runs.
    pub taken: bool,
}

/// `struct corun_pool`: how many pCPUs may serve urgent vCPUs at once.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pool {
    /// That many.
    pub size: u32,
    /// Windows in a row in which fewer would have done.
    pub calm: u32,
}

/// `struct corun_pool_window`: what happened in a window.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolWindow {
    /// Its length. Nanoseconds.
    pub window_ns: u64,
    /// CPU time of urgent slices. Nanoseconds.
    pub busy_ns: u64,
    /// Time from event to start, summed. Nanoseconds.
    pub waited_ns: u64,
    /// vCPUs that became urgent.
    pub events: u64,
    /// Urgent slices that started.
    pub served: u64,
    /// pCPUs of the host.
    pub nr_cpus: u64,
}

// The same sizes and offsets are asserted in native.c.
const _: () = assert!(size_of::<Sibling>() == 16 && std::mem::offset_of!(Sibling, in_kernel) == 12);
const _: () = assert!(size_of::<Victim>() == 24);
const _: () = assert!(size_of::<Pool>() == 8);
const _: () = assert!(size_of::<PoolWindow>() == 48);

/// How much a spinner gains when `sibling` runs; 0: nothing (`corun_yield_score`).
pub fn score(sibling: &Sibling, now_ns: u64) -> u64 {
    // SAFETY: the reference is valid for the call.
    unsafe { ffi::corun_native_yield_score(sibling, now_ns) }
}

/// May a vCPU become urgent that waits since `waits_since_ns` (0: does not wait),
/// is urgent since `urgent_ns` (0: is not) and had its last urgent slice at
/// `boosted_ns` (0: never) (`corun_urgent_decide`)?
pub fn urgent(
    waits_since_ns: u64,
    urgent_ns: u64,
    boosted_ns: u64,
    now_ns: u64,
    tunables: &Tunables,
) -> UrgentVerdict {
    // SAFETY: the reference is valid for the call.
    let verdict = unsafe {
        ffi::corun_native_urgent_decide(waits_since_ns, urgent_ns, boosted_ns, now_ns, tunables)
    };
    match verdict {
        0 => UrgentVerdict::Yes,
        1 => UrgentVerdict::NotWaiting,
        2 => UrgentVerdict::TooSoon,
        _ => UrgentVerdict::Again,
    }
}

/// May the urgent vCPU of `vm` have that pCPU (`corun_urgent_takes`)?
pub fn takes(vm: &Vm, victim: &Victim, now_ns: u64, tunables: &Tunables) -> bool {
    // SAFETY: the references are valid for the call.
    unsafe { ffi::corun_native_urgent_takes(vm, victim, now_ns, tunables) }
}

/// Does a vCPU run on at its slice's end, because it was stopped in `region`? It
/// did so `done` times in a row (`corun_urgent_defers`).
pub fn defers(region: u32, done: u64, vm: &Vm, best: &Vm, tunables: &Tunables) -> bool {
    // SAFETY: the references are valid for the call.
    unsafe { ffi::corun_native_urgent_defers(region, done, vm, best, tunables) }
}

/// The pool for the next window (`corun_pool_next`).
pub fn pool_next(pool: Pool, window: &PoolWindow, tunables: &Tunables) -> Pool {
    // SAFETY: the references are valid for the call.
    unsafe { ffi::corun_native_pool_next(pool, window, tunables) }
}

/// Is a VM coupled whose vCPUs waited `events` times for a preempted sibling in
/// `used_ns` of CPU time (`corun_gang_coupled`)?
pub fn coupled(was: bool, events: u64, used_ns: u64, tunables: &Tunables) -> bool {
    // SAFETY: the reference is valid for the call.
    unsafe { ffi::corun_native_gang_coupled(was, events, used_ns, tunables) }
}

/// Does `other`, whose vCPU runs uncharged for `ran_ns`, give way to a sibling of
/// a vCPU of `vm` (`corun_gang_pulls`)?
pub fn pulls(vm: &Vm, other: &Vm, ran_ns: u64, tunables: &Tunables) -> bool {
    // SAFETY: the references are valid for the call.
    unsafe { ffi::corun_native_gang_pulls(vm, other, ran_ns, tunables) }
}

/// A vCPU's turn has ended: does its pCPU follow the choice that another made `age_ns`
/// ago, when a sibling's did (`corun_gang_follows`)? Nanoseconds.
pub fn gang_follows(coupled: bool, age_ns: u64, tunables: &Tunables) -> bool {
    // SAFETY: the reference is valid for the call.
    unsafe { ffi::corun_native_gang_follows(coupled, age_ns, tunables) }
}

/// Slice of a vCPU whose turn begins, when the turn of the sibling that began last
/// ends in `left_ns` (0: it has ended) and their VM is coupled, or not
/// (`corun_gang_align`). Nanoseconds.
pub fn gang_align(coupled: bool, left_ns: u64, tunables: &Tunables) -> u64 {
    // SAFETY: the reference is valid for the call.
    unsafe { ffi::corun_native_gang_align(coupled, left_ns, tunables) }
}

/// Slice of a vCPU of a VM that has more of them, `vcpus`, than there are pCPUs, `pcpus`,
/// and is coupled, or not (`corun_gang_crowded`). Nanoseconds.
pub fn gang_crowded(coupled: bool, vcpus: u32, pcpus: u32, tunables: &Tunables) -> u64 {
    // SAFETY: the reference is valid for the call.
    unsafe { ffi::corun_native_gang_crowded(coupled, vcpus, pcpus, tunables) }
}

/// Slice of a sibling that joins a gang (`corun_gang_slice`).
pub fn gang_slice(leader_left_ns: u64, tunables: &Tunables) -> u64 {
    // SAFETY: the reference is valid for the call.
    unsafe { ffi::corun_native_gang_slice(leader_left_ns, tunables) }
}
