// SPDX-License-Identifier: GPL-2.0-only
//! How long initiators wait for their function calls, inferred from what a host
//! sees of them, without the guest's word and without its symbols.
//!
//! A call begins with the exit that sends its first interrupt: until KVM handles
//! it, the initiator may lose its pCPU. A target can answer once it is in the guest
//! with the interrupt. Interrupts are off until it has answered: when it takes
//! another one, or is in user mode, it has. The initiator spins meanwhile and sees
//! the end when all have answered and it is in the guest itself, and not in a
//! handler: its timer's mostly, which comes as soon as a preempted vCPU is back. Its
//! first exits after it took an interrupt are taken for the handler's.
//!
//! Exits tell whether the guest takes interrupts, where the host can see it (AMD): a
//! target that does not is still in its handler, and answers after its next entry; an
//! initiator that does not is in one itself, and sees nothing. Where it cannot be told,
//! a target stopped in its handler shows by the initiator, whose later exits are still in
//! its spin loop: then the call goes on, and who of the targets has not surely answered
//! is taken not to have. The loop's addresses are learned from exits while a target has
//! not even taken its interrupt.
//!
//! No interrupt goes to a target that has one of another call's to take: it answers both.
//! Who is seen in the loop without having sent anything waits for such ones alone, since
//! it came to its guest at the latest.
//!
//! Who waits for a call takes interrupts, or two could wait for each other: what is sent
//! with interrupts off wakes a thread on another CPU, by the same vector.
//!
//! An initiator in user mode does not wait: what it sent was no call that it waits
//! for (Linux wakes threads on other CPUs by the same vector), or one that is over. But
//! who was in the loop, and has targets that have not taken their interrupt, has lost its
//! vCPU to another thread, and goes on later.

use super::{CALL_MANY, CALL_SINGLE};
use crate::{Event, Header, Kind, Times};
use std::collections::{BTreeMap, HashMap};

/// Exits that can hit any instruction, such as those of a spin loop.
const ANYWHERE: [&str; 5] = [
    "external",
    "pause",
    "nmi",
    "exception_nmi",
    "preemption_timer",
];
/// The exit of a guest that takes interrupts again.
const WINDOW: &str = "interrupt_window";
/// An address is in the spin loop when that many exits of waiting initiators, and
/// one in so many of all, were there or that near: a loop has a handful of instructions,
/// the interrupt handlers that come between have hundreds.
const LOOP_MIN: u64 = 3;
const LOOP_SHARE: u64 = 8;
const LOOP_BYTES: u64 = 16;

/// Exits of an interrupt handler: a timer's writes when the next is due, once or
/// twice.
const HANDLER_EXITS: u32 = 2;
/// Longest that a call's handler is in the guest at a stretch: they take microseconds, on
/// an emulated host some hundred. Who takes no interrupts later does so for another
/// reason.
const HANDLER_MAX_NS: u64 = 1_000_000;

/// How far a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Has not taken the interrupt.
    Sent,
    /// Has it, and goes on with it when it is in the guest.
    Taken,
    /// Was in the guest with it, first at that moment: may have answered.
    Likely(u64),
    /// Has answered.
    Sure,
}

/// A call, from its first interrupt on.
#[derive(Debug)]
struct Call {
    vector: u8,
    /// The exit that sent it.
    since_ns: u64,
    /// The initiator waited still.
    waited_ns: u64,
    targets: Vec<(u32, Answer)>,
    end_ns: Option<u64>,
    /// The end that the last exit puts in doubt, until the next entry.
    doubted_ns: Option<u64>,
    /// The initiator was seen in its spin loop.
    looped: bool,
}

impl Call {
    fn new(vector: u8, since_ns: u64, target: Option<u32>) -> Self {
        Self {
            vector,
            since_ns,
            waited_ns: since_ns,
            targets: target.map(|to| (to, Answer::Sent)).into_iter().collect(),
            end_ns: None,
            doubted_ns: None,
            looped: false,
        }
    }

    /// A target has not even taken its interrupt.
    fn waits_surely(&self) -> bool {
        self.targets.iter().any(|(_, of)| *of == Answer::Sent)
    }

    /// It is over when all have answered and the initiator is in the guest.
    fn settle(&mut self, initiator: Vcpu) {
        if self.end_ns.is_some() || !initiator.in_guest {
            return;
        }
        let mut end_ns = self.waited_ns.max(initiator.moved_ns);
        for (_, answer) in &self.targets {
            match answer {
                Answer::Sent | Answer::Taken => return,
                Answer::Likely(at_ns) => end_ns = end_ns.max(*at_ns),
                Answer::Sure => {}
            }
        }
        self.end_ns = Some(end_ns);
    }

    fn has_ended(&self) -> Option<u64> {
        self.end_ns.or(self.doubted_ns)
    }

    /// Its initiator was in a handler since `since_ns`, and could not see the end.
    fn unseen(&mut self, since_ns: u64, at_ns: u64) {
        if self.end_ns.is_some_and(|end_ns| end_ns >= since_ns) {
            self.doubted_ns = self.end_ns.take();
            self.waited_ns = at_ns;
        }
    }

    /// Its initiator is seen in its spin loop.
    fn goes_on(&mut self, at_ns: u64, vcpus: &HashMap<u32, Vcpu>) {
        self.waited_ns = at_ns;
        self.looped = true;
        self.end_ns = None;
        self.doubted_ns = None;
        for (number, answer) in &mut self.targets {
            if matches!(answer, Answer::Likely(_)) {
                let in_guest = vcpus.get(number).is_some_and(|v| v.in_guest);
                *answer = if in_guest {
                    Answer::Likely(at_ns)
                } else {
                    Answer::Taken
                };
            }
        }
    }
}

/// Where a vCPU is.
#[derive(Debug, Clone, Copy, Default)]
struct Vcpu {
    in_guest: bool,
    /// It came there, or left. Nanoseconds; 0: not seen yet.
    moved_ns: u64,
    /// It last came to its guest.
    entered_ns: u64,
    /// Exits since it last sent an interrupt of a call.
    exits: u32,
    /// When it left: no interrupts.
    masked: bool,
    /// It may be in a handler: since when, and its exits since.
    handles: Option<(u64, u32)>,
}

/// What is known of a VM.
#[derive(Debug, Default)]
struct OfVm {
    vcpus: HashMap<u32, Vcpu>,
    /// By initiator.
    open: BTreeMap<u32, Call>,
    /// The same of threads that lost their vCPU to another one while they wait.
    parked: BTreeMap<u32, Call>,
    /// Exits of initiators that surely waited, by address.
    waited_at: BTreeMap<u64, u64>,
    waited: u64,
    times: Times,
}

/// Collects calls as their initiators see them.
#[derive(Debug)]
pub(super) struct Seen {
    /// By the exit's number: can it hit any instruction?
    anywhere: Vec<bool>,
    window: Option<u64>,
    vms: BTreeMap<u32, OfVm>,
}

impl Seen {
    pub(super) fn new(header: &Header) -> Self {
        let names = header.exits.iter();
        let anywhere = names.map(|name| ANYWHERE.contains(&name.as_str()));
        Self {
            anywhere: anywhere.collect(),
            window: (0..)
                .zip(&header.exits)
                .find_map(|(number, name)| (name == WINDOW).then_some(number)),
            vms: BTreeMap::new(),
        }
    }

    pub(super) fn take(&mut self, event: &Event) {
        let vm = self.vms.entry(event.vm).or_default();
        match event.kind {
            Kind::Enter => vm.enter(event),
            Kind::Exit => {
                let of = usize::try_from(event.reason()).ok();
                let anywhere = of.and_then(|n| self.anywhere.get(n)) == Some(&true);
                vm.exit(event, anywhere, self.window == Some(event.reason()));
            }
            Kind::IpiSend if super::is_call(event) => vm.send(event),
            Kind::IpiTake => vm.taken(event),
            _ => {}
        }
    }

    /// The times of `vm`'s calls, those too that nothing came after.
    pub(super) fn of(&mut self, vm: u32) -> Option<&Times> {
        let vm = self.vms.get_mut(&vm)?;
        let open: Vec<u32> = vm.open.keys().copied().collect();
        for initiator in open {
            vm.close(initiator);
        }
        Some(&vm.times)
    }
}

/// Is `ip` the kernel's? Unknown ones are neither's.
fn is_kernel(ip: u64) -> bool {
    ip >> 63 == 1
}

fn is_user(ip: u64) -> bool {
    ip != 0 && !is_kernel(ip)
}

impl OfVm {
    fn enter(&mut self, event: &Event) {
        let vcpu = self.vcpus.entry(event.vcpu).or_default();
        vcpu.in_guest = true;
        vcpu.moved_ns = event.at_ns;
        vcpu.entered_ns = event.at_ns;
        self.answer(event.vcpu, |answer| match answer {
            Answer::Taken => Answer::Likely(event.at_ns),
            other => other,
        });
    }

    fn exit(&mut self, event: &Event, anywhere: bool, window: bool) {
        let vcpu = self.vcpus.entry(event.vcpu).or_default();
        vcpu.in_guest = false;
        vcpu.moved_ns = event.at_ns;
        vcpu.exits += 1;
        let takes = event.takes_interrupts();
        vcpu.masked = takes == Some(false);
        if window {
            // Its handler's last instruction.
            self.handles(event);
        }
        if is_user(event.ip) || window {
            self.vcpus.entry(event.vcpu).or_default().handles = None;
        }
        if is_user(event.ip) || window || takes == Some(true) {
            self.answered(event.vcpu);
        }
        if takes == Some(false) {
            self.stopped_in_handler(event);
            return self.handles(event);
        }
        if is_user(event.ip) {
            return self.leave(event.vcpu);
        }
        if !(anywhere && is_kernel(event.ip) && self.waits(event)) {
            self.handles(event);
        }
    }

    /// A target leaves its guest, which takes no interrupts.
    fn stopped_in_handler(&mut self, event: &Event) {
        for call in self.open.values_mut() {
            for (of, answer) in &mut call.targets {
                if let Answer::Likely(at_ns) = *answer
                    && *of == event.vcpu
                    && event.at_ns.saturating_sub(at_ns) <= HANDLER_MAX_NS
                {
                    *answer = Answer::Taken;
                    call.end_ns = None;
                    call.doubted_ns = None;
                }
            }
        }
    }

    /// An initiator that took an interrupt leaves its guest.
    fn handles(&mut self, event: &Event) {
        let handles = self.vcpus.get_mut(&event.vcpu);
        let Some((since_ns, exits)) = handles.and_then(|vcpu| vcpu.handles.as_mut()) else {
            return;
        };
        let surely = event.takes_interrupts() == Some(false);
        *exits += u32::from(!surely);
        if (surely || *exits <= HANDLER_EXITS)
            && let Some(call) = self.open.get_mut(&event.vcpu)
        {
            call.unseen(*since_ns, event.at_ns);
        }
    }

    /// Is this initiator, at some place of its kernel, in its spin loop?
    fn waits(&mut self, event: &Event) -> bool {
        let vcpu = self.vcpus.entry(event.vcpu).or_default();
        let call = self.open.get(&event.vcpu);
        if call.is_some_and(Call::waits_surely) {
            *self.waited_at.entry(event.ip).or_default() += 1;
            self.waited += 1;
        }
        let near = event.ip.saturating_sub(LOOP_BYTES)..=event.ip.saturating_add(LOOP_BYTES);
        let here: u64 = self.waited_at.range(near).map(|(_, count)| count).sum();
        let waits = here >= LOOP_MIN && here * LOOP_SHARE >= self.waited;
        if waits {
            vcpu.handles = None;
            let since_ns = vcpu.entered_ns;
            let parked = &mut self.parked;
            let again = || {
                let call = parked.remove(&event.vcpu);
                call.unwrap_or_else(|| Call::new(CALL_MANY, since_ns, None))
            };
            let call = self.open.entry(event.vcpu).or_insert_with(again);
            call.goes_on(event.at_ns, &self.vcpus);
        }
        waits
    }

    fn taken(&mut self, event: &Event) {
        let vcpu = self.vcpus.entry(event.vcpu).or_default();
        vcpu.handles = Some((event.at_ns, 0));
        if !super::is_call(event) {
            // It could not while it had the call's in hand.
            return self.answered(event.vcpu);
        }
        // Again when the first attempt came to nothing.
        self.answer(event.vcpu, |answer| match answer {
            Answer::Sure => Answer::Sure,
            _ => Answer::Taken,
        });
    }

    fn answered(&mut self, vcpu: u32) {
        self.answer(vcpu, |answer| match answer {
            Answer::Likely(_) => Answer::Sure,
            other => other,
        });
    }

    /// Sets what `vcpu` is known to have done for each call.
    fn answer(&mut self, vcpu: u32, now: impl Fn(Answer) -> Answer) {
        for (initiator, call) in self.open.iter_mut().chain(&mut self.parked) {
            for (_, answer) in call.targets.iter_mut().filter(|(of, _)| *of == vcpu) {
                *answer = now(*answer);
            }
            let initiator = self.vcpus.get(initiator).copied();
            call.settle(initiator.unwrap_or_default());
        }
        let times = &mut self.times;
        self.parked.retain(|_, call| {
            if let Some(end_ns) = call.end_ns {
                times.record(end_ns.saturating_sub(call.since_ns));
            }
            call.end_ns.is_none()
        });
    }

    /// `initiator` is in user mode. Recent kernels may run another thread there while
    /// the one that called waits for who has not even taken its interrupt.
    fn leave(&mut self, initiator: u32) {
        let Some(call) = self.open.remove(&initiator) else {
            return;
        };
        if call.looped && call.waits_surely() {
            self.parked.insert(initiator, call);
        } else {
            self.record(initiator, &call);
        }
    }

    fn send(&mut self, event: &Event) {
        let vcpu = self.vcpus.entry(event.vcpu).or_default();
        if vcpu.masked {
            return;
        }
        // One exit for each target, or one for all: nothing comes between.
        let at_once = std::mem::take(&mut vcpu.exits) <= 1;
        // Not seen to leave its guest: before the recording, or the event was lost.
        let unseen = vcpu.in_guest || vcpu.moved_ns == 0;
        let since_ns = if unseen { event.at_ns } else { vcpu.moved_ns };
        if let Some(call) = self.open.get_mut(&event.vcpu) {
            let new = call.targets.iter().all(|(of, _)| *of != event.target());
            // A call by the other vector has one target.
            let many = call.vector == event.vector() && call.vector != CALL_SINGLE;
            if at_once && new && many {
                call.end_ns = None;
                call.doubted_ns = None;
                call.targets.push((event.target(), Answer::Sent));
                return;
            }
            // From an interrupt that came while it waits.
            let waits = call.has_ended().is_none() && call.vector != CALL_SINGLE;
            if waits && event.vector() == CALL_SINGLE {
                return;
            }
        }
        self.close(event.vcpu);
        let call = Call::new(event.vector(), since_ns, Some(event.target()));
        self.open.insert(event.vcpu, call);
    }

    /// `initiator` waits no longer.
    fn close(&mut self, initiator: u32) {
        if let Some(call) = self.open.remove(&initiator) {
            self.record(initiator, &call);
        }
    }

    /// A call without an end was none to wait for, or its initiator saw an answer that
    /// we did not, at the latest time that it could.
    fn record(&mut self, initiator: u32, call: &Call) {
        let entered_ns = self.vcpus.get(&initiator).map(|vcpu| vcpu.entered_ns);
        if let Some(end_ns) = call.has_ended().or(entered_ns.filter(|_| call.looped)) {
            self.times.record(end_ns.saturating_sub(call.since_ns));
        }
    }
}

#[cfg(test)]
mod tests;
