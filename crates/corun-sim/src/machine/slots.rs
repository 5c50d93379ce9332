// SPDX-License-Identifier: GPL-2.0-only
//! Which timer slot belongs to which entity.

use crate::engine::timers::Slot;

/// What a slot's firing means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The pCPU's current work ends.
    Work(usize),
    /// The pCPU's timer of the host scheduler.
    Sched(usize),
    /// A kick reaches the pCPU.
    Kick(usize),
    /// The host has work of its own for the pCPU.
    Noise(usize),
    /// The oldest interrupt on its way reaches the vCPU.
    Arrival(usize),
    /// The guest's tick on the vCPU.
    Tick(usize),
    /// A vCPU that KVM put to sleep for a time wakes.
    Nap(usize),
    /// The thread's timer.
    Thread(usize),
    /// The flow's next batch arrives.
    Batch(usize),
    /// The flow's oldest acknowledgement arrives.
    Ack(usize),
    /// A window of halt-polling's steering ends.
    Steer,
}

/// Slots of each kind, one block after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slots {
    pcpus: usize,
    vcpus: usize,
    threads: usize,
    flows: usize,
}

/// Slots of a pCPU and of a vCPU.
const PER_PCPU: usize = 4;
const PER_VCPU: usize = 3;
const PER_FLOW: usize = 2;

impl Slots {
    pub(crate) fn new(pcpus: usize, vcpus: usize, threads: usize, flows: usize) -> Self {
        Self {
            pcpus,
            vcpus,
            threads,
            flows,
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.steer() + 1
    }

    fn steer(&self) -> usize {
        self.first_flow() + self.flows * PER_FLOW
    }

    fn first_vcpu(&self) -> usize {
        self.pcpus * PER_PCPU
    }

    fn first_thread(&self) -> usize {
        self.first_vcpu() + self.vcpus * PER_VCPU
    }

    fn first_flow(&self) -> usize {
        self.first_thread() + self.threads
    }

    /// The slot of `event`.
    pub(crate) fn slot(&self, event: Event) -> Slot {
        let index = match event {
            Event::Work(p) => p * PER_PCPU,
            Event::Sched(p) => p * PER_PCPU + 1,
            Event::Kick(p) => p * PER_PCPU + 2,
            Event::Noise(p) => p * PER_PCPU + 3,
            Event::Arrival(v) => self.first_vcpu() + v * PER_VCPU,
            Event::Tick(v) => self.first_vcpu() + v * PER_VCPU + 1,
            Event::Nap(v) => self.first_vcpu() + v * PER_VCPU + 2,
            Event::Thread(t) => self.first_thread() + t,
            Event::Batch(f) => self.first_flow() + f * PER_FLOW,
            Event::Ack(f) => self.first_flow() + f * PER_FLOW + 1,
            Event::Steer => self.steer(),
        };
        index as Slot
    }

    /// What `slot` means.
    pub(crate) fn event(&self, slot: Slot) -> Event {
        let index = slot as usize;
        if index < self.first_vcpu() {
            let p = index / PER_PCPU;
            match index % PER_PCPU {
                0 => Event::Work(p),
                1 => Event::Sched(p),
                2 => Event::Kick(p),
                _ => Event::Noise(p),
            }
        } else if index < self.first_thread() {
            let index = index - self.first_vcpu();
            let v = index / PER_VCPU;
            match index % PER_VCPU {
                0 => Event::Arrival(v),
                1 => Event::Tick(v),
                _ => Event::Nap(v),
            }
        } else if index < self.first_flow() {
            Event::Thread(index - self.first_thread())
        } else if index == self.steer() {
            Event::Steer
        } else {
            let index = index - self.first_flow();
            if index.is_multiple_of(PER_FLOW) {
                Event::Batch(index / PER_FLOW)
            } else {
                Event::Ack(index / PER_FLOW)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_means_one_event() {
        let slots = Slots::new(3, 5, 7, 2);
        for slot in 0..slots.count() as Slot {
            assert_eq!(slots.slot(slots.event(slot)), slot);
        }
    }
}
