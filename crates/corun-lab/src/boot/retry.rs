// SPDX-License-Identifier: GPL-2.0-only
//! Boots again after an emulator fault, and after nothing else.

use super::{BootError, Diagnosis};
use serde::Serialize;

/// Why one attempt failed.
#[derive(Debug, thiserror::Error)]
pub enum AttemptError {
    /// The boot failed.
    #[error(transparent)]
    Diagnosed(#[from] Diagnosis),
    /// It could not be started or talked to.
    #[error(transparent)]
    Boot(#[from] BootError),
}

/// A boot that was given up, for the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// Number of the attempt, from 1.
    pub number: u32,
    /// What went wrong.
    pub diagnosis: Diagnosis,
}

/// What came of all attempts.
#[derive(Debug)]
pub struct Outcome<T> {
    /// The last attempt's outcome.
    pub result: Result<T, AttemptError>,
    /// Attempts that an emulator fault ended, retried or not.
    pub faults: Vec<Attempt>,
}

/// Calls `attempt` (with its number, from 1) until it succeeds, fails by other
/// than an emulator fault, or `retries` retries are used up. Each retry is told
/// on standard error.
pub fn run_with_retries<T>(
    retries: u32,
    mut attempt: impl FnMut(u32) -> Result<T, AttemptError>,
) -> Outcome<T> {
    let mut faults = Vec::new();
    let mut number = 1;
    loop {
        let result = attempt(number);
        let fault = match &result {
            Err(AttemptError::Diagnosed(d)) if d.is_emulator_suspect() => d.clone(),
            _ => return Outcome { result, faults },
        };
        let diagnosis = fault;
        if number > retries {
            faults.push(Attempt { number, diagnosis });
            return Outcome { result, faults };
        }
        eprintln!("{diagnosis}\nThis looks like an emulator fault: retry {number} of {retries}.");
        faults.push(Attempt { number, diagnosis });
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Evidence, Failure};
    use super::*;
    use std::time::Duration;

    fn failed(emulator_suspect: bool) -> AttemptError {
        let failure = Failure::Reported {
            message: "x".into(),
            emulator_suspect,
        };
        let evidence = Evidence {
            failure,
            console: String::new(),
            qemu_said: String::new(),
            exit: None,
            age: Duration::ZERO,
        };
        Diagnosis::new(&evidence, None).into()
    }

    #[test]
    fn an_emulator_fault_is_retried_and_counted() {
        let outcome = run_with_retries(3, |n| if n < 3 { Err(failed(true)) } else { Ok(n) });
        assert_eq!(outcome.result.expect("third passes"), 3);
        assert_eq!(outcome.faults.len(), 2);
    }

    #[test]
    fn retries_end() {
        let outcome = run_with_retries::<()>(2, |_| Err(failed(true)));
        assert!(outcome.result.is_err());
        assert_eq!(outcome.faults.len(), 3);
    }

    #[test]
    fn a_workloads_failure_is_never_retried() {
        let mut calls = 0;
        let outcome = run_with_retries::<()>(3, |_| {
            calls += 1;
            Err(failed(false))
        });
        assert!(outcome.result.is_err() && outcome.faults.is_empty());
        assert_eq!(calls, 1);
    }
}
