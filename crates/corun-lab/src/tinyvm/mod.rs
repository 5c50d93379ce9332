// SPDX-License-Identifier: GPL-2.0-only
//! Virtual machines of 64 KiB that start in milliseconds, where a guest with a
//! kernel takes seconds: for hundreds of starts and stops ([`churn`]), and for
//! guests that do one thing only ([`hold`]), such as Hyper-V's notification of a
//! long spin.

pub mod churn;
mod ending;
mod error;
pub mod hog;
pub mod hold;
mod ioctl;
mod memory;
mod program;
mod tasks;
mod vm;

pub use ending::Ending;
pub use error::TinyVmError;
pub use program::Program;
