// SPDX-License-Identifier: GPL-2.0-only
//! `corun lab`: the emulated KVM host.

pub(crate) mod cases;
mod headers;
mod run;
mod table;
pub(crate) mod vms;

use anyhow::{Context, Result};
use clap::{Subcommand, ValueEnum};
use corun_lab::boot::{Accel, BootSpec};
use corun_lab::image::{Builder, Image, ImageSpec};
use corun_lab::paths::LabDirs;
use corun_lab::progress::Progress;
use corun_lab::shell;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// An emulated KVM host that boots anywhere in seconds.
#[derive(Subcommand)]
pub(crate) enum Command {
    Build(BuildArgs),
    Headers(headers::Args),
    Run(run::Args),
    Shell(ShellArgs),
    Table(table::Args),
    /// List the cases that come with corun, or print one
    Cases {
        /// Print this case's file
        name: Option<String>,
    },
}

/// Fetch the lab's packages and build its image
///
/// Fetches stock Debian packages (QEMU, kernels, busybox, workloads) from the
/// mirror in this machine's apt configuration into a cache folder, and builds
/// the image of the emulated host from them. Needs no root. Run again, it does
/// nothing, or only what changed.
#[derive(clap::Args)]
pub(crate) struct BuildArgs {
    /// Ask the mirror for newer packages
    #[arg(long)]
    refresh: bool,
    /// Kernel series of the emulated host
    #[arg(long, value_name = "SERIES", default_value = "7.3")]
    kernel: String,
    /// Kernel series for guests; may be given more than once
    #[arg(long, value_name = "SERIES", default_values_t = ["7.3".to_owned()])]
    guest_kernel: Vec<String>,
    /// Leave out the larger workloads (stress-ng, sysbench)
    #[arg(long)]
    no_tools: bool,
}

/// Boot the lab and open a shell in it
///
/// Commands on standard input run without a terminal: `echo 'uname -r' | corun lab shell`.
#[derive(clap::Args)]
pub(crate) struct ShellArgs {
    /// Start the guests of this case first (a file, or a name from `corun lab cases`)
    #[arg(long, value_name = "CASE")]
    case: Option<String>,
    /// Give the guests the work of the case's first phase
    #[arg(long, requires = "case")]
    load: bool,
    /// CPUs of the emulated host
    #[arg(long, value_name = "N", default_value_t = 2)]
    pcpus: u32,
    /// Kernel series of the emulated host
    #[arg(long, value_name = "SERIES", default_value = "7.3")]
    kernel: String,
    /// What runs the emulated host's instructions
    #[arg(long, value_enum, default_value_t = AccelArg::Tcg)]
    accel: AccelArg,
    /// Give up, and say what is known of the emulated host, when commands from standard
    /// input print nothing for so long [default: wait for them]
    #[arg(long, value_name = "SECONDS")]
    silent_s: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum AccelArg {
    /// Emulation: works everywhere
    Tcg,
    /// Emulation where time is what was executed, an instruction a nanosecond: ten times
    /// slower than its own time, on one CPU; nothing that this machine does disturbs it
    Icount,
    /// This machine's hardware virtualization; it must allow nesting
    Kvm,
}

impl From<AccelArg> for Accel {
    fn from(arg: AccelArg) -> Self {
        match arg {
            AccelArg::Tcg => Self::Tcg,
            AccelArg::Icount => Self::Icount,
            AccelArg::Kvm => Self::Kvm,
        }
    }
}

pub(crate) fn dispatch(command: &Command, stop: &AtomicBool) -> Result<ExitCode> {
    match command {
        Command::Build(args) => build_command(args, stop),
        Command::Headers(args) => headers::run(args, stop),
        Command::Run(args) => run::run(args, stop),
        Command::Shell(args) => shell_command(args, stop),
        Command::Table(args) => table::run(args),
        Command::Cases { name } => cases::print(name.as_deref()).map(|()| ExitCode::SUCCESS),
    }
}

fn build(spec: &ImageSpec, refresh: bool, dirs: &LabDirs, stop: &AtomicBool) -> Result<Image> {
    let builder = Builder::new(dirs, Progress::detect(), stop).refresh(refresh);
    builder.build(spec).context("building the lab")
}

fn build_command(args: &BuildArgs, stop: &AtomicBool) -> Result<ExitCode> {
    let spec = ImageSpec {
        host_kernel: args.kernel.clone(),
        guest_kernels: args.guest_kernel.clone(),
        tools: !args.no_tools,
        ..ImageSpec::default()
    };
    let dirs = LabDirs::from_env()?;
    let image = build(&spec, args.refresh, &dirs, stop)?;
    println!(
        "lab image: kernel {}, {} MB",
        image.release,
        image.size() / 1_000_000
    );
    for (name, version) in &image.versions {
        println!("  {name:<16} {version}");
    }
    Ok(ExitCode::SUCCESS)
}

fn shell_command(args: &ShellArgs, stop: &AtomicBool) -> Result<ExitCode> {
    let case = args.case.as_deref().map(cases::load).transpose()?;
    let dirs = LabDirs::from_env()?;
    let spec = match &case {
        Some((case, _)) => {
            let spec = corun_lab::runner::boot_spec(case, args.accel.into());
            BootSpec {
                pcpus: spec.pcpus.max(args.pcpus),
                ..spec
            }
        }
        None => BootSpec {
            accel: args.accel.into(),
            pcpus: args.pcpus,
            ..BootSpec::default()
        },
    };
    spec.accel.check()?;
    let image_spec = match &case {
        Some((case, _)) => ImageSpec::for_case(case),
        None => ImageSpec {
            host_kernel: args.kernel.clone(),
            ..ImageSpec::default()
        },
    };
    let image = build(&image_spec, false, &dirs, stop)?;
    let guests = case
        .map(|(case, _)| {
            serde_json::to_vec(&case).map(|case| shell::Guests {
                case,
                load: args.load,
            })
        })
        .transpose()?;
    let session = shell::Session {
        guests: guests.as_ref(),
        silent: args.silent_s.map(Duration::from_secs),
    };
    let code = shell::run(&spec, &image, session, &dirs, stop)?;
    Ok(ExitCode::from(code))
}
