// SPDX-License-Identifier: GPL-2.0-only
//! Options of `corun run`, as cases give them to the simulator.

use corun_case::hint;
use corun_policy::{Mechanisms, Tunables};

/// What they say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorunOptions {
    /// `--slice-us`. Nanoseconds.
    pub slice_ns: u64,
    /// `--mechanisms`.
    pub mechanisms: Mechanisms,
}

/// Options that the simulator cannot follow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OptionsError(String);

/// Those with a meaning in the simulator, and those without: the latter change
/// nothing that it models.
const KNOWN: [&str; 4] = ["--slice-us", "--mechanisms", "--stats", "--ignore-hazard"];

impl CorunOptions {
    /// Reads `options`, an argument each.
    pub fn parse(options: &[String]) -> Result<Self, OptionsError> {
        let mut parsed = Self {
            slice_ns: Tunables::default().slice_ns,
            mechanisms: Mechanisms::ALL,
        };
        let mut rest = options.iter();
        while let Some(option) = rest.next() {
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (option.as_str(), None),
            };
            if !KNOWN.contains(&name) {
                return Err(OptionsError(format!(
                    "unknown option `{name}`: the simulator knows {} of `corun run`{}",
                    KNOWN.join(", "),
                    hint(name, KNOWN)
                )));
            }
            let value = value.or_else(|| rest.next().map(String::as_str));
            let value = value.ok_or_else(|| OptionsError(format!("{name}: no value")))?;
            if name == "--slice-us" {
                parsed.slice_ns = slice_ns(value)?;
            }
            if name == "--mechanisms" {
                parsed.mechanisms = value
                    .parse()
                    .map_err(|e| OptionsError(format!("{name}: {e}")))?;
            }
        }
        Ok(parsed)
    }

    /// The policy's constants, as `corun run` derives them.
    pub fn tunables(&self, time_scale: f64) -> Tunables {
        Tunables::scaled(self.slice_ns, time_scale)
    }
}

fn slice_ns(text: &str) -> Result<u64, OptionsError> {
    match text.parse::<u64>() {
        Ok(us @ 100..=1_000_000) => Ok(us * 1_000),
        _ => Err(OptionsError(format!(
            "--slice-us {text}: must be between 100 and 1000000 (0.1 ms to 1 s)"
        ))),
    }
}

/// `time_ns` times `factor`.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cases bound both: seconds times hundreds, and positive"
)]
pub(super) fn scale(time_ns: u64, factor: f64) -> u64 {
    (time_ns as f64 * factor) as u64
}
