// SPDX-License-Identifier: GPL-2.0-only
//! A guest kernel's text as ranges of one class each.

use corun_policy::Region;

/// Most ranges of an image; the scheduler's array has as many.
pub const RANGES_MAX: usize = 4096;

/// KASLR moves the kernel in steps of `CONFIG_PHYSICAL_ALIGN`, which is 2 MiB or
/// a multiple on x86-64 (`arch/x86/Kconfig`).
pub(crate) const KASLR_STEP: u64 = 2 << 20;
/// `__START_KERNEL_map`: the kernel's mapping begins here, with or without KASLR.
pub(crate) const MAP_START: u64 = 0xffff_ffff_8000_0000;
/// The mapping ends `KERNEL_IMAGE_SIZE` later, 1 GiB with KASLR
/// (`asm/page_64_types.h`; `find_random_virt_addr()` keeps to it, as
/// `CONFIG_RANDOMIZE_BASE_MAX_OFFSET` did before 4.8). Modules follow.
pub(crate) const MAP_END: u64 = MAP_START + (1 << 30);
/// Addresses from here on are the kernel's half.
const KERNEL_HALF: u64 = 1 << 63;

/// Code of one class; it ends where the next range begins, the last one with the
/// text.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// First byte, counted from the text's first.
    pub start_offset: u32,
    /// Class of the code.
    pub region: Region,
}

// The scheduler's map has these as two u32.
const _: () = assert!(size_of::<Range>() == 8);

/// A kernel's text, as linked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The file that it is from.
    pub name: String,
    /// Address of `_text`, without KASLR.
    pub text_start: u64,
    /// Address of `_etext`: the first byte after the text.
    pub text_end: u64,
    /// Address of `entry_SYSCALL_64`, which LSTAR holds.
    pub entry_syscall: u64,
    /// Ascending, neighbours of different class, the first at offset 0; at most
    /// [`RANGES_MAX`]. Together they are the text: code that no symbol of the
    /// table names is [`Region::Kernel`].
    pub ranges: Vec<Range>,
    /// Offsets of the functions that CSTAR may hold.
    pub(crate) compat_entries: Vec<u32>,
}

impl Image {
    /// Where the text begins in a guest whose LSTAR MSR is `lstar`; `None` when
    /// KASLR cannot have put this image there.
    ///
    /// Linux 4.14 to 4.19 with page-table isolation enters through a trampoline
    /// outside the text, and a kernel with FRED leaves LSTAR alone: both get
    /// `None`. `entry_SYSCALL_64_safe_stack` is a label inside the function,
    /// never the entry.
    pub fn text_base(&self, lstar: u64) -> Option<u64> {
        let offset = lstar.checked_sub(self.entry_syscall)?;
        let fits = offset.is_multiple_of(KASLR_STEP) && offset <= MAP_END - self.text_end;
        fits.then(|| self.text_start + offset)
    }

    /// The class of the code at `rip` in a guest where the text begins at
    /// `text_base`. Modules, BPF programs and all else of the kernel's half that
    /// is not the image's text are [`Region::Unknown`].
    pub fn region_at(&self, text_base: u64, rip: u64) -> Region {
        if rip < KERNEL_HALF {
            return Region::User;
        }
        let offset = rip.wrapping_sub(text_base);
        if offset >= self.text_end - self.text_start {
            return Region::Unknown;
        }
        let after = self
            .ranges
            .partition_point(|r| u64::from(r.start_offset) <= offset);
        let range = after.checked_sub(1).and_then(|i| self.ranges.get(i));
        range.map_or(Region::Unknown, |r| r.region)
    }

    /// May CSTAR point `offset` bytes into the text? Yes, if the map does not
    /// say where it should.
    pub(crate) fn is_compat_entry(&self, offset: u64) -> bool {
        let mut entries = self.compat_entries.iter();
        self.compat_entries.is_empty() || entries.any(|e| u64::from(*e) == offset)
    }

    /// The same kernel under another name?
    pub(crate) fn is_same_kernel(&self, other: &Self) -> bool {
        let named = Self {
            name: self.name.clone(),
            ..other.clone()
        };
        *self == named
    }
}

/// Makes ranges of functions, given as their offset and class in any order.
///
/// Where several names have one address, the greatest class counts: a name that
/// the table has beats one that it does not have.
pub(crate) fn ranges_of(mut functions: Vec<(u32, Region)>) -> Vec<Range> {
    functions.push((0, Region::Unknown));
    functions.sort_unstable();
    let mut ranges: Vec<Range> = Vec::new();
    for (at, function) in functions.iter().enumerate() {
        let is_last_of_address = functions.get(at + 1).is_none_or(|n| n.0 != function.0);
        let region = function.1.max(Region::Kernel);
        if is_last_of_address && ranges.last().is_none_or(|r| r.region != region) {
            ranges.push(Range {
                start_offset: function.0,
                region,
            });
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::{Image, MAP_END, Range, ranges_of};
    use corun_policy::Region;
    use proptest::prelude::*;

    const TEXT: u64 = 0xffff_ffff_8100_0000;
    const ENTRY: u64 = TEXT + 0x80;
    const TEXT_LEN: u32 = 20 << 20;

    fn image(functions: Vec<(u32, Region)>) -> Image {
        Image {
            name: "test".into(),
            text_start: TEXT,
            text_end: TEXT + u64::from(TEXT_LEN),
            entry_syscall: ENTRY,
            ranges: ranges_of(functions),
            compat_entries: Vec::new(),
        }
    }

    #[test]
    fn kaslr_moves_by_whole_steps_within_a_gibibyte() {
        let image = image(Vec::new());
        let last = MAP_END - image.text_end;
        for offset in [0, 2 << 20, 500 << 20, last] {
            assert_eq!(image.text_base(ENTRY + offset), Some(TEXT + offset));
        }
        for lstar in [0, ENTRY - (2 << 20), ENTRY + 1, ENTRY + (1 << 20), u64::MAX] {
            assert_eq!(image.text_base(lstar), None, "{lstar:#x}");
        }
        assert_eq!(image.text_base(ENTRY + last + (2 << 20)), None);
    }

    #[test]
    fn the_greatest_class_of_an_address_counts_and_neighbours_merge() {
        let functions = vec![
            (0x30, Region::Kernel),
            (0x20, Region::Irq),
            (0x10, Region::Irq),
            (0x10, Region::Kernel),
            (0x40, Region::Kernel),
        ];
        let expected: Vec<_> = [
            (0, Region::Kernel),
            (0x10, Region::Irq),
            (0x30, Region::Kernel),
        ]
        .map(|(start_offset, region)| Range {
            start_offset,
            region,
        })
        .into();
        assert_eq!(ranges_of(functions), expected);
    }

    /// The class of an offset by looking at every function.
    fn scan(functions: &[(u32, Region)], offset: u32) -> Region {
        let before = functions.iter().filter(|f| f.0 <= offset);
        let best = before.max_by_key(|f| (f.0, f.1));
        best.map_or(Region::Kernel, |f| f.1.max(Region::Kernel))
    }

    fn functions() -> impl Strategy<Value = Vec<(u32, Region)>> {
        let region = (2_u32..11).prop_map(|n| Region::from_number(n).unwrap());
        // Few distinct addresses, so that some have several names.
        let offset = (0..TEXT_LEN / 0x8000).prop_map(|n| n * 0x8000);
        prop::collection::vec((offset, region), 0..200)
    }

    proptest! {
        #[test]
        fn the_search_agrees_with_a_scan(
            functions in functions(),
            slot in 0_u64..480,
            offsets in prop::collection::vec(0..TEXT_LEN, 1..50),
        ) {
            let image = image(functions.clone());
            let base = image.text_base(ENTRY + slot * (2 << 20)).unwrap();
            // Boundaries are where a search goes wrong.
            let edges = functions.iter().flat_map(|f| [f.0, f.0.saturating_sub(1), f.0 + 1]);
            for offset in offsets.into_iter().chain(edges) {
                let found = image.region_at(base, base + u64::from(offset));
                prop_assert_eq!(found, scan(&functions, offset), "{:#x}", offset);
            }
        }

        #[test]
        fn ranges_are_ascending_and_differ_from_their_neighbours(functions in functions()) {
            let ranges = ranges_of(functions);
            prop_assert_eq!(ranges[0].start_offset, 0);
            for pair in ranges.windows(2) {
                prop_assert!(pair[0].start_offset < pair[1].start_offset);
                prop_assert_ne!(pair[0].region, pair[1].region);
            }
        }

        #[test]
        fn addresses_outside_the_text_are_unknown_or_the_users(
            functions in functions(), slot in 0_u64..480, rip in any::<u64>(),
        ) {
            let image = image(functions);
            let base = image.text_base(ENTRY + slot * (2 << 20)).unwrap();
            let end = base + u64::from(TEXT_LEN);
            for rip in [rip, base - 1, end, u64::MAX, 1 << 63, (1 << 63) - 1, 0] {
                let expected = match rip {
                    0..0x8000_0000_0000_0000 => Region::User,
                    _ if (base..end).contains(&rip) => continue,
                    _ => Region::Unknown,
                };
                prop_assert_eq!(image.region_at(base, rip), expected, "{:#x}", rip);
            }
        }
    }
}
