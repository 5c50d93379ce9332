// SPDX-License-Identifier: GPL-2.0-only
//! The loaded scheduler: opens, tunes, loads, attaches; detaches when dropped.

use crate::counters::{self, Counters};
use crate::error::{During, HostError, Result};
use crate::events::Present;
use crate::features;
use crate::guests;
use crate::hook_costs::HookCosts;
use crate::hooks;
use crate::host_info;
use crate::in_use::{self, InUse};
use crate::kernel_exit::KernelExit;
use crate::root::Root;
use crate::skel::corun::{CorunSkel, CorunSkelBuilder, types};
use crate::skel::tunables_for_bpf;
use crate::text::c_string;
use crate::vms::{self, Vm};
use corun_policy::{Mechanisms, Tunables};
use corun_symbols::{Evidence, Library, Match};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Link, MapHandle, OpenObject, PrintLevel, ProgramInput};
use std::mem::MaybeUninit;

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
    /// Events that are wanted and not there, and what is lost without them.
    pub(crate) missing: Vec<String>,
    // Dropped in this order: the scheduler leaves first.
    struct_ops: Option<Link>,
    _hooks: Vec<Link>,
}

impl Scheduler {
    /// Loads the scheduler and hands it the host's tasks.
    pub(crate) fn load(
        tunables: &Tunables,
        mechanisms: Mechanisms,
        symbols: &Library,
        present: Present,
    ) -> Result<Self> {
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
        tune(rodata, tunables, mechanisms);
        let cpus = libbpf_rs::num_possible_cpus().during("counting CPUs")?;
        rodata.nr_cpu_ids = u32::try_from(cpus).unwrap_or(u32::MAX);
        let names = rodata
            .counter_names
            .iter()
            .map(|name| c_string(name))
            .collect::<Vec<_>>();

        let discovers = host_info::kvm_is_ready();
        let wanted = hooks::Wanted {
            mechanisms,
            kvm: discovers,
            symbols: !symbols.images().is_empty(),
            present,
        };
        wanted.choose(&mut open.progs);
        // A helper of scx's headers that nothing here uses.
        open.progs.scx_lib_init_probe.set_autoload(false);
        let mut skel = open
            .load()
            .during("loading the scheduler into the kernel")?;
        let hooks = wanted.attach(&skel.progs)?;
        let bss = skel
            .maps
            .bss_data
            .as_mut()
            .ok_or(HostError::Section(".bss"))?;
        (bss.image_ranges, bss.image_text_len) = guests::image_sizes(symbols);
        guests::fill_ranges(&skel.maps.symbol_ranges, symbols)?;
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
            missing: wanted.missing(),
            struct_ops: Some(struct_ops),
            _hooks: hooks,
        })
    }

    /// Begins to count what the BPF programs cost.
    pub(crate) fn count_costs(&self) -> Result<HookCosts> {
        let map = MapHandle::try_from(&self.skel.maps.counters).during("opening the counters")?;
        HookCosts::start(&map)
    }

    /// Counters since loading.
    pub(crate) fn counters(&self) -> Result<Counters> {
        counters::read(&self.skel.maps.counters, &self.names)
    }

    /// What the scheduler's tables hold, by `counters` read just now.
    pub(crate) fn in_use(&self, counters: &Counters) -> Result<InUse> {
        let bss = self.skel.maps.bss_data.as_ref();
        let bss = bss.ok_or(HostError::Section(".bss"))?;
        let tasks = in_use::tasks(counters);
        let data = self.skel.maps.data_data.as_ref();
        let slots = data.ok_or(HostError::Section(".data"))?.nr_slots;
        let slots = usize::try_from(slots).unwrap_or(usize::MAX);
        let vms = bss.vm_infos.iter().filter(|vm| vm.kvm != 0);
        let maps = self.skel.object().maps();
        let maps = maps.map(|map| in_use::of(&map, tasks, slots));
        Ok(InUse {
            vms: vms.clone().count(),
            vms_room: bss.vm_infos.len() - 1,
            vcpus: vms.map(|vm| vm.nr_vcpus).sum(),
            tasks,
            maps: maps.collect::<Result<_>>()?,
        })
    }

    /// VMs whose end was missed give their slots back.
    pub(crate) fn forget_ended_vms(&mut self) -> Result<()> {
        let forget = &mut self.skel.progs.forget_ended_vms;
        let run = forget.test_run(ProgramInput::default());
        run.during("looking for VMs whose end was missed")?;
        Ok(())
    }

    /// VMs found, with names and weights looked up now.
    pub(crate) fn vms(&self) -> Vec<Vm> {
        let root = Root::default();
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
                name: vms::name_of(&root, info.tgid),
                pid: info.tgid,
                vcpus: info.nr_vcpus,
                pcpus: vms::cpus_of(
                    &root,
                    in_use::threads(&self.skel.maps.vcpu_recs, slot, info.nr_vcpus),
                ),
                weight: vms::weight_of(&root, info.tgid),
                used_ns: vm.used_ns,
            })
            .collect()
    }

    /// Tells the scheduler the weights of `vms`, and how many pCPUs there are for them.
    pub(crate) fn tell_about(&mut self, vms: &[Vm]) {
        let Some(bss) = self.skel.maps.bss_data.as_mut() else {
            return;
        };
        for vm in vms {
            if let Some(slot) = bss.vms.get_mut(vm.slot) {
                slot.weight = vm.weight;
            }
            if let Some(info) = bss.vm_infos.get_mut(vm.slot) {
                info.nr_pcpus = vm.pcpus;
            }
        }
    }

    /// What is known of the kernel that the VM in `slot` runs.
    pub(crate) fn evidence(&self, slot: usize) -> Evidence {
        let states = self.skel.maps.bss_data.as_ref().map(|bss| &bss.vm_states);
        states
            .and_then(|all| all.get(slot))
            .map_or_else(Evidence::default, |s| Evidence {
                lstar: s.evidence.lstar,
                cstar: s.evidence.cstar,
                halt_rip: s.evidence.halt_rip,
            })
    }

    /// Tells the scheduler which image the VM in `slot` runs, and where; `None`:
    /// nothing is known.
    pub(crate) fn set_image(&mut self, slot: usize, found: Option<Match>) {
        let Some(bss) = self.skel.maps.bss_data.as_mut() else {
            return;
        };
        let Some(state) = bss.vm_states.get_mut(slot) else {
            return;
        };
        // In this order, so that no wrong base is used meanwhile.
        state.kernel.image = 0;
        if let Some(found) = found {
            state.kernel.text_base = found.text_base;
            state.kernel.image = u32::try_from(found.image_index + 1).unwrap_or(0);
        }
    }

    /// Why the kernel ended the scheduler, once it has.
    pub(crate) fn kernel_exit(&self) -> Option<KernelExit> {
        let uei = &self.skel.maps.data_data.as_ref()?.uei;
        KernelExit::new(uei.kind, c_string(&uei.reason), c_string(&uei.msg))
    }

    /// Gives the host back to the kernel's own scheduler and waits until it is.
    pub(crate) fn unload(&mut self) {
        drop(self.struct_ops.take());
        counters::unpin();
        for _ in 0..100 {
            if host_info::kernel_schedules() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

/// Sets what the BPF programs read and never write.
fn tune(rodata: &mut types::rodata, t: &Tunables, mechanisms: Mechanisms) {
    let t = Tunables {
        gang_blind: u64::from(!features::tells_of_spins(&Root::default())),
        ..*t
    };
    rodata.tun = tunables_for_bpf!(types, &t);
    rodata.mechanisms = mechanisms.bits();
    rodata.guest_readable = host_info::vmcb_is_readable();
    for (cpu, llc) in rodata.llc_of_cpu.iter_mut().enumerate() {
        *llc = host_info::llc_of_cpu(cpu);
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.unload();
    }
}
