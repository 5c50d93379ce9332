// SPDX-License-Identifier: GPL-2.0-only
//! Reads symbol tables: System.map, the output of `nm`, `/proc/kallsyms`.

use crate::error::MapError;
use crate::functions::region_of;
use crate::image::{Image, KASLR_STEP, MAP_END, MAP_START, RANGES_MAX, ranges_of};
use crate::line::{Line, Symbol, parse};
use corun_policy::Region;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Several times what the largest kernels' symbols need. Bytes.
const SIZE_MAX: u64 = 64 << 20;
/// Where kernels are linked whose `CONFIG_PHYSICAL_START` is the default, 16 MiB.
const LINKED_AT: u64 = MAP_START + 0x100_0000;

/// Functions that CSTAR may hold, of all kernels since 4.4.
const COMPAT_ENTRIES: [&str; 3] = [
    "entry_SYSCALL_compat",
    "entry_SYSCALL32_ignore",
    "ignore_sysret",
];

impl Image {
    /// Reads the symbols of a guest's kernel for x86-64 from `file`.
    pub fn read(file: &Path) -> Result<Self, MapError> {
        Self::from_bytes(file, &contents(file)?)
    }

    /// Takes the contents of `file` apart.
    pub fn from_bytes(file: &Path, bytes: &[u8]) -> Result<Self, MapError> {
        let owned = || file.to_owned();
        if bytes.starts_with(b"\x7fELF") {
            return Err(MapError::Elf { file: owned() });
        }
        let is_too_large = u64::try_from(bytes.len()).is_ok_and(|n| n > SIZE_MAX);
        let text = std::str::from_utf8(bytes).ok().filter(|_| !is_too_large);
        let text = text.ok_or_else(|| MapError::NotText { file: owned() })?;
        Table::read(file, text)?.image()
    }
}

/// What `file` holds, or a byte more than a map may have.
pub(crate) fn contents(file: &Path) -> Result<Vec<u8>, MapError> {
    let mut bytes = Vec::new();
    // A pipe or a device has no end.
    std::fs::File::open(file)
        .and_then(|opened| opened.take(SIZE_MAX + 1).read_to_end(&mut bytes))
        .map_err(|source| MapError::Unreadable {
            file: file.to_owned(),
            source,
        })?;
    Ok(bytes)
}

/// What an image is made of.
#[derive(Default)]
struct Table {
    file: PathBuf,
    text: Option<u64>,
    stext: Option<u64>,
    etext: Option<u64>,
    entry: Option<u64>,
    compat_entries: Vec<u64>,
    functions: Vec<(u64, Region)>,
}

impl Table {
    fn read(file: &Path, text: &str) -> Result<Self, MapError> {
        let mut table = Self {
            file: file.to_owned(),
            ..Self::default()
        };
        let mut greatest = None;
        for (number, line) in (1..).zip(text.lines()) {
            match parse(line) {
                Line::Symbol(symbol) => {
                    greatest = greatest.max(Some(symbol.address));
                    table.add(symbol);
                }
                Line::Nothing => {}
                Line::StandIn(text) => {
                    let (file, text) = (table.file, text.to_owned());
                    return Err(MapError::StandIn { file, text });
                }
                Line::Malformed(expected) => {
                    return Err(MapError::Line {
                        file: table.file,
                        line: number,
                        expected,
                        found: line.chars().take(80).collect(),
                    });
                }
            }
        }
        if greatest == Some(0) {
            return Err(MapError::Hidden { file: table.file });
        }
        Ok(table)
    }

    fn add(&mut self, symbol: Symbol<'_>) {
        let at = Some(symbol.address);
        match symbol.name {
            "_text" => self.text = at,
            "_stext" => self.stext = at,
            "_etext" => self.etext = at,
            "entry_SYSCALL_64" => self.entry = at,
            name if COMPAT_ENTRIES.contains(&name) => self.compat_entries.push(symbol.address),
            _ => {}
        }
        if symbol.is_text() && !symbol.is_padding() {
            let region = region_of(symbol.name).unwrap_or(Region::Kernel);
            self.functions.push((symbol.address, region));
        }
    }

    fn image(self) -> Result<Image, MapError> {
        let start = self.required(self.text.or(self.stext), "_text")?;
        let end = self.required(self.etext, "_etext")?;
        let entry = self.required(self.entry, "entry_SYSCALL_64")?;
        self.within("_text", start, MAP_START..MAP_END)?;
        self.within("_etext", end, start + 1..MAP_END + 1)?;
        self.within("entry_SYSCALL_64", entry, start..end)?;
        let offset = |address: &u64| {
            let inside = (start..end).contains(address);
            inside
                .then(|| u32::try_from(address - start).ok())
                .flatten()
        };
        let functions = self.functions.iter();
        let functions = functions.filter_map(|(a, region)| Some((offset(a)?, *region)));
        let ranges = ranges_of(functions.collect());
        if ranges.len() > RANGES_MAX {
            return Err(MapError::TooManyRanges {
                file: self.file,
                count: ranges.len(),
            });
        }
        let moved = moved_by(start);
        Ok(Image {
            name: self.file.display().to_string(),
            text_start: start - moved,
            text_end: end - moved,
            entry_syscall: entry - moved,
            ranges,
            compat_entries: self.compat_entries.iter().filter_map(offset).collect(),
        })
    }

    fn required(&self, address: Option<u64>, symbol: &'static str) -> Result<u64, MapError> {
        address.ok_or_else(|| MapError::Missing {
            file: self.file.clone(),
            symbol,
        })
    }

    fn within(
        &self,
        symbol: &'static str,
        address: u64,
        bounds: std::ops::Range<u64>,
    ) -> Result<(), MapError> {
        if bounds.contains(&address) {
            return Ok(());
        }
        Err(MapError::Outside {
            file: self.file.clone(),
            symbol,
            address,
            low: bounds.start,
            high: bounds.end - 1,
        })
    }
}

/// How far KASLR moved the kernel whose `/proc/kallsyms` this is; 0 for a map as
/// linked. A kernel that is linked higher than the default is taken for a moved
/// one: it is then believed to be where KASLR would not put it, no more.
fn moved_by(text_start: u64) -> u64 {
    let above = text_start.saturating_sub(LINKED_AT);
    if above.is_multiple_of(KASLR_STEP) {
        above
    } else {
        0
    }
}

#[cfg(test)]
mod tests;
