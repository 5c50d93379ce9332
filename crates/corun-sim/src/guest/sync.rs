// SPDX-License-Identifier: GPL-2.0-only
//! Queues between threads, and barriers.

use crate::machine::Machine;
use crate::machine::state::{FOREVER, Phase, QueueOp, Seg, Why};
use crate::outcome::Account;
use crate::symbols;

impl Machine<'_> {
    /// Thread `t` on `v` puts an item into a queue or takes one. Where it wakes
    /// somebody or has to wait, it takes the wait queue's spinlock first.
    pub(crate) fn use_queue(&mut self, v: usize, t: usize, op: QueueOp) {
        let (q, waits_or_wakes) = match op {
            QueueOp::Push(q) => {
                let queue = &self.queues[q];
                let full = queue.items >= queue.capacity;
                (q, full || !queue.poppers.is_empty())
            }
            QueueOp::Pop(q) => {
                let queue = &self.queues[q];
                let room = queue.items <= queue.wake_at.saturating_add(1);
                (q, queue.items == 0 || room && !queue.pushers.is_empty())
            }
        };
        match self.queues[q].wait_lock {
            Some(lock) if waits_or_wakes => {
                self.threads[t].locked_op = Some(op);
                self.lock(v, t, lock, 0);
            }
            _ => self.queue_op(v, t, op),
        }
    }

    pub(crate) fn queue_op(&mut self, v: usize, t: usize, op: QueueOp) {
        match op {
            QueueOp::Push(q) => self.push(v, t, q),
            QueueOp::Pop(q) => self.pop(v, t, q),
        }
    }

    fn push(&mut self, v: usize, t: usize, q: usize) {
        let queue = &mut self.queues[q];
        if let Some(popper) = queue.poppers.pop_front() {
            self.wake_thread(popper, Some(v));
        } else if queue.items < queue.capacity {
            queue.items += 1;
        } else {
            queue.pushers.push_back(t);
            self.sleep_for(t, Why::Push);
            return;
        }
        self.proceed(t);
    }

    fn pop(&mut self, v: usize, t: usize, q: usize) {
        let queue = &mut self.queues[q];
        if queue.items == 0 {
            queue.poppers.push_back(t);
            self.sleep_for(t, Why::Pop);
            return;
        }
        queue.items -= 1;
        if queue.items <= queue.wake_at {
            self.wake_pushers(v, q);
        }
        self.proceed(t);
    }

    /// There is room in queue `q` again: those who wait for it put their items
    /// in (`unix_write_space`, which a socket does below a quarter).
    fn wake_pushers(&mut self, v: usize, q: usize) {
        while self.queues[q].items < self.queues[q].capacity {
            let Some(pusher) = self.queues[q].pushers.pop_front() else {
                return;
            };
            self.queues[q].items += 1;
            self.wake_thread(pusher, Some(v));
        }
    }

    /// Thread `t` on `v` arrives at a barrier.
    pub(crate) fn arrive(&mut self, v: usize, t: usize, barrier: usize) {
        let b = &mut self.barriers[barrier];
        b.arrived += 1;
        if b.arrived < b.parties {
            b.waiters.push(t);
            if b.spin_ns > 0 {
                self.begin_spin(
                    t,
                    Phase::BarrierSpin { barrier },
                    Seg::new(FOREVER, Account::User, symbols::USER),
                );
            } else {
                self.sleep_for(t, Why::Barrier(barrier));
            }
            return;
        }
        b.arrived = 0;
        let mut waiters = std::mem::take(&mut b.waiters);
        for w in waiters.drain(..) {
            if matches!(self.threads[w].phase, Phase::BarrierSpin { .. }) {
                self.poke(w, self.costs.lock_handover_ns);
            } else {
                self.barriers[barrier].released.push_back(w);
            }
        }
        // Gives the list's memory back.
        self.barriers[barrier].waiters = waiters;
        self.wake_released(barrier, v);
        self.proceed(t);
    }

    /// Wakes those who may pass `barrier`, or the first of them; `by` does it.
    pub(crate) fn wake_released(&mut self, barrier: usize, by: usize) {
        while let Some(w) = self.barriers[barrier].released.pop_front() {
            self.wake_thread(w, Some(by));
            if self.barriers[barrier].wakes_one {
                return;
            }
        }
    }
}
