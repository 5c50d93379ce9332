// SPDX-License-Identifier: GPL-2.0-only
//! Builds nothing: makes cargo see models that were added or removed, which
//! `include_dir!` cannot on a stable compiler.

fn main() {
    println!("cargo::rerun-if-changed=models");
}
