// SPDX-License-Identifier: GPL-2.0-only
//! Parameters of workloads: described once, checked before a run, then read.

use corun_lab_proto::agent::ParamValue;
use std::collections::BTreeMap;
use std::fmt;

/// One parameter of a workload.
#[derive(Debug)]
pub(crate) struct Param {
    /// Its name in a case file.
    pub(crate) name: &'static str,
    /// What it does, with its unit.
    pub(crate) about: &'static str,
    /// Which values it takes.
    pub(crate) kind: Kind,
}

/// Which values a parameter takes.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A whole number.
    Int {
        /// Used when the parameter is not given.
        default: i64,
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// One of several words.
    Choice {
        /// Used when the parameter is not given.
        default: &'static str,
        /// All words.
        of: &'static [&'static str],
    },
    /// Any text.
    Text {
        /// Used when the parameter is not given.
        default: &'static str,
    },
    /// A word of lower-case letters, digits and dashes.
    Word {
        /// Used when the parameter is not given.
        default: &'static str,
    },
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Int { default, min, max } => {
                write!(f, "{} ({min} to {max}, default {default})", self.name)
            }
            Kind::Choice { default, of } => {
                write!(f, "{} ({}, default {default})", self.name, of.join("|"))
            }
            Kind::Text { default } => write!(f, "{} (text, default {default:?})", self.name),
            Kind::Word { default } => write!(f, "{} (a word, default {default})", self.name),
        }
    }
}

/// All parameters of `table` in one line.
pub(crate) fn describe(table: &[Param]) -> String {
    if table.is_empty() {
        return "none".to_owned();
    }
    table
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The checked parameters of one run, defaults filled in.
#[derive(Debug)]
pub(crate) struct Params(BTreeMap<&'static str, ParamValue>);

impl Params {
    /// Checks `given` against `table`. The error says what is wrong.
    pub(crate) fn check(
        table: &'static [Param],
        given: &BTreeMap<String, ParamValue>,
    ) -> Result<Self, String> {
        if let Some(name) = given
            .keys()
            .find(|name| table.iter().all(|p| p.name != **name))
        {
            return Err(format!("it has no parameter {name:?}"));
        }
        let mut checked = BTreeMap::new();
        for param in table {
            checked.insert(
                param.name,
                param.kind.check(param.name, given.get(param.name))?,
            );
        }
        Ok(Self(checked))
    }

    /// Value of the number `name`.
    ///
    /// # Panics
    /// When the workload's table has no such number: a slip in the workload.
    pub(crate) fn int(&self, name: &str) -> u64 {
        match self.0.get(name) {
            Some(ParamValue::Int(value)) => value.unsigned_abs(),
            _ => panic!("parameter {name} is not declared as a number"),
        }
    }

    /// Value of the word `name`.
    ///
    /// # Panics
    /// When the workload's table has no such word: a slip in the workload.
    pub(crate) fn text(&self, name: &str) -> &str {
        match self.0.get(name) {
            Some(ParamValue::Text(value)) => value,
            _ => panic!("parameter {name} is not declared as a word"),
        }
    }
}

impl Kind {
    fn check(&self, name: &str, given: Option<&ParamValue>) -> Result<ParamValue, String> {
        match (self, given) {
            (Self::Int { default, .. }, None) => Ok(ParamValue::Int(*default)),
            (
                Self::Choice { default, .. } | Self::Word { default } | Self::Text { default },
                None,
            ) => Ok(ParamValue::Text((*default).to_owned())),
            (Self::Int { min, max, .. }, Some(ParamValue::Int(value)))
                if (min..=max).contains(&value) =>
            {
                Ok(ParamValue::Int(*value))
            }
            (Self::Choice { of, .. }, Some(ParamValue::Text(value)))
                if of.contains(&value.as_str()) =>
            {
                Ok(ParamValue::Text(value.clone()))
            }
            (Self::Text { .. }, Some(ParamValue::Text(value))) => {
                Ok(ParamValue::Text(value.clone()))
            }
            (Self::Word { .. }, Some(ParamValue::Text(value))) if is_word(value) => {
                Ok(ParamValue::Text(value.clone()))
            }
            (_, Some(ParamValue::Int(value))) => Err(format!("{name} cannot be {value}")),
            (_, Some(ParamValue::Text(value))) => Err(format!("{name} cannot be {value:?}")),
        }
    }
}

/// Words become parts of program options, so nothing that could be another option.
fn is_word(value: &str) -> bool {
    value.starts_with(|c: char| c.is_ascii_lowercase())
        && value
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Param] = &[
        Param {
            name: "n",
            about: "",
            kind: Kind::Int {
                default: 4,
                min: 1,
                max: 9,
            },
        },
        Param {
            name: "op",
            about: "",
            kind: Kind::Choice {
                default: "a",
                of: &["a", "b"],
            },
        },
        Param {
            name: "w",
            about: "",
            kind: Kind::Word { default: "x" },
        },
    ];

    fn check(given: &[(&str, ParamValue)]) -> Result<Params, String> {
        let given = given
            .iter()
            .map(|(k, v)| ((*k).to_owned(), v.clone()))
            .collect();
        Params::check(TABLE, &given)
    }

    fn text(s: &str) -> ParamValue {
        ParamValue::Text(s.to_owned())
    }

    #[test]
    fn defaults_fill_in() {
        let p = check(&[]).expect("nothing to refuse");
        assert_eq!((p.int("n"), p.text("op"), p.text("w")), (4, "a", "x"));
    }

    #[test]
    fn given_values_win() {
        let p = check(&[
            ("n", ParamValue::Int(9)),
            ("op", text("b")),
            ("w", text("c-1")),
        ])
        .expect("all valid");
        assert_eq!((p.int("n"), p.text("op"), p.text("w")), (9, "b", "c-1"));
    }

    #[test]
    fn wrong_ones_are_named() {
        for (given, word) in [
            (("zap", ParamValue::Int(1)), "\"zap\""),
            (("n", ParamValue::Int(10)), "n cannot be 10"),
            (("n", text("3")), "n cannot be"),
            (("op", text("c")), "op cannot be \"c\""),
            (("w", text("--help")), "w cannot be"),
            (("w", text("")), "w cannot be"),
        ] {
            let problem = check(&[given]).expect_err("must be refused");
            assert!(problem.contains(word), "{problem}");
        }
    }

    #[test]
    fn description_has_ranges() {
        assert_eq!(
            describe(TABLE),
            "n (1 to 9, default 4), op (a|b, default a), w (a word, default x)"
        );
        assert_eq!(describe(&[]), "none");
    }
}
