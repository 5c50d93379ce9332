// SPDX-License-Identifier: GPL-2.0-only
//! How far siblings are apart, for relaxed co-scheduling as ESX 4.1 has it.
//!
//! Progress is CPU time. A sleeper makes progress by definition: when it wakes
//! it stands where the slowest runnable sibling stands, at least. Simplified:
//! ESX also stops vCPUs that run alone on a pCPU, and starts the stopped ones
//! together; here a held vCPU only loses its turn to others that wait.

use super::{Host, HostTask, TaskId};

/// Progress of all vCPUs.
#[derive(Debug)]
pub struct Skew {
    max_ns: u64,
    progress_ns: Vec<u64>,
    runnable: Vec<bool>,
    siblings: Vec<Vec<TaskId>>,
}

impl Skew {
    /// For `tasks`, which may be apart by `max_ns`.
    pub fn new(tasks: &[HostTask], max_ns: u64) -> Self {
        let nr_vms = tasks.iter().map(|t| t.vm as usize + 1).max().unwrap_or(0);
        let mut siblings = vec![Vec::new(); nr_vms];
        for (id, task) in (0..).zip(tasks) {
            siblings[task.vm as usize].push(id);
        }
        Self {
            max_ns,
            progress_ns: vec![0; tasks.len()],
            runnable: vec![false; tasks.len()],
            siblings,
        }
    }

    /// Progress of the slowest runnable sibling of `task`, itself left out.
    fn slowest_ns(&self, host: &Host<'_>, task: TaskId) -> Option<u64> {
        let siblings = &self.siblings[host.tasks[task as usize].vm as usize];
        let others = siblings
            .iter()
            .filter(|&&t| t != task && self.runnable[t as usize]);
        others.map(|&t| self.progress_ns[t as usize]).min()
    }

    /// True when `task` shall wait for a sibling.
    pub(super) fn is_ahead(&self, host: &Host<'_>, task: TaskId) -> bool {
        let limit = self.slowest_ns(host, task).map(|ns| ns + self.max_ns);
        limit.is_some_and(|limit_ns| self.progress_ns[task as usize] > limit_ns)
    }

    pub(super) fn wake(&mut self, host: &Host<'_>, task: TaskId) {
        let slowest_ns = self.slowest_ns(host, task).unwrap_or(0);
        let own_ns = &mut self.progress_ns[task as usize];
        *own_ns = slowest_ns.max(*own_ns);
        self.runnable[task as usize] = true;
    }

    pub(super) fn charge(&mut self, task: TaskId, ran_ns: u64) {
        self.progress_ns[task as usize] += ran_ns;
    }

    pub(super) fn block(&mut self, task: TaskId) {
        self.runnable[task as usize] = false;
    }
}
