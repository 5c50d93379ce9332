// SPDX-License-Identifier: GPL-2.0-only

use super::*;
use crate::skel::accounts::AccountsSkelBuilder;
use crate::skel::accounts::types::pcpu_occupant;
use crate::text::c_string;
use libbpf_rs::skel::SkelBuilder;
use std::mem::MaybeUninit;

/// The figures' names and values as JSON has them, in the order of the fields.
fn named(value: impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).expect("json")
}

/// The kernel's names in its order.
fn kernels() -> [Vec<String>; 3] {
    let mut object = MaybeUninit::uninit();
    let open = AccountsSkelBuilder::default()
        .open(&mut object)
        .expect("opens");
    let rodata = open.maps.rodata_data.as_ref().expect("has data");
    [
        rodata.state_names.iter().map(|n| c_string(n)).collect(),
        rodata.count_names.iter().map(|n| c_string(n)).collect(),
        rodata.latency_names.iter().map(|n| c_string(n)).collect(),
    ]
}

#[test]
fn every_figure_goes_where_its_name_says() {
    let [states, counted, timed] = kernels();
    let of_times = named(times(&std::array::from_fn(|i| i as u64 + 1)));
    for (value, name) in (1_u64..).zip(&states) {
        let field = name.strip_prefix("ready_").map_or_else(
            || &of_times[format!("{name}_ns")],
            |cause| &of_times["ready"][format!("{cause}_ns")],
        );
        assert_eq!(field, value, "{name}");
    }
    let of_counts = named(counts(&std::array::from_fn(|i| i as u64 + 1)));
    for (value, name) in (1_u64..).zip(&counted) {
        assert_eq!(of_counts[name], value, "{name}");
    }
    let of_latencies = named(latencies(&std::array::from_fn(|i| distribution {
        count: i as u64 + 1,
        ..distribution::default()
    })));
    for (value, name) in (1_u64..).zip(&timed) {
        assert_eq!(of_latencies[name]["count"], value, "{name}");
    }
    assert_eq!((states.len(), counted.len(), timed.len()), (10, 14, 8));
}

/// A table of one row at `row`, and one pCPU's clock.
struct Small {
    rows: Vec<vcpu_account>,
    clocks: Vec<pcpu_clock>,
}

impl Small {
    fn of(row: &vcpu_account) -> Self {
        Self {
            rows: vec![*row],
            clocks: vec![pcpu_clock::default()],
        }
    }

    fn read(&mut self, now_ns: u64) -> (Vec<Row>, u64) {
        let accounts = Mapped::of(&mut self.rows);
        let clocks = Mapped::of(&mut self.clocks);
        let table = std::mem::ManuallyDrop::new(Table {
            accounts: std::mem::ManuallyDrop::into_inner(accounts),
            clocks: std::mem::ManuallyDrop::into_inner(clocks),
            is_amd: true,
        });
        table.rows(|| now_ns)
    }
}

const ROW: fn() -> vcpu_account = || vcpu_account {
    kvm: 1,
    vm_id: 7,
    found_ns: 100,
    since_ns: 160,
    tgid: 9,
    ..vcpu_account::default()
};

#[test]
fn what_goes_on_counts_up_to_now_and_all_adds_up() {
    let mut row = ROW();
    row.state = vcpu_state::STATE_halted;
    row.time_ns[0] = 60;
    let (rows, torn) = Small::of(&row).read(200);
    let account = &rows[0].vcpu.account;
    assert_eq!((rows[0].vm_id, rows[0].tgid, torn), (7, 9, 0));
    assert_eq!((account.times.run_ns, account.times.halted_ns), (60, 40));
    assert_eq!(account.times.total_ns(), account.wall_ns);
}

#[test]
fn a_wait_that_goes_on_is_split_by_who_has_the_pcpu() {
    let mut row = ROW();
    row.state = vcpu_state::STATE_ready_other;
    row.time_ns[vcpu_state::STATE_ready_sibling.0 as usize] = 60;
    row.at_loss.host_ns = 1_000;
    let mut small = Small::of(&row);
    small.clocks[0] = pcpu_clock {
        since_ns: 170,
        occupant: pcpu_occupant::OCCUPANT_vcpu,
        vm: 7,
        ns: [0, 1_010, 0],
        ..pcpu_clock::default()
    };
    let (rows, torn) = small.read(200);
    let account = &rows[0].vcpu.account;
    assert_eq!((account.times.total_ns(), torn), (account.wall_ns, 0));
    let ready = account.times.ready;
    assert_eq!((ready.host_task_ns, ready.sibling_ns), (10, 60 + 30));
    small.clocks[0].seq = 1;
    assert_eq!(small.read(200).1, 1, "the clock was turning");
}

#[test]
fn free_rows_and_those_being_set_up_are_no_vcpus() {
    let mut row = vcpu_account::default();
    assert!(Small::of(&row).read(200).0.is_empty());
    row.kvm = 1;
    assert!(Small::of(&row).read(200).0.is_empty());
}

#[test]
fn a_row_that_never_stands_still_is_told() {
    let row = vcpu_account { seq: 3, ..ROW() };
    let (rows, torn) = Small::of(&row).read(200);
    assert_eq!((rows.len(), torn), (1, 1));
}

/// What `corun top` takes for a reading of many vCPUs, on this machine; its other part is in
/// `top::tests`. No figure is asserted: machines differ.
#[test]
#[ignore = "prints a figure: docs/src/howto/overhead.md"]
fn cost_at_many_vcpus_of_reading() {
    const READINGS: u32 = 200;
    let mut row = ROW();
    row.exits[..40].fill(7);
    for latency in &mut row.latencies {
        latency.count = 100;
        latency.buckets[100..160].fill(3);
    }
    let cpu_ns = || {
        let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
        let time = nix::time::clock_gettime(clock).expect("a clock");
        std::time::Duration::from(time).as_nanos()
    };
    for vcpus in [200, 1000] {
        let mut rows = vec![row; vcpus];
        let mut clocks = [pcpu_clock::default()];
        let table = std::mem::ManuallyDrop::new(Table {
            accounts: std::mem::ManuallyDrop::into_inner(Mapped::of(&mut rows)),
            clocks: std::mem::ManuallyDrop::into_inner(Mapped::of(&mut clocks)),
            is_amd: true,
        });
        let begin_ns = cpu_ns();
        for _ in 0..READINGS {
            assert_eq!(std::hint::black_box(table.rows(|| 200)).0.len(), vcpus);
            std::hint::black_box(super::super::host::read()).expect("/proc/stat");
        }
        let us = (cpu_ns() - begin_ns) as f64 / 1e3 / f64::from(READINGS);
        println!(
            "reading {vcpus} vCPUs: {us:.0} us of CPU time; {:.3} % at 1 s",
            us / 1e4
        );
    }
}
