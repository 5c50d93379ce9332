// SPDX-License-Identifier: GPL-2.0-only
//! The key `time_scale`: a number or "auto".

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Largest factor: beyond it a slice is longer than a window can average over.
pub const MAX_FACTOR: f64 = 300.0;

/// How the scheduler's clock is scaled.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum TimeScale {
    /// Derived from the cost of a vCPU switch, measured at boot.
    #[default]
    Auto,
    /// Given.
    Factor(f64),
}

/// A text that is no time scale.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("time scale {0:?}: expected \"auto\" or a number from 1 to {MAX_FACTOR}")]
pub struct TimeScaleError(String);

impl FromStr for TimeScale {
    type Err = TimeScaleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        match text.parse::<f64>() {
            Ok(f) if (1.0..=MAX_FACTOR).contains(&f) => Ok(Self::Factor(f)),
            _ => Err(TimeScaleError(text.to_owned())),
        }
    }
}

impl fmt::Display for TimeScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Factor(x) => write!(f, "{x}"),
        }
    }
}

impl Serialize for TimeScale {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => s.serialize_str("auto"),
            Self::Factor(x) => s.serialize_f64(*x),
        }
    }
}

impl<'de> Deserialize<'de> for TimeScale {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = TimeScale;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "\"auto\" or a number from 1 to {MAX_FACTOR}")
            }
            fn visit_str<E: Error>(self, v: &str) -> Result<TimeScale, E> {
                v.parse().map_err(E::custom)
            }
            fn visit_f64<E: Error>(self, v: f64) -> Result<TimeScale, E> {
                v.to_string().parse().map_err(E::custom)
            }
            fn visit_i64<E: Error>(self, v: i64) -> Result<TimeScale, E> {
                v.to_string().parse().map_err(E::custom)
            }
            fn visit_u64<E: Error>(self, v: u64) -> Result<TimeScale, E> {
                v.to_string().parse().map_err(E::custom)
            }
        }
        d.deserialize_any(V)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_auto_and_numbers_only_in_range() {
        assert_eq!("auto".parse(), Ok(TimeScale::Auto));
        assert_eq!("1".parse(), Ok(TimeScale::Factor(1.0)));
        assert_eq!("37.5".parse(), Ok(TimeScale::Factor(37.5)));
        for bad in ["0", "0.5", "301", "NaN", "inf", "fast", ""] {
            assert!(bad.parse::<TimeScale>().is_err(), "{bad}");
        }
    }

    #[test]
    fn survives_json() {
        for scale in [TimeScale::Auto, TimeScale::Factor(12.0)] {
            let text = serde_json::to_string(&scale).expect("encodes");
            assert_eq!(
                serde_json::from_str::<TimeScale>(&text).expect("decodes"),
                scale
            );
        }
    }
}
