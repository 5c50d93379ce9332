// SPDX-License-Identifier: GPL-2.0-only
//! `corun lab headers`: what a kernel module for the lab's guests is built against.

use anyhow::{Context, Result};
use corun_lab::headers;
use corun_lab::paths::LabDirs;
use corun_lab::progress::Progress;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

/// Fetch the headers of a guest kernel, and print a KDIR to build modules with
///
/// `make -C $(corun lab headers) M=$PWD modules` then builds the module in the
/// current folder. The headers are stock Debian packages; their tools run even
/// where this machine's C library is older than theirs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Kernel series
    #[arg(long, value_name = "SERIES", default_value = "7.3")]
    kernel: String,
}

pub(crate) fn run(args: &Args, stop: &AtomicBool) -> Result<ExitCode> {
    let dirs = LabDirs::from_env()?;
    let kdir = headers::prepare(&args.kernel, &dirs, Progress::detect(), stop)
        .with_context(|| format!("preparing the headers of kernel {}", args.kernel))?;
    println!("{}", kdir.display());
    Ok(ExitCode::SUCCESS)
}
