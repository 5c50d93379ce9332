// SPDX-License-Identifier: GPL-2.0-only
//! `corun lab run`.

use super::{AccelArg, build, cases};
use anyhow::{Context, Result, ensure};
use corun_lab::boot::Accel;
use corun_lab::case::{self, Override, Target, TimeScale};
use corun_lab::image::ImageSpec;
use corun_lab::paths::LabDirs;
use corun_lab::results::{self, CaseResult};
use corun_lab::runner::{self, Limits, RunOptions, Step, Steps};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

/// Boot the lab, run a case in it, print its tables
///
/// Boots the emulated host, starts the case's guests in it, measures each phase
/// under each scheduler, prints tables and writes the full result as JSON.
///
/// Time scale: under emulation a vCPU switch costs 100 to 300 times what it
/// costs on hardware, while computing is only 10 to 50 times slower. So the time
/// constants of both schedulers are multiplied by one factor, such that slice
/// over switch cost is what it is on hardware (3 ms over 3 us). `auto` measures
/// the factor at boot; every result states it. With `--accel icount` all costs are in
/// proportion, and `auto` is how much slower than hardware a pCPU is: 4 where there are
/// two.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A case file, or a name from `corun lab cases`
    case: String,
    /// Factor for the schedulers' time constants: auto, or a number from 1
    #[arg(long, value_name = "auto|N")]
    time_scale: Option<TimeScale>,
    /// Run this phase alone; a name, or the beginning of names with a * after
    /// it; may be given more than once
    #[arg(long, value_name = "PHASE")]
    phase: Vec<String>,
    /// Run this scheduler alone, by its label; likewise
    #[arg(long, value_name = "LABEL")]
    scheduler: Vec<String>,
    /// Kernel series of the emulated host, instead of the case's
    #[arg(long, value_name = "SERIES")]
    host_kernel: Option<String>,
    /// Change a key of the case, for example guest[0].vcpus=4; may be given more
    /// than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<Override>,
    /// Repeats, instead of the case's
    #[arg(long, value_name = "N")]
    repeats: Option<u32>,
    /// Boots whose figures the sanity gate may judge before giving up
    #[arg(long, value_name = "N", default_value_t = 5)]
    boots: u32,
    /// Retries of a boot that an emulator fault ended
    #[arg(long, value_name = "N", default_value_t = 3)]
    retries: u32,
    /// Share of a window's CPU time that this machine's own hypervisor may take,
    /// in percent; a window above it is measured again
    #[arg(long, value_name = "PCT", default_value_t = 5.0, value_parser = percent)]
    max_steal: f64,
    /// The same for this machine's other programs. With `--accel icount` neither matters
    #[arg(long, value_name = "PCT", default_value_t = 10.0, value_parser = percent)]
    max_foreign: f64,
    /// What runs the emulated host's instructions
    #[arg(long, value_enum, default_value_t = AccelArg::Tcg)]
    accel: AccelArg,
    /// Where the result goes [default: out/CASE.json]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the result as JSON instead of tables
    #[arg(long)]
    json: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
        _ => Err("expected a number from 0 to 100".to_owned()),
    }
}

pub(crate) fn run(args: &Args, stop: &AtomicBool) -> Result<ExitCode> {
    let (file, text) = cases::find(&args.case)?;
    let mut sets = args.sets.clone();
    if let Some(kernel) = &args.host_kernel {
        sets.push(format!("host.kernel={kernel:?}").parse()?);
    }
    let mut case = case::parse_for(&text, &file, Target::Lab, &sets)?;
    case.keep_phases(&args.phase)?;
    case.keep_schedulers(&args.scheduler)?;
    if let Some(scale) = args.time_scale {
        case.case.time_scale = scale;
    }
    let accel = Accel::from(args.accel);
    if let (TimeScale::Auto, Some(factor)) =
        (case.case.time_scale, accel.time_scale(case.host.pcpus))
    {
        case.case.time_scale = TimeScale::Factor(factor);
    }
    if let Some(repeats) = args.repeats {
        ensure!(repeats > 0, "--repeats must be at least 1");
        case.case.repeats = repeats;
    }
    let options = RunOptions {
        accel,
        boots: args.boots,
        retries: args.retries,
        limits: Limits {
            steal: args.max_steal / 100.0,
            foreign: args.max_foreign / 100.0,
        },
    };
    options.accel.check()?;
    let dirs = LabDirs::from_env()?;
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| dirs.out().join(format!("{}.json", case.case.name)));
    let image = build(&ImageSpec::for_case(&case), false, &dirs, stop)?;
    let progress = CaseProgress::new();
    let mut watch = Steps::new(|step: &Step| progress.show(step));
    let result = runner::run_case(&case, &text, &image, &dirs, &options, &mut watch, stop);
    progress.finish();
    finish(&result?, &out, args.json)
}

fn finish(result: &CaseResult, out: &Path, json: bool) -> Result<ExitCode> {
    let text = serde_json::to_string_pretty(result)?;
    if let Some(folder) = out.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("creating {}", folder.display()))?;
    }
    std::fs::write(out, &text).with_context(|| format!("writing {}", out.display()))?;
    if json {
        println!("{text}");
    } else {
        print!("{}", results::render(result));
        println!("\nFull result: {}", out.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// A bar on a terminal, a line a step elsewhere; on standard error.
struct CaseProgress {
    bar: Option<ProgressBar>,
}

impl CaseProgress {
    fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}");
            ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self { bar }
    }

    fn show(&self, step: &Step) {
        let left = step
            .left
            .map_or_else(String::new, |left| format!(", {} s left", left.as_secs()));
        if let Some(bar) = &self.bar {
            bar.set_length(u64::from(step.total));
            bar.set_position(u64::from(step.done));
            bar.set_message(format!("{}{left}", step.text));
        } else {
            eprintln!("[{}/{}] {}{left}", step.done, step.total, step.text);
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
