// SPDX-License-Identifier: GPL-2.0-only
//! What a vCPU does, followed from event to event: the one place where switches,
//! wake-ups and halts become states. Accounts and timelines are made of it.

use crate::{Event, Header, Kind, out};
use serde::Serialize;

/// Why a vCPU waits for a pCPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The host took its pCPU.
    Preempted,
    /// It gave way by a directed yield.
    Yielded,
    /// It was woken and has not run yet.
    Woken,
}

/// What a vCPU does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No event has told yet.
    Unseen,
    /// Has a pCPU, in the guest or in the host on its behalf.
    Running,
    /// Has a pCPU and nothing to do: KVM polls for its wake-up.
    Polling,
    /// Wants a pCPU.
    Ready(Cause),
    /// Sleeps: halted, or its thread waits in the VMM.
    Halted,
}

impl State {
    /// Does it have a pCPU?
    pub fn is_on(self) -> bool {
        matches!(self, Self::Running | Self::Polling)
    }

    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unseen => "unseen",
            Self::Running => "running",
            Self::Polling => "polling",
            Self::Ready(Cause::Preempted) => "ready: preempted",
            Self::Ready(Cause::Yielded) => "ready: yielded",
            Self::Ready(Cause::Woken) => "ready: woken",
            Self::Halted => "halted",
        }
    }

    /// What it does after `event`, which is its own.
    #[must_use]
    pub fn after(self, event: &Event) -> Self {
        match event.kind {
            Kind::SwitchIn => Self::Running,
            Kind::SwitchOut => match event.arg {
                out::BLOCKED => Self::Halted,
                out::YIELDED => Self::Ready(Cause::Yielded),
                _ => Self::Ready(Cause::Preempted),
            },
            // One that is woken on its way to sleep has never left.
            Kind::Wake if matches!(self, Self::Halted | Self::Unseen) => Self::Ready(Cause::Woken),
            Kind::Halt => Self::Polling,
            Kind::HaltEnd if self == Self::Polling => Self::Running,
            // The recording began while it ran, or the switch was dropped.
            Kind::Enter | Kind::Exit if !self.is_on() => Self::Running,
            _ => self,
        }
    }
}

/// A vCPU's stretch in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Which.
    pub state: State,
    /// Since when. Nanoseconds.
    pub since_ns: u64,
    /// Until when. Nanoseconds.
    pub until_ns: u64,
}

impl Stretch {
    /// How long. Nanoseconds.
    pub fn ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.since_ns)
    }
}

/// Follows all vCPUs of a recording.
#[derive(Debug, Clone)]
pub struct Follower {
    /// By VM and vCPU: what it does, since when.
    vcpus: Vec<Vec<(State, u64)>>,
}

impl Follower {
    /// Follows the vCPUs of `header`.
    pub fn new(header: &Header) -> Self {
        let unseen = |vm: &crate::Vm| vec![(State::Unseen, 0); vm.vcpus as usize];
        Self {
            vcpus: header.vms.iter().map(unseen).collect(),
        }
    }

    /// Takes `event`; the stretch that it ends, if it ends one.
    pub fn take(&mut self, event: &Event) -> Option<Stretch> {
        let vm = self.vcpus.get_mut(event.vm as usize)?;
        let (state, since_ns) = vm.get_mut(event.vcpu as usize)?;
        let next = state.after(event);
        if next == *state {
            return None;
        }
        let ended = Stretch {
            state: *state,
            since_ns: *since_ns,
            until_ns: event.at_ns,
        };
        (*state, *since_ns) = (next, event.at_ns);
        Some(ended)
    }

    /// Is `event` one of a vCPU that the recording's header has?
    pub fn knows(&self, event: &Event) -> bool {
        let vm = self.vcpus.get(event.vm as usize);
        vm.is_some_and(|vcpus| (event.vcpu as usize) < vcpus.len())
    }

    /// What a vCPU does now.
    pub fn state(&self, vm: u32, vcpu: u32) -> State {
        let known = self.vcpus.get(vm as usize);
        known
            .and_then(|vm| vm.get(vcpu as usize))
            .map_or(State::Unseen, |(state, _)| *state)
    }

    /// The stretches that last when the recording ends, by VM and vCPU.
    pub fn end(&self, at_ns: u64) -> impl Iterator<Item = (u32, u32, Stretch)> {
        (0..).zip(&self.vcpus).flat_map(move |(vm, vcpus)| {
            (0..).zip(vcpus).map(move |(vcpu, (state, since_ns))| {
                let last = Stretch {
                    state: *state,
                    since_ns: *since_ns,
                    until_ns: at_ns,
                };
                (vm, vcpu, last)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NO_PCPU, Vm};

    fn event(at_ns: u64, kind: Kind, arg: u64) -> Event {
        Event {
            at_ns,
            kind,
            pcpu: NO_PCPU,
            vm: 0,
            vcpu: 0,
            arg,
            ip: 0,
        }
    }

    #[test]
    fn a_vcpu_goes_through_its_states() {
        let path = [
            (Kind::Wake, 0, State::Ready(Cause::Woken)),
            (Kind::SwitchIn, 0, State::Running),
            (
                Kind::SwitchOut,
                out::PREEMPTED,
                State::Ready(Cause::Preempted),
            ),
            (Kind::Wake, 0, State::Ready(Cause::Preempted)),
            (Kind::SwitchIn, 0, State::Running),
            (Kind::SwitchOut, out::YIELDED, State::Ready(Cause::Yielded)),
            (Kind::SwitchIn, 0, State::Running),
            (Kind::Halt, 0, State::Polling),
            (Kind::HaltEnd, 0, State::Running),
            (Kind::Halt, 0, State::Polling),
            (Kind::SwitchOut, out::BLOCKED, State::Halted),
            (Kind::Wake, 0, State::Ready(Cause::Woken)),
            (Kind::SwitchIn, 0, State::Running),
            (Kind::HaltEnd, 1, State::Running),
        ];
        let mut state = State::Unseen;
        for (step, (kind, arg, expected)) in path.into_iter().enumerate() {
            state = state.after(&event(0, kind, arg));
            assert_eq!(state, expected, "step {step}");
        }
    }

    #[test]
    fn who_runs_when_the_recording_begins_is_seen_by_its_exits() {
        assert_eq!(
            State::Unseen.after(&event(0, Kind::Exit, 0)),
            State::Running
        );
        assert_eq!(
            State::Polling.after(&event(0, Kind::IpiTake, 1)),
            State::Polling
        );
    }

    #[test]
    fn stretches_follow_each_other_without_a_gap() {
        let header = Header::new("sim", "t", 1, vec![Vm::new("a", 1)]);
        let mut follower = Follower::new(&header);
        let mut ended = Vec::new();
        for (at_ns, kind) in [(5, Kind::Wake), (7, Kind::SwitchIn), (9, Kind::SwitchIn)] {
            ended.extend(follower.take(&event(at_ns, kind, 0)));
        }
        ended.extend(follower.end(20).map(|(_, _, s)| s));
        let times: Vec<_> = ended.iter().map(|s| (s.since_ns, s.until_ns)).collect();
        assert_eq!(times, [(0, 5), (5, 7), (7, 20)]);
        let stranger = Event {
            vm: 7,
            ..event(30, Kind::SwitchIn, 0)
        };
        assert_eq!(follower.take(&stranger), None);
    }
}
