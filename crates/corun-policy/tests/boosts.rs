// SPDX-License-Identifier: GPL-2.0-only
//! What boosts may never do, whatever guests ask for.

use corun_policy::boost::{
    Pool, PoolWindow, Sibling, UrgentVerdict, Victim, coupled, defers, gang_align, gang_crowded,
    gang_slice, pool_next, pulls, score, takes, urgent,
};
use corun_policy::{Region, Tunables, Vm, before, first, vtime, yield_affords};
use proptest::prelude::*;

fn tunables() -> Tunables {
    Tunables::default()
}

fn vm(vtime_ns: u64) -> Vm {
    Vm {
        vtime_ns,
        weight: 100,
        ..Vm::default()
    }
}

proptest! {
    #[test]
    fn who_sleeps_or_runs_is_never_chosen(
        region in 0_u32..12, in_kernel: bool, ipi: bool, now_ns: u64,
    ) {
        let sibling = Sibling { waits_since_ns: 0, region, in_kernel, ipi_from_spinner: ipi };
        prop_assert_eq!(score(&sibling, now_ns), 0);
    }

    #[test]
    fn an_unanswered_ipi_goes_before_all_else(
        since_ns in 1_u64..1 << 60, other_since_ns in 1_u64..1 << 60,
        regions in (0_u32..12, 0_u32..12), kernel: (bool, bool), later_ns in 0_u64..1 << 60,
    ) {
        let owes = Sibling {
            waits_since_ns: since_ns, region: regions.0, in_kernel: kernel.0,
            ipi_from_spinner: true,
        };
        let other = Sibling {
            waits_since_ns: other_since_ns, region: regions.1, in_kernel: kernel.1,
            ipi_from_spinner: false,
        };
        let now_ns = since_ns.max(other_since_ns) + later_ns;
        prop_assert!(score(&owes, now_ns) > score(&other, now_ns));
    }

    #[test]
    fn a_boost_never_takes_more_than_the_vm_can_owe(
        ahead_ns in 0_u64..20_000_000, start_ns: u64, now_ns in 1_u64 << 40..1 << 50,
    ) {
        let t = tunables();
        let victim = Victim { vm_vtime_ns: start_ns, ..Victim::default() };
        let ours = vm(start_ns.wrapping_add(ahead_ns));
        prop_assert_eq!(takes(&ours, &victim, now_ns, &t), ahead_ns <= t.boost_debt_ns);
        for (sibling_or_host, taken) in [(true, false), (false, true)] {
            let victim = Victim { sibling_or_host, taken, ..victim };
            prop_assert!(!takes(&ours, &victim, now_ns, &t));
        }
    }

    #[test]
    fn a_pcpu_is_left_alone_between_urgent_slices(end_ns in 1_u64..1 << 50, later_ns in 0_u64..1_000_000) {
        let t = tunables();
        let victim = Victim { urgent_end_ns: end_ns, ..Victim::default() };
        let allowed = takes(&vm(0), &victim, end_ns + later_ns, &t);
        prop_assert_eq!(allowed, later_ns >= t.urgent_gap_ns);
    }

    #[test]
    fn deferral_ends(region in 0_u32..20, ahead_ns in 0_u64..20_000_000) {
        let t = tunables();
        prop_assert!(!defers(region, t.defer_max, &vm(ahead_ns), &vm(0), &t));
        let critical = Region::from_number(region).is_some_and(Region::is_critical);
        prop_assert_eq!(
            defers(region, 0, &vm(ahead_ns), &vm(0), &t),
            critical && ahead_ns <= t.boost_debt_ns
        );
    }

    #[test]
    fn the_pool_stays_within_the_host_and_empties_when_it_is_calm(
        windows in prop::collection::vec((0_u64..50, 0_u64..50, 0_u64..100_000_000), 1..60),
        nr_cpus in 1_u64..512,
    ) {
        let t = tunables();
        let mut pool = Pool::default();
        for (events, served, waited_ns) in windows {
            let window = PoolWindow {
                window_ns: t.window_ns, busy_ns: served * t.urgent_slice_ns, waited_ns,
                events, served, nr_cpus,
            };
            let next = pool_next(pool, &window, &t);
            prop_assert!(next.size <= pool.size + 1 && next.size + 1 >= pool.size);
            prop_assert!(u64::from(next.size) <= (nr_cpus / 2).max(1));
            pool = next;
        }
        let calm = PoolWindow { window_ns: t.window_ns, nr_cpus, ..PoolWindow::default() };
        for _ in 0..4 * 256 {
            pool = pool_next(pool, &calm, &t);
        }
        prop_assert_eq!(pool.size, 0);
    }

    #[test]
    fn a_gang_takes_nothing_from_who_has_the_better_claim(
        start_ns: u64, behind_ns in 1_u64..1 << 40, ran_ns in 0_u64..1 << 30,
    ) {
        let other = vm(start_ns);
        let ours = vm(start_ns.wrapping_add(vtime(ran_ns, 100)).wrapping_add(behind_ns));
        prop_assert!(!pulls(&ours, &other, ran_ns, &tunables()));
    }

    #[test]
    fn a_gangs_slice_is_no_longer_than_any_other(left_ns: u64) {
        let t = tunables();
        let slice_ns = gang_slice(left_ns, &t);
        prop_assert!(slice_ns <= t.slice_ns && 2 * slice_ns >= t.slice_ns);
    }

    #[test]
    fn an_aligned_slice_is_half_a_slice_to_a_whole_one(left_ns: u64, coupled: bool) {
        let t = tunables();
        let slice_ns = gang_align(coupled, left_ns, &t);
        let blind = Tunables { gang_blind: 1, ..t };
        prop_assert_eq!(gang_align(coupled, left_ns, &blind), gang_align(true, left_ns, &t));
        prop_assert!(slice_ns <= t.slice_ns && 2 * slice_ns >= t.slice_ns);
        prop_assert!(slice_ns == t.slice_ns || slice_ns == left_ns);
    }

    #[test]
    fn in_a_crowd_all_run_within_a_slice_or_each_has_its_least(
        coupled: bool, vcpus in 0_u32..5000, pcpus in 1_u32..5000,
    ) {
        let t = tunables();
        let slice_ns = gang_crowded(coupled, vcpus, pcpus, &t);
        let blind = Tunables { gang_blind: 1, ..t };
        prop_assert_eq!(
            gang_crowded(coupled, vcpus, pcpus, &blind),
            gang_crowded(true, vcpus, pcpus, &t)
        );
        prop_assert!(slice_ns <= t.slice_ns && 8 * slice_ns >= t.slice_ns);
        let whole = slice_ns == t.slice_ns;
        prop_assert_eq!(whole, !coupled || vcpus <= pcpus);
        let rounds_ns = slice_ns * u64::from(vcpus);
        let least = slice_ns == t.slice_ns / 8;
        prop_assert!(whole || least || rounds_ns <= t.slice_ns * u64::from(pcpus));
    }

    #[test]
    fn coupling_has_a_dead_band(events in 0_u64..1000, used_ns in 0_u64..1 << 40) {
        let t = tunables();
        prop_assert!(!coupled(false, events, used_ns, &t) || coupled(true, events, used_ns, &t));
    }

    /// One pCPU, two VMs that always want it. The first asks for a boost at every
    /// chance, as a guest that sends IPIs without end does.
    #[test]
    fn who_boosts_itself_without_end_ends_at_its_share(greed in 1_u64..64) {
        let t = tunables();
        let (mut a, mut b, mut now_ns) = (vm(0), vm(0), 1_u64);
        let mut boosted_ns = 0;
        let mut urgent_end_ns = 0;
        let end_ns = 4_000_000_000;
        while now_ns < end_ns {
            let victim = Victim { vm_vtime_ns: b.vtime_ns, urgent_end_ns, ..Victim::default() };
            let wants = urgent(now_ns, 0, boosted_ns, now_ns, &t) == UrgentVerdict::Yes;
            let ran_ns = if wants && takes(&a, &victim, now_ns, &t) {
                boosted_ns = now_ns;
                a.used_ns += t.urgent_slice_ns;
                a.vtime_ns += vtime(t.urgent_slice_ns + t.boost_cost_ns, a.weight);
                urgent_end_ns = now_ns + t.urgent_slice_ns;
                t.urgent_slice_ns
            } else {
                // As long as the next event leaves them alone.
                let ran_ns = (t.slice_ns / greed).max(10_000);
                let winner = if first(&a, &b) { &mut a } else { &mut b };
                winner.used_ns += ran_ns;
                winner.vtime_ns += vtime(ran_ns, winner.weight);
                ran_ns
            };
            now_ns += ran_ns;
            prop_assert!(!before(b.vtime_ns + t.boost_debt_ns + 2 * t.slice_ns, a.vtime_ns));
        }
        // Its price is its own: it gets less than half, and the other no less.
        prop_assert!(a.used_ns <= end_ns / 2 + t.boost_debt_ns + t.slice_ns);
        prop_assert!(b.used_ns + t.boost_debt_ns + t.slice_ns >= end_ns / 2);
    }

    /// One pCPU, two VMs that always want it. Two vCPUs of the first spin for each other
    /// before any slice ends: only its account ends their turn.
    #[test]
    fn spinners_that_hand_over_without_end_end_at_their_share(
        spun_ns in 1_000_u64..1_000_000, weight in 1_u32..1000,
    ) {
        let t = tunables();
        let (mut a, mut b, mut now_ns) = (vm(0), vm(0), 0_u64);
        a.weight = weight;
        let end_ns = 4_000_000_000;
        let mut a_runs = true;
        while now_ns < end_ns {
            a_runs = a_runs && yield_affords(&a, Some(&b), 1, &t) || first(&a, &b);
            let (who, ran_ns) = if a_runs { (&mut a, spun_ns) } else { (&mut b, t.slice_ns) };
            who.used_ns += ran_ns;
            who.vtime_ns += vtime(ran_ns, who.weight);
            now_ns += ran_ns;
        }
        let due_ns = end_ns * u64::from(weight) / u64::from(weight + 100);
        let slack_ns = 2 * t.slice_ns + t.boost_debt_ns;
        prop_assert!(a.used_ns <= due_ns + slack_ns * u64::from(weight.max(100)) / 100, "{a:?} {b:?}");
    }
}
