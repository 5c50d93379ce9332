// SPDX-License-Identifier: GPL-2.0-only
//! `corun trace`: recordings, their views and analyses.

mod analyze;
mod export;
mod record;
mod table;

use anyhow::{Context, Result};
use clap::Subcommand;
use corun_events::{Header, Symbols};
use corun_host::SymbolSource;
use corun_symbols::Library;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

/// Record what vCPUs do, look at it, analyse it
#[derive(Subcommand)]
pub(crate) enum Command {
    Record(record::Args),
    Export(export::Args),
    Analyze(analyze::Args),
}

pub(crate) fn dispatch(command: &Command, stop: &AtomicBool) -> Result<ExitCode> {
    match command {
        Command::Record(args) => record::run(args, stop),
        Command::Export(args) => export::run(args),
        Command::Analyze(args) => analyze::run(args),
    }
    .map(|()| ExitCode::SUCCESS)
}

/// A recording, and symbols for its guests.
#[derive(clap::Args)]
struct Input {
    /// The recording: of `corun trace record` or of `corun sim trace`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Symbols of guests' kernels: VM=FILE (a System.map or the guest's
    /// /proc/kallsyms), or a directory of System.map files for any VM that they fit
    #[arg(long, value_name = "VM=FILE|DIR")]
    symbols: Vec<SymbolSource>,
}

impl Input {
    fn open(&self) -> Result<corun_events::recording::Recording> {
        corun_events::recording::open(&self.file).with_context(|| self.name())
    }

    fn symbols(&self, header: &Header) -> Result<Symbols> {
        let library = Library::read(&self.symbols)?;
        let symbols = Symbols::new(header, &library)?;
        for problem in symbols.problems() {
            eprintln!("corun: no symbols: {problem}");
        }
        Ok(symbols)
    }

    fn name(&self) -> String {
        format!("reading {}", self.file.display())
    }
}

/// Calls `write` with a file beside `path` and gives it its name when all is well.
fn create_whole(
    path: &Path,
    write: impl FnOnce(std::io::BufWriter<std::fs::File>) -> Result<()>,
) -> Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let during = || format!("writing {}", path.display());
    let file = std::fs::File::create(&part).with_context(during)?;
    let written = write(std::io::BufWriter::new(file))
        .and_then(|()| std::fs::rename(&part, path).with_context(during));
    if written.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    written
}
