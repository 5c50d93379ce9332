// SPDX-License-Identifier: GPL-2.0-only
//! The event.
#![allow(
    clippy::cast_possible_truncation,
    reason = "arguments are taken apart into the fields that they were made of"
)]

use serde::{Deserialize, Serialize};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A vCPU gets a pCPU, or keeps it for another turn.
    SwitchIn,
    /// A vCPU loses its pCPU; argument: why ([`out`]).
    SwitchOut,
    /// A blocked vCPU becomes runnable; argument: 0, or 1 + the number of the
    /// vCPU of its VM that was current where it was woken.
    Wake,
    /// A VM exit; argument: the reason's number in the header's list ([`EXITS`]
    /// when it has none), and whether the guest takes interrupts ([`flag`]).
    Exit,
    /// An interrupt is sent; argument: the target's number in its VM, and from
    /// bit 32 on the vector, where it is known.
    IpiSend,
    /// A vCPU takes its interrupts; argument: which, as bits ([`interrupt`]), or
    /// from bit 32 on the vector.
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
    /// A vCPU enters its guest.
    Enter,
    /// A vCPU halts: KVM polls for a while, if it does, and then blocks it.
    Halt,
    /// The halt is over; argument: 1 when it was blocked, 0 when it never left.
    HaltEnd,
    /// KVM handles a vCPU that spins (`kvm_vcpu_on_spin()`): a pause exit, or the
    /// guest's own word; argument: 1 when only vCPUs in kernel mode are to be
    /// boosted.
    Spin,
    /// A pCPU goes from a vCPU to a task that is none; argument: its thread id, 0
    /// for idle. VM and vCPU are [`NO_VM`] and 0.
    HostIn,
    /// A mark of the user's; argument: its number in the header. VM and vCPU are
    /// [`NO_VM`] and 0.
    Mark,
}

/// Why a vCPU lost its pCPU.
pub mod out {
    /// It sleeps: halted, or its thread waits in the VMM.
    pub const BLOCKED: u64 = 0;
    /// Another task was preferred; it stays runnable.
    pub const PREEMPTED: u64 = 1;
    /// It gave way itself (a directed yield); it stays runnable.
    pub const YIELDED: u64 = 2;
}

/// The simulator's kinds of interrupts, as bits.
pub mod interrupt {
    /// Look whom to run.
    pub const RESCHED: u64 = 1;
    /// Call a function: a TLB shootdown.
    pub const CALL: u64 = 2;
    /// The scheduler's tick.
    pub const TICK: u64 = 4;
    /// A thread's timer.
    pub const TIMER: u64 = 8;
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

/// Bits of an exit's argument beside the reason; neither is set where it is unknown.
pub mod flag {
    /// The guest takes interrupts (`RFLAGS.IF`).
    pub const INTERRUPTS_ON: u64 = 1 << 32;
    /// It does not.
    pub const INTERRUPTS_OFF: u64 = 1 << 33;
}

/// No pCPU.
pub const NO_PCPU: u32 = u32::MAX;
/// No VM: an event of the host's.
pub const NO_VM: u32 = u32::MAX;

/// Where an interrupt's vector begins in an argument.
const VECTOR_SHIFT: u32 = 32;

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
    /// The guest's instruction pointer, for exits and switches; 0 when unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ip: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Event {
    /// The vCPU that an interrupt or a yield is for, its number in the VM.
    pub fn target(&self) -> u32 {
        self.arg as u32
    }

    /// An exit's reason: its number in the header's list.
    pub fn reason(&self) -> u64 {
        u64::from(self.arg as u32)
    }

    /// Did the guest take interrupts when it was left by this exit? `None`: unknown.
    pub fn takes_interrupts(&self) -> Option<bool> {
        match self.arg & (flag::INTERRUPTS_ON | flag::INTERRUPTS_OFF) {
            flag::INTERRUPTS_ON => Some(true),
            flag::INTERRUPTS_OFF => Some(false),
            _ => None,
        }
    }

    /// The interrupt's vector; 0 when unknown.
    pub fn vector(&self) -> u8 {
        (self.arg >> VECTOR_SHIFT) as u8
    }

    /// Takes this vCPU an IPI of another one's? By vector that cannot be told:
    /// then it may.
    pub fn may_take_ipi(&self) -> bool {
        self.vector() != 0 || self.arg & (interrupt::RESCHED | interrupt::CALL) != 0
    }
}

/// The argument of [`Kind::IpiSend`] with a `vector`.
pub fn interrupt_arg(target: u32, vector: u8) -> u64 {
    u64::from(target) | u64::from(vector) << VECTOR_SHIFT
}
