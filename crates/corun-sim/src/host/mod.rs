// SPDX-License-Identifier: GPL-2.0-only
//! The host: pCPUs and who runs on them.

mod pcpu;
pub mod sched;
