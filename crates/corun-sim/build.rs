// SPDX-License-Identifier: GPL-2.0-only
//! Builds nothing: makes cargo see models and experiments that were added or removed, which
//! `include_dir!` cannot on a stable compiler.

fn main() {
    println!("cargo::rerun-if-changed=models");
    println!("cargo::rerun-if-changed=../../experiments");
}
