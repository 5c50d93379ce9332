// SPDX-License-Identifier: GPL-2.0-only
//! The event queue alone.

use crate::{Sample, Subject};
use corun_sim::engine::dist::Dist;
use corun_sim::engine::rng::{Rng, Stream};
use corun_sim::engine::timers::{Slot, Timers};
use std::time::Instant;

const EVENTS: u64 = 2_000_000;

pub(crate) fn subjects() -> Vec<Subject> {
    vec![
        Subject::new("pop and arm, 64 pending", || Ok(hold(64))),
        Subject::new("pop and arm, 1024 pending", || Ok(hold(1024))),
        Subject::new("pop and arm, 16384 pending", || Ok(hold(16384))),
    ]
}

/// Takes the next event and arms it again, with `pending` of them in the queue
/// (the "hold" model of the literature).
fn hold(pending: u32) -> Sample {
    let mut timers = Timers::new(pending as usize);
    let mut rng = Rng::new(1, Stream::Thread, 0);
    let gap = Dist::Uniform(0, 2_000_000);
    for slot in 0..pending {
        timers.arm(slot as Slot, gap.sample(&mut rng));
    }
    let start = Instant::now();
    for _ in 0..EVENTS {
        if let Some((now_ns, slot)) = timers.pop(u64::MAX) {
            timers.arm(slot, now_ns + gap.sample(&mut rng));
        }
    }
    Sample {
        events: EVENTS,
        seconds: start.elapsed().as_secs_f64(),
    }
}
