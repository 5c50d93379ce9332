// SPDX-License-Identifier: GPL-2.0-only

use super::*;
use crate::skel::accounts::AccountsSkelBuilder;
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

/// A table of one row at `row`.
fn table(row: &mut vcpu_account) -> std::mem::ManuallyDrop<Table> {
    std::mem::ManuallyDrop::new(Table {
        first: NonNull::from(row),
        rows: 1,
        bytes: NonZeroUsize::MIN,
        is_amd: true,
    })
}

#[test]
fn what_goes_on_counts_up_to_now_and_all_adds_up() {
    let mut row = vcpu_account {
        kvm: 1,
        vm_id: 7,
        found_ns: 100,
        since_ns: 160,
        state: 3,
        tgid: 9,
        ..vcpu_account::default()
    };
    row.time_ns[0] = 60;
    let (rows, torn) = table(&mut row).rows(|| 200);
    let account = &rows[0].vcpu.account;
    assert_eq!((rows[0].vm_id, rows[0].tgid, torn), (7, 9, 0));
    assert_eq!(
        (account.times.run_ns, account.times.ready.sibling_ns),
        (60, 40)
    );
    assert_eq!(account.times.total_ns(), account.wall_ns);
}

#[test]
fn free_rows_and_those_being_set_up_are_no_vcpus() {
    let mut row = vcpu_account::default();
    assert!(table(&mut row).rows(|| 200).0.is_empty());
    row.kvm = 1;
    assert!(table(&mut row).rows(|| 200).0.is_empty());
}

#[test]
fn a_row_that_never_stands_still_is_told() {
    let mut row = vcpu_account {
        kvm: 1,
        found_ns: 1,
        seq: 3,
        ..vcpu_account::default()
    };
    let (rows, torn) = table(&mut row).rows(|| 200);
    assert_eq!((rows.len(), torn), (1, 1));
}
