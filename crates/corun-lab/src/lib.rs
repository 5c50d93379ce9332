// SPDX-License-Identifier: GPL-2.0-only
//! The lab: builds and boots an emulated KVM host, runs cases in it, and
//! reports their results.

pub mod boot;
pub mod driver;
pub mod guest_options;
pub mod headers;
pub mod image;
pub mod packages;
pub mod paths;
pub mod progress;
pub mod results;
pub mod runner;
pub mod shell;
pub mod tinyvm;

pub use corun_case as case;
