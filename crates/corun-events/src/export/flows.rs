// SPDX-License-Identifier: GPL-2.0-only
//! What led to what: IPI to receipt, wake-up to running, directed yield to its
//! target's turn. Found in a pass of its own, so that no arrow of a view points
//! to an event that is not there.

use crate::state::{Follower, State};
use crate::{Event, Header, Kind};
use std::collections::HashMap;

/// An event's end of an arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// The arrow's number, from 1.
    pub id: u64,
    /// It ends here; else it begins here.
    pub ends: bool,
}

/// Events that may still lead to another one.
type Open<K> = HashMap<K, Vec<u64>>;

/// All arrows of a recording.
#[derive(Debug)]
pub struct Flows {
    follower: Follower,
    next_event: u64,
    next_id: u64,
    /// By VM, target and vector: the numbers of the sending events.
    ipis: Open<(u32, u32, u8)>,
    /// By VM and vCPU: the numbers of the events that let it run.
    turns: Open<(u32, u32)>,
    /// By an event's number.
    at: HashMap<u64, Vec<Flow>>,
}

impl Flows {
    /// Looks for the arrows of a recording with this `header`.
    pub fn new(header: &Header) -> Self {
        Self {
            follower: Follower::new(header),
            next_event: 0,
            next_id: 1,
            ipis: HashMap::new(),
            turns: HashMap::new(),
            at: HashMap::new(),
        }
    }

    /// Takes the next event.
    pub fn take(&mut self, event: &Event) {
        let number = self.next_event;
        self.next_event += 1;
        // What no track has can be no arrow's end.
        if !self.follower.knows(event) {
            return;
        }
        let began = self.follower.take(event).is_some();
        let own = (event.vm, event.vcpu);
        match event.kind {
            Kind::IpiSend => {
                let key = (event.vm, event.target(), event.vector());
                self.ipis.entry(key).or_default().push(number);
            }
            Kind::IpiTake if event.may_take_ipi() => {
                let key = (event.vm, event.vcpu, event.vector());
                let sent = self.ipis.remove(&key).unwrap_or_default();
                self.connect(&sent, number);
            }
            Kind::Wake if began => self.turns.entry(own).or_default().push(number),
            Kind::YieldGrant => {
                let target = (event.vm, event.target());
                self.turns.entry(target).or_default().push(number);
            }
            Kind::SwitchIn if began => {
                let causes = self.turns.remove(&own).unwrap_or_default();
                self.connect(&causes, number);
            }
            _ => {}
        }
    }

    fn connect(&mut self, from: &[u64], to: u64) {
        for event in from {
            let id = self.next_id;
            self.next_id += 1;
            let begins = Flow { id, ends: false };
            self.at.entry(*event).or_default().push(begins);
            let ends = Flow { id, ends: true };
            self.at.entry(to).or_default().push(ends);
        }
    }

    /// The arrows of the event with this number, counted from 0.
    pub fn of(&self, number: u64) -> &[Flow] {
        self.at.get(&number).map_or(&[], Vec::as_slice)
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.next_id - 1
    }
}

/// Does `state` show as a stretch of a timeline?
pub(super) fn is_shown(state: State) -> bool {
    state != State::Unseen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NO_PCPU, Vm, interrupt_arg, out};

    fn flows(events: &[(u32, Kind, u64)]) -> Flows {
        let header = Header::new("sim", "t", 1, vec![Vm::new("a", 3)]);
        let mut flows = Flows::new(&header);
        for (number, (vcpu, kind, arg)) in (0..).zip(events) {
            flows.take(&Event {
                at_ns: number,
                kind: *kind,
                pcpu: NO_PCPU,
                vm: 0,
                vcpu: *vcpu,
                arg: *arg,
                ip: 0,
            });
        }
        flows
    }

    fn ids(flows: &Flows, number: u64, ends: bool) -> Vec<u64> {
        let here = flows.of(number).iter().filter(|f| f.ends == ends);
        here.map(|f| f.id).collect()
    }

    #[test]
    fn a_receipt_answers_all_ipis_of_its_vector() {
        let send = interrupt_arg(1, 0xfc);
        let f = flows(&[
            (0, Kind::IpiSend, send),
            (2, Kind::IpiSend, send),
            (0, Kind::IpiSend, interrupt_arg(1, 0xfd)),
            (1, Kind::IpiTake, interrupt_arg(0, 0xfc)),
            (1, Kind::IpiTake, interrupt_arg(0, 0xfc)),
        ]);
        assert_eq!(f.count(), 2);
        assert_eq!(
            ids(&f, 3, true),
            [ids(&f, 0, false), ids(&f, 1, false)].concat()
        );
        assert!(f.of(2).is_empty() && f.of(4).is_empty());
    }

    #[test]
    fn wake_ups_and_yields_lead_to_a_turn() {
        let f = flows(&[
            (1, Kind::SwitchOut, out::BLOCKED),
            (1, Kind::Wake, 0),
            (0, Kind::YieldGrant, 1),
            (1, Kind::SwitchIn, 0),
            (1, Kind::SwitchIn, 0),
            (0, Kind::YieldGrant, 2),
        ]);
        assert_eq!(f.count(), 2);
        assert_eq!(
            ids(&f, 3, true),
            [ids(&f, 1, false), ids(&f, 2, false)].concat()
        );
        assert!(f.of(5).is_empty(), "vCPU 2 never ran");
    }

    #[test]
    fn strangers_begin_and_end_nothing() {
        let f = flows(&[
            (9, Kind::IpiSend, interrupt_arg(1, 0xfc)),
            (9, Kind::YieldGrant, 1),
            (0, Kind::IpiSend, interrupt_arg(9, 0xfc)),
            (1, Kind::SwitchIn, 0),
            (1, Kind::IpiTake, interrupt_arg(0, 0xfc)),
            (9, Kind::IpiTake, interrupt_arg(0, 0xfc)),
        ]);
        assert_eq!(f.count(), 0);
    }
}
