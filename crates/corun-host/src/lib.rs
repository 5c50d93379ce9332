// SPDX-License-Identifier: GPL-2.0-only
//! corun's host side: loads the sched_ext scheduler, finds VMs, reads counters.
//!
//! [`run`] is `corun run`; [`features`] tells what the host has, [`preflight`] refuses
//! known [`hazards`], [`doctor`] says what is wrong; [`observe`] counts directed yields,
//! [`accounts`] tells what vCPUs do and wait for, and [`trace`] records all their events,
//! these three under any scheduler.

mod account_reader;
pub mod accounts;
pub mod counters;
pub mod doctor;
mod error;
mod events;
mod exits;
pub mod features;
mod guests;
mod halt;
pub mod hazards;
mod hook_costs;
mod hooks;
mod host_info;
mod in_use;
mod kernel_exit;
mod kfuncs;
mod kvm_vms;
pub mod observe;
pub mod options;
pub mod preflight;
pub mod root;
pub mod run;
mod sched;
mod skel;
mod skipped;
mod text;
pub mod trace;
pub mod vectors;
mod vms;

pub use account_reader::account_reader;
pub use corun_policy::Mechanisms;
pub use corun_symbols::Source as SymbolSource;
pub use error::{HostError, Result};
pub use events::names as event_names;
pub use hook_costs::HookCost;
pub use options::RunOptions;
