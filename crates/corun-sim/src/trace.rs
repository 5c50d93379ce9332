// SPDX-License-Identifier: GPL-2.0-only
//! The trace of a run: what decides it is hashed; a sink may also keep it, with
//! more that follows from it and that only viewers need.

pub(crate) use corun_events::exit;
pub use corun_events::{EXITS, Event, Kind, NO_PCPU};

use crate::machine::Machine;
use crate::symbols::{self, Symbol};
use crate::{Scenario, SimError};

/// Where the symbols of [`Names`] are: the simulated guests' text.
const TEXT_START: u64 = 0xffff_ffff_8100_0000;
/// Length of each function.
const FUNCTION_LEN: u64 = 0x1000;
/// Where user code is.
const USER_IP: u64 = 0x40_0000;

/// The instruction pointer of a vCPU inside `symbol`.
pub(crate) fn ip_of(symbol: Symbol) -> u64 {
    if symbol == symbols::USER {
        return USER_IP;
    }
    TEXT_START + u64::from(symbol) * FUNCTION_LEN
}

/// Names of what events carry numbers of, for a recording's header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Kernel functions.
    pub symbols: Vec<corun_events::Symbol>,
    /// Spinlocks, by number.
    pub locks: Vec<String>,
}

/// The names of the events of `scenario`.
pub fn names(scenario: &Scenario) -> Result<Names, SimError> {
    Ok(Machine::new(scenario, None)?.names_of_events())
}

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

    /// Somebody looks at the events.
    pub(crate) fn is_watched(&self) -> bool {
        self.sink.is_some()
    }

    /// Shows `event`, which follows from others: it is not hashed.
    pub(crate) fn show(&mut self, event: &Event) {
        if let Some(sink) = &mut self.sink {
            sink.take(event);
        }
    }

    pub(crate) fn put(&mut self, event: &Event) {
        let place = u64::from(event.pcpu) << 32 | u64::from(event.vcpu);
        let what = (event.kind as u64) << 32 | u64::from(event.vm);
        for word in [event.at_ns, place, what, event.arg] {
            // FNV-1a by words, with the high half folded in.
            self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
            self.hash ^= self.hash >> 29;
        }
        self.show(event);
    }
}
