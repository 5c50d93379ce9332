// SPDX-License-Identifier: GPL-2.0-only
//! corun's host side: loads the sched_ext scheduler, finds VMs, reads counters.
//!
//! [`run`] is `corun run`; [`preflight`] tells what the host has and refuses
//! known hazards; [`observe`] counts directed yields and [`accounts`] tells what
//! vCPUs do and wait for, both under any scheduler.

pub mod accounts;
pub mod counters;
pub mod doctor;
mod error;
mod guests;
mod halt;
mod hook_costs;
mod hooks;
mod host_info;
mod in_use;
mod kernel_exit;
mod kfuncs;
pub mod observe;
pub mod options;
pub mod preflight;
pub mod run;
mod sched;
mod skel;
mod text;
pub mod vectors;
mod vms;

pub use corun_policy::Mechanisms;
pub use corun_symbols::Source as SymbolSource;
pub use error::{HostError, Result};
pub use hook_costs::HookCost;
pub use options::RunOptions;
