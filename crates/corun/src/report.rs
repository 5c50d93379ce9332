// SPDX-License-Identifier: GPL-2.0-only
//! `corun report`.

use anyhow::{Context, Result, ensure};
use corun_report::{Input, compare, html, report};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "Examples:
  corun report out/demo.json
  corun report before.json after.json --out compared.html
  corun sim trace demo --phase tlb --set case.measure_s=0.1 --out tlb.jsonl
  corun report tlb.jsonl --json | jq '.sections[].title'";

/// Make one page of a result or a recording, or of two compared
///
/// Reads a result of `corun lab run`, `corun sim run` or `corun sim repro`, or a
/// recording, and finds out by its content which it is. Writes one HTML page with
/// tables, charts, the configuration and what was lost. The page needs no network
/// and no other file. With two files of a kind, A is before and B is after; a
/// result of the lab and one of the simulator can be compared, too.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// One file, or two to compare
    #[arg(required = true, num_args = 1..=2, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The page [default: the first file's name with .html, where corun was started]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the same data as JSON; write no page unless --out is given
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let generator = concat!("corun ", env!("CARGO_PKG_VERSION"));
    let inputs: Vec<Input> = args
        .files
        .iter()
        .map(|f| Input::read(f))
        .collect::<Result<_, _>>()?;
    let report = match inputs.as_slice() {
        [a, b] => compare(a, b, generator)?,
        [one] => report(one, generator),
        _ => unreachable!("clap takes one or two"),
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    }
    let page = match (&args.out, args.json) {
        (Some(out), _) => out.clone(),
        (None, true) => return Ok(()),
        (None, false) => page_name(&args.files[0])?,
    };
    for file in &args.files {
        ensure!(
            !same_file(file, &page),
            "{} is what the report is made from; name another page with --out",
            page.display()
        );
    }
    std::fs::write(&page, html::page(&report))
        .with_context(|| format!("writing {}", page.display()))?;
    if !args.json {
        println!(
            "{}: {} (open it in a browser)",
            page.display(),
            report.title
        );
    }
    Ok(())
}

fn page_name(file: &Path) -> Result<PathBuf> {
    let name = file.file_stem().context("a file has a name; give --out")?;
    Ok(PathBuf::from(name).with_extension("html"))
}

fn same_file(a: &Path, b: &Path) -> bool {
    let full = |path: &Path| path.canonicalize();
    matches!((full(a), full(b)), (Ok(a), Ok(b)) if a == b)
}
