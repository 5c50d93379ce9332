// SPDX-License-Identifier: GPL-2.0-only
//! The columns: what they are called, show and sort by.

use super::figures::{self, Figures};
use clap::ValueEnum;

/// A column. In the order of the screen; a narrow screen leaves out the last ones of
/// [`Column::WIDE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Column {
    /// Name of the VM, number of the vCPU
    Name,
    /// Share of time on a pCPU
    Run,
    /// Share of time runnable without a pCPU (the guest's steal)
    Ready,
    /// What most of that is for
    Cause,
    /// Wake-up to running, median
    Wake50,
    /// Wake-up to running, 99th percentile
    Wake99,
    /// Preemptions in the guest's kernel a second
    Kernel,
    /// Times a second that KVM took it for spinning
    Spin,
    /// IPI from sending to injection, median
    Ipi50,
    /// IPI from sending to injection, 99th percentile
    Ipi99,
    /// Halts a second
    Halt,
    /// Share of halt polls with success
    Poll,
    /// VM exits a second
    Exits,
    /// Share of time halted
    Halted,
    /// Share of time asleep otherwise
    Blocked,
    /// Share of time in halt polling
    Polling,
    /// Preemptions a second
    Preempted,
    /// Preemptions a second in a critical section, by symbol
    Critical,
    /// Directed yields a second
    Yields,
    /// Wait for TLB shootdowns, 99th percentile (an estimate)
    Shoot99,
    /// Device interrupts a second
    Devices,
}

impl Column {
    /// Those of a screen of 80 columns.
    pub(super) const NARROW: [Self; 12] = [
        Self::Name,
        Self::Run,
        Self::Ready,
        Self::Cause,
        Self::Wake50,
        Self::Wake99,
        Self::Kernel,
        Self::Spin,
        Self::Ipi50,
        Self::Ipi99,
        Self::Halt,
        Self::Poll,
    ];

    /// Those that a wide screen adds.
    pub(super) const WIDE: [Self; 9] = [
        Self::Exits,
        Self::Halted,
        Self::Blocked,
        Self::Polling,
        Self::Preempted,
        Self::Critical,
        Self::Yields,
        Self::Shoot99,
        Self::Devices,
    ];

    /// As many as `width` characters hold; at least the narrow ones.
    pub(super) fn fitting(width: usize) -> Vec<Self> {
        let mut columns = Self::NARROW.to_vec();
        let mut used: usize = columns.iter().map(|c| c.width() + 1).sum();
        for column in Self::WIDE {
            used += column.width() + 1;
            if used > width + 1 {
                break;
            }
            columns.push(column);
        }
        columns
    }

    /// Its heading.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Name => "NAME",
            Self::Run => "RUN%",
            Self::Ready => "RDY%",
            Self::Cause => "BEHIND",
            Self::Wake50 => "WK50",
            Self::Wake99 => "WK99",
            Self::Kernel => "PRK/s",
            Self::Spin => "SPN/s",
            Self::Ipi50 => "IPI50",
            Self::Ipi99 => "IPI99",
            Self::Halt => "HLT/s",
            Self::Poll => "POL+",
            Self::Exits => "EXIT/s",
            Self::Halted => "HLT%",
            Self::Blocked => "BLK%",
            Self::Polling => "POL%",
            Self::Preempted => "PRE/s",
            Self::Critical => "CRI/s",
            Self::Yields => "YLD/s",
            Self::Shoot99 => "TLB99",
            Self::Devices => "DEV/s",
        }
    }

    /// Characters that it takes; the name takes what is left over, too.
    pub(super) fn width(self) -> usize {
        match self {
            Self::Name => 13,
            Self::Cause => 8,
            Self::Exits => 6,
            Self::Run | Self::Ready | Self::Poll | Self::Halted | Self::Blocked | Self::Polling => {
                4
            }
            _ => 5,
        }
    }

    /// Text is at the left, figures are at the right.
    pub(super) fn is_text(self) -> bool {
        matches!(self, Self::Name | Self::Cause)
    }

    /// What it shows of `f`, but for the name.
    pub(super) fn cell(self, f: &Figures) -> String {
        let (a, times) = (&f.account, &f.account.times);
        match self {
            Self::Name => String::new(),
            Self::Run => figures::percent(f.percent(times.run_ns)),
            Self::Ready => figures::percent(f.percent(times.ready.total_ns())),
            Self::Cause => figures::cause(times.ready.main_cause()).to_owned(),
            Self::Wake50 => figures::quantile(&a.latencies.wake_to_run, 0.5),
            Self::Wake99 => figures::quantile(&a.latencies.wake_to_run, 0.99),
            Self::Ipi50 => figures::quantile(&f.ipi, 0.5),
            Self::Ipi99 => figures::quantile(&f.ipi, 0.99),
            Self::Shoot99 => figures::quantile(&a.latencies.shootdown, 0.99),
            Self::Poll => figures::poll_success(a),
            Self::Halted => figures::percent(f.percent(times.halted_ns)),
            Self::Blocked => figures::percent(f.percent(times.blocked_ns)),
            Self::Polling => figures::percent(f.percent(times.poll_ns)),
            Self::Critical if a.counts.preempted_critical.is_none() => "-".to_owned(),
            Self::Kernel
            | Self::Critical
            | Self::Spin
            | Self::Halt
            | Self::Exits
            | Self::Preempted
            | Self::Yields
            | Self::Devices => figures::rate(self.order(f)),
        }
    }

    /// What it sorts `f` by, the largest first; names and causes sort by themselves.
    pub(super) fn order(self, f: &Figures) -> f64 {
        let (a, times, n) = (&f.account, &f.account.times, &f.account.counts);
        match self {
            Self::Name => 0.0,
            Self::Run => f.percent(times.run_ns),
            Self::Ready | Self::Cause => f.percent(times.ready.total_ns()),
            Self::Wake50 => a.latencies.wake_to_run.quantile_ns(0.5) as f64,
            Self::Wake99 => a.latencies.wake_to_run.quantile_ns(0.99) as f64,
            Self::Ipi50 => f.ipi.quantile_ns(0.5) as f64,
            Self::Ipi99 => f.ipi.quantile_ns(0.99) as f64,
            Self::Shoot99 => a.latencies.shootdown.quantile_ns(0.99) as f64,
            Self::Poll => n.poll_success().unwrap_or(-1.0),
            Self::Halted => f.percent(times.halted_ns),
            Self::Blocked => f.percent(times.blocked_ns),
            Self::Polling => f.percent(times.poll_ns),
            Self::Kernel => f.rate(n.preempted_kernel),
            Self::Spin => f.rate(n.spins),
            Self::Halt => f.rate(n.halts),
            Self::Exits => f.rate(a.all_exits()),
            Self::Preempted => f.rate(n.preempted()),
            Self::Critical => f.rate(n.preempted_critical.unwrap_or(0)),
            Self::Yields => f.rate(n.yields_asked),
            Self::Devices => f.rate(n.device_interrupts),
        }
    }

    /// The column `by` places further, around the end.
    pub(super) fn moved(self, by: isize) -> Self {
        let all = Self::value_variants();
        let at = all.iter().position(|c| *c == self).unwrap_or(0);
        let to = (at.cast_signed() + by).rem_euclid(all.len().cast_signed());
        all[to.cast_unsigned()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_columns_are_on_some_screen_once() {
        let mut all = Column::NARROW.to_vec();
        all.extend(Column::WIDE);
        assert_eq!(all, Column::value_variants());
        assert!(all.iter().all(|c| c.title().len() <= c.width()));
    }

    #[test]
    fn the_narrow_ones_fit_80_characters_and_all_fit_150() {
        let width = |columns: &[Column]| columns.iter().map(|c| c.width() + 1).sum::<usize>() - 1;
        assert!(width(&Column::NARROW) <= 80);
        assert_eq!(Column::fitting(80), Column::NARROW);
        assert_eq!(Column::fitting(150).len(), 21);
        for wide in 80..160 {
            assert!(width(&Column::fitting(wide)) <= wide, "{wide}");
        }
    }

    #[test]
    fn going_around_comes_back() {
        let mut column = Column::Ready;
        for _ in Column::value_variants() {
            column = column.moved(1);
        }
        assert_eq!(column, Column::Ready);
        assert_eq!(Column::Name.moved(-1), Column::Devices);
    }
}
