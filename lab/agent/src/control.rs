// SPDX-License-Identifier: GPL-2.0-only
//! How a run in flight is told to stop, and how it tells that it failed.

use crate::error::Error;
use crate::sync::lock;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// The strings by which one run is held; shared by the server, the run's own
/// thread and its workers.
#[derive(Debug, Default)]
pub(crate) struct Control {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    stopped: bool,
    failure: Option<Error>,
    group: Option<Pid>,
}

impl Control {
    /// Ends the run: wakes [`Control::wait_until`] and kills the program in flight.
    pub(crate) fn stop(&self) {
        let mut state = lock(&self.state);
        state.stopped = true;
        if let Some(group) = state.group {
            kill_group(group);
        }
        self.changed.notify_all();
    }

    /// Whether [`Control::stop`] was called.
    pub(crate) fn stopped(&self) -> bool {
        lock(&self.state).stopped
    }

    /// Reports a worker's failure; the first one is kept.
    pub(crate) fn fail(&self, error: Error) {
        lock(&self.state).failure.get_or_insert(error);
        self.changed.notify_all();
    }

    /// Sleeps until `deadline` (for ever when there is none), until the run is
    /// stopped, or until a worker fails, which is the error returned.
    pub(crate) fn wait_until(&self, deadline: Option<Instant>) -> Result<(), Error> {
        let mut state = lock(&self.state);
        loop {
            if let Some(error) = state.failure.take() {
                return Err(error);
            }
            if state.stopped {
                return Ok(());
            }
            state = match deadline {
                None => self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(());
                    }
                    let (state, _) = self
                        .changed
                        .wait_timeout(state, left)
                        .unwrap_or_else(PoisonError::into_inner);
                    state
                }
            };
        }
    }

    /// Names the process group which [`Control::stop`] has to kill. A stop that
    /// came before this call kills it here.
    pub(crate) fn enter_group(&self, group: Pid) {
        let mut state = lock(&self.state);
        state.group = Some(group);
        if state.stopped {
            kill_group(group);
        }
    }

    /// The group is about to be reaped: its number may soon mean another one.
    pub(crate) fn leave_group(&self) {
        lock(&self.state).group = None;
    }
}

/// Kills every process of `group`.
pub(crate) fn kill_group(group: Pid) {
    // An error can only mean that the group is gone already.
    let _ = killpg(group, Signal::SIGKILL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_ends_an_endless_wait() {
        let control = Control::default();
        std::thread::scope(|s| {
            let waiter = s.spawn(|| control.wait_until(None));
            control.stop();
            assert!(waiter.join().expect("no panic").is_ok());
        });
        assert!(control.stopped());
    }

    #[test]
    fn first_failure_wins() {
        let control = Control::default();
        control.fail(Error::EndedEarly);
        control.fail(Error::last_os("second"));
        assert!(matches!(control.wait_until(None), Err(Error::EndedEarly)));
    }
}
