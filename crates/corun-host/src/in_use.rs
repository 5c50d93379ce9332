// SPDX-License-Identifier: GPL-2.0-only
//! What the scheduler's tables hold: the sizes of its BPF maps, and how much of
//! each is in use. When the VMs are gone, so is what was kept of them.

use crate::counters::Counters;
use crate::error::{During, Result};
use crate::skel::corun::types;
use libbpf_rs::{MapCore, MapFlags, MapType};
use serde::Serialize;
use std::fmt;
use std::mem::offset_of;

/// Slots of the scheduler's tables, the host's among them (`CORUN_MAX_SLOTS`).
const SLOTS_MAX: usize = 256;
/// Elements of an array that one system call reads.
const BATCH: u32 = 4096;

/// Use of the scheduler's tables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct InUse {
    /// Slots that a VM has, and how many there are.
    pub(crate) vms: usize,
    pub(crate) vms_room: usize,
    /// vCPUs of these VMs that have run.
    pub(crate) vcpus: u32,
    /// Threads of the host that the scheduler knows.
    pub(crate) tasks: u64,
    /// The scheduler's BPF maps, by name.
    pub(crate) maps: Vec<MapUse>,
}

/// Use of one BPF map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct MapUse {
    pub(crate) name: String,
    /// Entries in use; `None`: it is written as a whole.
    pub(crate) used: Option<u64>,
    /// Entries that it has room for; 0: one for each task.
    pub(crate) room: u32,
    /// Memory of the map as the kernel counts it, without what tasks carry; 0 on
    /// kernels that do not tell. Bytes.
    pub(crate) bytes: u64,
}

/// Threads that came less those that went.
pub(crate) fn tasks(counters: &Counters) -> u64 {
    let get = |name| counters.get(name).copied().unwrap_or_default();
    get("tasks_joined").saturating_sub(get("tasks_left"))
}

/// The use of `map`; `tasks` threads are known. The slots below `slots` were ever
/// used.
pub(crate) fn of(map: &impl MapCore, tasks: u64, slots: usize) -> Result<MapUse> {
    let name = map.name().to_string_lossy().into_owned();
    let used = match map.map_type() {
        MapType::Hash => Some(map.keys().count() as u64),
        MapType::TaskStorage => Some(tasks),
        _ if name == "vcpu_recs" => Some(vcpus(map, slots)?),
        _ => None,
    };
    let about = map.query_fdinfo().during("asking for a map's size")?;
    Ok(MapUse {
        name,
        used,
        room: map.max_entries(),
        bytes: about.memlock.unwrap_or_default(),
    })
}

/// vCPUs of which something is known, whether or not their VM lives.
fn vcpus(map: &impl MapCore, slots: usize) -> Result<u64> {
    let per_slot = usize::try_from(map.max_entries()).unwrap_or_default() / SLOTS_MAX;
    let read = map
        .lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY)
        .during("reading what is known of vCPUs")?;
    let known = read
        .take(slots * per_slot)
        .filter(|(_, rec)| thread_in(rec).is_some());
    Ok(known.count() as u64)
}

/// Threads of the `vcpus` vCPUs that the VM in `slot` has, by `vcpu_recs`.
pub(crate) fn threads(vcpu_recs: &impl MapCore, slot: usize, vcpus: u32) -> Vec<u32> {
    let per_slot = usize::try_from(vcpu_recs.max_entries()).unwrap_or_default() / SLOTS_MAX;
    let keys = (slot * per_slot..(slot + 1) * per_slot).filter_map(|key| u32::try_from(key).ok());
    let recs = keys.filter_map(|key| {
        let rec = vcpu_recs.lookup(&key.to_ne_bytes(), MapFlags::ANY);
        rec.ok().flatten()
    });
    let threads = recs.filter_map(|rec| thread_in(&rec));
    threads
        .take(usize::try_from(vcpus).unwrap_or(usize::MAX))
        .collect()
}

/// The thread of a vCPU's record, if it has one.
fn thread_in(rec: &[u8]) -> Option<u32> {
    let at = offset_of!(types::vcpu_rec, pid);
    let pid = rec.get(at..at + size_of::<u32>())?;
    let pid = u32::from_ne_bytes(pid.try_into().ok()?);
    (pid != 0).then_some(pid)
}

impl fmt::Display for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (vms, room, vcpus, tasks) = (self.vms, self.vms_room, self.vcpus, self.tasks);
        writeln!(f, "{vms} of {room} VM slots, {vcpus} vCPUs, {tasks} tasks")?;
        writeln!(f, "  map                  used      room        KiB")?;
        for map in &self.maps {
            let used = map.used.map_or_else(|| "-".to_owned(), |n| n.to_string());
            let (name, room, kib) = (&map.name, map.room, map.bytes / 1024);
            writeln!(f, "  {name:<16} {used:>8} {room:>9} {kib:>10}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_in_use_while_it_names_a_thread() {
        let mut rec = vec![0xff; size_of::<types::vcpu_rec>()];
        let at = offset_of!(types::vcpu_rec, pid);
        assert_eq!(thread_in(&rec), Some(u32::MAX));
        rec[at..at + 4].fill(0);
        assert_eq!(thread_in(&rec), None);
        assert_eq!(thread_in(&[]), None);
    }

    #[test]
    fn tasks_are_those_that_came_and_did_not_go() {
        let counters = Counters::from([("tasks_joined".into(), 7), ("tasks_left".into(), 5)]);
        assert_eq!(tasks(&counters), 2);
        assert_eq!(tasks(&Counters::new()), 0);
    }

    #[test]
    fn people_see_a_table() {
        let map = |name: &str, used, room, bytes| MapUse {
            name: name.to_owned(),
            used,
            room,
            bytes,
        };
        let text = InUse {
            vms: 1,
            vms_room: 255,
            vcpus: 4,
            tasks: 90,
            maps: vec![
                map("slot_by_kvm", Some(1), 256, 20480),
                map("slice_timers", None, 1024, 98304),
            ],
        }
        .to_string();
        assert!(text.starts_with("1 of 255 VM slots, 4 vCPUs, 90 tasks\n"));
        assert!(text.contains("slot_by_kvm             1       256         20"));
        assert!(text.contains("slice_timers            -      1024         96"));
    }
}
