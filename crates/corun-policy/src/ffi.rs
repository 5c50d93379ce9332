// SPDX-License-Identifier: GPL-2.0-only
//! Symbols of `native.c`.

use crate::boost::{Pool, PoolWindow, Sibling, Victim};
use crate::halt::{Halt, HaltTunables, HaltWindow};
use crate::vector::Vector;
use crate::{Tunables, Vcpu, Vm, YieldInput};

/// `CORUN_SHARE_NEVER`.
pub(crate) const SHARE_NEVER: u64 = u64::MAX;

unsafe extern "C" {
    pub(crate) fn corun_native_share_vtime(delta_ns: u64, weight: u32) -> u64;
    pub(crate) fn corun_native_share_charge_vcpu(vcpu: *mut Vcpu, delta_ns: u64);
    pub(crate) fn corun_native_share_wake(
        vtime_ns: u64,
        now_ns: u64,
        lanes: u32,
        tun: *const Tunables,
    ) -> u64;
    pub(crate) fn corun_native_share_first(a: *const Vm, b: *const Vm) -> bool;
    pub(crate) fn corun_native_share_preempts_in(
        waking_vm: *const Vm,
        waking: *const Vcpu,
        running_vm: *const Vm,
        running: *const Vcpu,
        wakeup: u32,
        ran_ns: u64,
        tun: *const Tunables,
    ) -> u64;
    pub(crate) fn corun_native_share_keeps(
        vm: *const Vm,
        vcpu: *const Vcpu,
        best: *const Vm,
        has_head: bool,
        head_vtime_ns: u64,
    ) -> bool;
    pub(crate) fn corun_native_share_resumes(
        vm: *const Vm,
        host: *const Vm,
        left_ns: u64,
        tun: *const Tunables,
    ) -> bool;
    pub(crate) fn corun_native_before(a: u64, b: u64) -> bool;
    pub(crate) fn corun_native_yield_decide(input: *const YieldInput) -> u32;
    pub(crate) fn corun_native_yield_hint_fresh(
        made_ns: u64,
        now_ns: u64,
        tun: *const Tunables,
    ) -> bool;
    pub(crate) fn corun_native_yield_slice(left_ns: u64, tun: *const Tunables) -> u64;
    pub(crate) fn corun_native_yield_affords(
        vm: *const Vm,
        other: *const Vm,
        lanes: u32,
        tun: *const Tunables,
    ) -> bool;
    pub(crate) fn corun_native_yield_score(s: *const Sibling, now_ns: u64) -> u64;
    pub(crate) fn corun_native_urgent_decide(
        waits_since_ns: u64,
        urgent_ns: u64,
        boosted_ns: u64,
        now_ns: u64,
        tun: *const Tunables,
    ) -> u32;
    pub(crate) fn corun_native_urgent_takes(
        vm: *const Vm,
        victim: *const Victim,
        now_ns: u64,
        tun: *const Tunables,
    ) -> bool;
    pub(crate) fn corun_native_urgent_defers(
        region: u32,
        done: u64,
        vm: *const Vm,
        best: *const Vm,
        tun: *const Tunables,
    ) -> bool;
    pub(crate) fn corun_native_pool_next(
        pool: Pool,
        w: *const PoolWindow,
        tun: *const Tunables,
    ) -> Pool;
    pub(crate) fn corun_native_gang_coupled(
        was: bool,
        events: u64,
        used_ns: u64,
        tun: *const Tunables,
    ) -> bool;
    pub(crate) fn corun_native_gang_pulls(
        vm: *const Vm,
        other: *const Vm,
        ran_ns: u64,
        tun: *const Tunables,
    ) -> bool;
    pub(crate) fn corun_native_gang_align(coupled: bool, left_ns: u64, tun: *const Tunables)
    -> u64;
    pub(crate) fn corun_native_gang_crowded(
        coupled: bool,
        vcpus: u32,
        pcpus: u32,
        tun: *const Tunables,
    ) -> u64;
    pub(crate) fn corun_native_gang_follows(
        coupled: bool,
        age_ns: u64,
        tun: *const Tunables,
    ) -> bool;
    pub(crate) fn corun_native_gang_slice(leader_left_ns: u64, tun: *const Tunables) -> u64;
    pub(crate) fn corun_native_region_critical(region: u32) -> bool;
    pub(crate) fn corun_native_region_rank(region: u32) -> u32;
    pub(crate) fn corun_native_halt_defaults(tun: *mut HaltTunables);
    pub(crate) fn corun_native_halt_init(
        halt: *mut Halt,
        operator_ns: u64,
        tun: *const HaltTunables,
    );
    pub(crate) fn corun_native_halt_judge(
        window: *const HaltWindow,
        tun: *const HaltTunables,
    ) -> u32;
    pub(crate) fn corun_native_halt_step(
        halt: *mut Halt,
        verdict: u32,
        operator_ns: u64,
        tun: *const HaltTunables,
    );
    pub(crate) fn corun_native_halt_note_load(
        halt: *mut Halt,
        window: *const HaltWindow,
        tun: *const HaltTunables,
    ) -> bool;
    pub(crate) fn corun_native_vector_run(vector: *mut Vector);
}
