// SPDX-License-Identifier: GPL-2.0-only
//! Exits of an account by name: in the kernel they have places, as
//! `bpf/accounts_state.bpf.h` has them.

use crate::exits::{Isa, name};
use std::collections::BTreeMap;

/// Places of reasons below 0xc0: their own numbers (`EXIT_DIRECT`).
const DIRECT: u32 = 0xc0;
/// AMD's from this one on follow (`EXIT_HIGH_FIRST`).
const HIGH_FIRST: u32 = 0x400;
/// Then one place for all others (`EXIT_OTHER`).
const OTHER: u32 = DIRECT + 0x0f;

/// Exits by name from the kernel's `counts` by place; those of one name are added.
pub(super) fn by_name(counts: &[u64], is_amd: bool) -> BTreeMap<String, u64> {
    let isa = if is_amd { Isa::Svm } else { Isa::Vmx };
    let mut named = BTreeMap::new();
    for (place, n) in (0..).zip(counts).filter(|(_, n)| **n > 0) {
        *named.entry(name_at(isa, place)).or_default() += n;
    }
    named
}

fn name_at(isa: Isa, place: u32) -> String {
    match place {
        0..DIRECT => name(isa, place),
        DIRECT..OTHER => name(isa, HIGH_FIRST + place - DIRECT),
        _ => "other".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_named_and_those_of_one_name_added() {
        let mut counts = [0; OTHER as usize + 1];
        counts[0x78] = 5;
        counts[DIRECT as usize] = 3;
        counts[DIRECT as usize + 9] = 1;
        counts[0x01] = 1;
        counts[0x13] = 1;
        counts[OTHER as usize] = 4;
        let expected = [
            ("cr_access", 2),
            ("hlt", 5),
            ("other", 4),
            ("page_fault", 3),
            ("reason_0x409", 1),
        ];
        let expected = expected.map(|(name, n)| (name.to_owned(), n));
        assert_eq!(by_name(&counts, true), expected.into());
        let mut counts = [0; OTHER as usize + 1];
        counts[12] = 7;
        counts[1] = 2;
        let intel = by_name(&counts, false);
        assert_eq!((intel["hlt"], intel["external"]), (7, 2));
    }
}
