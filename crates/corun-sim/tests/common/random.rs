// SPDX-License-Identifier: GPL-2.0-only
//! Random small scenarios.

use super::{Build, model, model_names, vm_spec};
use corun_case::SchedulerKind;
use corun_case::sim::{CoschedKind, HaltPoll, Hypervisor, Ple, SpinHandler, SpinlockKind, TlbKind};
use corun_policy::Mechanisms;
use corun_sim::{Scenario, VmSpec, WorkSpec};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::FileFailurePersistence;
use std::sync::Arc;

/// Host schedulers.
pub(crate) const KINDS: [SchedulerKind; 5] = [
    SchedulerKind::Corun,
    SchedulerKind::Eevdf,
    SchedulerKind::Cfs,
    SchedulerKind::Credit,
    SchedulerKind::Cosched,
];

/// Locks of guests' kernels.
pub(crate) const LOCKS: [SpinlockKind; 8] = [
    SpinlockKind::Ticket,
    SpinlockKind::PvTicket,
    SpinlockKind::Pmt,
    SpinlockKind::Queued,
    SpinlockKind::PvQueued,
    SpinlockKind::PvQueuedFifo,
    SpinlockKind::TestAndSet,
    SpinlockKind::Debug,
];

/// Ways of TLB shootdowns.
pub(crate) const FLUSHES: [TlbKind; 4] = [
    TlbKind::Ipi,
    TlbKind::Kvmtlb,
    TlbKind::KvmtlbV4,
    TlbKind::Shoot4u,
];

const POLLS: [HaltPoll; 5] = [
    HaltPoll::Never,
    HaltPoll::Always,
    HaltPoll::Fixed(50_000),
    HaltPoll::Adaptive,
    HaltPoll::Steered,
];

const HANDLERS: [SpinHandler; 7] = [
    SpinHandler::Y2009,
    SpinHandler::Y2011,
    SpinHandler::Y2012,
    SpinHandler::Y2013,
    SpinHandler::Y2017,
    SpinHandler::Y2019,
    SpinHandler::Strict,
];

const GANGS: [CoschedKind; 3] = [
    CoschedKind::Strict,
    CoschedKind::Relaxed,
    CoschedKind::Balance,
];

/// 48 of them a test; one that fails is kept beside the test, in `regressions`, and
/// tried first from then on.
pub(crate) fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 48,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

/// A host of 2 to 8 pCPUs with 1 to 3 guests of any kind, for 60 ms.
pub(crate) fn scenario() -> impl Strategy<Value = Scenario> {
    (host(), hypervisor(), prop::collection::vec(guest(), 1..=3)).prop_map(
        |(mut host, hypervisor, guests)| {
            let (ple, handler, poll, xen, debooster, posted) = hypervisor;
            host.kvm.ple = ple.then(Ple::default);
            host.kvm.spin_handler = handler;
            host.kvm.halt_poll = poll;
            host.kvm.debooster = debooster;
            host.kvm.posted_interrupts = posted;
            if xen {
                host.kvm.hypervisor = Hypervisor::Xen;
            }
            host.vms = guests;
            for (i, vm) in host.vms.iter_mut().enumerate() {
                vm.name = format!("vm{i}");
            }
            host
        },
    )
}

fn host() -> impl Strategy<Value = Scenario> {
    let shape = (2u32..=8, 1u32..=2, select(&[0u32, 2, 4][..]));
    let noise = select(&[0u64, 200_000][..]);
    let gang = select(&GANGS[..]);
    (
        shape,
        noise,
        select(&KINDS[..]),
        gang,
        any::<u64>(),
        mechanisms(),
    )
        .prop_map(
            |((pcpus, threads, llc), noise_ns, kind, gang, seed, mechanisms)| {
                let mut s = Build::new(pcpus, kind).seconds(0.05).scenario();
                s.warmup_ns = 10_000_000;
                s.seed = seed;
                s.threads_per_core = threads;
                s.pcpus_per_llc = llc;
                s.costs.noise_every_ns = noise_ns;
                s.costs.noise_ns = noise_ns / 50;
                s.costs.noise_waits = seed % 2 == 1;
                s.scheduler.settings.cosched.kind = gang;
                s.scheduler.mechanisms = mechanisms;
                s
            },
        )
}

/// Any set of mechanisms; all of them in one case of four.
pub(crate) fn mechanisms() -> impl Strategy<Value = Mechanisms> {
    prop_oneof![
        3 => (0..=Mechanisms::ALL.bits()).prop_map(Mechanisms::from_bits_truncate),
        1 => Just(Mechanisms::ALL),
    ]
}

/// PLE, its handler, polling, Xen, Debooster, posted interrupts.
fn hypervisor() -> impl Strategy<Value = (bool, SpinHandler, HaltPoll, bool, bool, bool)> {
    (
        any::<bool>(),
        select(&HANDLERS[..]),
        select(&POLLS[..]),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
        any::<bool>(),
    )
}

fn guest() -> impl Strategy<Value = VmSpec> {
    let work = prop::collection::vec(select(model_names()), 1..=2);
    let kernel = (select(&LOCKS[..]), select(&FLUSHES[..]));
    let pinned = prop::bool::weighted(0.2);
    let weight = select(&[1u32, 50, 100, 300, 10_000][..]);
    let pv = any::<(bool, bool, bool)>();
    (1u32..=8, work, kernel, pinned, weight, pv).prop_map(
        |(vcpus, work, (lock, flush), pinned, weight, (yields, ipi, eoi))| {
            let work = work.iter().map(|name| WorkSpec {
                model: Arc::new(model(name)),
                threads: None,
            });
            let mut vm = vm_spec("vm", vcpus, work.collect());
            vm.weight = weight;
            vm.kernel.spinlock = lock;
            vm.kernel.tlb = flush;
            vm.kernel.pinned = pinned;
            vm.pv.sched_yield = yields;
            vm.pv.ipi = ipi;
            vm.pv.eoi = eoi;
            vm
        },
    )
}
