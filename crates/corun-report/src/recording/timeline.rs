// SPDX-License-Identifier: GPL-2.0-only
//! The moment that is worth seeing: the longest wait, and what led to it.

use super::tracker::State;
use crate::model::Span;
use std::collections::VecDeque;

/// Intervals that are remembered: what a chart of a page's width can show.
const KEPT: usize = 4_000;

/// A vCPU was in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) vm: usize,
    pub(crate) vcpu: u32,
    pub(crate) pcpu: u32,
    pub(crate) state: State,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

impl Interval {
    fn waits(&self) -> bool {
        matches!(self.state, State::Preempted | State::Woken)
    }

    /// It from `from` to `to` in `lane`; `None` when nothing is left of it.
    pub(crate) fn clipped(&self, lane: usize, state: usize, from: u64, to: u64) -> Option<Span> {
        let span = Span {
            lane: u32::try_from(lane).ok()?,
            state: u32::try_from(state).ok()?,
            from_ns: self.from_ns.max(from),
            to_ns: self.to_ns.min(to),
        };
        (span.from_ns < span.to_ns).then_some(span)
    }
}

/// The last intervals, and those around the longest wait so far.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    recent: VecDeque<Interval>,
    /// All that end later than this are in `recent`.
    complete_from_ns: u64,
    /// The longest wait.
    pub(crate) longest: Option<Interval>,
    /// Around it.
    pub(crate) around: Vec<Interval>,
    /// From where on `around` has all.
    pub(crate) from_ns: u64,
}

impl Timeline {
    /// An interval that ended; true when it is the longest wait so far, which
    /// [`Timeline::keep`] then wants to know the open ones of.
    pub(crate) fn push(&mut self, ended: Interval) -> bool {
        if self.recent.len() == KEPT
            && let Some(old) = self.recent.pop_front()
        {
            self.complete_from_ns = old.to_ns;
        }
        self.recent.push_back(ended);
        let length = |i: &Interval| i.to_ns - i.from_ns;
        let longest = self.longest.as_ref().map_or(0, length);
        let record = ended.waits() && length(&ended) > longest;
        if record {
            self.longest = Some(ended);
        }
        record
    }

    /// Remembers what is around the longest wait, which has just ended, with the
    /// intervals that are still `open`.
    pub(crate) fn keep(&mut self, open: impl Iterator<Item = Interval>) {
        let Some(longest) = self.longest else { return };
        let before = (longest.to_ns - longest.from_ns) / 4;
        let wanted = longest.from_ns.saturating_sub(before);
        self.from_ns = wanted.max(self.complete_from_ns);
        let from = self.from_ns;
        self.around.clear();
        let ended = self.recent.iter().copied();
        self.around
            .extend(ended.chain(open).filter(|i| i.to_ns > from));
    }
}
