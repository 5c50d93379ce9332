// SPDX-License-Identifier: GPL-2.0-only
//! The loaded scheduler: opens, tunes, loads, attaches; detaches when dropped.

use crate::counters::{self, Counters};
use crate::error::{During, HostError, Result};
use crate::host_info;
use crate::skel::corun::{CorunSkel, CorunSkelBuilder};
use crate::text::c_string;
use crate::vms::{self, Vm};
use corun_policy::Tunables;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, OpenObject, PrintLevel};
use std::mem::MaybeUninit;

/// The kernel's exit kind while the scheduler runs (`SCX_EXIT_NONE`).
const EXIT_NONE: i32 = 0;

/// Why the kernel ended the scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KernelExit {
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// libbpf's own words: why a load failed is in its warnings.
#[allow(clippy::needless_pass_by_value, reason = "libbpf-rs's callback type")]
fn print_warning(_: PrintLevel, message: String) {
    eprint!("{message}");
}

/// corun's scheduler, in force while this lives.
pub(crate) struct Scheduler {
    skel: CorunSkel<'static>,
    names: Vec<String>,
    /// Whether VM discovery is attached; not before kvm is loaded.
    pub(crate) discovers: bool,
    // Dropped in this order: the scheduler leaves first.
    struct_ops: Option<Link>,
    _discovery: Vec<Link>,
}

impl Scheduler {
    /// Loads the scheduler and hands it the host's tasks.
    pub(crate) fn load(tunables: &Tunables, directed_yield: bool) -> Result<Self> {
        libbpf_rs::set_print(Some((PrintLevel::Warn, print_warning)));
        // The skeleton borrows its object; a load happens once, or once more
        // when kvm arrives, so these few bytes are not worth a self-reference.
        let object: &'static mut MaybeUninit<OpenObject> =
            Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = CorunSkelBuilder::default()
            .open(object)
            .during("opening the scheduler's BPF object")?;
        let rodata = open
            .maps
            .rodata_data
            .as_mut()
            .ok_or(HostError::Section(".rodata"))?;
        rodata.tun.slice_ns = tunables.slice_ns;
        rodata.tun.wakeup_gran_ns = tunables.wakeup_gran_ns;
        rodata.tun.sleeper_credit_ns = tunables.sleeper_credit_ns;
        rodata.tun.hint_max_age_ns = tunables.hint_max_age_ns;
        rodata.tun.yield_min_slice_ns = tunables.yield_min_slice_ns;
        rodata.directed_yield = directed_yield;
        let cpus = libbpf_rs::num_possible_cpus().during("counting CPUs")?;
        rodata.nr_cpu_ids = u32::try_from(cpus).unwrap_or(u32::MAX);
        let names = rodata
            .counter_names
            .iter()
            .map(|name| c_string(name))
            .collect::<Vec<_>>();

        let discovers = host_info::kvm_has_btf();
        open.progs.on_vcpu_load.set_autoload(discovers);
        open.progs.on_destroy_vm.set_autoload(discovers);
        // A helper of scx's headers that nothing here uses.
        open.progs.scx_lib_init_probe.set_autoload(false);
        let mut skel = open
            .load()
            .during("loading the scheduler into the kernel")?;
        let mut discovery = Vec::new();
        if discovers {
            let load = skel
                .progs
                .on_vcpu_load
                .attach()
                .during("attaching to vCPU loads")?;
            let destroy = skel
                .progs
                .on_destroy_vm
                .attach()
                .during("attaching to VM ends")?;
            discovery.extend([load, destroy]);
        }
        counters::pin(&mut skel.maps.counters, &names)?;
        let struct_ops = skel
            .maps
            .corun_ops
            .attach_struct_ops()
            .during("switching to corun's scheduler")?;
        Ok(Self {
            skel,
            names,
            discovers,
            struct_ops: Some(struct_ops),
            _discovery: discovery,
        })
    }

    /// Counters since loading.
    pub(crate) fn counters(&self) -> Result<Counters> {
        counters::read(&self.skel.maps.counters, &self.names)
    }

    /// VMs found, with names and weights looked up now.
    pub(crate) fn vms(&self) -> Vec<Vm> {
        let Some(bss) = self.skel.maps.bss_data.as_ref() else {
            return Vec::new();
        };
        bss.vm_infos
            .iter()
            .zip(&bss.vms)
            .enumerate()
            .filter(|(_, (info, _))| info.kvm != 0)
            .map(|(slot, (info, vm))| Vm {
                slot,
                generation: info.generation,
                name: vms::name_of(info.tgid),
                pid: info.tgid,
                vcpus: info.nr_vcpus,
                weight: vms::weight_of(info.tgid),
                used_ns: vm.used_ns,
            })
            .collect()
    }

    /// Tells the scheduler the weights of `vms`.
    pub(crate) fn set_weights(&mut self, vms: &[Vm]) {
        let Some(bss) = self.skel.maps.bss_data.as_mut() else {
            return;
        };
        for vm in vms {
            if let Some(slot) = bss.vms.get_mut(vm.slot) {
                slot.weight = vm.weight;
            }
        }
    }

    /// Why the kernel ended the scheduler, once it has.
    pub(crate) fn kernel_exit(&self) -> Option<KernelExit> {
        let uei = &self.skel.maps.data_data.as_ref()?.uei;
        (uei.kind != EXIT_NONE).then(|| KernelExit {
            reason: c_string(&uei.reason),
            message: c_string(&uei.msg),
        })
    }

    /// Gives the host back to the kernel's own scheduler and waits until it is.
    pub(crate) fn unload(&mut self) {
        drop(self.struct_ops.take());
        counters::unpin();
        for _ in 0..100 {
            if host_info::sched_ext_state().is_none_or(|state| state == "disabled") {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.unload();
    }
}
