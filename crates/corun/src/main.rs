// SPDX-License-Identifier: GPL-2.0-only
//! The `corun` command line.

fn main() {}
