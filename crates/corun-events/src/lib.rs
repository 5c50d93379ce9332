// SPDX-License-Identifier: GPL-2.0-only
//! Events of an overcommitted host: which vCPU ran where, who sent whom an
//! interrupt, who waited for what.
//!
//! The simulator writes them, and the host's tools will: one viewer serves both.
//! [`account`] is the same in sums: what each vCPU did with its time.

pub mod account;
mod event;
mod jsonl;

pub use event::{EXITS, Event, Kind, NO_PCPU, exit};
pub use jsonl::{Header, ReadError, Reader, Vm, Writer};
