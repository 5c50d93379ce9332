// SPDX-License-Identifier: GPL-2.0-only
//! Boots the emulated host, talks to its driver, and tells what went wrong.
//!
//! The emulator itself fails now and then. So success is only ever a message
//! or marker from inside, never QEMU's exit status, and every failure gets a
//! [`Diagnosis`] that says whether another boot is worth trying.

mod accel;
mod channel;
mod diagnosis;
mod error;
mod qemu;
mod retry;
mod running;

pub use accel::Accel;
pub use channel::Next;
pub use diagnosis::{Cause, Diagnosis, Evidence, Failure, has_stopped_pcpu};
pub use error::BootError;
pub use qemu::{BootSpec, Console};
pub use retry::{Attempt, AttemptError, Outcome, run_with_retries};
pub use running::Boot;

/// Printed by L1's init when it begins.
pub const MARKER_UP: &str = "corun-lab: L1 up";
/// Printed by L1's init before it powers off.
pub const MARKER_DOWN: &str = "corun-lab: L1 down";
