// SPDX-License-Identifier: GPL-2.0-only
//! The whole agent, driven over its standard streams.

mod common;
mod protocol;
mod workloads;
