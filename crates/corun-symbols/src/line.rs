// SPDX-License-Identifier: GPL-2.0-only
//! One line of a symbol table: of System.map, `nm`, or `/proc/kallsyms`.

/// A symbol of the kernel image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Symbol<'a> {
    /// Address as linked, or as loaded in `/proc/kallsyms`.
    pub(crate) address: u64,
    /// Its section, in `nm`'s letters.
    pub(crate) kind: char,
    /// Name with compilers' suffixes.
    pub(crate) name: &'a str,
}

impl Symbol<'_> {
    /// In the text of some section?
    pub(crate) fn is_text(&self) -> bool {
        matches!(self.kind, 't' | 'T' | 'w' | 'W')
    }

    /// Padding that precedes the function of this name and is never executed.
    pub(crate) fn is_padding(&self) -> bool {
        self.name.starts_with("__pfx_") || self.name.starts_with("__cfi_")
    }
}

/// What a line holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// A symbol of the image.
    Symbol(Symbol<'a>),
    /// Nothing of the image: empty, undefined, or a module's.
    Nothing,
    /// Words of a distribution where its System.map would be.
    StandIn(&'a str),
    /// Not a symbol: what was expected in its place.
    Malformed(&'static str),
}

const WHOLE: &str = "`ADDRESS TYPE NAME`";

/// Takes a line apart.
pub(crate) fn parse(line: &str) -> Line<'_> {
    let mut fields = line.split_ascii_whitespace();
    let Some(first) = fields.next() else {
        return Line::Nothing;
    };
    if matches!(first, "U" | "w" | "v") {
        return Line::Nothing; // nm: undefined, without an address
    }
    let (Some(kind), Some(name)) = (fields.next(), fields.next()) else {
        return Line::Malformed(WHOLE);
    };
    let Some(address) = address(first) else {
        return Line::Malformed("an address of at most 16 hexadecimal digits");
    };
    let Some(kind) = single(kind) else {
        return Line::Malformed("a type of one letter after the address");
    };
    match fields.next() {
        None => Line::Symbol(Symbol {
            address,
            kind,
            name,
        }),
        Some(module) if module.starts_with('[') => Line::Nothing,
        Some(_) => stand_in(line).map_or(Line::Malformed(WHOLE), Line::StandIn),
    }
}

fn address(text: &str) -> Option<u64> {
    // from_str_radix would take a sign.
    let digits = text.len() <= 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
    digits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

fn single(text: &str) -> Option<char> {
    let mut chars = text.chars();
    let first = chars
        .next()
        .filter(|c| c.is_ascii_alphabetic() || *c == '?');
    first.filter(|_| chars.next().is_none())
}

/// Debian's file has one line: an address, a type, and a sentence.
fn stand_in(line: &str) -> Option<&str> {
    let at = line.find("The real System.map")?;
    Some(line[at..].trim_end())
}

#[cfg(test)]
mod tests {
    use super::{Line, Symbol, parse};

    #[test]
    fn a_symbol_is_taken_apart() {
        let symbol = Symbol {
            address: 0xffff_ffff_8100_0080,
            kind: 'T',
            name: "entry_SYSCALL_64",
        };
        assert_eq!(
            parse("ffffffff81000080 T entry_SYSCALL_64"),
            Line::Symbol(symbol)
        );
    }

    #[test]
    fn what_is_not_of_the_image_is_passed_over() {
        for line in [
            "",
            "                 U __fentry__",
            "                 w __weak_and_undefined",
            "ffffffffc0a01000 t kvm_vcpu_halt\t[kvm]",
        ] {
            assert_eq!(parse(line), Line::Nothing, "{line:?}");
        }
    }

    #[test]
    fn malformed_lines_say_what_was_expected() {
        for (line, word) in [
            ("ffffffff81000080", "ADDRESS TYPE NAME"),
            ("ffffffff81000080 T", "ADDRESS TYPE NAME"),
            ("+fffffff81000080 T a", "hexadecimal"),
            ("0ffffffff81000080 T a", "16"),
            ("ffffffff81000080 TT a", "one letter"),
            ("ffffffff81000080 T a b", "ADDRESS TYPE NAME"),
        ] {
            match parse(line) {
                Line::Malformed(expected) => assert!(expected.contains(word), "{line}: {expected}"),
                other => panic!("{line}: {other:?}"),
            }
        }
    }

    #[test]
    fn debians_stand_in_is_known() {
        let line = "ffffffffffffffff B The real System.map is in the linux-image-1-dbg package";
        let text = "The real System.map is in the linux-image-1-dbg package";
        assert_eq!(parse(line), Line::StandIn(text));
    }
}
