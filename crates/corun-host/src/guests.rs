// SPDX-License-Identifier: GPL-2.0-only
//! Which kernel each guest runs, and its symbols for the scheduler.

use crate::error::{During, Result};
use crate::run::report::Reporter;
use crate::sched::Scheduler;
use crate::vms::Vm;
use corun_symbols::{Evidence, Library, NoMatch, RANGES_MAX};
use libbpf_rs::{MapCore, MapFlags};
use std::collections::BTreeMap;

/// Images that the scheduler has room for (`CORUN_MAX_IMAGES`).
pub(crate) const IMAGES_MAX: usize = 16;

/// Hands the images' ranges to the scheduler.
pub(crate) fn fill_ranges(map: &impl MapCore, library: &Library) -> Result<()> {
    for (at, image) in library.images().iter().enumerate().take(IMAGES_MAX) {
        for (index, range) in image.ranges.iter().enumerate() {
            let key = u32::try_from(at * RANGES_MAX + index).unwrap_or(u32::MAX);
            let mut value = range.start_offset.to_ne_bytes().to_vec();
            value.extend(range.region.number().to_ne_bytes());
            map.update(&key.to_ne_bytes(), &value, MapFlags::ANY)
                .during("handing symbols to the scheduler")?;
        }
    }
    Ok(())
}

/// What was found out, by slot and generation.
#[derive(Debug, Default)]
pub(crate) struct Guests {
    known: BTreeMap<(usize, u32), (Evidence, Option<NoMatch>)>,
}

impl Guests {
    /// Looks at `vms` again: those of which more is known than before.
    pub(crate) fn resolve(
        &mut self,
        library: &Library,
        scheduler: &mut Scheduler,
        vms: &[Vm],
        reporter: &Reporter,
    ) -> Result<()> {
        if library.images().is_empty() {
            return Ok(());
        }
        let mut known = BTreeMap::new();
        for vm in vms {
            let evidence = scheduler.evidence(vm.slot);
            let before = self.known.remove(&(vm.slot, vm.generation));
            let now = match before {
                Some(before) if !says_more(before.0, evidence) => before,
                before => {
                    let told = before.map(|(_, why)| why);
                    let why = look(library, scheduler, vm, evidence, told.as_ref(), reporter)?;
                    (evidence, why)
                }
            };
            known.insert((vm.slot, vm.generation), now);
        }
        self.known = known;
        Ok(())
    }
}

/// Has the guest's kernel changed, or halted for the first time? (A halt's address
/// moves within the idle loop; only the first one is news.)
fn says_more(before: Evidence, now: Evidence) -> bool {
    (before.lstar, before.cstar) != (now.lstar, now.cstar)
        || (before.halt_rip == 0 && now.halt_rip != 0)
}

/// Finds the kernel of `vm`, tells the scheduler, and the user if it is news:
/// `told` is why none was found last time (inner `None`: one was).
fn look(
    library: &Library,
    scheduler: &mut Scheduler,
    vm: &Vm,
    evidence: Evidence,
    told: Option<&Option<NoMatch>>,
    reporter: &Reporter,
) -> Result<Option<NoMatch>> {
    match library.resolve(&vm.name, &evidence) {
        Ok(found) if found.image_index < IMAGES_MAX => {
            scheduler.set_image(vm.slot, Some(found));
            let name = &library.images()[found.image_index].name;
            reporter.kernel(&vm.name, Ok((name, found.text_base)))?;
            Ok(None)
        }
        Ok(_) => Ok(None),
        Err(why) => {
            scheduler.set_image(vm.slot, None);
            if told != Some(&Some(why.clone())) {
                reporter.kernel(&vm.name, Err(&why))?;
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
