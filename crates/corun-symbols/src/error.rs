// SPDX-License-Identifier: GPL-2.0-only
//! What can be wrong with the symbols that a user gives.

use crate::image::RANGES_MAX;
use std::path::PathBuf;

/// Why a file is no map of a guest's kernel.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum MapError {
    /// The file cannot be read.
    #[error("{}: cannot read the symbols: {source}", file.display())]
    Unreadable {
        file: PathBuf,
        source: std::io::Error,
    },
    /// An executable, most likely `vmlinux`.
    #[error(
        "{0}: an ELF file, not a symbol table; make one with: nm -n {0} > System.map",
        file.display()
    )]
    Elf { file: PathBuf },
    /// Binary data, or more of it than symbols need.
    #[error(
        "{}: not a System.map: expected text, lines of `ADDRESS TYPE NAME`",
        file.display()
    )]
    NotText { file: PathBuf },
    /// A line that is no symbol.
    #[error("{}:{line}: expected {expected}, found `{found}`", file.display())]
    Line {
        file: PathBuf,
        line: usize,
        expected: &'static str,
        found: String,
    },
    /// What Debian installs in the place of a System.map.
    #[error(
        "{}: a stand-in, it says: {text:?}; install that package, or take the symbols from the running guest, as root there: cat /proc/kallsyms > System.map",
        file.display()
    )]
    StandIn { file: PathBuf, text: String },
    /// `/proc/kallsyms` as others than root see it.
    #[error(
        "{}: all addresses are zero: the kernel hid them (kptr_restrict); read /proc/kallsyms as root in the guest, or take the guest's /boot/System.map",
        file.display()
    )]
    Hidden { file: PathBuf },
    /// A symbol that every kernel for x86-64 has is not there.
    #[error(
        "{}: no symbol {symbol}: not the whole symbol table of a Linux kernel for x86-64; take /boot/System.map of the kernel that the guest runs, or the output of nm -n vmlinux",
        file.display()
    )]
    Missing { file: PathBuf, symbol: &'static str },
    /// Addresses that a kernel for x86-64 is not linked at.
    #[error(
        "{}: {symbol} is at {address:#x}; a kernel for x86-64 has it between {low:#x} and {high:#x}",
        file.display()
    )]
    Outside {
        file: PathBuf,
        symbol: &'static str,
        address: u64,
        low: u64,
        high: u64,
    },
    /// More ranges than the scheduler has room for.
    #[error(
        "{}: {count} ranges of one class, the scheduler has room for {RANGES_MAX}: not a kernel's symbols in order of address?",
        file.display()
    )]
    TooManyRanges { file: PathBuf, count: usize },
}

/// Why the symbols given on the command line are not usable.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum LibraryError {
    /// A map given by name is wrong.
    #[error(transparent)]
    Map(#[from] MapError),
    /// Two maps for one VM.
    #[error("--symbols: two maps for the VM {vm}: {} and {}; give one", first.display(), second.display())]
    Twice {
        vm: String,
        first: PathBuf,
        second: PathBuf,
    },
    /// The directory cannot be read.
    #[error("--symbols {}: cannot read the directory: {source}; for one file, write VM=FILE", directory.display())]
    Directory {
        directory: PathBuf,
        source: std::io::Error,
    },
    /// The directory has no usable map.
    #[error(
        "--symbols {}: no usable System.map* in it{}",
        directory.display(),
        first_of(problems)
    )]
    Nothing {
        directory: PathBuf,
        problems: Vec<MapError>,
    },
}

fn first_of(problems: &[MapError]) -> String {
    problems.first().map_or_else(String::new, |p| {
        format!("; of {} looked at, the first: {p}", problems.len())
    })
}
