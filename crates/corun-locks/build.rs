// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the guest module's lock headers into the two test beds.

fn main() {
    println!("cargo:rerun-if-changed=src/c");
    println!("cargo:rerun-if-changed=../../guest/locks");
    println!("cargo:rerun-if-changed=../../guest/histogram.h");
    cc::Build::new()
        .file("src/c/model.c")
        .file("src/c/hammer.c")
        .file("src/c/figures.c")
        .include("../../guest/locks")
        .warnings(true)
        .extra_warnings(true)
        .flag("-std=gnu11")
        .flag("-pthread")
        .flag("-Werror")
        .compile("corun_locks");
    println!("cargo:rustc-link-lib=pthread");
}
