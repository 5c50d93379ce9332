// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the BPF programs in `bpf/` and generates their skeletons.

use anyhow::{Context, Result};
use std::path::PathBuf;

/// Compilers that are new enough for BPF's open-coded iterators, best first.
const CLANGS: [&str; 5] = ["clang-22", "clang-21", "clang-20", "clang-19", "clang"];

fn main() -> Result<()> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?)
        .join("../..")
        .canonicalize()?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    if std::env::var_os("BPF_CLANG").is_none() {
        // SAFETY: a build script has one thread here.
        unsafe { std::env::set_var("BPF_CLANG", find_clang()?) };
    }
    // scx_cargo unpacks its headers (vmlinux.h, kfunc compatibility) into OUT_DIR.
    scx_cargo::BpfBuilder::new().context("preparing sched_ext's BPF headers")?;
    let headers = out.join("scx_utils-bpf_h");
    for name in ["accounts", "corun", "observe", "trace", "vectors"] {
        let source = root.join(format!("bpf/{name}.bpf.c"));
        libbpf_cargo::SkeletonBuilder::new()
            .source(&source)
            .obj(out.join(format!("{name}.bpf.o")))
            .clang(std::env::var("BPF_CLANG")?)
            .clang_args([
                "-g".into(),
                "-O2".into(),
                "-Wall".into(),
                "-Wno-compare-distinct-pointer-types".into(),
                "-Wno-missing-declarations".into(),
                "-D__TARGET_ARCH_x86".into(),
                "-D__SCX_TARGET_ARCH_x86".into(),
                "-mcpu=v3".into(),
                "-mlittle-endian".into(),
                format!("-I{}", headers.join("arch/x86").display()),
                format!("-I{}", headers.display()),
                format!("-I{}", headers.join("bpf-compat").display()),
                format!("-I{}", root.join("policy").display()),
                format!("-I{}", root.join("bpf").display()),
            ])
            .build_and_generate(out.join(format!("{name}_skel.rs")))
            .with_context(|| format!("building {}", source.display()))?;
    }
    println!("cargo:rerun-if-changed={}", root.join("bpf").display());
    println!("cargo:rerun-if-changed={}", root.join("policy").display());
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    Ok(())
}

fn find_clang() -> Result<&'static str> {
    CLANGS
        .into_iter()
        .find(|name| {
            std::process::Command::new(name)
                .arg("--version")
                .output()
                .is_ok()
        })
        .context(
            "no clang found: run `make setup`, or set BPF_CLANG to a clang of version 16 or newer",
        )
}
