// SPDX-License-Identifier: GPL-2.0-only
//! The BPF programs that keep the accounts: loaded, attached, read.

use super::hooks;
use super::mapped::Mapped;
use super::table::{Row, Table};
use crate::error::{During, HostError, Result};
use crate::guests::{self, Kernels};
use crate::hook_costs::{HookCost, HookCosts};
use crate::host_info;
use crate::skel::accounts::{AccountsSkel, AccountsSkelBuilder};
use crate::skipped;
use corun_events::account::Drops;
use corun_symbols::{Evidence, Library, Match};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle, OpenObject};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;

/// The programs, in force while this lives.
pub(super) struct Attached {
    skel: AccountsSkel<'static>,
    table: Table,
    missing: Vec<String>,
    reads_guests: bool,
    costs: Option<HookCosts>,
}

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attached").finish_non_exhaustive()
    }
}

impl Attached {
    /// Loads and attaches them, with room for `max_vcpus` vCPUs; `symbols` tell critical
    /// sections.
    pub(super) fn new(max_vcpus: u32, symbols: &Library, count_costs: bool) -> Result<Self> {
        // The skeleton borrows its object; it is loaded once, or once more when kvm was
        // away, so these few bytes are not worth a self-reference.
        let object: &'static mut MaybeUninit<OpenObject> =
            Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = AccountsSkelBuilder::default()
            .open(object)
            .during("opening the accounts' BPF object")?;
        let missing = hooks::choose(&mut open.progs)?;
        let rodata = open.maps.rodata_data.as_mut();
        let rodata = rodata.ok_or(HostError::Section(".rodata"))?;
        rodata.max_vcpus = max_vcpus;
        let is_amd = host_info::vmcb_is_readable();
        rodata.is_amd = is_amd;
        rodata.guest_readable = is_amd;
        rodata.has_symbols = !symbols.images().is_empty();
        let sized = "sizing the accounts' tables";
        open.maps
            .accounts
            .set_max_entries(max_vcpus)
            .during(sized)?;
        open.maps.ipis.set_max_entries(max_vcpus).during(sized)?;
        open.maps
            .slot_by_vcpu
            .set_max_entries(max_vcpus)
            .during(sized)?;
        let pcpus = possible_pcpus()?;
        open.maps.clocks.set_max_entries(pcpus).during(sized)?;
        open.maps.vm_ids.set_max_entries(max_vcpus).during(sized)?;
        let maps = &mut open.maps;
        if symbols.images().is_empty() {
            maps.symbol_ranges.set_max_entries(1).during(sized)?;
        } else {
            maps.guest_evidence
                .set_max_entries(max_vcpus)
                .during(sized)?;
            maps.guest_images.set_max_entries(max_vcpus).during(sized)?;
        }
        let mut skel = open
            .load()
            .during("loading the accounts' BPF programs (root and a kernel with BTF needed)")?;
        let bss = skel.maps.bss_data.as_mut();
        let bss = bss.ok_or(HostError::Section(".bss"))?;
        (bss.image_ranges, bss.image_text_len) = guests::image_sizes(symbols);
        guests::fill_ranges(&skel.maps.symbol_ranges, symbols)?;
        skel.attach()
            .during("attaching the accounts to KVM and the scheduler")?;
        let table = Table::new(
            Mapped::map(&skel.maps.accounts, max_vcpus)?,
            Mapped::map(&skel.maps.clocks, pcpus)?,
            is_amd,
        );
        let costs = if count_costs {
            let map = MapHandle::try_from(&skel.maps.accounts).during("opening the accounts")?;
            Some(HookCosts::start(&map)?)
        } else {
            None
        };
        Ok(Self {
            skel,
            table,
            missing,
            reads_guests: is_amd,
            costs,
        })
    }

    /// All vCPUs that are known, and what was lost; torn reads are those of this one. `now_ns`
    /// tells the time in nanoseconds.
    pub(super) fn read(&self, now_ns: impl Fn() -> u64) -> (Vec<Row>, Drops) {
        let (rows, torn_reads) = self.table.rows(now_ns);
        let bss = self.skel.maps.bss_data.as_ref();
        let drops = Drops {
            vcpus: bss.map_or(0, |bss| bss.untracked),
            ipis_joined: bss.map_or(0, |bss| bss.ipis_joined),
            torn_reads,
            skipped_runs: self.skipped_runs(),
        };
        (rows, drops)
    }

    fn skipped_runs(&self) -> u64 {
        let programs = self.skel.object().progs();
        let loaded = programs.filter(libbpf_rs::Program::autoload);
        loaded.map(|p| skipped::runs(p.as_fd())).sum()
    }

    /// Registers of guests can be read: without them no kernel is told.
    pub(super) fn reads_guests(&self) -> bool {
        self.reads_guests
    }

    pub(super) fn missing(&self) -> Vec<String> {
        self.missing.clone()
    }

    pub(super) fn costs(&self) -> Vec<HookCost> {
        self.costs.as_ref().map_or_else(Vec::new, HookCosts::read)
    }
}

/// By number and KVM's address of the VM: addresses come again.
impl Kernels<(u64, u64)> for Attached {
    fn evidence(&self, (_, kvm): (u64, u64)) -> Evidence {
        let map = &self.skel.maps.guest_evidence;
        let found = map.lookup(&kvm.to_ne_bytes(), MapFlags::ANY);
        let bytes = found.ok().flatten().unwrap_or_default();
        let mut words = bytes.as_chunks().0.iter().map(|&w| u64::from_ne_bytes(w));
        // As `struct guest_evidence` has them; nothing before it was seen.
        Evidence {
            lstar: words.next().unwrap_or(0),
            cstar: words.next().unwrap_or(0),
            halt_rip: words.next().unwrap_or(0),
        }
    }

    fn set_image(&mut self, (_, kvm): (u64, u64), found: Option<Match>) {
        let map = &self.skel.maps.guest_images;
        let key = kvm.to_ne_bytes();
        // The VM may have gone meanwhile: then nobody looks at what is said of it.
        let _ = match found {
            None => map.delete(&key),
            Some(found) => {
                let image = u32::try_from(found.image_index + 1).unwrap_or(0);
                // As `struct guest_image` has them.
                let mut value = found.text_base.to_ne_bytes().to_vec();
                value.extend(image.to_ne_bytes());
                value.extend([0; 4]);
                map.update(&key, &value, MapFlags::ANY)
            }
        };
    }
}

/// pCPUs that may ever be online: their numbers are below it.
fn possible_pcpus() -> Result<u32> {
    let pcpus = libbpf_rs::num_possible_cpus().during("counting pCPUs")?;
    Ok(u32::try_from(pcpus).unwrap_or(u32::MAX))
}
