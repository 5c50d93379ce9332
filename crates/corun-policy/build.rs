// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the policy's C headers for the native build.

fn main() {
    println!("cargo:rerun-if-changed=src/native.c");
    println!("cargo:rerun-if-changed=../../policy");
    cc::Build::new()
        .file("src/native.c")
        .include("../../policy")
        .warnings(true)
        .extra_warnings(true)
        .flag("-std=gnu11")
        .flag("-Werror")
        .compile("corun_policy");
}
