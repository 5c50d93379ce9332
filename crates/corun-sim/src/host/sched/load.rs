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
    since_ns: u64,
    runnable: bool,
    seen: bool,
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
        let load = &mut self.tasks[task as usize];
        let periods = (host.now_ns - load.since_ns) / PERIOD_NS;
        if periods == 0 {
            return;
        }
        load.since_ns += periods * PERIOD_NS;
        let before = load.average;
        load.average = if load.runnable {
            FULL - decay(FULL - before, periods)
        } else {
            decay(before, periods)
        };
        let sum = &mut self.vms[host.tasks[task as usize].vm as usize];
        *sum = *sum - before + load.average;
    }

    /// `task` wants to run from now on, or does not. A new one is taken for one
    /// that always will (`post_init_entity_util_avg`).
    pub(super) fn set(&mut self, host: &Host<'_>, task: TaskId, runnable: bool) {
        self.touch(host, task);
        let load = &mut self.tasks[task as usize];
        load.runnable = runnable;
        if !std::mem::replace(&mut load.seen, true) {
            load.average = FULL;
            load.since_ns = host.now_ns;
            self.vms[host.tasks[task as usize].vm as usize] += FULL;
        }
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
}
