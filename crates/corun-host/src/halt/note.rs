// SPDX-License-Identifier: GPL-2.0-only
//! What the operator should know of halt polling, besides figures.

/// One thing to know, with the next step where there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Note {
    /// A killed process' change was undone.
    #[error(
        "halt_poll_ns was {present_ns} since corun (pid {pid}) was killed: put back to {operator_ns}"
    )]
    Restored {
        /// The process.
        pid: u32,
        /// Its value. Nanoseconds.
        present_ns: u64,
        /// The operator's. Nanoseconds.
        operator_ns: u64,
    },
    /// Somebody else steers.
    #[error("corun (pid {pid}) steers halt polling already: left to it")]
    InUse {
        /// Who.
        pid: u32,
    },
    /// No counters.
    #[error(
        "no halt-poll counters: mount debugfs (`mount -t debugfs none /sys/kernel/debug`); until \
         then halt polling is steered by contention alone"
    )]
    NoCounters,
    /// No waiting times.
    #[error(
        "no waiting times: halt polling is left alone; it is steered on kernels with \
         CONFIG_SCHEDSTATS (/proc/schedstat)"
    )]
    NoWaitingTimes,
    /// kvm was unloaded.
    #[error("kvm was unloaded: halt polling is steered again once it is loaded")]
    KvmGone,
    /// Somebody set the parameter.
    #[error("somebody set halt_poll_ns to {operator_ns}: taken as the operator's value")]
    Adopted {
        /// The value. Nanoseconds.
        operator_ns: u64,
    },
    /// A file could not be read or written.
    #[error("halt polling is left alone from now on: {error}")]
    Failed {
        /// The system's words.
        error: String,
    },
    /// The operator's value could not be put back.
    #[error("halt_poll_ns could not be put back ({error}): run `corun doctor --repair` as root")]
    NotRestored {
        /// The system's words.
        error: String,
    },
}
