// SPDX-License-Identifier: GPL-2.0-only
//! Which kernel function is of which class: the one table that the scheduler,
//! the simulator and the analyses of traces share.
//!
//! A vCPU is classed by the function its instruction pointer is in, not by that
//! function's callers: compilers decide what is inlined, so a class has the
//! names that different kernels leave in its place. 32-bit kernels are left out.

use corun_policy::Region;
use std::collections::HashMap;
use std::sync::LazyLock;

mod table;

pub use table::GROUPS;

/// Functions of one class, from one source.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// The class.
    pub region: Region,
    /// Where the names are from, and which kernels have them.
    pub source: &'static str,
    /// Names without compilers' suffixes; `prefix*` stands for all names that
    /// begin so and have no entry of their own.
    pub names: &'static [&'static str],
}

/// The class of the kernel function `name`, which may have suffixes that a
/// compiler gave it (`.isra.0`, `.constprop.0`, `.part.0`, `.cold`); `None` when
/// the table does not have it.
pub fn region_of(name: &str) -> Option<Region> {
    let name = without_suffixes(name);
    let by_prefix = || {
        let fitting = INDEX.prefixes.iter().filter(|(p, _)| name.starts_with(p));
        fitting.max_by_key(|(p, _)| p.len()).map(|(_, r)| *r)
    };
    INDEX.exact.get(name).copied().or_else(by_prefix)
}

fn without_suffixes(name: &str) -> &str {
    match name.find('.') {
        None | Some(0) => name,
        Some(dot) => &name[..dot],
    }
}

struct Index {
    exact: HashMap<&'static str, Region>,
    prefixes: Vec<(&'static str, Region)>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index {
        exact: HashMap::new(),
        prefixes: Vec::new(),
    };
    for group in GROUPS {
        for name in group.names {
            match name.strip_suffix('*') {
                Some(prefix) => index.prefixes.push((prefix, group.region)),
                None => {
                    index.exact.insert(name, group.region);
                }
            }
        }
    }
    index
});

#[cfg(test)]
mod tests {
    use super::{GROUPS, region_of};
    use corun_policy::Region;
    use std::collections::HashSet;

    #[test]
    fn no_name_is_given_twice() {
        let mut seen = HashSet::new();
        for name in GROUPS.iter().flat_map(|g| g.names) {
            assert!(seen.insert(*name), "{name}");
        }
    }

    #[test]
    fn names_stand_in_order() {
        for group in GROUPS {
            assert!(group.source.contains("seed 004"));
            assert!(group.names.is_sorted(), "{:?}", group.names);
        }
    }

    #[test]
    fn compilers_suffixes_do_not_matter() {
        for name in ["rwsem_wake", "rwsem_wake.isra.0", "rwsem_wake.part.0.cold"] {
            assert_eq!(region_of(name), Some(Region::LockHeld), "{name}");
        }
        assert_eq!(region_of(".isra.0"), None);
    }

    #[test]
    fn a_name_of_its_own_beats_a_prefix() {
        assert_eq!(
            region_of("generic_smp_call_function_single_interrupt"),
            Some(Region::Irq)
        );
        assert_eq!(
            region_of("smp_call_function_single_interrupt"),
            Some(Region::Irq)
        );
        assert_eq!(region_of("smp_call_function_single"), Some(Region::AckWait));
        assert_eq!(region_of("sysvec_call_function_single"), Some(Region::Irq));
    }

    #[test]
    fn taking_a_lock_is_not_holding_it() {
        assert_eq!(region_of("_raw_spin_lock"), None);
        assert_eq!(
            region_of("_raw_spin_unlock_irqrestore"),
            Some(Region::LockHeld)
        );
        assert_eq!(
            region_of("native_queued_spin_lock_slowpath"),
            Some(Region::LockWait)
        );
        assert_eq!(region_of("vfs_read"), None);
    }
}
