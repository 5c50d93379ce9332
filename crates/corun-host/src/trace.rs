// SPDX-License-Identifier: GPL-2.0-only
//! Records every event of vCPUs through a ring buffer, whatever scheduler runs.
//! Reads only; what the buffer had no room for is counted.

mod records;
mod sources;

use crate::error::{During, HostError, Result};
use crate::root::Root;
use crate::skel::trace::{TraceSkel, TraceSkelBuilder};
use crate::text::c_string;
use crate::{host_info, kvm_vms};
use corun_events::{Event, Header};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject, RingBuffer, RingBufferBuilder};
use records::Records;
use sources::Sources;
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::rc::Rc;
use std::time::Duration;

/// What a recorder is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceOptions {
    /// Names of the VMs that are recorded; all when empty.
    pub vms: Vec<String>,
    /// Size of the ring buffer. Bytes: a power of two, at least a page.
    pub buffer_bytes: u32,
}

/// Records while it lives.
pub struct Recorder {
    // The order matters: the buffer goes before its map, links before programs.
    ring: RingBuffer<'static>,
    _links: Vec<Link>,
    skel: Box<TraceSkel<'static>>,
    records: Rc<RefCell<Records>>,
    sources: Sources,
    missing: Vec<String>,
    marks: Vec<String>,
    start_ns: u64,
    /// When it stopped.
    end_ns: Option<u64>,
    title: String,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

impl Recorder {
    /// Attaches to the kernel's and KVM's events and begins. Needs root, a kernel
    /// with BTF, and the kvm module, loaded with type information.
    pub fn start(options: &TraceOptions) -> Result<Self> {
        if !host_info::kvm_has_btf() {
            return Err(HostError::NoKvm);
        }
        let chosen = kvm_vms::processes_of(&options.vms)?;
        let kallsyms =
            std::fs::read_to_string("/proc/kallsyms").during("reading /proc/kallsyms")?;
        let sources = Sources::of_kernel(&kallsyms);
        if let Some(symbol) = sources.lacks_required() {
            return Err(HostError::NoSource(symbol));
        }
        let mut skel = Box::new(load(&sources, options, !chosen.is_empty())?);
        for pid in &chosen {
            let key = pid.to_ne_bytes();
            skel.maps
                .trace_chosen
                .update(&key, &[1], MapFlags::ANY)
                .during("choosing VMs")?;
        }
        let mut missing = sources.missing();
        let links = sources
            .attach(&skel.progs, &mut missing)
            .during("attaching the recorder to KVM and the scheduler")?;
        let start_ns = monotonic_ns()?;
        let names = skel.maps.rodata_data.as_ref();
        let names = names.ok_or(HostError::Section(".rodata"))?;
        let kinds: Vec<String> = names.trace_kinds.iter().map(|n| c_string(n)).collect();
        let records = Rc::new(RefCell::new(Records::new(&kinds, start_ns)));
        let ring = ring(&skel, Rc::clone(&records))?;
        let bss = skel.maps.bss_data.as_mut();
        bss.ok_or(HostError::Section(".bss"))?.trace_on = true;
        Ok(Self {
            ring,
            _links: links,
            skel,
            records,
            sources,
            missing,
            marks: Vec::new(),
            start_ns,
            end_ns: None,
            title: title(&options.vms),
        })
    }

    /// The events whose order is settled: they come about a second late. To be
    /// called before the buffer fills.
    pub fn events(&mut self) -> Result<Vec<Event>> {
        self.ring.consume().during("reading the ring buffer")?;
        Ok(self.records.borrow_mut().drain(false))
    }

    /// Stops, and gives the events that are left.
    pub fn stop(&mut self) -> Result<Vec<Event>> {
        let bss = self.skel.maps.bss_data.as_mut();
        bss.ok_or(HostError::Section(".bss"))?.trace_on = false;
        self.end_ns = Some(monotonic_ns()?);
        self.ring.consume().during("reading the ring buffer")?;
        Ok(self.records.borrow_mut().drain(true))
    }

    /// Marks this moment as `name`.
    pub fn mark(&mut self, name: &str) -> Result<()> {
        self.marks.push(name.to_owned());
        let number = self.marks.len() as u64 - 1;
        self.records.borrow_mut().mark(monotonic_ns()?, number);
        Ok(())
    }

    /// Since the recording began, or its whole length once it stopped. Nanoseconds.
    pub fn elapsed_ns(&self) -> Result<u64> {
        let now_ns = self.end_ns.map_or_else(monotonic_ns, Ok)?;
        Ok(now_ns.saturating_sub(self.start_ns))
    }

    /// Whether VMs may run: not once kvm's vendor module is unloaded. The kvm module itself
    /// cannot be unloaded while this lives.
    pub fn vms_may_run(&self) -> bool {
        host_info::kvm_is_ready()
    }

    /// Records that found the buffer full, so far.
    pub fn dropped(&self) -> u64 {
        self.drops().iter().sum()
    }

    fn drops(&self) -> Vec<u64> {
        let bss = self.skel.maps.bss_data.as_ref();
        let cpus = usize::try_from(pcpus()).unwrap_or(usize::MAX);
        bss.map_or_else(Vec::new, |bss| {
            bss.trace_drops.iter().take(cpus).copied().collect()
        })
    }

    /// Names of the VMs that were seen so far.
    pub fn vms(&self) -> Vec<String> {
        let records = self.records.borrow();
        let vms = records.vms().iter().filter(|vm| vm.vcpus > 0);
        vms.map(|vm| vm.name.clone()).collect()
    }

    /// What a reader of the recording needs to know, as of now.
    pub fn header(&self) -> Result<Header> {
        let mut header = Header {
            duration_ns: self.elapsed_ns()?,
            clock: "CLOCK_MONOTONIC".to_owned(),
            start_ns: self.start_ns,
            host: host_info::host_name(),
            kernel: format!("{} ({})", Root::default().kernel_release(), scheduler()),
            drops: self.drops(),
            missing: self.missing.clone(),
            marks: self.marks.clone(),
            ..Header::new("host", &self.title, pcpus(), Vec::new())
        };
        header
            .missing
            .extend(self.sources.skipped(&self.skel.progs));
        self.records.borrow().describe(&mut header);
        let bss = self.skel.maps.bss_data.as_ref();
        let bss = bss.ok_or(HostError::Section(".bss"))?;
        for (vm, seen) in header.vms.iter_mut().zip(&bss.trace_vms) {
            vm.lstar = seen.lstar;
            vm.halt_rip = seen.halt_rip;
        }
        if bss.trace_unobserved > 0 {
            let lost = format!("{} VMs beyond the first 1024", bss.trace_unobserved);
            header.missing.push(lost);
        }
        Ok(header)
    }
}

fn load(
    sources: &Sources,
    options: &TraceOptions,
    only_chosen: bool,
) -> Result<TraceSkel<'static>> {
    // The skeleton borrows its object; one recorder lives as long as the process.
    let object: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
    let mut open = TraceSkelBuilder::default()
        .open(object)
        .during("opening the recorder's BPF object")?;
    sources.choose(&mut open.progs);
    // A helper of scx's headers that nothing here uses.
    open.progs.scx_lib_init_probe.set_autoload(false);
    let rodata = open.maps.rodata_data.as_mut();
    let rodata = rodata.ok_or(HostError::Section(".rodata"))?;
    rodata.trace_only_chosen = only_chosen;
    rodata.trace_vmcb_readable = host_info::vmcb_is_readable();
    open.maps
        .trace_ring
        .set_max_entries(options.buffer_bytes)
        .during("sizing the ring buffer")?;
    open.load()
        .during("loading the recorder (root and BTF needed)")
}

fn ring(skel: &TraceSkel<'_>, records: Rc<RefCell<Records>>) -> Result<RingBuffer<'static>> {
    let mut builder = RingBufferBuilder::new();
    builder
        .add(&skel.maps.trace_ring, move |bytes| {
            records.borrow_mut().take(bytes);
            0
        })
        .during("mapping the ring buffer")?;
    builder.build().during("mapping the ring buffer")
}

fn monotonic_ns() -> Result<u64> {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
    let now = now
        .map_err(std::io::Error::from)
        .during("reading the clock")?;
    Ok(u64::try_from(Duration::from(now).as_nanos()).unwrap_or(u64::MAX))
}

/// The highest pCPU that this host can have, and one.
fn pcpus() -> u32 {
    let count = libbpf_rs::num_possible_cpus().unwrap_or(1);
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn scheduler() -> String {
    host_info::loaded_scheduler().unwrap_or_else(|| "the kernel's scheduler".to_owned())
}

fn title(vms: &[String]) -> String {
    match vms {
        [] => format!("{}, all VMs", host_info::host_name()),
        vms => format!("{}, {}", host_info::host_name(), vms.join(", ")),
    }
}
