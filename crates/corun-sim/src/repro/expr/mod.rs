// SPDX-License-Identifier: GPL-2.0-only
//! Expressions over figures of runs.
//!
//! `vm1.tlb.mean_us[dedup kvmtlb solo]` is guest vm1's figure `tlb.mean_us` in
//! phase dedup of variant kvmtlb, with vm1 alone. Figures combine by `+ - * /`,
//! parentheses and functions; see `experiments/README.md`.

mod names;
mod parse;

pub use names::{Names, Probe, RunKey};
pub use parse::{Comparison, parse, parse_comparison};

/// An expression whose leaves are `L`.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr<L> {
    /// A number.
    Number(f64),
    /// A figure, or a name for an expression.
    Leaf(L),
    /// `-x`.
    Negate(Box<Expr<L>>),
    /// Two expressions combined.
    Binary(Op, Box<Expr<L>>, Box<Expr<L>>),
    /// A function.
    Call(Function, Vec<Expr<L>>),
}

/// Arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `+`.
    Add,
    /// `-`.
    Subtract,
    /// `*`.
    Multiply,
    /// `/`.
    Divide,
}

/// Functions; each takes any number of arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// Arithmetic mean.
    Mean,
    /// Smallest.
    Min,
    /// Largest.
    Max,
    /// How many of the other arguments are larger than the first.
    Above,
    /// Without its sign.
    Abs,
}

impl Function {
    fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "mean" => Self::Mean,
            "min" => Self::Min,
            "max" => Self::Max,
            "above" => Self::Above,
            "abs" => Self::Abs,
            _ => return None,
        })
    }

    fn apply(self, arguments: &[f64]) -> Option<f64> {
        let (first, rest) = arguments.split_first()?;
        Some(match self {
            Self::Mean => arguments.iter().sum::<f64>() / arguments.len() as f64,
            Self::Min => rest.iter().copied().fold(*first, f64::min),
            Self::Max => rest.iter().copied().fold(*first, f64::max),
            Self::Above => rest.iter().filter(|v| *v > first).count() as f64,
            Self::Abs => first.abs(),
        })
    }
}

impl<L> Expr<L> {
    /// The expression with every leaf replaced by what `f` makes of it.
    pub fn bind<M>(
        self,
        f: &mut dyn FnMut(L) -> Result<Expr<M>, String>,
    ) -> Result<Expr<M>, String> {
        Ok(match self {
            Self::Number(n) => Expr::Number(n),
            Self::Leaf(leaf) => f(leaf)?,
            Self::Negate(x) => Expr::Negate(Box::new(x.bind(f)?)),
            Self::Binary(op, a, b) => Expr::Binary(op, Box::new(a.bind(f)?), Box::new(b.bind(f)?)),
            Self::Call(function, arguments) => {
                let bound: Result<_, String> = arguments.into_iter().map(|a| a.bind(f)).collect();
                Expr::Call(function, bound?)
            }
        })
    }

    /// Visits the leaves.
    pub fn each_leaf<'a>(&'a self, f: &mut dyn FnMut(&'a L)) {
        match self {
            Self::Number(_) => {}
            Self::Leaf(leaf) => f(leaf),
            Self::Negate(x) => x.each_leaf(f),
            Self::Binary(_, a, b) => {
                a.each_leaf(f);
                b.each_leaf(f);
            }
            Self::Call(_, arguments) => arguments.iter().for_each(|a| a.each_leaf(f)),
        }
    }

    /// Its value, or why it has none.
    pub fn eval(&self, figure: &dyn Fn(&L) -> Result<f64, String>) -> Result<f64, String> {
        let value = match self {
            Self::Number(n) => *n,
            Self::Leaf(leaf) => figure(leaf)?,
            Self::Negate(x) => -x.eval(figure)?,
            Self::Binary(op, a, b) => {
                let (a, b) = (a.eval(figure)?, b.eval(figure)?);
                match op {
                    Op::Add => a + b,
                    Op::Subtract => a - b,
                    Op::Multiply => a * b,
                    Op::Divide if b == 0.0 => return Err(format!("{a} divided by zero")),
                    Op::Divide => a / b,
                }
            }
            Self::Call(function, arguments) => {
                let values: Result<Vec<f64>, String> =
                    arguments.iter().map(|a| a.eval(figure)).collect();
                let value = function.apply(&values?);
                value.ok_or_else(|| "a function without arguments".to_owned())?
            }
        };
        if value.is_finite() {
            Ok(value)
        } else {
            Err("not a finite number".to_owned())
        }
    }
}

#[cfg(test)]
mod tests;
