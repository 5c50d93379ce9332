// SPDX-License-Identifier: GPL-2.0-only
//! Counts KVM's directed yields and their fate, whatever scheduler runs.

use crate::error::{During, HostError, Result};
use crate::skel::observe::{ObserveSkel, ObserveSkelBuilder};
use crate::text::c_string;
use libbpf_rs::OpenObject;
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use std::collections::BTreeMap;
use std::mem::MaybeUninit;

/// Counts calls of the kernel's `yield_to()` while it lives.
pub struct YieldObserver {
    skel: ObserveSkel<'static>,
}

impl std::fmt::Debug for YieldObserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("YieldObserver").finish_non_exhaustive()
    }
}

impl YieldObserver {
    /// Attaches to `yield_to()`. Needs root and a kernel with BTF.
    pub fn attach() -> Result<Self> {
        // The skeleton borrows its object; one observer lives as long as the process.
        let object: &'static mut MaybeUninit<OpenObject> =
            Box::leak(Box::new(MaybeUninit::uninit()));
        let open = ObserveSkelBuilder::default()
            .open(object)
            .during("opening the yield observer's BPF object")?;
        let mut skel = open
            .load()
            .during("loading the yield observer (root and BTF needed)")?;
        skel.attach().during("attaching to yield_to()")?;
        Ok(Self { skel })
    }

    /// Counts since the attachment: `asked`, `honoured`, and `refused_*` by reason.
    pub fn counters(&self) -> Result<BTreeMap<String, u64>> {
        let names = self
            .skel
            .maps
            .rodata_data
            .as_ref()
            .ok_or(HostError::Section(".rodata"))?;
        let fates = self
            .skel
            .maps
            .bss_data
            .as_ref()
            .ok_or(HostError::Section(".bss"))?;
        Ok(names
            .fate_names
            .iter()
            .zip(&fates.fates)
            .map(|(name, count)| (c_string(name), *count))
            .collect())
    }
}
