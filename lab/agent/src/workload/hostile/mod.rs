// SPDX-License-Identifier: GPL-2.0-only
//! Guests that try to get more than their share: each provokes without end what
//! a scheduler helps guests with. What they count tells only that they were at it.

pub(super) mod fake_spin;
pub(super) mod forged_rip;
pub(super) mod halt_storm;
pub(super) mod ipi_storm;
mod membarrier;
