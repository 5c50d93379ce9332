// SPDX-License-Identifier: GPL-2.0-only
//! The event queue: timer slots in a heap with decrease-key.
//!
//! Every entity has fixed slots (a pCPU: its current work, its scheduler's
//! timer, ...), each with at most one pending event. Re-arming moves the event
//! in the heap, so there are no stale events to skip and nothing is allocated
//! after construction. Events of the same time fire in the order in which they
//! were armed.

/// Index of a timer slot.
pub type Slot = u32;

const ABSENT: u32 = u32::MAX;
/// Children a node: wide nodes make the heap shallow and are one cache line.
const ARITY: usize = 4;

/// Bits of a slot in an [`Entry`]; the rest of its half counts what was armed,
/// enough for 2^40 events: days of running.
const SLOT_BITS: u32 = 24;

/// Time, order of arming and slot in one number: comparing it compares the time,
/// then the order, and four of them fill a cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    fn new(at_ns: u64, seq: u64, slot: Slot) -> Self {
        Self(u128::from(at_ns) << 64 | u128::from(seq << SLOT_BITS | u64::from(slot)))
    }

    fn at_ns(self) -> u64 {
        (self.0 >> 64) as u64
    }

    fn slot(self) -> Slot {
        (self.0 & ((1 << SLOT_BITS) - 1)) as Slot
    }
}

/// Before all others.
const VACANT: Entry = Entry(0);

/// The queue.
#[derive(Debug)]
pub struct Timers {
    heap: Vec<Entry>,
    /// Place of a slot in `heap`, or `ABSENT`.
    place: Vec<u32>,
    seq: u64,
    /// The root is what was taken last, as [`VACANT`]: the next event to be
    /// armed, mostly the same entity's, takes its place.
    hole: bool,
}

impl Timers {
    /// A queue for the slots 0 to `slots - 1`.
    ///
    /// # Panics
    ///
    /// For more than 2^24 slots.
    pub fn new(slots: usize) -> Self {
        assert!(slots <= 1 << SLOT_BITS, "{slots} timer slots");
        Self {
            heap: Vec::with_capacity(slots),
            place: vec![ABSENT; slots],
            seq: 0,
            hole: false,
        }
    }

    /// Fires `slot` at `at_ns`, instead of when it was to fire.
    pub fn arm(&mut self, slot: Slot, at_ns: u64) {
        self.seq += 1;
        let entry = Entry::new(at_ns, self.seq, slot);
        let place = self.place[slot as usize];
        if place == ABSENT && self.hole {
            self.hole = false;
            self.sink(0, entry);
        } else if place == ABSENT {
            self.heap.push(entry);
            self.rise(self.heap.len() - 1, entry);
        } else {
            self.settle(place as usize, entry);
        }
    }

    /// `slot` does not fire.
    pub fn cancel(&mut self, slot: Slot) {
        let place = self.place[slot as usize];
        if place != ABSENT {
            self.remove(place as usize);
        }
    }

    /// When `slot` fires, if it is armed.
    pub fn due_ns(&self, slot: Slot) -> Option<u64> {
        let place = self.place[slot as usize];
        (place != ABSENT).then(|| self.heap[place as usize].at_ns())
    }

    /// Takes the next event that is due up to `limit_ns`.
    pub fn pop(&mut self, limit_ns: u64) -> Option<(u64, Slot)> {
        if self.hole {
            self.fill();
        }
        let first = *self.heap.first()?;
        if first.at_ns() > limit_ns {
            return None;
        }
        self.place[first.slot() as usize] = ABSENT;
        self.heap[0] = VACANT;
        self.hole = true;
        Some((first.at_ns(), first.slot()))
    }

    /// Closes the hole with the last entry.
    fn fill(&mut self) {
        self.hole = false;
        if let Some(last) = self.heap.pop()
            && !self.heap.is_empty()
        {
            self.sink(0, last);
        }
    }

    fn remove(&mut self, place: usize) {
        self.place[self.heap[place].slot() as usize] = ABSENT;
        if let Some(last) = self.heap.pop()
            && place < self.heap.len()
        {
            self.settle(place, last);
        }
    }

    /// Puts `entry` at `place` or where it belongs above or below.
    fn settle(&mut self, place: usize, entry: Entry) {
        if place > 0 && entry < self.heap[(place - 1) / ARITY] {
            self.rise(place, entry);
        } else {
            self.sink(place, entry);
        }
    }

    fn rise(&mut self, mut place: usize, entry: Entry) {
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if entry >= self.heap[parent] {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    fn sink(&mut self, mut place: usize, entry: Entry) {
        loop {
            let first = place * ARITY + 1;
            if first >= self.heap.len() {
                break;
            }
            let end = (first + ARITY).min(self.heap.len());
            let mut least = first;
            for child in first + 1..end {
                if self.heap[child] < self.heap[least] {
                    least = child;
                }
            }
            if self.heap[least] >= entry {
                break;
            }
            self.put(place, self.heap[least]);
            place = least;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.place[entry.slot() as usize] = u32::try_from(place).unwrap_or(ABSENT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_fire_in_the_order_of_arming() {
        let mut t = Timers::new(4);
        for slot in [2, 0, 3, 1] {
            t.arm(slot, 7);
        }
        t.arm(2, 7);
        let order: Vec<Slot> = std::iter::from_fn(|| t.pop(7).map(|(_, s)| s)).collect();
        assert_eq!(order, [0, 3, 1, 2]);
    }

    #[test]
    fn nothing_fires_early() {
        let mut t = Timers::new(1);
        t.arm(0, 10);
        assert_eq!(t.pop(9), None);
        assert_eq!(t.due_ns(0), Some(10));
        assert_eq!(t.pop(10), Some((10, 0)));
        assert_eq!(t.pop(u64::MAX), None);
    }

    proptest! {
        /// The heap against a sorted list, over random arming and cancelling.
        #[test]
        fn behaves_as_a_sorted_list(ops in prop::collection::vec((0u32..32, 0u64..100, 0u8..8), 0..400)) {
            let mut timers = Timers::new(32);
            let mut model: Vec<(u64, u64, Slot)> = Vec::new();
            let mut seq = 0;
            for (slot, at, kind) in ops {
                match kind {
                    0 => {
                        timers.cancel(slot);
                        model.retain(|e| e.2 != slot);
                    }
                    1 => {
                        model.sort_unstable();
                        let expected = model.first().filter(|e| e.0 <= at).copied();
                        if expected.is_some() {
                            model.remove(0);
                        }
                        prop_assert_eq!(timers.pop(at), expected.map(|e| (e.0, e.2)));
                    }
                    _ => {
                        seq += 1;
                        model.retain(|e| e.2 != slot);
                        model.push((at, seq, slot));
                        timers.arm(slot, at);
                    }
                }
            }
        }
    }
}
