// SPDX-License-Identifier: GPL-2.0-only
//! KVM (or Xen): entries and exits, interrupts, halts, pause loops.

mod entry;
mod halt;
mod irq;
mod ple;
pub(crate) mod steer;
