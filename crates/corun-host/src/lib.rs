// SPDX-License-Identifier: GPL-2.0-only
//! corun's host side: the scheduler's loader, VM discovery, counters.

pub mod counters;
pub mod observe;
