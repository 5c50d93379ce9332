// SPDX-License-Identifier: GPL-2.0-only
//! Gangs, and the window in which pool and coupling are looked at again:
//! bpf/gang.bpf.h. There a timer ends a window; here the first call after its
//! end does.

use super::{Corun, CpuId, Host};
use corun_policy::boost::{self, PoolWindow};

/// pCPUs that a leader looks at: a gang spreads from pCPU to pCPU.
const GANG_SCAN: usize = 64;

/// The window that runs.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) end_ns: u64,
    /// `served` when it began.
    pub(super) before: PoolWindow,
}

impl Corun {
    /// Would the vCPU on `cpu` give way to one of `vm`?
    fn gang_takes(&self, cpu: CpuId, vm: usize, now_ns: u64) -> bool {
        let c = &self.cpus[cpu as usize];
        let (Some(_), Some(other)) = (c.curr, c.running_vm) else {
            return false;
        };
        if other == vm || c.kick_pending || c.urgent.is_some() || c.serving.is_some() {
            return false;
        }
        let ran_ns = now_ns - c.run_start_ns;
        boost::pulls(&self.vms[vm], &self.vms[other], ran_ns, &self.tun)
    }

    /// A vCPU of `vm` starts on `cpu`, until `end_ns`: another pCPU may join.
    pub(super) fn pull_gang(&mut self, host: &mut Host<'_>, vm: usize, cpu: CpuId, end_ns: u64) {
        if !self.states[vm].coupled || self.queues[vm].is_empty() {
            return;
        }
        let llc = host.cpus[cpu as usize].llc;
        let all = self.cpus.len();
        let others = (1..all.min(GANG_SCAN)).map(|i| (cpu as usize + i) % all);
        let found = { others }.find(|&other| {
            host.cpus[other].llc == llc && self.gang_takes(other as CpuId, vm, host.now_ns)
        });
        if let Some(other) = found {
            self.cpus[other].gang = Some((vm, end_ns));
            self.cpus[other].kick_pending = true;
            host.kick(other as CpuId);
        }
    }

    /// Ends the windows that are over.
    pub(super) fn end_windows(&mut self, now_ns: u64) {
        while now_ns >= self.window.end_ns {
            self.window.end_ns += self.tun.window_ns.max(1);
            self.next_pool();
            for vm in 0..self.vms.len() {
                self.next_coupling(vm);
            }
        }
    }

    fn next_pool(&mut self) {
        let (now, before) = (self.served, self.window.before);
        let window = PoolWindow {
            window_ns: self.tun.window_ns,
            busy_ns: now.busy_ns - before.busy_ns,
            waited_ns: now.waited_ns - before.waited_ns,
            events: now.events - before.events,
            served: now.served - before.served,
            nr_cpus: self.cpus.len() as u64,
        };
        self.window.before = now;
        self.pool = boost::pool_next(self.pool, &window, &self.tun);
    }

    fn next_coupling(&mut self, vm: usize) {
        let used_ns = self.vms[vm].used_ns;
        let s = &mut self.states[vm];
        let used_in_window_ns = used_ns - s.used_before_ns;
        let events = s.events - s.events_before;
        s.coupled = boost::coupled(s.coupled, events, used_in_window_ns, &self.tun);
        // Windows too short to tell add up.
        if used_in_window_ns >= boost::GANG_MIN_GAPS * self.tun.gang_event_gap_ns {
            s.events_before = s.events;
            s.used_before_ns = used_ns;
        }
    }
}
