// SPDX-License-Identifier: GPL-2.0-only
//! A part of a case: some of its phases, under some of its schedulers.

use crate::{Case, suggest};

/// Guests that the sanity gate works with.
const GATE_GUESTS: usize = 2;

/// A pattern that names nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no {what} {pattern:?} in case {case}: there is {known}{hint}")]
pub struct SelectError {
    what: &'static str,
    pattern: String,
    case: String,
    known: String,
    hint: String,
}

impl Case {
    /// Leaves the phases that `patterns` name, and the guests that these need;
    /// all when there are no patterns. A pattern is a name, or the beginning of
    /// names with a `*` after it.
    pub fn keep_phases(&mut self, patterns: &[String]) -> Result<(), SelectError> {
        let names: Vec<String> = self.phases.iter().map(|p| p.name.clone()).collect();
        self.check_patterns("phase", patterns, &names)?;
        self.phases.retain(|p| is_named(patterns, &p.name));
        // The gate's guests run burners before any phase.
        let kept = if self.gate.enabled { GATE_GUESTS } else { 0 };
        let phases = &self.phases;
        let mut index = 0;
        self.guests.retain(|g| {
            index += 1;
            index <= kept || phases.iter().any(|p| p.run.contains_key(&g.name))
        });
        Ok(())
    }

    /// Leaves the schedulers whose labels `patterns` name, as in
    /// [`Case::keep_phases`]. Their order stays: the first is the baseline.
    pub fn keep_schedulers(&mut self, patterns: &[String]) -> Result<(), SelectError> {
        let labels: Vec<String> = self.schedulers.iter().map(|s| s.label.clone()).collect();
        self.check_patterns("scheduler", patterns, &labels)?;
        self.schedulers.retain(|s| is_named(patterns, &s.label));
        Ok(())
    }

    fn check_patterns(
        &self,
        what: &'static str,
        patterns: &[String],
        names: &[String],
    ) -> Result<(), SelectError> {
        let unmet = |p: &&String| !names.iter().any(|n| matches(p, n));
        match patterns.iter().find(unmet) {
            None => Ok(()),
            Some(pattern) => Err(SelectError {
                what,
                pattern: pattern.clone(),
                case: self.case.name.clone(),
                known: names.join(", "),
                hint: suggest::hint(pattern, names.iter().map(String::as_str)),
            }),
        }
    }
}

fn is_named(patterns: &[String], name: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|p| matches(p, name))
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn case(gate: bool) -> Case {
        let text = format!(
            "[case]\nname='x'\n[gate]\nenabled={gate}\n\
             [[scheduler]]\nlabel='k'\nkind='kernel'\n[[scheduler]]\nlabel='c'\nkind='corun'\n\
             [[guest]]\nname='a'\n[[guest]]\nname='b'\n[[guest]]\nname='c'\n\
             [[phase]]\nname='tlb-1'\nmeasure=['a']\nrun={{a={{workload='tlb'}}}}\n\
             [[phase]]\nname='tlb-2'\nmeasure=['a']\nrun={{a={{workload='tlb'}}, c={{workload='cpu'}}}}\n\
             [[phase]]\nname='cpu'\nmeasure=['b']\nrun={{b={{workload='cpu'}}}}\n"
        );
        crate::parse(&text, Path::new("x")).expect("is good")
    }

    fn kept(case: &Case) -> (String, String) {
        let phases: Vec<&str> = case.phases.iter().map(|p| p.name.as_str()).collect();
        let guests: Vec<&str> = case.guests.iter().map(|g| g.name.as_str()).collect();
        (phases.join(" "), guests.join(" "))
    }

    #[test]
    fn phases_are_kept_by_name_or_beginning_with_their_guests() {
        let keep = |gate, patterns: &[&str]| {
            let mut case = case(gate);
            let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
            case.keep_phases(&patterns).expect("are there");
            kept(&case)
        };
        let is = |phases: &str, guests: &str| (phases.to_owned(), guests.to_owned());
        assert_eq!(keep(false, &["tlb-1"]), is("tlb-1", "a"));
        assert_eq!(keep(true, &["tlb-1"]), is("tlb-1", "a b"));
        assert_eq!(keep(false, &["tlb*"]), is("tlb-1 tlb-2", "a c"));
        assert_eq!(keep(false, &["cpu", "tlb-2"]), is("tlb-2 cpu", "a b c"));
        assert_eq!(keep(false, &[]), is("tlb-1 tlb-2 cpu", "a b c"));
    }

    #[test]
    fn schedulers_are_kept_and_slips_are_told() {
        let mut case = case(false);
        case.keep_schedulers(&["c".to_owned()]).expect("is there");
        assert_eq!(case.schedulers.len(), 1);
        let error = case.keep_phases(&["tbl-1".to_owned()]).expect_err("a slip");
        let text = error.to_string();
        assert!(text.contains("did you mean `tlb-1`"), "{text}");
        assert!(case.keep_schedulers(&["x*".to_owned()]).is_err());
    }
}
