// SPDX-License-Identifier: GPL-2.0-only
//! The published experiments, re-created: `corun sim repro`.
//!
//! `experiments/` holds every published table as data: the case that sets it
//! up, the values with the expressions that give them, and the claims. From
//! these a plan of runs is made, each scenario once; a report compares.

pub mod draw;
pub mod expr;
mod figures;
pub mod format;
pub mod html;
mod load;
mod plan;
mod report;
mod stats;
mod table;
mod verdict;

pub use load::{Library, LoadError};
pub use plan::{Plan, Results};
pub use report::{CellReport, ClaimReport, Report, Score, Summary, TableReport};
pub use stats::Interval;
pub use table::Table;
pub use verdict::{Kind, Target};

#[cfg(test)]
mod tests;
