// SPDX-License-Identifier: GPL-2.0-only
//! A wait that goes on, split by who has had the pCPU; those that ended were split so in the
//! kernel (`charge_wait()` in `bpf/accounts_clock.bpf.h`).

use super::mapped::Sequenced;
use crate::skel::accounts::types::{occupied, pcpu_clock, pcpu_occupant};
use corun_events::account::Ready;

// SAFETY: integers only, `seq` first.
unsafe impl Sequenced for pcpu_clock {}

/// What `clock` shows at `now_ns` to a vCPU of VM `vm`.
fn look(clock: &pcpu_clock, vm: u64, now_ns: u64) -> occupied {
    // As many as the kernel tells apart: 256.
    let vms = clock.vm_ns.len() as u64;
    let own = usize::try_from(vm % vms).unwrap_or(0);
    let since_ns = now_ns.saturating_sub(clock.since_ns);
    let has = |occupant| {
        let has = clock.occupant == occupant;
        if has { since_ns } else { 0 }
    };
    let vcpu_ns = has(pcpu_occupant::OCCUPANT_vcpu);
    let is_own = u64::from(clock.vm) % vms == vm % vms;
    let ns = |occupant: pcpu_occupant| clock.ns[occupant.0 as usize];
    occupied {
        host_ns: ns(pcpu_occupant::OCCUPANT_host) + has(pcpu_occupant::OCCUPANT_host),
        vcpu_ns: ns(pcpu_occupant::OCCUPANT_vcpu) + vcpu_ns,
        own_vm_ns: clock.vm_ns[own] + if is_own { vcpu_ns } else { 0 },
    }
}

/// The wait of `wait_ns` that a vCPU of VM `vm` is in at `now_ns`: `at_loss` is what the pCPU's
/// `clock` showed when it began.
pub(super) fn split(
    clock: &pcpu_clock,
    at_loss: &occupied,
    vm: u64,
    wait_ns: u64,
    now_ns: u64,
) -> Ready {
    let shown = look(clock, vm, now_ns);
    let mut left_ns = wait_ns;
    let mut take = |before: u64, after: u64| {
        let part_ns = after.saturating_sub(before).min(left_ns);
        left_ns -= part_ns;
        part_ns
    };
    let host_task_ns = take(at_loss.host_ns, shown.host_ns);
    let sibling_ns = take(at_loss.own_vm_ns, shown.own_vm_ns);
    let other_vm_ns = take(at_loss.vcpu_ns.saturating_add(sibling_ns), shown.vcpu_ns);
    Ready {
        other_vm_ns,
        sibling_ns,
        host_task_ns,
        other_ns: left_ns,
        ..Ready::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VM: u64 = 3;

    /// A clock that a task of the host's had for 10, VM 3 for 20, VM 4 for 40, nobody for 80, and
    /// since 1000 `occupant` has.
    fn clock(occupant: pcpu_occupant, vm: u32) -> pcpu_clock {
        let mut clock = pcpu_clock {
            since_ns: 1_000,
            occupant,
            vm,
            ns: [80, 10, 60],
            vm_ns: [0; 256],
            ..pcpu_clock::default()
        };
        (clock.vm_ns[3], clock.vm_ns[4]) = (20, 40);
        clock
    }

    fn ready(other_vm_ns: u64, sibling_ns: u64, host_task_ns: u64, other_ns: u64) -> Ready {
        Ready {
            other_vm_ns,
            sibling_ns,
            host_task_ns,
            other_ns,
            ..Ready::default()
        }
    }

    #[test]
    fn each_occupant_is_charged_what_it_had() {
        let at_loss = occupied::default();
        let wait = |occupant, vm| split(&clock(occupant, vm), &at_loss, VM, 155, 1_005);
        let (nobody, host) = (pcpu_occupant::OCCUPANT_nobody, pcpu_occupant::OCCUPANT_host);
        let vcpu = pcpu_occupant::OCCUPANT_vcpu;
        assert_eq!(wait(nobody, 0), ready(40, 20, 10, 85));
        assert_eq!(wait(host, 0), ready(40, 20, 15, 80));
        assert_eq!(wait(vcpu, 3), ready(40, 25, 10, 80));
        assert_eq!(wait(vcpu, 4), ready(45, 20, 10, 80));
    }

    #[test]
    fn what_was_before_the_wait_is_not_in_it() {
        let clock = clock(pcpu_occupant::OCCUPANT_vcpu, 4);
        let at_loss = look(&clock, VM, 1_002);
        let wait = split(&clock, &at_loss, VM, 7, 1_009);
        assert_eq!(wait, ready(7, 0, 0, 0));
    }

    #[test]
    fn the_parts_never_exceed_the_wait() {
        let clock = clock(pcpu_occupant::OCCUPANT_host, 0);
        for wait_ns in 0..200 {
            let wait = split(&clock, &occupied::default(), VM, wait_ns, 1_005);
            assert_eq!(wait.total_ns(), wait_ns);
        }
    }

    #[test]
    fn vms_far_apart_in_number_are_taken_for_one() {
        let clock = clock(pcpu_occupant::OCCUPANT_nobody, 0);
        assert_eq!(look(&clock, VM + 256, 1_000).own_vm_ns, 20);
    }
}
