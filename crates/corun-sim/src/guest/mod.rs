// SPDX-License-Identifier: GPL-2.0-only
//! Guest kernels: threads and their scheduler, interrupts, locks, TLB
//! shootdowns, network receive.

mod irq;
mod lock;
mod net;
mod sched;
mod sem;
mod spin;
mod sync;
mod thread;
mod tlb;
