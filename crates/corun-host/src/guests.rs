// SPDX-License-Identifier: GPL-2.0-only
//! Which kernel each guest runs, and its symbols for the programs that look at it.

use crate::error::{During, Result};
use corun_symbols::{Evidence, Library, Match, NoMatch, RANGES_MAX};
use libbpf_rs::{MapCore, MapFlags};
use std::collections::BTreeMap;

/// Images that the programs have room for (`CORUN_MAX_IMAGES`).
pub(crate) const IMAGES_MAX: usize = 16;

/// Hands the images' ranges to the programs.
pub(crate) fn fill_ranges(map: &impl MapCore, library: &Library) -> Result<()> {
    for (at, image) in library.images().iter().enumerate().take(IMAGES_MAX) {
        for (index, range) in image.ranges.iter().enumerate() {
            let key = u32::try_from(at * RANGES_MAX + index).unwrap_or(u32::MAX);
            let mut value = range.start_offset.to_ne_bytes().to_vec();
            value.extend(range.region.number().to_ne_bytes());
            map.update(&key.to_ne_bytes(), &value, MapFlags::ANY)
                .during("handing symbols to the kernel")?;
        }
    }
    Ok(())
}

/// How many ranges each image has, and how long its text is: `image_ranges` and
/// `image_text_len` of the programs.
pub(crate) fn image_sizes(library: &Library) -> ([u32; IMAGES_MAX], [u32; IMAGES_MAX]) {
    let (mut ranges, mut lengths) = ([0; IMAGES_MAX], [0; IMAGES_MAX]);
    for (at, image) in library.images().iter().enumerate().take(IMAGES_MAX) {
        ranges[at] = u32::try_from(image.ranges.len()).unwrap_or(0);
        lengths[at] = u32::try_from(image.text_end - image.text_start).unwrap_or(u32::MAX);
    }
    (ranges, lengths)
}

/// Programs that look at guests' kernels, whose VMs have keys of type `K`.
pub(crate) trait Kernels<K> {
    /// What is known of the kernel that the VM runs.
    fn evidence(&self, vm: K) -> Evidence;
    /// Tells the programs which image the VM runs, and where; `None`: nothing is known.
    fn set_image(&mut self, vm: K, found: Option<Match>);
    /// The VM called `name` was found to run a kernel, by the symbols' name and its
    /// text's base; or no longer, and why.
    fn told(
        &mut self,
        _name: &str,
        _found: std::result::Result<(&str, u64), &NoMatch>,
    ) -> Result<()> {
        Ok(())
    }
}

/// What was found out, by VM.
#[derive(Debug)]
pub(crate) struct Guests<K> {
    known: BTreeMap<K, (Evidence, Option<NoMatch>)>,
}

impl<K> Default for Guests<K> {
    fn default() -> Self {
        Self {
            known: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Copy> Guests<K> {
    /// Looks at `vms`, by key and name, again: those of which more is known than before.
    pub(crate) fn resolve<'a>(
        &mut self,
        library: &Library,
        kernels: &mut impl Kernels<K>,
        vms: impl IntoIterator<Item = (K, &'a str)>,
    ) -> Result<()> {
        if library.images().is_empty() {
            return Ok(());
        }
        let mut known = BTreeMap::new();
        for (vm, name) in vms {
            let evidence = kernels.evidence(vm);
            let before = self.known.remove(&vm);
            let now = match before {
                Some(before) if !says_more(before.0, evidence) => before,
                before => {
                    let told = before.map(|(_, why)| why);
                    let why = look(library, kernels, (vm, name), evidence, told.as_ref())?;
                    (evidence, why)
                }
            };
            known.insert(vm, now);
        }
        self.known = known;
        Ok(())
    }

    /// Why the kernel of `vm` is not known; nothing when it is, or was not looked for.
    pub(crate) fn why_not(&self, vm: K) -> Option<&NoMatch> {
        self.known.get(&vm).and_then(|(_, why)| why.as_ref())
    }

    /// The kernel of `vm` was found.
    pub(crate) fn is_known(&self, vm: K) -> bool {
        matches!(self.known.get(&vm), Some((_, None)))
    }
}

/// Has the guest's kernel changed, or halted for the first time? (A halt's address
/// moves within the idle loop; only the first one is news.)
fn says_more(before: Evidence, now: Evidence) -> bool {
    (before.lstar, before.cstar) != (now.lstar, now.cstar)
        || (before.halt_rip == 0 && now.halt_rip != 0)
}

/// Finds the kernel of `vm`, by key and name, tells the programs, and the user if it is
/// news: `told` is why none was found last time (inner `None`: one was).
fn look<K: Copy>(
    library: &Library,
    kernels: &mut impl Kernels<K>,
    (vm, name): (K, &str),
    evidence: Evidence,
    told: Option<&Option<NoMatch>>,
) -> Result<Option<NoMatch>> {
    match library.resolve(name, &evidence) {
        Ok(found) if found.image_index < IMAGES_MAX => {
            kernels.set_image(vm, Some(found));
            let image = &library.images()[found.image_index].name;
            kernels.told(name, Ok((image, found.text_base)))?;
            Ok(None)
        }
        Ok(found) => {
            kernels.set_image(vm, None);
            Ok(Some(NoMatch::NoRoom {
                vm: name.to_owned(),
                image: library.images()[found.image_index].name.clone(),
                max: IMAGES_MAX,
            }))
        }
        Err(why) => {
            kernels.set_image(vm, None);
            if told != Some(&Some(why.clone())) {
                kernels.told(name, Err(&why))?;
            }
            Ok(Some(why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_kernel_and_the_first_halt_are_news() {
        let booting = Evidence::default();
        let up = Evidence {
            lstar: 0xffff_ffff_8100_0080,
            ..booting
        };
        let halted = Evidence { halt_rip: 1, ..up };
        let halted_elsewhere = Evidence { halt_rip: 2, ..up };
        assert!(says_more(booting, up) && says_more(up, halted));
        assert!(!says_more(halted, halted_elsewhere) && !says_more(up, up));
    }
}
