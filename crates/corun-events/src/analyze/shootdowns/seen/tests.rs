// SPDX-License-Identifier: GPL-2.0-only
use super::super::super::fixture::{IN_CALL, at, at_ip, header};
use super::super::{CALL_MANY, CALL_SINGLE};
use super::*;
use crate::{flag, interrupt_arg};

/// Numbers of exits in the recordings here.
const MSR: u64 = 0;
const EXTERNAL: u64 = 1;
const WINDOW_OPEN: u64 = 2;
/// Addresses in the guest.
const IN_USER: u64 = 0x5555_0000_1000;
const IN_HANDLER: u64 = 0xffff_ffff_8100_0400;
const TIMER: u8 = 0xec;

/// Times of the calls in `events`, in the order in which they ended. Microseconds.
fn times(events: &[Event]) -> Vec<u64> {
    let mut header = header();
    header.exits = ["msr", "external", WINDOW].map(str::to_owned).to_vec();
    let mut seen = Seen::new(&header);
    let mut sums = vec![0];
    for event in events {
        seen.take(event);
        let sum = total_us(&seen);
        if sums.last() != Some(&sum) {
            sums.push(sum);
        }
    }
    seen.of(0);
    sums.push(total_us(&seen));
    sums.dedup();
    sums.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sums of some hundred microseconds"
)]
fn total_us(seen: &Seen) -> u64 {
    let times = seen.vms.get(&0).map(|vm| vm.times.summary());
    times.map_or(0, |t| (t.mean_us * t.count as f64).round() as u64)
}

fn enter(us: u64, who: u32) -> Event {
    at(us, who, Kind::Enter, 0)
}

fn exit(us: u64, who: u32, why: u64, ip: u64) -> Event {
    at_ip(us, who, Kind::Exit, why, ip)
}

fn send(us: u64, from: u32, to: u32, vector: u8) -> Event {
    at(us, from, Kind::IpiSend, interrupt_arg(to, vector))
}

fn take(us: u64, who: u32, vector: u8) -> Event {
    at(us, who, Kind::IpiTake, interrupt_arg(0, vector))
}

#[test]
fn a_call_is_from_the_exit_that_sends_it_until_its_initiator_is_there_to_see() {
    let events = [
        // Preempted before KVM sent it, and again while it waits.
        exit(100, 0, MSR, IN_CALL),
        send(150, 0, 1, CALL_MANY),
        send(151, 0, 2, CALL_MANY),
        enter(152, 0),
        take(160, 1, CALL_MANY),
        enter(161, 1),
        exit(170, 0, EXTERNAL, IN_CALL),
        take(180, 2, CALL_MANY),
        enter(190, 2),
        enter(230, 0),
        exit(240, 0, EXTERNAL, IN_USER),
    ];
    assert_eq!(times(&events), [130]);
    // In the guest when the last one answers.
    let there = [&events[..6], &events[7..9]].concat();
    assert_eq!(times(&there), [90]);
}

#[test]
fn what_is_sent_with_interrupts_off_is_no_call() {
    let events = |sending| {
        [
            exit(100, 0, MSR | sending, IN_CALL),
            send(101, 0, 1, CALL_SINGLE),
            enter(102, 0),
            take(140, 1, CALL_SINGLE),
            enter(141, 1),
            exit(150, 0, EXTERNAL, IN_USER),
        ]
    };
    assert_eq!(times(&events(flag::INTERRUPTS_OFF)), Vec::<u64>::new());
    assert_eq!(times(&events(flag::INTERRUPTS_ON)), [41]);
}

#[test]
fn a_target_stopped_in_its_handler_is_noticed_by_who_waits_for_it() {
    let mut events = vec![
        exit(100, 0, MSR, IN_CALL),
        send(101, 0, 1, CALL_MANY),
        enter(102, 0),
    ];
    // Where waiting is done is learned while the target has nothing.
    for us in [110, 120, 130] {
        events.push(exit(us, 0, EXTERNAL, IN_CALL));
        events.push(enter(us + 1, 0));
    }
    events.extend([
        take(140, 1, CALL_MANY),
        enter(141, 1),
        exit(142, 1, EXTERNAL, IN_HANDLER),
        // It waits still.
        exit(150, 0, EXTERNAL, IN_CALL),
        enter(151, 0),
        enter(190, 1),
        exit(195, 1, WINDOW_OPEN, IN_HANDLER),
        enter(196, 1),
    ]);
    assert_eq!(times(&events), [90]);
    // Where the loop is not known, the first time in the guest is the answer.
    let unlearned: Vec<Event> = [&events[..3], &events[9..]].concat();
    assert_eq!(times(&unlearned), [41]);
    // The target has surely answered, and the initiator had no time to see it.
    events.extend([exit(210, 0, EXTERNAL, IN_CALL), enter(240, 0)]);
    assert_eq!(times(&events), [140]);
}

#[test]
fn an_initiator_in_its_timers_handler_sees_no_end() {
    let call = [exit(100, 0, MSR, IN_CALL), send(101, 0, 1, CALL_MANY)];
    let answer = [take(110, 1, CALL_MANY), enter(111, 1)];
    let tick = [take(120, 0, TIMER), enter(121, 0)];
    let in_handler = [exit(125, 0, MSR, IN_HANDLER), enter(180, 0)];
    let later = [exit(190, 0, MSR, IN_HANDLER), enter(210, 0)];
    let last = [exit(220, 0, MSR, IN_HANDLER), enter(240, 0)];
    let parts: [&[Event]; 6] = [&call, &answer, &tick, &in_handler, &later, &last];
    assert_eq!(times(&parts[..3].concat()), [21]);
    assert_eq!(times(&parts[..4].concat()), [80]);
    assert_eq!(times(&parts[..5].concat()), [110]);
    // Not for ever: that is what it does next.
    assert_eq!(times(&parts.concat()), [110]);
    // The exit that sends the next call is not the handler's.
    let next = [exit(125, 0, MSR, IN_CALL), send(126, 0, 1, CALL_MANY)];
    assert_eq!(times(&[&parts[..3].concat()[..], &next].concat()), [21]);
    // Taken after the end.
    let late = [enter(115, 0), take(120, 0, TIMER)];
    assert_eq!(
        times(&[&call[..], &answer, &late, &in_handler].concat()),
        [15]
    );
}

#[test]
fn another_interrupt_or_user_mode_says_that_a_target_has_answered() {
    for proof in [
        take(143, 1, TIMER),
        exit(143, 1, EXTERNAL, IN_USER),
        exit(143, 1, WINDOW_OPEN, IN_HANDLER),
    ] {
        let mut events = vec![exit(100, 0, MSR, IN_CALL), send(101, 0, 1, CALL_MANY)];
        for us in [110, 120, 130] {
            events.push(enter(us, 0));
            events.push(exit(us + 1, 0, EXTERNAL, IN_CALL));
        }
        events.extend([enter(135, 0), take(140, 1, CALL_MANY), enter(141, 1)]);
        events.push(proof);
        events.extend([exit(150, 0, EXTERNAL, IN_CALL), enter(160, 0)]);
        assert_eq!(times(&events), [60], "{proof:?}");
    }
}

#[test]
fn what_nobody_waits_for_is_no_call() {
    let wake = [
        exit(100, 0, MSR, IN_CALL),
        send(101, 0, 1, CALL_SINGLE),
        enter(102, 0),
    ];
    let in_user = [exit(110, 0, EXTERNAL, IN_USER), enter(111, 0)];
    let answer = [take(120, 1, CALL_SINGLE), enter(121, 1)];
    assert!(times(&[&wake[..], &in_user, &answer].concat()).is_empty());
    // Sent from an interrupt, during a wait: that one goes on.
    let call = [
        exit(50, 0, MSR, IN_CALL),
        send(51, 0, 2, CALL_MANY),
        enter(52, 0),
    ];
    let other = [exit(60, 0, EXTERNAL, IN_HANDLER), enter(61, 0)];
    let end = [take(130, 2, CALL_MANY), enter(131, 2)];
    assert_eq!(times(&[&call[..], &other, &wake, &end].concat()), [81]);
}

#[test]
fn a_call_may_send_with_an_exit_for_each_target() {
    let events = [
        exit(100, 0, MSR, IN_CALL),
        send(101, 0, 1, CALL_MANY),
        enter(102, 0),
        take(103, 1, CALL_MANY),
        enter(104, 1),
        exit(105, 0, MSR, IN_CALL),
        send(106, 0, 2, CALL_MANY),
        enter(107, 0),
        take(110, 2, CALL_MANY),
        enter(111, 2),
        // The next call, to one that the first went to.
        exit(120, 0, MSR, IN_CALL),
        send(121, 0, 1, CALL_MANY),
        enter(122, 0),
        take(130, 1, CALL_MANY),
        enter(135, 1),
    ];
    assert_eq!(times(&events), [11, 15]);
}

#[test]
fn who_takes_no_interrupts_is_still_in_its_handler() {
    let call = [
        exit(100, 0, MSR, IN_CALL),
        send(101, 0, 1, CALL_MANY),
        enter(102, 0),
        take(110, 1, CALL_MANY),
        enter(111, 1),
    ];
    let off = EXTERNAL | flag::INTERRUPTS_OFF;
    let on = EXTERNAL | flag::INTERRUPTS_ON;
    let stopped = [exit(112, 1, off, IN_HANDLER), enter(150, 1)];
    assert_eq!(times(&call), [11]);
    assert_eq!(times(&[&call[..], &stopped].concat()), [50]);
    // Twice, and the initiator is not there when it goes on.
    let again = [
        exit(151, 1, off, IN_HANDLER),
        exit(160, 0, on, IN_CALL),
        enter(170, 1),
        exit(171, 1, on, IN_HANDLER),
        exit(172, 1, off, IN_HANDLER),
        enter(180, 0),
    ];
    assert_eq!(times(&[&call[..], &stopped, &again].concat()), [80]);
    // It has left its handler long before, and does other things.
    let later = [exit(5000, 1, off, IN_HANDLER), enter(6000, 1)];
    assert_eq!(times(&[&call[..], &later].concat()), [11]);
}

#[test]
fn an_initiator_that_takes_no_interrupts_sees_no_end_however_long() {
    let off = MSR | flag::INTERRUPTS_OFF;
    let mut events = vec![
        exit(100, 0, MSR, IN_CALL),
        send(101, 0, 1, CALL_MANY),
        enter(102, 0),
        take(105, 0, TIMER),
        enter(106, 0),
        take(110, 1, CALL_MANY),
        enter(111, 1),
    ];
    for us in [120, 130, 140] {
        events.push(exit(us, 0, off, IN_HANDLER));
        events.push(enter(us + 5, 0));
    }
    assert_eq!(times(&events), [45]);
    let on = EXTERNAL | flag::INTERRUPTS_ON;
    // Its softirqs take some: but not for ever.
    for (us, seen_us) in [(150, 55), (160, 65), (170, 65)] {
        events.extend([exit(us, 0, on, IN_HANDLER), enter(us + 5, 0)]);
        assert_eq!(times(&events), [seen_us]);
    }
}

/// Exits of a waiting initiator, 0, that teach where the loop is.
fn taught() -> Vec<Event> {
    let mut events = vec![exit(10, 0, MSR, IN_CALL), send(11, 0, 1, CALL_MANY)];
    for us in [20, 30, 40] {
        events.push(enter(us, 0));
        events.push(exit(us + 1, 0, EXTERNAL, IN_CALL + us / 10));
    }
    events.extend([take(50, 1, CALL_MANY), enter(51, 1), enter(60, 0)]);
    events.push(exit(70, 0, MSR, IN_USER));
    assert_eq!(times(&events), [50]);
    events
}

#[test]
fn who_is_in_the_loop_waits_for_targets_that_no_interrupt_of_its_went_to() {
    let mut events = taught();
    events.extend([
        enter(80, 2),
        exit(90, 2, EXTERNAL, IN_CALL + 8),
        enter(120, 2),
        exit(130, 2, EXTERNAL, IN_CALL),
        enter(150, 2),
        exit(160, 2, EXTERNAL, IN_USER),
    ]);
    assert_eq!(times(&events), [50, 70]);
    // Elsewhere in the kernel it does other things.
    let elsewhere = [enter(80, 2), exit(90, 2, EXTERNAL, IN_CALL + 100)];
    let events = [taught(), elsewhere.to_vec(), vec![enter(120, 2)]].concat();
    assert_eq!(times(&events), [50]);
}

#[test]
fn an_answer_that_was_not_seen_came_before_the_initiator_went_on() {
    let mut events = taught();
    events.extend([
        exit(100, 0, MSR, IN_CALL),
        send(101, 0, 1, CALL_MANY),
        enter(102, 0),
        take(105, 1, CALL_MANY),
        exit(110, 0, EXTERNAL, IN_CALL),
        enter(115, 0),
        exit(130, 0, EXTERNAL, IN_USER),
    ]);
    assert_eq!(times(&events), [50, 15]);
}

#[test]
fn who_waits_may_lose_its_vcpu_to_another_thread() {
    let mut events = taught();
    events.extend([
        exit(100, 0, MSR, IN_CALL),
        send(101, 0, 1, CALL_MANY),
        enter(102, 0),
        exit(110, 0, EXTERNAL, IN_CALL),
        enter(115, 0),
        // Another thread.
        exit(130, 0, EXTERNAL, IN_USER),
        enter(131, 0),
    ]);
    // The first one again, or the answer comes while it is away.
    let again = [exit(180, 0, EXTERNAL, IN_CALL), enter(181, 0)];
    let answer = [take(200, 1, CALL_MANY), enter(201, 1)];
    let all = [&events[..], &again, &answer].concat();
    assert_eq!(times(&all), [50, 101]);
    assert_eq!(times(&[&events[..], &answer].concat()), [50, 101]);
    assert_eq!(times(&events), [50]);
}

#[test]
fn a_handler_that_ends_with_another_interrupt_waiting_shows_nothing() {
    let events = [
        exit(100, 0, MSR, IN_CALL),
        send(101, 0, 1, CALL_MANY),
        enter(102, 0),
        take(110, 0, TIMER),
        enter(111, 0),
        take(112, 1, CALL_MANY),
        enter(113, 1),
        exit(120, 0, WINDOW_OPEN | flag::INTERRUPTS_ON, IN_CALL),
        take(121, 0, TIMER),
        enter(150, 0),
    ];
    assert_eq!(times(&events), [50]);
}
