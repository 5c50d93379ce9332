// SPDX-License-Identifier: GPL-2.0-only
//! `corun trace export`.

use super::{Input, create_whole};
use anyhow::{Context, Result};
use clap::ValueEnum;
use corun_events::export::{Flows, Perfetto, Text};
use corun_events::{Symbols, Writer};
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  corun trace export corun.trace --format perfetto -o corun.perfetto-trace
  corun trace export corun.trace --format text | less
  corun trace export tlb.jsonl --format perfetto -o tlb.perfetto-trace";

/// Turn a recording into a Perfetto trace, lines of text, or lines of JSON
///
/// Perfetto's viewer (also as a desktop application) shows a VM as a process, its
/// vCPUs as threads with their states, guest time and exits, pCPUs as tracks, and
/// arrows from IPIs to their receipt, from wake-ups and directed yields to the
/// turn that they gave. Times count from the recording's start.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// What to make
    #[arg(long, value_enum)]
    format: Format,
    /// Where to; standard output when absent
    #[arg(short, long, value_name = "OUT")]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Perfetto's protocol buffers
    Perfetto,
    /// One JSON object a line, as recorded, but not compressed
    Json,
    /// A timeline for people
    Text,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.out {
        Some(path) => create_whole(path, |out| write(args, out)),
        None => write(args, std::io::stdout().lock()).or_else(unless_reader_left),
    }
}

/// `| head` has what it wanted.
fn unless_reader_left(error: anyhow::Error) -> Result<()> {
    let io = error.downcast_ref::<std::io::Error>();
    match io.map(std::io::Error::kind) {
        Some(std::io::ErrorKind::BrokenPipe) => Ok(()),
        _ => Err(error),
    }
}

fn write(args: &Args, out: impl Write) -> Result<()> {
    let input = &args.input;
    let recording = input.open()?;
    let header = recording.header.clone();
    let symbols = match args.format {
        Format::Json => Symbols::default(),
        Format::Perfetto | Format::Text => input.symbols(&header)?,
    };
    let during = || input.name();
    match args.format {
        Format::Json => {
            let mut json = Writer::new(out, &header)?;
            for event in recording {
                json.put(&event.with_context(during)?)?;
            }
            json.finish()?;
        }
        Format::Text => {
            let mut text = Text::new(out, &header, &symbols)?;
            for event in recording {
                text.take(&event.with_context(during)?)?;
            }
            text.finish()?;
        }
        Format::Perfetto => {
            let mut flows = Flows::new(&header);
            for event in recording {
                flows.take(&event.with_context(during)?);
            }
            let mut perfetto = Perfetto::new(out, &header, &symbols, &flows)?;
            for event in input.open()? {
                perfetto.take(&event.with_context(during)?)?;
            }
            perfetto.finish()?;
        }
    }
    Ok(())
}
