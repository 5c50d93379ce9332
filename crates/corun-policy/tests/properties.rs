// SPDX-License-Identifier: GPL-2.0-only
//! What must hold for every input, and over whole schedules.

use corun_policy::{
    Party, Tunables, Vcpu, Verdict, Vm, Wakeup, YieldInput, before, charge, decide, first,
    hint_fresh, keeps, preempts_in, vtime, wake, yield_slice,
};
use proptest::prelude::*;

/// vtimes far enough apart to be ordered: less than half the range of u64.
const SPAN: u64 = 1 << 60;

/// a - b for vtimes within [`SPAN`] of each other.
fn ahead(a: u64, b: u64) -> i64 {
    i64::from_ne_bytes(a.wrapping_sub(b).to_ne_bytes())
}

proptest! {
    #[test]
    fn more_weight_never_costs_more(delta in 0..SPAN / 100, a in 1_u32..=10_000, b in 1_u32..=10_000) {
        let (light, heavy) = (a.min(b), a.max(b));
        prop_assert!(vtime(delta, heavy) <= vtime(delta, light));
    }

    #[test]
    fn waking_never_moves_back_and_never_gives_more_than_the_credit(
        origin in any::<u64>(), behind in 0..SPAN, ahead_by in 0..SPAN, lanes in 0..512_u32,
    ) {
        let t = Tunables::default();
        let now = origin.wrapping_add(behind);
        let credit_ns = t.sleeper_credit_ns * u64::from(lanes.max(1));
        let woken = wake(origin, now, lanes, &t);
        prop_assert!(ahead(woken, origin) >= 0);
        prop_assert!(ahead(now, woken) <= i64::try_from(credit_ns).unwrap());
        let lead = now.wrapping_add(ahead_by);
        prop_assert_eq!(wake(lead, now, lanes, &t), lead);
    }

    #[test]
    fn two_vms_never_preempt_each_other(
        origin in any::<u64>(), apart in 0..SPAN, wa in 1_u32..=10_000, wb in 1_u32..=10_000,
    ) {
        let t = Tunables::default();
        let a = Vm { vtime_ns: origin, weight: wa, ..Vm::default() };
        let b = Vm { vtime_ns: origin.wrapping_add(apart), weight: wb, ..Vm::default() };
        let v = Vcpu { weight: 100, ..Vcpu::default() };
        let (pa, pb) = (Party { vm: &a, vcpu: &v }, Party { vm: &b, vcpu: &v });
        let preempts = |x, y| preempts_in(x, y, Wakeup::Stranger, 0, &t) == Some(0);
        prop_assert!(!(preempts(pa, pb) && preempts(pb, pa)));
    }

    #[test]
    fn who_is_told_to_wait_preempts_after_that_time_and_no_sooner(
        origin in any::<u64>(), apart in -1_000_000_000_i64..1_000_000_000,
        weight in 1_u32..=10_000, ran in 0..1_000_000_000_u64,
    ) {
        let t = Tunables::default();
        let waking = Vm { vtime_ns: origin, weight: 100, ..Vm::default() };
        let vtime_ns = origin.wrapping_add_signed(apart);
        let running = Vm { vtime_ns, weight, ..Vm::default() };
        let v = Vcpu { weight: 100, ..Vcpu::default() };
        let after = |ran_ns| {
            let (waking, running) = (Party { vm: &waking, vcpu: &v }, Party { vm: &running, vcpu: &v });
            preempts_in(waking, running, Wakeup::Stranger, ran_ns, &t).expect("some time")
        };
        let wait_ns = after(ran);
        prop_assert_eq!(after(ran + wait_ns), 0);
        // Both charges lose a part of a unit of vtime.
        let slack_ns = 2 * (u64::from(weight) / 100 + 1);
        prop_assert!(wait_ns <= slack_ns || after(ran + wait_ns - slack_ns) > 0);
    }

    #[test]
    fn no_sibling_gives_way_to_whom_it_woke(
        origin in any::<u64>(), apart in -1_000_000_000_i64..1_000_000_000,
        ran in 0..1_000_000_000_u64,
    ) {
        let t = Tunables::default();
        let vm = Vm { vtime_ns: origin, weight: 100, ..Vm::default() };
        let waking = Vcpu { vtime_ns: origin, weight: 100, ..Vcpu::default() };
        let running = Vcpu { vtime_ns: origin.wrapping_add_signed(apart), ..waking };
        let (a, b) = (Party { vm: &vm, vcpu: &waking }, Party { vm: &vm, vcpu: &running });
        prop_assert_eq!(preempts_in(a, b, Wakeup::BySibling, ran, &t), None);
        prop_assert!(preempts_in(a, b, Wakeup::Sibling, ran, &t).is_some());
    }

    #[test]
    fn of_two_vtimes_one_is_before(origin in any::<u64>(), apart in 1..SPAN) {
        let later = origin.wrapping_add(apart);
        prop_assert!(before(origin, later) && !before(later, origin) && !before(later, later));
    }

    #[test]
    fn a_vcpu_keeps_its_pcpu_unless_someone_has_a_better_claim(
        origin in any::<u64>(), vm_behind in 0..SPAN, head_behind in 0..SPAN,
    ) {
        let vm = Vm { vtime_ns: origin, weight: 100, ..Vm::default() };
        let vcpu = Vcpu { vtime_ns: origin, weight: 100, ..Vcpu::default() };
        let other = Vm { vtime_ns: origin.wrapping_sub(vm_behind), ..vm };
        let head = origin.wrapping_sub(head_behind);
        let party = Party { vm: &vm, vcpu: &vcpu };
        prop_assert!(keeps(party, None, None));
        prop_assert_eq!(keeps(party, Some(&other), None), vm_behind == 0);
        prop_assert_eq!(keeps(party, None, Some(head)), head_behind == 0);
    }

    #[test]
    fn only_what_cannot_be_done_is_refused(same_vm in any::<bool>(), allowed_here in any::<bool>()) {
        let verdict = decide(YieldInput { directed: true, same_vm, allowed_here });
        prop_assert_eq!(verdict == Verdict::Honour, same_vm && allowed_here);
        let undirected = decide(YieldInput { directed: false, same_vm, allowed_here });
        prop_assert_eq!(undirected, Verdict::Undirected);
    }

    #[test]
    fn hints_age(made in any::<u64>(), age in 0..SPAN) {
        let t = Tunables::default();
        let fresh = hint_fresh(made, made.wrapping_add(age), &t);
        prop_assert_eq!(fresh, age <= t.hint_max_age_ns);
    }

    #[test]
    fn a_donated_slice_stays_in_its_range(left in any::<u64>()) {
        let t = Tunables::default();
        let slice = yield_slice(left, &t);
        prop_assert!((t.yield_min_slice_ns..=t.slice_ns).contains(&slice));
    }

    /// Bounded lag: however many vCPUs each VM has, and whatever the weights,
    /// VMs that always want to run get CPU time by weight, to within one slice a
    /// pCPU. The schedule is the scheduler's: least vtime first, charged at the end.
    #[test]
    fn shares_follow_weights_whatever_the_number_of_vcpus(
        pcpus in 1_usize..=8,
        parties in proptest::collection::vec((1_usize..=16, 50_u32..=400), 2..=6),
        rounds in 200_usize..=400,
    ) {
        // VMs with fewer vCPUs than pCPUs may be unable to use their share.
        let parties: Vec<_> = parties.into_iter().map(|(n, w)| (n.max(pcpus), w)).collect();
        let t = Tunables::default();
        let mut vms: Vec<(Vm, Vec<Vcpu>)> = parties.iter().map(|(n, weight)| {
            let vm = Vm { weight: *weight, ..Vm::default() };
            (vm, vec![Vcpu { weight: 100, ..Vcpu::default() }; *n])
        }).collect();
        for _ in 0..rounds {
            run_round(&mut vms, pcpus, &t);
        }
        let bound = vtime(t.slice_ns, 50) * (pcpus as u64 + 1);
        let least = vms.iter().map(|(vm, _)| vm.vtime_ns).min().unwrap();
        for (vm, vcpus) in &vms {
            prop_assert!(vm.vtime_ns - least <= bound, "VM ahead by {}", vm.vtime_ns - least);
            let used: u64 = vcpus.iter().map(|v| v.used_ns).sum();
            prop_assert_eq!(used, vm.used_ns, "time was lost or made up");
            let (low, high) = (vcpus.iter().map(|v| v.vtime_ns).min().unwrap(),
                               vcpus.iter().map(|v| v.vtime_ns).max().unwrap());
            prop_assert!(high - low <= t.slice_ns, "siblings apart by {}", high - low);
        }
    }
}

/// Every pCPU runs one slice of the vCPU that the policy would choose.
fn run_round(vms: &mut [(Vm, Vec<Vcpu>)], pcpus: usize, t: &Tunables) {
    let mut running: Vec<(usize, usize)> = Vec::new();
    for _ in 0..pcpus {
        let mut best: Option<usize> = None;
        for i in 0..vms.len() {
            let free = vms[i].1.len() > running.iter().filter(|(vm, _)| *vm == i).count();
            if free && best.is_none_or(|b| first(&vms[i].0, &vms[b].0)) {
                best = Some(i);
            }
        }
        let vm = best.expect("work is never short here");
        let vcpu = (0..vms[vm].1.len())
            .filter(|v| !running.contains(&(vm, *v)))
            .min_by_key(|v| vms[vm].1[*v].vtime_ns)
            .expect("a free vCPU was counted");
        running.push((vm, vcpu));
    }
    for (i, v) in running {
        let (vm, vcpus) = &mut vms[i];
        charge(&mut vcpus[v], t.slice_ns);
        vm.vtime_ns += vtime(t.slice_ns, vm.weight);
        vm.used_ns += t.slice_ns;
    }
}
