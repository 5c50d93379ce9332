// SPDX-License-Identifier: GPL-2.0-only
//! The host: pCPUs and who runs on them.

pub mod sched;
