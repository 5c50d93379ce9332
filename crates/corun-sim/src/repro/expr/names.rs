// SPDX-License-Identifier: GPL-2.0-only
//! What the names in expressions stand for.

use super::parse::Written;
use super::{Comparison, Expr, parse, parse_comparison};
use crate::repro::figures;
use std::collections::{BTreeMap, BTreeSet};

/// A run of a table's case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunKey {
    /// Which variant, counted from 0.
    pub variant: usize,
    /// Phase.
    pub phase: String,
    /// Scheduler's label.
    pub scheduler: String,
    /// The guest that runs alone, if one does.
    pub solo: Option<String>,
}

/// A guest's figure in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Guest.
    pub guest: String,
    /// Figure, by its name in [`crate::VmOutcome::figure`].
    pub figure: String,
    /// Run.
    pub run: RunKey,
}

/// What a table's expressions may name.
#[derive(Debug, Default)]
pub struct Names {
    /// `[let]`.
    pub lets: BTreeMap<String, String>,
    /// `[each]`.
    pub each: BTreeMap<String, Vec<String>>,
    /// Variants in their order; the first is what no variant means.
    pub variants: Vec<String>,
    /// Schedulers' labels; the first is what no label means.
    pub schedulers: Vec<String>,
    /// Phases with the guests that run in them.
    pub phases: BTreeMap<String, BTreeSet<String>>,
}

/// How deep names may stand for each other.
const MAX_DEPTH: u32 = 16;

impl Names {
    /// Reads an expression and finds out what its names mean.
    pub fn expr(&self, text: &str) -> Result<Expr<Probe>, String> {
        let expr = self.finish(parse(text)?, true);
        expr.map_err(|e| format!("in `{text}`: {e}"))
    }

    /// The same for one that stands for many: `{name}` becomes `word`.
    pub fn expr_for(&self, text: &str, name: &str, word: &str) -> Result<Expr<Probe>, String> {
        let expr = self.inline(parse(text)?, 0).and_then(|e| {
            let e = substitute(e, &format!("{{{name}}}"), word)?;
            self.bind_figures(self.expand(e)?, true)
        });
        expr.map_err(|e| format!("in `{text}`: {e}"))
    }

    /// Reads a comparison.
    pub fn comparison(&self, text: &str) -> Result<Comparison<Probe>, String> {
        let read = || {
            let c = parse_comparison(text)?;
            Ok(Comparison {
                left: self.finish(c.left, true)?,
                sign: c.sign,
                right: self.finish(c.right, true)?,
            })
        };
        read().map_err(|e: String| format!("in `{text}`: {e}"))
    }

    /// Reads `guest.NAME[run]` where NAME is not a single value, such as a
    /// histogram.
    pub fn place(&self, text: &str) -> Result<Probe, String> {
        match parse(text).and_then(|e| self.finish(e, false))? {
            Expr::Leaf(probe) => Ok(probe),
            _ => Err(format!("`{text}`: expected guest.NAME[run]")),
        }
    }

    fn finish(&self, expr: Expr<Written>, single: bool) -> Result<Expr<Probe>, String> {
        self.bind_figures(self.expand(self.inline(expr, 0)?)?, single)
    }

    /// Puts the `[let]`s in place of their names.
    fn inline(&self, expr: Expr<Written>, depth: u32) -> Result<Expr<Written>, String> {
        if depth > MAX_DEPTH {
            return Err("[let] names that stand for each other in a circle".to_owned());
        }
        expr.bind(&mut |leaf: Written| {
            if leaf.name.contains('.') {
                return Ok(Expr::Leaf(leaf));
            }
            let text = self.lets.get(&leaf.name).ok_or_else(|| {
                format!("no [let] `{}`; figures are guest.figure[run]", leaf.name)
            })?;
            let meant = self.inline(parse(text)?, depth + 1)?;
            match leaf.words.as_slice() {
                [] => Ok(meant),
                [word] => {
                    let placeholder = placeholder(&meant)
                        .ok_or_else(|| format!("[let] `{}` takes no word", leaf.name))?;
                    substitute(meant, &placeholder, word)
                }
                _ => Err(format!("`{}` takes one word", leaf.name)),
            }
        })
    }

    /// Repeats a function's argument for every word that its `{name}` stands for.
    fn expand(&self, expr: Expr<Written>) -> Result<Expr<Written>, String> {
        Ok(match expr {
            Expr::Call(function, arguments) => {
                let mut all = Vec::new();
                for argument in arguments {
                    let Some(placeholder) = placeholder(&argument) else {
                        all.push(self.expand(argument)?);
                        continue;
                    };
                    let name = placeholder.trim_matches(['{', '}']);
                    let words = self.each.get(name);
                    for word in words.ok_or_else(|| format!("no [each] `{name}`"))? {
                        let one = substitute(argument.clone(), &placeholder, word)?;
                        all.push(self.expand(one)?);
                    }
                }
                Expr::Call(function, all)
            }
            Expr::Negate(x) => Expr::Negate(Box::new(self.expand(*x)?)),
            Expr::Binary(op, a, b) => {
                Expr::Binary(op, Box::new(self.expand(*a)?), Box::new(self.expand(*b)?))
            }
            other => other,
        })
    }

    fn bind_figures(&self, expr: Expr<Written>, single: bool) -> Result<Expr<Probe>, String> {
        expr.bind(&mut |leaf: Written| self.probe(&leaf, single).map(Expr::Leaf))
    }

    fn probe(&self, leaf: &Written, single: bool) -> Result<Probe, String> {
        let (guest, figure) = leaf
            .name
            .split_once('.')
            .ok_or_else(|| format!("`{}`: expected guest.figure", leaf.name))?;
        if single {
            figures::check(figure)?;
        }
        let Some((phase, words)) = leaf.words.split_first() else {
            return Err(format!("`{}`: expected [phase ...] after it", leaf.name));
        };
        let guests = self
            .phases
            .get(phase)
            .ok_or_else(|| format!("no phase `{phase}` in the case"))?;
        if !guests.contains(guest) {
            return Err(format!("guest `{guest}` runs nothing in phase `{phase}`"));
        }
        let mut run = RunKey {
            variant: 0,
            phase: phase.clone(),
            scheduler: self.schedulers.first().cloned().unwrap_or_default(),
            solo: None,
        };
        for word in words {
            if word == "solo" {
                run.solo = Some(guest.to_owned());
            } else if let Some(variant) = self.variants.iter().position(|v| v == word) {
                run.variant = variant;
            } else if self.schedulers.contains(word) {
                run.scheduler.clone_from(word);
            } else {
                return Err(format!(
                    "`{word}` is neither solo nor a variant ({}) nor a scheduler ({})",
                    self.variants.join(", "),
                    self.schedulers.join(", ")
                ));
            }
        }
        Ok(Probe {
            guest: guest.to_owned(),
            figure: figure.to_owned(),
            run,
        })
    }
}

/// The first `{name}` in an expression.
fn placeholder(expr: &Expr<Written>) -> Option<String> {
    let mut found = None;
    expr.each_leaf(&mut |leaf| {
        let mut words = leaf.words.iter();
        if found.is_none() {
            found = words.find(|w| w.starts_with('{')).cloned();
        }
    });
    found
}

fn substitute(expr: Expr<Written>, placeholder: &str, word: &str) -> Result<Expr<Written>, String> {
    expr.bind(&mut |mut leaf: Written| {
        for w in &mut leaf.words {
            if w == placeholder {
                word.clone_into(w);
            }
        }
        Ok(Expr::Leaf(leaf))
    })
}
