// SPDX-License-Identifier: GPL-2.0-only
//! corun's scheduling policy: the C headers in `policy/`, compiled natively.
//!
//! The BPF scheduler compiles the same text; [`vector`] runs the same inputs
//! through either build. Nothing here decides: it only calls the C code.

pub mod boost;
mod ffi;
pub mod halt;
mod mechanisms;
mod region;
mod tunables;
pub mod vector;

pub use mechanisms::{Mechanisms, UnknownMechanism};
pub use region::Region;
pub use tunables::Tunables;

/// Weight of a party that says nothing else (`CORUN_WEIGHT_DEFAULT`).
pub const WEIGHT_DEFAULT: u32 = 100;
/// Largest weight (`CORUN_WEIGHT_MAX`).
pub const WEIGHT_MAX: u32 = 10_000;

/// `struct corun_vm`: one party to the host's CPU time.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(
    missing_docs,
    reason = "documented where they are defined, in policy/corun/types.h"
)]
pub struct Vm {
    pub vtime_ns: u64,
    pub used_ns: u64,
    pub vcpu_vtime_now_ns: u64,
    pub weight: u32,
    pub reserved: u32,
}

/// `struct corun_vcpu`: one vCPU within its VM.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(
    missing_docs,
    reason = "documented where they are defined, in policy/corun/types.h"
)]
pub struct Vcpu {
    pub vtime_ns: u64,
    pub used_ns: u64,
    pub weight: u32,
    pub reserved: u32,
}

/// `struct corun_yield_input`: all that the decision on a yield looks at.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct YieldInput {
    /// There is someone to yield to.
    pub directed: bool,
    /// Both are vCPUs of one VM.
    pub same_vm: bool,
    /// The other may run on the spinner's pCPU.
    pub allowed_here: bool,
}

/// `enum corun_yield_verdict`: what becomes of a directed yield.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The other runs next on the spinner's pCPU.
    Honour,
    /// Not directed.
    Undirected,
    /// Not two vCPUs of one VM.
    Stranger,
    /// The other may not run on the spinner's pCPU.
    Affinity,
}

// The same sizes and offsets are asserted in native.c.
const _: () = assert!(size_of::<Tunables>() == 128);
const _: () = assert!(size_of::<Vm>() == 32 && std::mem::offset_of!(Vm, weight) == 24);
const _: () = assert!(size_of::<YieldInput>() == 3);
const _: () = assert!(size_of::<Vcpu>() == 24 && std::mem::offset_of!(Vcpu, weight) == 16);

/// CPU time `delta_ns` as vtime of a party of `weight` (`corun_share_vtime`).
pub fn vtime(delta_ns: u64, weight: u32) -> u64 {
    // SAFETY: takes plain values.
    unsafe { ffi::corun_native_share_vtime(delta_ns, weight) }
}

/// Charges CPU time to a vCPU (`corun_share_charge_vcpu`).
pub fn charge(vcpu: &mut Vcpu, delta_ns: u64) {
    // SAFETY: the reference is valid and exclusive for the call.
    unsafe { ffi::corun_native_share_charge_vcpu(vcpu, delta_ns) }
}

/// vtime with which a sleeper starts that can use so many pCPUs at once
/// (`corun_share_wake`).
pub fn wake(vtime_ns: u64, now_ns: u64, lanes: u32, tunables: &Tunables) -> u64 {
    // SAFETY: the reference is valid for the call.
    unsafe { ffi::corun_native_share_wake(vtime_ns, now_ns, lanes, tunables) }
}

/// True when `a` has the better claim to a pCPU (`corun_share_first`).
pub fn first(a: &Vm, b: &Vm) -> bool {
    // SAFETY: the references are valid for the call.
    unsafe { ffi::corun_native_share_first(a, b) }
}

/// A VM and one of its vCPUs.
#[derive(Debug, Clone, Copy)]
pub struct Party<'a> {
    /// The VM.
    pub vm: &'a Vm,
    /// Its vCPU.
    pub vcpu: &'a Vcpu,
}

/// `enum corun_wakeup`: what a task that wakes has to do with the one that runs where it
/// could.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wakeup {
    /// They are of different VMs.
    Stranger = 0,
    /// Of one VM; a timer, a device or a task of the host woke it.
    Sibling = 1,
    /// Of one VM, a vCPU of which woke it.
    BySibling = 2,
}

/// After how much more CPU time of `running`, which ran `ran_ns` that it was not yet
/// charged for, `waking` preempts it, ns; 0: now; `None`: not at all
/// (`corun_share_preempts_in`).
pub fn preempts_in(
    waking: Party<'_>,
    running: Party<'_>,
    wakeup: Wakeup,
    ran_ns: u64,
    tunables: &Tunables,
) -> Option<u64> {
    // SAFETY: the references are valid for the call.
    let wait_ns = unsafe {
        ffi::corun_native_share_preempts_in(
            waking.vm,
            waking.vcpu,
            running.vm,
            running.vcpu,
            wakeup as u32,
            ran_ns,
            tunables,
        )
    };
    (wait_ns != ffi::SHARE_NEVER).then_some(wait_ns)
}

/// Does the vCPU whose slice ended go on? `best` is the best other VM with a
/// vCPU waiting, `head_vtime_ns` the vtime of the first waiting sibling
/// (`corun_share_keeps`).
pub fn keeps(party: Party<'_>, best: Option<&Vm>, head_vtime_ns: Option<u64>) -> bool {
    let best = best.map_or(std::ptr::null(), std::ptr::from_ref);
    let (has_head, head_vtime_ns) = (head_vtime_ns.is_some(), head_vtime_ns.unwrap_or(0));
    // SAFETY: the references are valid for the call; `best` may be null.
    unsafe { ffi::corun_native_share_keeps(party.vm, party.vcpu, best, has_head, head_vtime_ns) }
}

/// Does the turn of a vCPU of `vm`, interrupted with `left_ns` of it left, go on now
/// that its pCPU is free? `host`: the host's party, if a task of it waits with the
/// best claim (`corun_share_resumes`).
pub fn resumes(vm: &Vm, host: Option<&Vm>, left_ns: u64, tunables: &Tunables) -> bool {
    let host = host.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the references are valid for the call; `host` may be null.
    unsafe { ffi::corun_native_share_resumes(vm, host, left_ns, tunables) }
}

/// True when vtime `a` is before vtime `b`, also across a wrap (`corun_before`).
pub fn before(a: u64, b: u64) -> bool {
    // SAFETY: takes plain values.
    unsafe { ffi::corun_native_before(a, b) }
}

/// Decides a yield (`corun_yield_decide`).
pub fn decide(input: YieldInput) -> Verdict {
    // SAFETY: the reference is valid for the call.
    let verdict = unsafe { ffi::corun_native_yield_decide(&raw const input) };
    match verdict {
        0 => Verdict::Honour,
        1 => Verdict::Undirected,
        3 => Verdict::Affinity,
        _ => Verdict::Stranger,
    }
}

/// Is a hint left at `made_ns` still worth following (`corun_yield_hint_fresh`)?
pub fn hint_fresh(made_ns: u64, now_ns: u64, tunables: &Tunables) -> bool {
    // SAFETY: the reference is valid for the call.
    unsafe { ffi::corun_native_yield_hint_fresh(made_ns, now_ns, tunables) }
}

/// May a spinner of `vm`, which can use `lanes` pCPUs at once, choose who runs in its
/// place, while `other` waits with the best claim (`corun_yield_affords`)?
pub fn yield_affords(vm: &Vm, other: Option<&Vm>, lanes: u32, tunables: &Tunables) -> bool {
    let other = other.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the references are valid for the call, and `other` may be null.
    unsafe { ffi::corun_native_yield_affords(vm, other, lanes, tunables) }
}

/// Slice of the vCPU that runs in a spinner's place (`corun_yield_slice`).
pub fn yield_slice(left_ns: u64, tunables: &Tunables) -> u64 {
    // SAFETY: the reference is valid for the call.
    unsafe { ffi::corun_native_yield_slice(left_ns, tunables) }
}
