// SPDX-License-Identifier: GPL-2.0-only
//! Distributions of times, in integer arithmetic.
//!
//! Floating-point logarithms differ in the last bit between C libraries; one
//! differing bit would give another trace. So the logarithm here is a table in
//! fixed point.

use super::rng::Rng;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A distribution of times. In TOML a text: `"12us"`, `"exp 12us"`,
/// `"uniform 1us..3us"`, `"heavy 12us"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dist {
    /// Always the same.
    Fixed(u64),
    /// Exponential, with this mean.
    Exp(u64),
    /// Uniform, from the first up to the second.
    Uniform(u64, u64),
    /// Hyper-exponential with this mean: nine of ten have half of it, the tenth
    /// 5.5 times it. The square of its coefficient of variation is 5.5.
    Heavy(u64),
}

/// Bits behind the point of the logarithm.
const POINT: u32 = 24;
/// ln 2 with `POINT` bits behind the point.
const LN2: u64 = 11_629_080;

/// log2(1 + i / 64) with `POINT` bits behind the point.
const LOG2: [u32; 65] = log2_table();

const fn log2_table() -> [u32; 65] {
    let mut table = [0; 65];
    let mut i = 0;
    while i <= 64 {
        // Squaring doubles a logarithm: each squaring yields one more bit.
        let mut x: u64 = (64 + i as u64) << 25;
        let mut bit = 0;
        let mut log: u32 = 0;
        if i == 64 {
            log = 1 << POINT;
        } else {
            while bit < POINT {
                x = ((x as u128 * x as u128) >> 31) as u64;
                log <<= 1;
                if x >= 1 << 32 {
                    x >>= 1;
                    log |= 1;
                }
                bit += 1;
            }
        }
        table[i] = log;
        i += 1;
    }
    table
}

/// -ln(u / 2^32) with `POINT` bits behind the point, for `u` from 1.
fn neg_ln(u: u32) -> u64 {
    let lead = u.leading_zeros();
    let mantissa = u64::from(u) << (lead + 1) & 0xffff_ffff;
    let index = (mantissa >> 26) as usize;
    let rest = mantissa & ((1 << 26) - 1);
    let (low, high) = (u64::from(LOG2[index]), u64::from(LOG2[index + 1]));
    let fraction = low + (((high - low) * rest) >> 26);
    let log2 = (u64::from(31 - lead) << POINT) + fraction;
    (((32u64 << POINT) - log2) * LN2) >> POINT
}

fn exponential(mean_ns: u64, rng: &mut Rng) -> u64 {
    let wide = u128::from(mean_ns) * u128::from(neg_ln(rng.bits().max(1)));
    u64::try_from(wide >> POINT).unwrap_or(u64::MAX)
}

impl Dist {
    /// One value. Nanoseconds.
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        match *self {
            Self::Fixed(ns) => ns,
            Self::Exp(mean) => exponential(mean, rng),
            Self::Uniform(low, high) => {
                low + ((u128::from(high - low) * u128::from(rng.bits())) >> 32) as u64
            }
            Self::Heavy(mean) if rng.chance_pm(100) => exponential(mean * 11 / 2, rng),
            Self::Heavy(mean) => exponential(mean / 2, rng),
        }
    }

    /// Its mean. Nanoseconds.
    pub fn mean_ns(&self) -> u64 {
        match *self {
            Self::Fixed(ns) | Self::Exp(ns) | Self::Heavy(ns) => ns,
            Self::Uniform(low, high) => u64::midpoint(low, high),
        }
    }
}

/// A text that is no distribution.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "time {0:?}: expected for example \"12us\", \"exp 12us\", \"uniform 1us..3us\" or \"heavy 12us\""
)]
pub struct DistError(String);

/// A time with its unit (`ns`, `us`, `ms`, `s`), as nanoseconds.
pub fn parse_ns(text: &str) -> Option<u64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let scale: u64 = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.trim().split_once('.').unwrap_or((number.trim(), ""));
    let mut ns = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    let mut digit_scale = scale;
    for digit in fraction.chars() {
        digit_scale /= 10;
        ns += u64::from(digit.to_digit(10)?) * digit_scale;
    }
    Some(ns)
}

impl FromStr for Dist {
    type Err = DistError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || DistError(text.to_owned());
        let (kind, value) = text
            .trim()
            .split_once(' ')
            .unwrap_or(("fixed", text.trim()));
        let ns = |text: &str| parse_ns(text.trim()).ok_or_else(bad);
        match kind {
            "fixed" => ns(value).map(Self::Fixed),
            "exp" => ns(value).map(Self::Exp),
            "heavy" => ns(value).map(Self::Heavy),
            "uniform" => {
                let (low, high) = value.split_once("..").ok_or_else(bad)?;
                let (low, high) = (ns(low)?, ns(high)?);
                if low > high {
                    Err(bad())
                } else {
                    Ok(Self::Uniform(low, high))
                }
            }
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for Dist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(ns) => write!(f, "{ns}ns"),
            Self::Exp(ns) => write!(f, "exp {ns}ns"),
            Self::Uniform(low, high) => write!(f, "uniform {low}ns..{high}ns"),
            Self::Heavy(ns) => write!(f, "heavy {ns}ns"),
        }
    }
}

impl Serialize for Dist {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Dist {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::rng::Stream;

    #[test]
    fn the_logarithm_is_one() {
        for u in [1u32, 2, 3, 1000, 123_456_789, 1 << 31, u32::MAX] {
            let exact = -(f64::from(u) / 4_294_967_296.0).ln();
            let ours = neg_ln(u) as f64 / f64::from(1u32 << POINT);
            assert!((exact - ours).abs() < 1e-4, "{u}: {ours} is not {exact}");
        }
    }

    #[test]
    fn means_are_as_stated() {
        let mut rng = Rng::new(1, Stream::Thread, 0);
        for text in ["10us", "exp 10us", "uniform 5us..15us", "heavy 10us"] {
            let dist: Dist = text.parse().expect(text);
            let n = 200_000;
            let sum: u64 = (0..n).map(|_| dist.sample(&mut rng)).sum();
            let mean = sum / n;
            assert_eq!(dist.mean_ns(), 10_000);
            assert!((9_800..10_200).contains(&mean), "{text}: mean {mean}");
        }
    }

    #[test]
    fn texts_are_read_and_written() {
        for text in ["1.5us", "exp 250ns", "uniform 1ms..2ms", "heavy 3s"] {
            let dist: Dist = text.parse().expect(text);
            assert_eq!(dist.to_string().parse(), Ok(dist));
        }
        for text in ["", "12", "exp", "12 parsec", "uniform 3us..1us", "exp -1us"] {
            assert!(text.parse::<Dist>().is_err(), "{text}");
        }
    }
}
