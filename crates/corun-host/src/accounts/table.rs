// SPDX-License-Identifier: GPL-2.0-only
//! The table of accounts, which the kernel writes while we read it.

use super::exits;
use crate::error::{During, Result};
use crate::skel::accounts::types::{distribution, vcpu_account};
use corun_events::account::{Account, Counts, Histogram, Latencies, Ready, Times, Vcpu};
use libbpf_rs::MapCore;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};

/// Readings of an account that changes meanwhile, before its last figures stand.
const READINGS: u32 = 100;

/// One vCPU of the table.
pub(super) struct Row {
    /// Number of its VM.
    pub(super) vm_id: u64,
    /// Process of its VMM.
    pub(super) tgid: u32,
    pub(super) vcpu: Vcpu,
}

/// The kernel's table, mapped.
pub(super) struct Table {
    first: NonNull<vcpu_account>,
    rows: usize,
    bytes: NonZeroUsize,
    is_amd: bool,
}

impl Table {
    /// Maps the table in `map`, which has `rows` rows.
    pub(super) fn map(map: &impl MapCore, rows: u32, is_amd: bool) -> Result<Self> {
        let rows = rows as usize;
        let bytes =
            NonZeroUsize::new(rows * size_of::<vcpu_account>()).unwrap_or(NonZeroUsize::MIN);
        // SAFETY: a new mapping that the kernel places, of a map that is this long: BPF rounds its
        // length up to whole pages, as mmap does.
        let at = unsafe {
            nix::sys::mman::mmap(
                None,
                bytes,
                nix::sys::mman::ProtFlags::PROT_READ,
                nix::sys::mman::MapFlags::MAP_SHARED,
                map.as_fd(),
                0,
            )
        };
        let at = at
            .map_err(std::io::Error::from)
            .during("mapping the accounts")?;
        Ok(Self {
            first: at.cast(),
            rows,
            bytes,
            is_amd,
        })
    }

    /// All rows that are in use, and how many of them never stood still.
    pub(super) fn rows(&self, now_ns: impl Fn() -> u64) -> (Vec<Row>, u64) {
        let mut torn_reads = 0;
        let rows = (0..self.rows).filter_map(|at| {
            // SAFETY: within the mapping, which has this many rows.
            let row = unsafe { self.first.add(at) };
            let (row, whole) = self.read(row, &now_ns)?;
            torn_reads += u64::from(!whole);
            Some(row)
        });
        let rows = rows.collect();
        (rows, torn_reads)
    }

    /// The vCPU at `row`, if there is one, and whether its times were read at rest.
    fn read(&self, row: NonNull<vcpu_account>, now_ns: impl Fn() -> u64) -> Option<(Row, bool)> {
        let row = row.as_ptr();
        // SAFETY: `row` is inside of the mapping, aligned as the kernel's array is; the kernel
        // may write meanwhile, which volatile reads of plain integers bear.
        let (kvm, found_ns) = unsafe {
            (
                (&raw const (*row).kvm).read_volatile(),
                (&raw const (*row).found_ns).read_volatile(),
            )
        };
        if kvm == 0 || found_ns == 0 {
            return None;
        }
        let (copy, now_ns, whole) = at_rest(row, &now_ns);
        let mut times_ns = copy.time_ns;
        // What is still going on belongs to the state that it is in.
        if let Some(open) = times_ns.get_mut(copy.state as usize) {
            *open += now_ns.saturating_sub(copy.since_ns);
        }
        let vcpu = Vcpu {
            vcpu: copy.vcpu_id,
            tid: copy.tid,
            found_ns,
            account: Account {
                wall_ns: now_ns.saturating_sub(found_ns),
                times: times(&times_ns),
                counts: counts(&copy.counts),
                exits: exits::by_name(&copy.exits, self.is_amd),
                latencies: latencies(&copy.latencies),
            },
        };
        let (vm_id, tgid) = (copy.vm_id, copy.tgid);
        Some((Row { vm_id, tgid, vcpu }, whole))
    }
}

/// A copy of `row` whose times belong together, when it was made, and whether they do.
fn at_rest(row: *const vcpu_account, now_ns: impl Fn() -> u64) -> (vcpu_account, u64, bool) {
    for _ in 1..READINGS {
        // SAFETY: as in `Table::read`.
        let before = unsafe { (&raw const (*row).seq).read_volatile() };
        fence(Ordering::Acquire);
        // SAFETY: as above; all fields are integers, for which any bytes will do.
        let copy = unsafe { row.read_volatile() };
        let now_ns = now_ns();
        fence(Ordering::Acquire);
        // SAFETY: as above.
        let after = unsafe { (&raw const (*row).seq).read_volatile() };
        if before == after && before.is_multiple_of(2) {
            return (copy, now_ns, true);
        }
        std::hint::spin_loop();
    }
    // SAFETY: as above.
    (unsafe { row.read_volatile() }, now_ns(), false)
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nothing refers to any more. That it cannot be
        // unmapped is not worth a word: the process holds it until it ends.
        let _ = unsafe { nix::sys::mman::munmap(self.first.cast(), self.bytes.get()) };
    }
}

/// From the kernel's order, `VCPU_STATES` in `bpf/accounts_state.bpf.h`.
fn times(ns: &[u64; 10]) -> Times {
    let [
        run_ns,
        poll_ns,
        other_vm_ns,
        sibling_ns,
        host_task_ns,
        woken_ns,
        limited_ns,
        other_ns,
        halted_ns,
        blocked_ns,
    ] = *ns;
    Times {
        run_ns,
        poll_ns,
        ready: Ready {
            other_vm_ns,
            sibling_ns,
            host_task_ns,
            woken_ns,
            limited_ns,
            other_ns,
        },
        halted_ns,
        blocked_ns,
    }
}

/// From the kernel's order, `VCPU_COUNTS`.
fn counts(n: &[u64; 14]) -> Counts {
    let [
        spins,
        yields_asked,
        yields_honoured,
        ipis_sent,
        ipis_received,
        device_interrupts,
        preempted_user,
        preempted_kernel,
        preempted_critical,
        preempted_outside,
        halts,
        polls_succeeded,
        polls_failed,
        wakeups,
    ] = *n;
    Counts {
        spins,
        yields_asked,
        yields_honoured,
        ipis_sent,
        ipis_received,
        device_interrupts,
        preempted_user,
        preempted_kernel,
        preempted_critical,
        preempted_outside,
        halts,
        polls_succeeded,
        polls_failed,
        wakeups,
    }
}

/// From the kernel's order, `VCPU_LATENCIES`.
fn latencies(all: &[distribution; 8]) -> Latencies {
    let [
        ipi_to_running,
        ipi_to_preempted,
        ipi_to_queued,
        ipi_to_asleep,
        wake_to_run,
        preempted,
        preempted_with_ipi,
        shootdown,
    ] = all.each_ref().map(histogram);
    Latencies {
        ipi_to_running,
        ipi_to_preempted,
        ipi_to_queued,
        ipi_to_asleep,
        wake_to_run,
        preempted,
        preempted_with_ipi,
        shootdown,
    }
}

fn histogram(d: &distribution) -> Histogram {
    if d.count == 0 {
        return Histogram::default();
    }
    Histogram::new(d.count, d.sum_ns, d.max_ns, d.buckets)
}

#[cfg(test)]
mod tests;
