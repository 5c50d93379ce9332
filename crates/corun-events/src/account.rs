// SPDX-License-Identifier: GPL-2.0-only
//! Accounts: what each vCPU did with its time, and what it waited for.
//!
//! All figures are cumulative since the vCPU was found; [`Snapshot::since`] makes
//! those of an interval. Every nanosecond of a vCPU belongs to exactly one of
//! [`Times`]' fields, so that they add up to [`Account::wall_ns`].

mod additive;
mod check;
mod counts;
mod histogram;
mod snapshot;
mod times;

pub use check::{Imbalance, imbalance};
pub use counts::{Counts, Latencies};
pub use histogram::Histogram;
pub use snapshot::{Account, Drops, Host, SNAPSHOT_VERSION, Snapshot, Vcpu, Vm};
pub use times::{Ready, ReadyCause, Times};
