// SPDX-License-Identifier: GPL-2.0-only
//! How a VM's weight is divided between its vCPUs: by what each wanted to run of
//! late (`calc_group_shares` with PELT's averages, kernel/sched/pelt.c).
//!
//! With the number of runnable vCPUs at this moment instead, two vCPUs that take
//! turns would each weigh as much as the whole VM, and balancing would put both
//! on one pCPU.

use super::{Host, TaskId};

/// The average of a task that always wants to run.
const FULL: u64 = 1 << 20;
/// Averages change once in a period (PELT's is 1,024 us).
const PERIOD_NS: u64 = 1 << 20;
/// Periods in which an average halves.
const HALF_LIFE: u64 = 32;
/// 2^(-1/32) with 32 bits behind the point.
const DECAY: u64 = 4_202_935_002;

/// Decay by n periods, n below [`HALF_LIFE`], with 32 bits behind the point.
const DECAYS: [u64; HALF_LIFE as usize] = {
    let mut table = [1 << 32; HALF_LIFE as usize];
    let mut n = 1;
    while n < table.len() {
        table[n] = (table[n - 1] * DECAY) >> 32;
        n += 1;
    }
    table
};

fn decay(value: u64, periods: u64) -> u64 {
    let halves = periods / HALF_LIFE;
    if halves >= 64 {
        return 0;
    }
    ((value >> halves) * DECAYS[(periods % HALF_LIFE) as usize]) >> 32
}

/// What one task wanted of late.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    average: u64,
    /// When the period began that is not in the average yet.
    since_ns: u64,
    /// How long it wanted to run in that, up to `seen_ns`.
    wanted_ns: u64,
    seen_ns: u64,
    runnable: bool,
    known: bool,
}

impl Load {
    /// Brings it up to `now_ns`.
    fn touch(&mut self, now_ns: u64) {
        let mut from_ns = self.seen_ns;
        let end_ns = self.since_ns + PERIOD_NS;
        if now_ns >= end_ns {
            self.want(end_ns - from_ns);
            let slept_ns = PERIOD_NS - self.wanted_ns;
            // From above: who never slept comes to FULL, whatever was rounded off.
            let full = FULL - decay(FULL - self.average, 1);
            self.average = full - (FULL - decay(FULL, 1)) * slept_ns / PERIOD_NS;
            self.wanted_ns = 0;
            let periods = (now_ns - end_ns) / PERIOD_NS;
            self.average = if self.runnable {
                FULL - decay(FULL - self.average, periods)
            } else {
                decay(self.average, periods)
            };
            from_ns = end_ns + periods * PERIOD_NS;
            self.since_ns = from_ns;
        }
        self.want(now_ns - from_ns);
        self.seen_ns = now_ns;
    }

    fn want(&mut self, ns: u64) {
        if self.runnable {
            self.wanted_ns += ns;
        }
    }
}

/// Averages of all tasks, and their sums by VM.
#[derive(Debug)]
pub(super) struct Loads {
    tasks: Vec<Load>,
    vms: Vec<u64>,
}

impl Loads {
    pub(super) fn new(nr_tasks: usize, nr_vms: usize) -> Self {
        Self {
            tasks: vec![Load::default(); nr_tasks],
            vms: vec![0; nr_vms],
        }
    }

    /// Brings the average of `task` up to now.
    pub(super) fn touch(&mut self, host: &Host<'_>, task: TaskId) {
        let vm = host.tasks[task as usize].vm as usize;
        let load = &mut self.tasks[task as usize];
        let before = load.average;
        load.touch(host.now_ns);
        self.vms[vm] = self.vms[vm] - before + load.average;
    }

    /// `task` wants to run from now on, or does not. A new one is taken for one
    /// that always will (`post_init_entity_util_avg`).
    pub(super) fn set(&mut self, host: &Host<'_>, task: TaskId, runnable: bool) {
        let load = &mut self.tasks[task as usize];
        if !std::mem::replace(&mut load.known, true) {
            let now_ns = host.now_ns;
            *load = Load {
                average: FULL,
                since_ns: now_ns,
                seen_ns: now_ns,
                known: true,
                ..Load::default()
            };
            self.vms[host.tasks[task as usize].vm as usize] += FULL;
        }
        self.touch(host, task);
        self.tasks[task as usize].runnable = runnable;
    }

    /// How many vCPUs of `vm` wanted to run at once of late, rounded down: two that
    /// wait for each other now and then are one (`calc_concur_shares`). The kernel adds
    /// up what each pCPU told of late, which can be 1/64 off; here it is up to date.
    pub(super) fn at_once(&self, vm: u32) -> u64 {
        self.vms[vm as usize] / FULL
    }

    /// The part of `weight` that `task`, which wants to run, has of its VM's.
    pub(super) fn share(&self, host: &Host<'_>, task: TaskId, weight: u64) -> u64 {
        let vm = host.tasks[task as usize].vm as usize;
        let others = self.vms[vm].saturating_sub(self.tasks[task as usize].average);
        (u128::from(weight) * u128::from(FULL) / u128::from(others + FULL)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_halve_in_32_periods_and_forget() {
        assert!(decay(FULL, 32).abs_diff(FULL / 2) <= 1);
        assert!(decay(FULL, 16).abs_diff(741_455) < 100);
        assert_eq!(decay(FULL, 64 * 32), 0);
        assert_eq!(decay(FULL, 0), FULL);
    }

    #[test]
    fn short_sleeps_count() {
        let mut load = Load {
            average: FULL,
            runnable: true,
            ..Load::default()
        };
        // Awake for three quarters of each period, at whatever times.
        for i in 0..1_000 {
            load.runnable = i % 4 != 3;
            load.touch((i + 1) * PERIOD_NS / 4);
        }
        assert!(load.average.abs_diff(FULL / 4 * 3) < FULL / 50, "{load:?}");
        load.runnable = true;
        load.touch(10_000 * PERIOD_NS);
        assert_eq!(load.average, FULL);
    }
}
