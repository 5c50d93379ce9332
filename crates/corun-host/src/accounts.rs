// SPDX-License-Identifier: GPL-2.0-only
//! Accounts of all vCPUs of this host, kept in the kernel, whatever scheduler runs.
//! Reads only.

mod attached;
mod clock;
mod exits;
mod hooks;
mod host;
mod mapped;
mod table;

use crate::error::Result;
use crate::guests::Guests;
use crate::hook_costs::HookCost;
use crate::root::Root;
use crate::{host_info, vms};
use attached::Attached;
use corun_events::account::{Drops, SNAPSHOT_VERSION, Snapshot, Vm};
use corun_symbols::{Library, Source};
use nix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use table::Row;

/// vCPUs that have room on any host; each takes 26 KB of kernel memory.
const MIN_VCPUS: u32 = 1024;
/// Room for so many on each pCPU, beyond that.
const VCPUS_A_PCPU: u32 = 16;

/// What is said in [`Snapshot::missing`] while there is no KVM.
const NO_KVM: &str = "kvm: the module is not loaded, or has no type information; no VM is seen";

/// The same where guests' registers cannot be read.
const NO_REGISTERS: &str =
    "critical sections: this processor keeps guests' registers to itself; AMD's does not";
/// VMs of which it is said why their kernels are not known.
const REASONS_MAX: usize = 8;

/// How the accounts are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountOptions {
    /// vCPUs that have room, 1 to 65536; those beyond are counted as drops. `None`: 16 for
    /// each pCPU, and at least 1024.
    pub max_vcpus: Option<u32>,
    /// Maps of guest kernels' symbols, by which critical sections are told.
    pub symbols: Vec<Source>,
    /// Count what the BPF programs cost, for [`Accounts::costs`].
    pub hook_costs: bool,
}

impl AccountOptions {
    fn room(&self) -> u32 {
        self.max_vcpus.map_or_else(
            || host::pcpus().saturating_mul(VCPUS_A_PCPU).max(MIN_VCPUS),
            |n| n.clamp(1, 1 << 16),
        )
    }
}

/// Keeps accounts while it lives. The kvm module may come and go: without it there are no
/// VMs, and it is let go when its vendor's module is unloaded.
#[derive(Debug)]
pub struct Accounts {
    options: AccountOptions,
    symbols: Library,
    /// Which kernels VMs run, by their numbers and KVM's addresses of them.
    guests: Guests<(u64, u64)>,
    attached: Option<Attached>,
    /// Names of VMs, by their number: each is looked up once.
    names: BTreeMap<u64, String>,
    began_ns: u64,
    torn_reads: u64,
}

impl Accounts {
    /// Begins to keep accounts. Needs root and a kernel with BTF.
    pub fn begin(options: AccountOptions) -> Result<Self> {
        let mut accounts = Self {
            symbols: Library::read(&options.symbols)?,
            options,
            guests: Guests::default(),
            attached: None,
            names: BTreeMap::new(),
            began_ns: now_ns(),
            torn_reads: 0,
        };
        accounts.follow_kvm()?;
        Ok(accounts)
    }

    /// The accounts now, since each vCPU was found.
    pub fn read(&mut self) -> Result<Snapshot> {
        self.follow_kvm()?;
        let mut snapshot = Snapshot {
            corun_accounts: SNAPSHOT_VERSION,
            host: host::read()?,
            ..Snapshot::default()
        };
        match &self.attached {
            None => snapshot.missing.push(NO_KVM.to_owned()),
            Some(attached) => {
                let (rows, drops) = attached.read(now_ns);
                self.torn_reads += drops.torn_reads;
                snapshot.drops = Drops {
                    torn_reads: self.torn_reads,
                    ..drops
                };
                snapshot.missing = attached.missing();
                let kvms = rows.iter().map(|row| (row.vm_id, row.kvm)).collect();
                snapshot.vms = self.by_vm(rows);
                self.look_at_kernels(&mut snapshot, &kvms)?;
            }
        }
        snapshot.at_ns = now_ns();
        snapshot.length_ns = snapshot.at_ns.saturating_sub(self.began_ns);
        Ok(snapshot)
    }

    /// What the BPF programs cost since the beginning, the most expensive first;
    /// empty unless asked for, and without KVM.
    pub fn costs(&self) -> Vec<HookCost> {
        self.attached
            .as_ref()
            .map_or_else(Vec::new, Attached::costs)
    }

    /// Attaches when KVM arrives; lets it go when it leaves.
    fn follow_kvm(&mut self) -> Result<()> {
        match (&self.attached, host_info::kvm_is_ready()) {
            (None, true) => {
                let room = self.options.room();
                self.attached = Some(Attached::new(room, &self.symbols, self.options.hook_costs)?);
                // VMs are numbered anew.
                self.guests = Guests::default();
                self.names.clear();
            }
            (Some(_), false) => self.attached = None,
            _ => {}
        }
        Ok(())
    }

    /// Finds the kernels of the guests of `snapshot`, whose VMs have these addresses:
    /// critical sections are told in those alone.
    fn look_at_kernels(
        &mut self,
        snapshot: &mut Snapshot,
        kvms: &BTreeMap<u64, u64>,
    ) -> Result<()> {
        let key = |vm: &Vm| (vm.id, kvms.get(&vm.id).copied().unwrap_or(0));
        if let Some(attached) = &mut self.attached {
            if attached.reads_guests() {
                let vms = snapshot.vms.iter().map(|vm| (key(vm), vm.name.as_str()));
                self.guests.resolve(&self.symbols, attached, vms)?;
            } else if !self.symbols.images().is_empty() {
                snapshot.missing.push(NO_REGISTERS.to_owned());
            }
        }
        let unknown = snapshot
            .vms
            .iter()
            .filter_map(|vm| self.guests.why_not(key(vm)));
        let mut unknown: Vec<String> = unknown.map(|w| format!("critical sections: {w}")).collect();
        let more = unknown.len().saturating_sub(REASONS_MAX);
        unknown.truncate(REASONS_MAX);
        snapshot.missing.append(&mut unknown);
        if more > 0 {
            let more = format!("critical sections: the kernels of {more} more VMs");
            snapshot.missing.push(more);
        }
        for vm in &mut snapshot.vms {
            if !self.guests.is_known(key(vm)) {
                for vcpu in &mut vm.vcpus {
                    vcpu.account.counts.preempted_critical = None;
                }
            }
        }
        Ok(())
    }

    fn by_vm(&mut self, rows: Vec<Row>) -> Vec<Vm> {
        let mut all: BTreeMap<u64, Vm> = BTreeMap::new();
        for row in rows {
            let vm = all.entry(row.vm_id).or_insert_with(|| Vm {
                id: row.vm_id,
                pid: row.tgid,
                ..Vm::default()
            });
            vm.vcpus.push(row.vcpu);
        }
        self.names.retain(|id, _| all.contains_key(id));
        let root = Root::default();
        for vm in all.values_mut() {
            vm.vcpus.sort_by_key(|v| v.vcpu);
            let name = self.names.entry(vm.id);
            vm.name = name.or_insert_with(|| vms::name_of(&root, vm.pid)).clone();
        }
        all.into_values().collect()
    }
}

/// The clock of the accounts: `CLOCK_MONOTONIC`. Nanoseconds.
fn now_ns() -> u64 {
    // This clock exists on every Linux.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| {
        let seconds = u64::try_from(t.tv_sec()).unwrap_or(0);
        seconds * 1_000_000_000 + u64::try_from(t.tv_nsec()).unwrap_or(0)
    })
}
