// SPDX-License-Identifier: GPL-2.0-only
//! Made-up accounts for tests.

use corun_events::account::{
    Account, Counts, Histogram, Host, Latencies, Ready, Snapshot, Times, Vcpu, Vm,
};

/// An interval of one second on 4 pCPUs with `vms` VMs of `vcpus` vCPUs each; those of a higher
/// number have less to do.
pub(super) fn interval(vms: u64, vcpus: u32) -> Snapshot {
    let vms = (1..=vms).map(|id| Vm {
        id,
        name: format!("web-{id}"),
        pid: 1000 + u32::try_from(id).unwrap_or(0),
        vcpus: (0..vcpus).map(|v| vcpu(id, v)).collect(),
    });
    Snapshot {
        corun_accounts: 1,
        at_ns: 5_000_000_000,
        length_ns: 1_000_000_000,
        host: Host {
            pcpus: 4,
            scheduler: "kernel".to_owned(),
            guest_ns: 3_700_000_000,
            host_ns: 200_000_000,
            idle_ns: 100_000_000,
            ..Host::default()
        },
        vms: vms.collect(),
        ..Snapshot::default()
    }
}

fn vcpu(vm: u64, number: u32) -> Vcpu {
    let busy = 1_000_000_000 / (vm + u64::from(number));
    let run_ns = busy * 4 / 10;
    let other_vm_ns = busy * 3 / 10;
    let (sibling_ns, woken_ns) = (busy / 20, busy / 50);
    let taken = run_ns + other_vm_ns + sibling_ns + woken_ns;
    let mut latencies = Latencies {
        wake_to_run: Histogram::of(&[90_000, 110_000, 4_000_000]),
        shootdown: Histogram::of(&[300_000, 9_000_000]),
        preempted: Histogram::of(&[3_000_000, 40_000_000]),
        ..Latencies::default()
    };
    latencies.ipi_to_running = Histogram::of(&[12_000, 14_000, 13_000]);
    latencies.ipi_to_preempted = Histogram::of(&[22_000_000]);
    Vcpu {
        vcpu: number,
        tid: 2000 + number,
        found_ns: 1,
        account: Account {
            wall_ns: 1_000_000_000,
            times: Times {
                run_ns,
                poll_ns: 0,
                ready: Ready {
                    other_vm_ns,
                    sibling_ns,
                    woken_ns,
                    ..Ready::default()
                },
                halted_ns: 1_000_000_000 - taken,
                blocked_ns: 0,
            },
            counts: Counts {
                spins: 1200 / vm,
                yields_asked: 30,
                yields_honoured: 12,
                ipis_sent: 55,
                ipis_received: 54,
                device_interrupts: 7,
                preempted_user: 20,
                preempted_kernel: 41 / vm,
                halts: 350,
                polls_succeeded: 100,
                polls_failed: 200,
                wakeups: 250,
                ..Counts::default()
            },
            exits: [
                ("hlt", 350),
                ("msr", 900),
                ("page_fault", 3),
                ("hypercall", 55),
            ]
            .map(|(name, n)| (name.to_owned(), n))
            .into(),
            latencies,
        },
    }
}
