// SPDX-License-Identifier: GPL-2.0-only
//! Names of a guest kernel's functions by address, for people: the scheduler
//! needs only their classes ([`crate::Image`]).

use crate::error::MapError;
use crate::image::Image;
use crate::line::{Line, parse};
use crate::map::contents;
use std::path::Path;

/// A kernel's functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// Offset from the text's first byte, and name; ascending by offset.
    functions: Vec<(u32, String)>,
    text_len: u64,
}

impl Names {
    /// Reads the functions of the map in `file`, which [`Image::read`] reads too.
    pub fn read(file: &Path) -> Result<Self, MapError> {
        Self::from_bytes(file, &contents(file)?)
    }

    /// Takes the contents of `file` apart.
    pub fn from_bytes(file: &Path, bytes: &[u8]) -> Result<Self, MapError> {
        let image = Image::from_bytes(file, bytes)?;
        let text = String::from_utf8_lossy(bytes);
        let mut start = None;
        let mut found = Vec::new();
        for line in text.lines() {
            let Line::Symbol(symbol) = parse(line) else {
                continue;
            };
            match symbol.name {
                "_text" => start = Some(symbol.address),
                "_stext" => start = start.or(Some(symbol.address)),
                name if symbol.is_text() && !symbol.is_padding() => {
                    found.push((symbol.address, name));
                }
                _ => {}
            }
        }
        let start = start.unwrap_or(image.text_start);
        let text_len = image.text_end - image.text_start;
        let inside = found.into_iter().filter_map(|(address, name)| {
            let offset = address.checked_sub(start).filter(|o| *o < text_len)?;
            Some((u32::try_from(offset).ok()?, name.to_owned()))
        });
        let mut functions: Vec<_> = inside.collect();
        functions.sort();
        // One name an address is enough.
        functions.dedup_by_key(|(offset, _)| *offset);
        Ok(Self {
            functions,
            text_len,
        })
    }

    /// The function at `rip` in a guest where the text begins at `text_base`;
    /// `None` outside of the image's text.
    pub fn at(&self, text_base: u64, rip: u64) -> Option<&str> {
        let offset = rip.checked_sub(text_base).filter(|o| *o < self.text_len)?;
        let after = self
            .functions
            .partition_point(|(start, _)| u64::from(*start) <= offset);
        let (_, name) = self.functions.get(after.checked_sub(1)?)?;
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::Names;
    use std::path::Path;

    const MAP: &str = "\
ffffffff81000000 T _text
ffffffff81000000 T startup_64
ffffffff81000080 T entry_SYSCALL_64
ffffffff81000180 t __pfx_schedule
ffffffff81000190 T schedule
ffffffff81000400 T _etext
ffffffff82000000 D jiffies
";

    #[test]
    fn functions_are_found_where_kaslr_put_them() {
        let names = Names::from_bytes(Path::new("map"), MAP.as_bytes()).expect("a map");
        let base = 0xffff_ffff_8100_0000 + (4 << 20);
        assert_eq!(names.at(base, base), Some("startup_64"));
        assert_eq!(names.at(base, base + 0x185), Some("entry_SYSCALL_64"));
        assert_eq!(names.at(base, base + 0x3ff), Some("schedule"));
        assert_eq!(names.at(base, base + 0x400), None);
        assert_eq!(names.at(base, base - 1), None);
    }
}
