// SPDX-License-Identifier: GPL-2.0-only
//! Process 1 of the lab's guests.

fn main() {}
