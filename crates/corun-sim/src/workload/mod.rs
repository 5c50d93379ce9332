// SPDX-License-Identifier: GPL-2.0-only
//! Workloads: their models, and the programs that threads run.

pub mod model;
pub(crate) mod program;

pub use model::Model;
