// SPDX-License-Identifier: GPL-2.0-only
//! What can go wrong with a run, worded for the person who reads the result.

use std::io;

/// Why a run could not start or did not end well.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// No workload has this name.
    #[error("no workload is called {name:?}; there are: {known}")]
    UnknownWorkload {
        /// The name asked for.
        name: String,
        /// All names, comma separated.
        known: String,
    },
    /// A parameter that the workload does not have, or a value it does not take.
    #[error("workload {workload}: {problem}; its parameters are: {known}")]
    Param {
        /// The workload.
        workload: &'static str,
        /// What is wrong.
        problem: String,
        /// All parameters with their ranges.
        known: String,
    },
    /// A thread count that the workload cannot use.
    #[error("workload {workload}: {problem}")]
    Threads {
        /// The workload.
        workload: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The workload's program is not in this guest.
    #[error("{program} is not in /usr/bin or /bin: it is in Debian's package {package}")]
    MissingProgram {
        /// The program.
        program: &'static str,
        /// The package which holds it.
        package: &'static str,
    },
    /// The module `corun_locks` does not do what it was asked for.
    #[error("corun_locks: {reason}")]
    Locks {
        /// Its own words, or what it did.
        reason: String,
    },
    /// The workload's program failed.
    #[error("{program} {how}; its last words:\n{tail}")]
    Program {
        /// The program.
        program: String,
        /// Its exit status in words.
        how: String,
        /// The end of its output.
        tail: String,
    },
    /// The program ended well but what it printed could not be understood.
    #[error("cannot find {what} in what {program} printed:\n{tail}")]
    Unparsable {
        /// The program.
        program: &'static str,
        /// The missing figure.
        what: &'static str,
        /// The end of its output.
        tail: String,
    },
    /// A kernel module was refused.
    #[error("module {name} is refused: {why}\n{said}")]
    Module {
        /// The module.
        name: String,
        /// The system's reason.
        why: String,
        /// What the module said in the kernel's log.
        said: String,
    },
    /// A thread used a translation that the kernel had taken back.
    #[error("stale translation: a thread {what}")]
    Stale {
        /// What it did.
        what: String,
    },
    /// A worker thread stopped by itself before the end of the run.
    #[error("a worker thread ended before it was told to")]
    EndedEarly,
    /// The operating system refused something.
    #[error("{what}: {source}")]
    Os {
        /// What was tried.
        what: String,
        /// The reason.
        source: io::Error,
    },
    /// The measured latencies could not be put on the wire.
    #[error(transparent)]
    Histogram(#[from] corun_lab_proto::HistogramError),
}

impl Error {
    /// The last error of the operating system, with what was tried.
    pub(crate) fn last_os(what: impl Into<String>) -> Self {
        Self::os(what, io::Error::last_os_error())
    }

    /// An error of the operating system, with what was tried.
    pub(crate) fn os(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Os {
            what: what.into(),
            source: source.into(),
        }
    }
}

/// The last `lines` lines of a program's output.
pub(crate) fn tail(output: &str, lines: usize) -> String {
    let all: Vec<&str> = output.trim_end().lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::tail;

    #[test]
    fn tail_keeps_the_end() {
        assert_eq!(tail("a\nb\nc\n\n", 2), "b\nc");
        assert_eq!(tail("a", 5), "a");
        assert_eq!(tail("", 5), "");
    }
}
