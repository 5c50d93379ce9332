// SPDX-License-Identifier: GPL-2.0-only
//! Why a boot's driver cannot go on.

/// Why the driver stopped early.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// A failure of a workload, of corun, or of the case: another boot would
    /// show it again, and it must not be retried away.
    #[error("{0}")]
    Own(String),
    /// A guest fell silent, was reset or died: perhaps the emulator's fault.
    #[error("{0}")]
    EmulatorSuspect(String),
    /// The runner ordered the end.
    #[error("aborted by the runner")]
    Aborted,
}

/// The driver's results.
pub(super) type Result<T> = std::result::Result<T, DriverError>;

/// Turns any error into [`DriverError::Own`] with what was being done.
pub(super) trait Context<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: std::fmt::Display> Context<T> for std::result::Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|e| DriverError::Own(format!("{}: {e}", what())))
    }
}
