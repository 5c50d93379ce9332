// SPDX-License-Identifier: GPL-2.0-only
//! Tests of the host schedulers on a machine of their own.

mod each;
mod kinds;
mod micro;
mod pinned;
mod random;
mod shares;
mod turns;
mod world;

const MS: u64 = 1_000_000;
