// SPDX-License-Identifier: GPL-2.0-only
//! The table of accounts, which the kernel writes while we read it.

use super::mapped::{Mapped, Reading, Sequenced};
use super::{clock, exits};
use crate::skel::accounts::types::{distribution, pcpu_clock, vcpu_account, vcpu_state};
use corun_events::account::{Account, Counts, Histogram, Latencies, Ready, Times, Vcpu};

/// Readings of an account whose wait ends meanwhile, before its last figures stand.
const READINGS: u32 = 100;

/// One vCPU of the table.
pub(super) struct Row {
    /// Number of its VM, and KVM's address of it.
    pub(super) vm_id: u64,
    pub(super) kvm: u64,
    /// Process of its VMM.
    pub(super) tgid: u32,
    pub(super) vcpu: Vcpu,
}

// SAFETY: integers only, `seq` first.
unsafe impl Sequenced for vcpu_account {}

/// The kernel's table, and the pCPUs' clocks.
pub(super) struct Table {
    accounts: Mapped<vcpu_account>,
    clocks: Mapped<pcpu_clock>,
    is_amd: bool,
}

impl Table {
    pub(super) fn new(
        accounts: Mapped<vcpu_account>,
        clocks: Mapped<pcpu_clock>,
        is_amd: bool,
    ) -> Self {
        Self {
            accounts,
            clocks,
            is_amd,
        }
    }

    /// All rows that are in use, and how many of them never stood still.
    pub(super) fn rows(&self, now_ns: impl Fn() -> u64) -> (Vec<Row>, u64) {
        let mut torn_reads = 0;
        let rows = (0..self.accounts.len()).filter_map(|at| {
            let (row, whole) = self.read(at, &now_ns)?;
            torn_reads += u64::from(!whole);
            Some(row)
        });
        let rows = rows.collect();
        (rows, torn_reads)
    }

    /// The vCPU in row `at`, if there is one, and whether its times were read at rest.
    fn read(&self, at: usize, now_ns: impl Fn() -> u64) -> Option<(Row, bool)> {
        let row = self.accounts.at(at)?;
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
        let (account, times, now_ns, whole) = self.times_at_rest(at, &now_ns)?;
        let vcpu = Vcpu {
            vcpu: account.vcpu_id,
            tid: account.tid,
            found_ns,
            account: Account {
                wall_ns: now_ns.saturating_sub(found_ns),
                times,
                counts: counts(&account.counts),
                exits: exits::by_name(&account.exits, self.is_amd),
                latencies: latencies(&account.latencies),
            },
        };
        let row = Row {
            vm_id: account.vm_id,
            kvm,
            tgid: account.tgid,
            vcpu,
        };
        Some((row, whole))
    }

    /// Row `at` with its times up to the moment of the third, and whether they belong together.
    fn times_at_rest(
        &self,
        at: usize,
        now_ns: impl Fn() -> u64,
    ) -> Option<(vcpu_account, Times, u64, bool)> {
        for _ in 1..READINGS {
            let row = self.accounts.read(at, &now_ns)?;
            if row.copy.state != vcpu_state::STATE_ready_other {
                return Some(closed(&row));
            }
            let Some(clock) = self.clocks.read(row.copy.lost_cpu as usize, &now_ns) else {
                return Some(closed(&row));
            };
            // The wait may have ended while its clock was read: then it is split already.
            if self.accounts.is_still(at, &row) {
                return Some(waiting(&row, &clock));
            }
        }
        let row = self.accounts.read(at, now_ns)?;
        let (account, times, now_ns, _) = closed(&row);
        Some((account, times, now_ns, false))
    }
}

/// An account's times: what is still going on belongs to the state that it is in.
fn closed(row: &Reading<vcpu_account>) -> (vcpu_account, Times, u64, bool) {
    let account = row.copy;
    let mut times_ns = account.time_ns;
    if let Some(open) = times_ns.get_mut(account.state.0 as usize) {
        *open += row.now_ns.saturating_sub(account.since_ns);
    }
    (account, times(&times_ns), row.now_ns, row.whole)
}

/// The times of an account that waits, up to the reading of the `clock` of the pCPU it lost.
fn waiting(
    row: &Reading<vcpu_account>,
    clock: &Reading<pcpu_clock>,
) -> (vcpu_account, Times, u64, bool) {
    let (account, now_ns) = (row.copy, clock.now_ns);
    let mut times = times(&account.time_ns);
    let wait_ns = now_ns.saturating_sub(account.since_ns);
    let vm = account.vm_id;
    let wait = clock::split(&clock.copy, &account.at_loss, vm, wait_ns, now_ns);
    times.ready.add(&wait);
    (account, times, now_ns, row.whole && clock.whole)
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
        preempted_critical: Some(preempted_critical),
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
