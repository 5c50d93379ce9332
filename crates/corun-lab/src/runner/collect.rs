// SPDX-License-Identifier: GPL-2.0-only
//! What one boot's reports add up to, and the verdicts on its windows.

use crate::results::{Disturbance, GateOutcome, GuestInfo, HostInfo, MachineTimes, MachineWindow};
use corun_lab_proto::control::{Calibration, Order, Report, Sample};
use std::io;

/// Reads the machine's CPU times; tests have their own.
pub(super) trait Clock {
    fn now(&mut self) -> io::Result<MachineTimes>;
}

/// This machine.
#[derive(Debug)]
pub(super) struct MachineClock;

impl Clock for MachineClock {
    fn now(&mut self) -> io::Result<MachineTimes> {
        MachineTimes::now()
    }
}

/// How much of a window's CPU time others than the lab may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Share that this machine's own hypervisor may take. 0 to 1.
    pub steal: f64,
    /// Share that other programs of this machine may take. 0 to 1.
    pub foreign: f64,
}

impl Limits {
    /// No window is refused.
    pub const NONE: Self = Self {
        steal: 1.0,
        foreign: 1.0,
    };

    fn allow(self, disturbance: Disturbance) -> bool {
        disturbance.steal <= self.steal && disturbance.foreign <= self.foreign
    }
}

/// What one boot has told so far.
#[derive(Debug)]
pub(super) struct Collector<C = MachineClock> {
    clock: C,
    limits: Limits,
    open: Option<MachineTimes>,
    pub(super) host: Option<HostInfo>,
    pub(super) guests: Vec<GuestInfo>,
    pub(super) calibration: Option<Calibration>,
    pub(super) gate: Option<GateOutcome>,
    pub(super) windows: Vec<MachineWindow>,
    pub(super) warnings: Vec<String>,
    pub(super) samples: Vec<Sample>,
}

impl<C: Clock> Collector<C> {
    /// Refuses windows in which the machine was disturbed beyond `limits`.
    pub(super) fn new(clock: C, limits: Limits) -> Self {
        Self {
            clock,
            limits,
            open: None,
            host: None,
            guests: Vec::new(),
            calibration: None,
            gate: None,
            windows: Vec::new(),
            warnings: Vec::new(),
            samples: Vec::new(),
        }
    }

    /// Takes a report in; returns what the driver must be told.
    pub(super) fn take(&mut self, report: Report) -> io::Result<Option<Order>> {
        match report {
            Report::WindowBegin { .. } => self.open = Some(self.clock.now()?),
            Report::WindowEnd { window } => return self.judge(window).map(Some),
            Report::Sample(sample) => self.samples.push(*sample),
            Report::Calibration(c) => self.calibration = Some(c),
            Report::Warning { text } => self.warnings.push(text),
            Report::Gate {
                slowdown,
                solo_pcpus,
                passed,
            } => {
                self.gate = Some(GateOutcome {
                    slowdown,
                    solo_pcpus,
                    passed,
                });
            }
            Report::Hello {
                kernel,
                pcpus,
                qemu,
                halt_poll_ns,
                ..
            } => {
                self.host = Some(HostInfo {
                    kernel,
                    pcpus,
                    qemu,
                    halt_poll_ns,
                });
            }
            Report::GuestReady {
                guest,
                kernel,
                vcpus,
                pv_features,
                boot_ns,
            } => {
                self.guests.push(GuestInfo {
                    name: guest,
                    kernel,
                    vcpus,
                    pv_features,
                    boot_ns,
                });
            }
            // Progress is for the watcher; the others end the boot elsewhere.
            Report::Progress { .. } | Report::Failed { .. } | Report::Done => {}
        }
        Ok(None)
    }

    fn judge(&mut self, window: u32) -> io::Result<Order> {
        let end = self.clock.now()?;
        // An end without a beginning is nothing to build figures on.
        let disturbance = match self.open.take() {
            Some(begin) => begin.until(&end),
            None => Disturbance {
                steal: 1.0,
                foreign: 0.0,
            },
        };
        let keep = self.limits.allow(disturbance);
        self.windows.push(MachineWindow {
            window,
            disturbance,
            accepted: keep,
        });
        Ok(Order::Verdict { window, keep })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one reading after the other.
    struct Script(Vec<&'static str>);

    impl Clock for Script {
        fn now(&mut self) -> io::Result<MachineTimes> {
            Ok(MachineTimes::parse(self.0.remove(0)).expect("parses"))
        }
    }

    fn verdict(readings: [&'static str; 2], steal: f64) -> (Order, Vec<MachineWindow>) {
        let mut c = Collector::new(
            Script(readings.into()),
            Limits {
                steal,
                foreign: 1.0,
            },
        );
        assert!(
            c.take(Report::WindowBegin { window: 7 })
                .expect("reads")
                .is_none()
        );
        let order = c.take(Report::WindowEnd { window: 7 }).expect("reads");
        (order.expect("a verdict"), c.windows)
    }

    #[test]
    fn work_of_other_programs_counts_as_a_disturbance_too() {
        let limits = Limits {
            steal: 0.05,
            foreign: 0.1,
        };
        let busy = |foreign| Disturbance {
            steal: 0.0,
            foreign,
        };
        assert!(limits.allow(busy(0.1)));
        assert!(!limits.allow(busy(0.11)));
    }

    const BEGIN: &str = "cpu  0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn windows_with_more_than_the_allowed_steal_are_refused() {
        let five = [BEGIN, "cpu  95 0 0 0 0 0 0 5 0 0\n"];
        let six = [BEGIN, "cpu  94 0 0 0 0 0 0 6 0 0\n"];
        let (order, windows) = verdict(five, 0.05);
        assert_eq!(
            order,
            Order::Verdict {
                window: 7,
                keep: true
            }
        );
        assert!(windows[0].accepted);
        let (order, windows) = verdict(six, 0.05);
        assert_eq!(
            order,
            Order::Verdict {
                window: 7,
                keep: false
            }
        );
        assert!(!windows[0].accepted);
        assert!((windows[0].disturbance.steal - 0.06).abs() < 1e-9);
    }

    #[test]
    fn an_end_without_a_beginning_is_refused() {
        let mut c = Collector::new(
            Script(vec![BEGIN]),
            Limits {
                steal: 0.05,
                foreign: 1.0,
            },
        );
        let order = c.take(Report::WindowEnd { window: 0 }).expect("reads");
        assert_eq!(
            order,
            Some(Order::Verdict {
                window: 0,
                keep: false
            })
        );
    }
}
