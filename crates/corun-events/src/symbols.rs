// SPDX-License-Identifier: GPL-2.0-only
//! Names and classes of guests' code by instruction pointer.

use crate::Header;
use corun_policy::Region;
use corun_symbols::functions::region_of;
use corun_symbols::{Evidence, Library, MapError, Names};
use std::path::Path;

/// Addresses from here on are the kernel's half.
const KERNEL_HALF: u64 = 1 << 63;

/// Where a vCPU was.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The function, or `[user]`, `[kernel]` (no symbol), `[unknown]` (no
    /// instruction pointer).
    pub name: String,
    /// Its class.
    pub region: Region,
}

/// Symbols of the guests of a recording.
#[derive(Debug, Default)]
pub struct Symbols {
    /// Those of the header: first addresses and names, ascending.
    embedded: Vec<(u64, String)>,
    /// By VM: names and where the text begins.
    by_vm: Vec<Option<(Names, u64)>>,
    /// VMs whose kernel was not found, and why.
    problems: Vec<String>,
}

impl Symbols {
    /// Those of the recording itself, and of the maps in `library` that fit.
    pub fn new(header: &Header, library: &Library) -> Result<Self, MapError> {
        let symbols = header.symbols.iter();
        let mut embedded: Vec<_> = symbols.map(|s| (s.start, s.name.clone())).collect();
        embedded.sort();
        let mut this = Self {
            embedded,
            ..Self::default()
        };
        for vm in &header.vms {
            let evidence = Evidence {
                lstar: vm.lstar,
                cstar: 0,
                halt_rip: vm.halt_rip,
            };
            let found = match library.resolve(&vm.name, &evidence) {
                Ok(found) => {
                    let file = Path::new(&library.images()[found.image_index].name);
                    Some((Names::read(file)?, found.text_base))
                }
                Err(why) => {
                    if !library.images().is_empty() {
                        this.problems.push(why.to_string());
                    }
                    None
                }
            };
            this.by_vm.push(found);
        }
        Ok(this)
    }

    /// Why VMs have no symbols although maps were given.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Where `ip` is in VM `vm`.
    pub fn place(&self, vm: u32, ip: u64) -> Place {
        let known = match self.by_vm.get(vm as usize) {
            Some(Some((names, text_base))) => names.at(*text_base, ip),
            _ => self.of_recording(ip),
        };
        let (name, region) = match known {
            _ if ip == 0 => ("[unknown]", Region::Unknown),
            _ if ip < KERNEL_HALF => ("[user]", Region::User),
            Some(name) => (name, region_of(name).unwrap_or(Region::Kernel)),
            None => ("[kernel]", Region::Unknown),
        };
        Place {
            name: name.to_owned(),
            region,
        }
    }

    fn of_recording(&self, ip: u64) -> Option<&str> {
        let after = self.embedded.partition_point(|(start, _)| *start <= ip);
        let (_, name) = self.embedded.get(after.checked_sub(1)?)?;
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Symbol, Vm};

    const TEXT: u64 = 0xffff_ffff_8100_0000;

    #[test]
    fn a_recordings_own_symbols_are_used() {
        let mut header = Header::new("sim", "t", 1, vec![Vm::new("a", 1)]);
        for (start, name) in [
            (TEXT, "schedule"),
            (TEXT + 0x100, "native_queued_spin_lock_slowpath"),
        ] {
            header.symbols.push(Symbol {
                start,
                name: name.to_owned(),
            });
        }
        let symbols = Symbols::new(&header, &Library::default()).expect("no maps");
        let place = symbols.place(0, TEXT + 0x108);
        assert_eq!(place.name, "native_queued_spin_lock_slowpath");
        assert_eq!(place.region, Region::LockWait);
        assert_eq!(symbols.place(0, TEXT).region, Region::Sched);
        assert_eq!(symbols.place(0, TEXT - 1).name, "[kernel]");
        assert_eq!(symbols.place(0, 0x40_0000).region, Region::User);
        assert_eq!(symbols.place(0, 0).name, "[unknown]");
        assert!(symbols.problems().is_empty());
    }
}
