// SPDX-License-Identifier: GPL-2.0-only
//! Steers KVM's halt polling: reads what a window showed, asks the policy
//! (`policy/corun/halt.h`), sets the module parameter, and puts it back.
//!
//! The parameter is the host's, not ours. What the operator set is put back on
//! every way out, by us or by the next start ([`left`]); a value that somebody
//! else sets while we run becomes the operator's.

pub(crate) mod left;
mod note;
mod parameter;
mod places;
mod report;
mod seen;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use note::Note;
pub(crate) use places::Places;
pub(crate) use report::HaltReport;

use corun_policy::halt::{Halt, HaltTunables, HaltVerdict, HaltWindow, judge};
use left::{Left, Owner, Record};
use parameter::Parameter;
use seen::Polls;
use std::io::Result;
use std::time::{Duration, Instant};

/// Shortest window; a caller that looks less often has longer ones.
const WINDOW: Duration = Duration::from_millis(100);

/// Halt polling under our control while this lives.
#[derive(Debug)]
pub(crate) struct HaltSteering {
    places: Places,
    tunables: HaltTunables,
    /// Steering is wanted, and nothing has prevented it.
    active: bool,
    /// The load of kvm that is steered; `None` while it is not loaded.
    engaged: Option<Engaged>,
    last: Option<Sample>,
    counters_missed: bool,
    notes: Vec<Note>,
    report: HaltReport,
}

#[derive(Debug)]
struct Engaged {
    halt: Halt,
    operator_ns: u64,
    module: u64,
    owner: Owner,
}

/// Cumulative values at the begin of a window.
#[derive(Debug)]
struct Sample {
    at: Instant,
    waiting_ns: u64,
    polls: Option<Polls>,
}

impl HaltSteering {
    /// Undoes what a killed process left, then steers if `steer` says so.
    /// Nothing that fails here ends the scheduler: [`Self::step`] tells it.
    pub(crate) fn start(steer: bool, tunables: HaltTunables, places: Places) -> Self {
        let mut new = Self {
            places,
            tunables,
            active: steer,
            engaged: None,
            last: None,
            counters_missed: false,
            notes: Vec::new(),
            report: HaltReport::default(),
        };
        match left::repair(&new.places) {
            Ok(Left::Changed {
                pid,
                present_ns,
                operator_ns,
            }) => {
                new.notes.push(Note::Restored {
                    pid,
                    present_ns,
                    operator_ns,
                });
            }
            Ok(Left::InUse { pid }) => {
                new.active = false;
                new.notes.push(Note::InUse { pid });
            }
            Ok(Left::Nothing | Left::Void { .. }) => {}
            Err(e) => new.give_up(&e),
        }
        new
    }

    /// Closes the window if it is long enough, and acts on it. `waiting_ns`:
    /// time that runnable tasks waited for a pCPU, cumulative; `None`: as the
    /// kernel counts it. Returns what the operator should know.
    pub(crate) fn step(&mut self, now: Instant, waiting_ns: Option<u64>) -> Vec<Note> {
        let due = self
            .last
            .as_ref()
            .is_none_or(|last| now.saturating_duration_since(last.at) >= WINDOW);
        if self.active
            && due
            && let Err(e) = self.close_window(now, waiting_ns)
        {
            self.give_up(&e);
        }
        std::mem::take(&mut self.notes)
    }

    /// Counts since the start; `None` while no window was judged.
    pub(crate) fn report(&self) -> Option<&HaltReport> {
        (self.report.windows > 0).then_some(&self.report)
    }

    /// Puts the operator's value back and steers no more. An error leaves the
    /// record in place, for `corun doctor --repair`.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.active = false;
        let Some(engaged) = self.engaged.take() else {
            return Ok(());
        };
        let ours = Parameter {
            value_ns: engaged.halt.poll_ns,
            module: engaged.module,
        };
        if ours.value_ns != engaged.operator_ns
            && parameter::read(&self.places.parameter)? == Some(ours)
        {
            parameter::write(&self.places.parameter, engaged.operator_ns)?;
        }
        left::forget(&self.places.left)
    }

    fn give_up(&mut self, error: &std::io::Error) {
        self.notes.push(Note::Failed {
            error: error.to_string(),
        });
        if let Err(e) = self.stop() {
            self.notes.push(Note::NotRestored {
                error: e.to_string(),
            });
        }
    }

    fn close_window(&mut self, now: Instant, waiting_ns: Option<u64>) -> Result<()> {
        let Some(present) = parameter::read(&self.places.parameter)? else {
            return self.kvm_gone();
        };
        self.engage(present)?;
        let Some(waiting_ns) = waiting_ns.or_else(|| seen::waiting_ns(&self.places)) else {
            self.notes.push(Note::NoWaitingTimes);
            return self.stop();
        };
        let polls = Polls::read(&self.places.counters);
        if polls.is_none() && !self.counters_missed {
            self.counters_missed = true;
            self.notes.push(Note::NoCounters);
        }
        let sample = Sample {
            at: now,
            waiting_ns,
            polls,
        };
        if let Some(last) = self.last.replace(sample) {
            self.act(&last)?;
        }
        Ok(())
    }

    /// With the module went its parameter: nothing is left to put back.
    fn kvm_gone(&mut self) -> Result<()> {
        self.last = None;
        self.report.poll_ns = 0;
        if self.engaged.take().is_some() {
            self.notes.push(Note::KvmGone);
            left::forget(&self.places.left)?;
        }
        Ok(())
    }

    /// Takes over kvm as it is now, unless it is as we left it.
    fn engage(&mut self, present: Parameter) -> Result<()> {
        let operator_ns = present.value_ns;
        if let Some(engaged) = &self.engaged {
            let same_module = engaged.module == present.module;
            if same_module && engaged.halt.poll_ns == operator_ns {
                return Ok(());
            }
            // No value of ours is in force any more.
            left::forget(&self.places.left)?;
            if same_module {
                self.report.adopted += 1;
                self.notes.push(Note::Adopted { operator_ns });
            }
        }
        self.report.poll_ns = operator_ns;
        self.report.operator_ns = operator_ns;
        self.engaged = Some(Engaged {
            halt: Halt::new(operator_ns, &self.tunables),
            operator_ns,
            module: present.module,
            owner: Owner::this(&self.places)?,
        });
        Ok(())
    }

    /// Judges the window from `last` to the present sample.
    fn act(&mut self, last: &Sample) -> Result<()> {
        let (Some(engaged), Some(this)) = (&mut self.engaged, &self.last) else {
            return Ok(());
        };
        let length = this.at.saturating_duration_since(last.at);
        let length_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        let polls = match (this.polls, last.polls) {
            (Some(this), Some(last)) => this.since(&last),
            _ => Polls::default(),
        };
        let window = HaltWindow {
            cpu_ns: length_ns.saturating_mul(seen::online_cpus(&self.places)),
            // A scheduler that was loaded anew counts from 0.
            waiting_ns: this.waiting_ns.saturating_sub(last.waiting_ns),
            polls: polls.attempts,
            hits: polls.hits,
            hit_ns: polls.hit_ns,
            vain_ns: polls.vain_ns,
            wakeups: polls.wakeups,
        };
        let verdict = match judge(&window, &self.tunables) {
            // Nothing tells whether polls are worth it.
            HaltVerdict::Pays if this.polls.is_none() => HaltVerdict::Wanted,
            verdict => verdict,
        };
        let before_ns = engaged.halt.poll_ns;
        let mut next = engaged.halt;
        let other_load = next.note_load(&window, &self.tunables);
        let after_ns = next.step(verdict, engaged.operator_ns, &self.tunables);
        if after_ns != before_ns {
            set(&self.places, engaged, after_ns)?;
        }
        engaged.halt = next;
        self.report.window(&window, verdict);
        self.report.other_loads += u64::from(other_load);
        self.report.changed(before_ns, after_ns);
        Ok(())
    }
}

/// Sets the parameter to `after_ns`, so that it can be undone at any moment.
fn set(places: &Places, engaged: &Engaged, after_ns: u64) -> Result<()> {
    Record {
        owner: engaged.owner.clone(),
        module: engaged.module,
        operator_ns: engaged.operator_ns,
        ours_ns: [engaged.halt.poll_ns, after_ns],
    }
    .write(&places.left)?;
    parameter::write(&places.parameter, after_ns)?;
    if after_ns == engaged.operator_ns {
        left::forget(&places.left)?;
    }
    Ok(())
}

impl Drop for HaltSteering {
    fn drop(&mut self) {
        if let Err(e) = self.stop() {
            tracing::warn!(
                "{}",
                Note::NotRestored {
                    error: e.to_string()
                }
            );
        }
    }
}
