// SPDX-License-Identifier: GPL-2.0-only
//! What of the scheduler may be switched on and off by itself.

use std::fmt;
use std::str::FromStr;

/// Names and bits (`enum corun_mechanism`), in the order in which they are told.
const NAMES: [(&str, u32); 8] = [
    ("yield", 1),
    ("strict", 2),
    ("ipi", 4),
    ("io", 8),
    ("micro", 16),
    ("symbols", 32),
    ("gang", 64),
    ("halt", 128),
];

/// A set of mechanisms; written as a list of names, `all` or `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mechanisms(u32);

/// A name that no mechanism has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMechanism(String);

impl Mechanisms {
    /// Every one: the default.
    pub const ALL: Self = Self(255);
    /// Fair share by VM alone.
    pub const NONE: Self = Self(0);
    /// Directed yields are honoured (Debooster).
    pub const YIELD: Self = Self(1);
    /// Whom a spinner yields to is chosen by the scheduler (Strict Boost).
    pub const STRICT: Self = Self(2);
    /// Who is sent an IPI while preempted runs before its siblings.
    pub const IPI: Self = Self(4);
    /// The same for interrupts of devices.
    pub const IO: Self = Self(8);
    /// Urgent vCPUs get short slices in place of other VMs' vCPUs.
    pub const MICRO: Self = Self(16);
    /// Guest symbols tell critical sections.
    pub const SYMBOLS: Self = Self(32);
    /// vCPUs of coupled VMs are started together.
    pub const GANG: Self = Self(64);
    /// Halt polling follows contention.
    pub const HALT: Self = Self(128);

    /// Those whose bits of `enum corun_mechanism` are set; unknown bits are left
    /// out.
    pub const fn from_bits_truncate(bits: u32) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// The bits of `enum corun_mechanism`.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// True when all of `other` are in.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These without `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Names of those that are in.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES
            .iter()
            .filter(move |(_, bit)| self.0 & bit != 0)
            .map(|(name, _)| *name)
    }
}

impl Default for Mechanisms {
    fn default() -> Self {
        Self::ALL
    }
}

impl fmt::Display for Mechanisms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ALL => f.write_str("all"),
            Self::NONE => f.write_str("none"),
            some => f.write_str(&some.names().collect::<Vec<_>>().join(",")),
        }
    }
}

impl FromStr for Mechanisms {
    type Err = UnknownMechanism;

    fn from_str(text: &str) -> Result<Self, UnknownMechanism> {
        let mut bits = 0;
        for name in text.split(',').map(str::trim) {
            bits |= match NAMES.iter().find(|(known, _)| *known == name) {
                Some((_, bit)) => *bit,
                None if name == "all" => Self::ALL.0,
                None if name == "none" => 0,
                None => return Err(UnknownMechanism(name.to_owned())),
            };
        }
        Ok(Self(bits))
    }
}

impl fmt::Display for UnknownMechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = Mechanisms::ALL.names().collect();
        write!(
            f,
            "{:?} is no mechanism; a list of {}, or all, or none",
            self.0,
            names.join(", ")
        )
    }
}

impl std::error::Error for UnknownMechanism {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        for text in ["all", "none", "yield", "yield,strict,gang"] {
            assert_eq!(text.parse::<Mechanisms>().unwrap().to_string(), text);
        }
        assert_eq!(
            "yield, strict".parse::<Mechanisms>().unwrap(),
            Mechanisms(3)
        );
        assert_eq!("none,io".parse::<Mechanisms>().unwrap(), Mechanisms::IO);
        assert!("all".parse::<Mechanisms>().unwrap().has(Mechanisms::HALT));
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let error = "yield,ipis".parse::<Mechanisms>().unwrap_err().to_string();
        assert!(error.contains("\"ipis\"") && error.contains("micro"));
        assert!("".parse::<Mechanisms>().is_err());
    }
}
