// SPDX-License-Identifier: GPL-2.0-only
//! Events of an overcommitted host: which vCPU ran where, who sent whom an
//! interrupt, who waited for what.
//!
//! The simulator and `corun trace record` write them; [`analyze`] and [`export`]
//! make of them what people look at, whichever wrote. [`account`] is the same in
//! sums: what each vCPU did with its time.

pub mod account;
pub mod analyze;
mod event;
pub mod export;
mod header;
mod jsonl;
pub mod recording;
pub mod state;
mod symbols;
mod times;

pub use event::{EXITS, Event, Kind, NO_PCPU, NO_VM, exit, flag, interrupt, interrupt_arg, out};
pub use header::{Header, Symbol, Vm};
pub use jsonl::{ReadError, Reader, Writer};
pub use symbols::{Place, Symbols};
pub use times::{Point, Times, TimesSummary};
