// SPDX-License-Identifier: GPL-2.0-only
//! The trace of a run: every event is hashed; a sink may also keep it.

use serde::Serialize;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A vCPU gets a pCPU.
    SwitchIn,
    /// A vCPU loses its pCPU; argument: 1 when it stays runnable.
    SwitchOut,
    /// A blocked vCPU becomes runnable.
    Wake,
    /// A VM exit; argument: the reason's number ([`EXITS`]).
    Exit,
    /// An interrupt is sent; argument: the target's number in its VM.
    IpiSend,
    /// A vCPU takes its interrupts; argument: which.
    IpiTake,
    /// KVM asks for a directed yield; argument: the target's number in its VM.
    YieldAsk,
    /// It was granted.
    YieldGrant,
    /// A TLB shootdown begins.
    ShootdownStart,
    /// It is complete.
    ShootdownEnd,
    /// A thread finds a spinlock taken; argument: the lock.
    LockSpin,
    /// It has it.
    LockTaken,
    /// A unit of work is done.
    Unit,
}

/// Names of exit reasons, by number.
pub const EXITS: [&str; 6] = ["icr", "timer_msr", "hlt", "pause", "hypercall", "external"];

/// Exit reasons.
pub(crate) mod exit {
    pub(crate) const ICR: usize = 0;
    pub(crate) const TIMER_MSR: usize = 1;
    pub(crate) const HLT: usize = 2;
    pub(crate) const PAUSE: usize = 3;
    pub(crate) const HYPERCALL: usize = 4;
    pub(crate) const EXTERNAL: usize = 5;
}

/// No pCPU.
pub const NO_PCPU: u32 = u32::MAX;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Event {
    /// When. Nanoseconds.
    pub at_ns: u64,
    /// What.
    pub kind: Kind,
    /// On which pCPU, or [`NO_PCPU`].
    pub pcpu: u32,
    /// VM.
    pub vm: u32,
    /// vCPU, its number in its VM.
    pub vcpu: u32,
    /// What the kind says.
    pub arg: u64,
}

/// Takes the events of a run.
pub trait Sink {
    /// Takes one.
    fn take(&mut self, event: &Event);
}

/// Hash and sink.
pub(crate) struct Trace<'a> {
    hash: u64,
    sink: Option<&'a mut dyn Sink>,
}

impl<'a> Trace<'a> {
    pub(crate) fn new(sink: Option<&'a mut dyn Sink>) -> Self {
        Self {
            hash: 0xcbf2_9ce4_8422_2325,
            sink,
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn put(&mut self, event: &Event) {
        let place = u64::from(event.pcpu) << 32 | u64::from(event.vcpu);
        let what = (event.kind as u64) << 32 | u64::from(event.vm);
        for word in [event.at_ns, place, what, event.arg] {
            // FNV-1a by words, with the high half folded in.
            self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
            self.hash ^= self.hash >> 29;
        }
        if let Some(sink) = &mut self.sink {
            sink.take(event);
        }
    }
}
