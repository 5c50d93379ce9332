// SPDX-License-Identifier: GPL-2.0-only
//! The event.

use serde::{Deserialize, Serialize};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A vCPU gets a pCPU, or keeps it for another turn.
    SwitchIn,
    /// A vCPU loses its pCPU; argument: 1 when it stays runnable.
    SwitchOut,
    /// A blocked vCPU becomes runnable.
    Wake,
    /// A VM exit; argument: the reason's number ([`EXITS`]).
    Exit,
    /// An interrupt is sent; argument: the target's number in its VM.
    IpiSend,
    /// A vCPU takes its interrupts; argument: which, as bits.
    IpiTake,
    /// KVM asks for a directed yield; argument: the target's number in its VM.
    YieldAsk,
    /// The scheduler accepted it.
    YieldGrant,
    /// A TLB shootdown begins.
    ShootdownStart,
    /// It is complete; argument: how long it took. Nanoseconds.
    ShootdownEnd,
    /// A thread finds a spinlock taken; argument: the lock.
    LockSpin,
    /// It has it.
    LockTaken,
    /// A unit of a workload is done; argument: the thread.
    Unit,
}

/// Names of exit reasons, by number.
pub const EXITS: [&str; 6] = ["icr", "timer_msr", "hlt", "pause", "hypercall", "external"];

/// Numbers of exit reasons.
pub mod exit {
    /// A write to the APIC's interrupt command register: an IPI.
    pub const ICR: usize = 0;
    /// A write to the APIC's timer.
    pub const TIMER_MSR: usize = 1;
    /// HLT.
    pub const HLT: usize = 2;
    /// A pause loop.
    pub const PAUSE: usize = 3;
    /// A hypercall.
    pub const HYPERCALL: usize = 4;
    /// An interrupt of the host.
    pub const EXTERNAL: usize = 5;
}

/// No pCPU.
pub const NO_PCPU: u32 = u32::MAX;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// When. Nanoseconds since the recording's start.
    pub at_ns: u64,
    /// What.
    pub kind: Kind,
    /// On which pCPU, or [`NO_PCPU`].
    pub pcpu: u32,
    /// VM, its number in the header.
    pub vm: u32,
    /// vCPU, its number in its VM.
    pub vcpu: u32,
    /// What the kind says.
    pub arg: u64,
}
