// SPDX-License-Identifier: GPL-2.0-only
//! The trace of a run: every event is hashed; a sink may also keep it.

pub(crate) use corun_events::exit;
pub use corun_events::{EXITS, Event, Kind, NO_PCPU};

/// Takes the events of a run.
pub trait Sink {
    /// Takes one.
    fn take(&mut self, event: &Event);
}

/// Hash and sink.
pub(crate) struct Trace<'a> {
    hash: u64,
    sink: Option<&'a mut dyn Sink>,
}

impl<'a> Trace<'a> {
    pub(crate) fn new(sink: Option<&'a mut dyn Sink>) -> Self {
        Self {
            hash: 0xcbf2_9ce4_8422_2325,
            sink,
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn put(&mut self, event: &Event) {
        let place = u64::from(event.pcpu) << 32 | u64::from(event.vcpu);
        let what = (event.kind as u64) << 32 | u64::from(event.vm);
        for word in [event.at_ns, place, what, event.arg] {
            // FNV-1a by words, with the high half folded in.
            self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
            self.hash ^= self.hash >> 29;
        }
        if let Some(sink) = &mut self.sink {
            sink.take(event);
        }
    }
}
