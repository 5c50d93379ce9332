// SPDX-License-Identifier: GPL-2.0-only
//! From text to expression.

use super::{Expr, Function, Op};

/// A leaf as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// `vm1.tlb.mean_us`, or the name of a `[let]`.
    pub name: String,
    /// What stood in brackets after it.
    pub words: Vec<String>,
}

/// Two expressions compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison<L> {
    /// Left side.
    pub left: Expr<L>,
    /// `<`, `<=`, `>` or `>=`.
    pub sign: String,
    /// Right side.
    pub right: Expr<L>,
}

impl<L> Comparison<L> {
    /// Whether it holds for these values.
    pub fn holds(&self, left: f64, right: f64) -> bool {
        match self.sign.as_str() {
            "<" => left < right,
            "<=" => left <= right,
            ">" => left > right,
            _ => left >= right,
        }
    }
}

/// Reads an expression.
pub fn parse(text: &str) -> Result<Expr<Written>, String> {
    let mut parser = Parser { rest: text };
    let expr = parser.sum()?;
    parser.end()?;
    Ok(expr)
}

/// Reads `expression sign expression`.
pub fn parse_comparison(text: &str) -> Result<Comparison<Written>, String> {
    let mut parser = Parser { rest: text };
    let left = parser.sum()?;
    let sign = ["<=", ">=", "<", ">"].into_iter().find(|s| parser.eat(s));
    let sign = sign.ok_or_else(|| parser.expected("<, <=, > or >="))?;
    let right = parser.sum()?;
    parser.end()?;
    Ok(Comparison {
        left,
        sign: sign.to_owned(),
        right,
    })
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn expected(&self, what: &str) -> String {
        let found = self.rest.trim();
        if found.is_empty() {
            format!("expected {what} at the end")
        } else {
            format!("expected {what} at `{found}`")
        }
    }

    fn end(&self) -> Result<(), String> {
        if self.rest.trim().is_empty() {
            Ok(())
        } else {
            Err(self.expected("the end"))
        }
    }

    fn eat(&mut self, token: &str) -> bool {
        let Some(rest) = self.rest.trim_start().strip_prefix(token) else {
            return false;
        };
        self.rest = rest;
        true
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let text = self.rest.trim_start();
        let (taken, rest) = text.split_at(text.find(|c| !keep(c)).unwrap_or(text.len()));
        self.rest = rest;
        taken
    }

    fn sum(&mut self) -> Result<Expr<Written>, String> {
        let mut left = self.product()?;
        loop {
            let op = if self.eat("+") {
                Op::Add
            } else if self.eat("-") {
                Op::Subtract
            } else {
                return Ok(left);
            };
            left = Expr::Binary(op, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Expr<Written>, String> {
        let mut left = self.factor()?;
        loop {
            let op = if self.eat("*") {
                Op::Multiply
            } else if self.eat("/") {
                Op::Divide
            } else {
                return Ok(left);
            };
            left = Expr::Binary(op, Box::new(left), Box::new(self.factor()?));
        }
    }

    fn factor(&mut self) -> Result<Expr<Written>, String> {
        if self.eat("-") {
            return Ok(Expr::Negate(Box::new(self.factor()?)));
        }
        if self.eat("(") {
            let inner = self.sum()?;
            return if self.eat(")") {
                Ok(inner)
            } else {
                Err(self.expected("`)`"))
            };
        }
        match self.rest.trim_start().chars().next() {
            Some(c) if c.is_ascii_digit() => self.number(),
            Some(c) if c.is_ascii_alphabetic() => self.named(),
            _ => Err(self.expected("a number, a figure, a name or `(`")),
        }
    }

    fn number(&mut self) -> Result<Expr<Written>, String> {
        let text = self.take_while(|c| c.is_ascii_digit() || c == '.' || c == '_');
        let digits = text.replace('_', "");
        let number = digits
            .parse()
            .map_err(|_| format!("`{text}` is no number"))?;
        Ok(Expr::Number(number))
    }

    fn named(&mut self) -> Result<Expr<Written>, String> {
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || "_.:".contains(c));
        if self.eat("(") {
            let function = Function::by_name(name).ok_or_else(|| {
                format!("no function `{name}`: there is mean, min, max, above, abs")
            })?;
            let mut arguments = vec![self.sum()?];
            while self.eat(",") {
                arguments.push(self.sum()?);
            }
            return if self.eat(")") {
                Ok(Expr::Call(function, arguments))
            } else {
                Err(self.expected("`,` or `)`"))
            };
        }
        let mut words = Vec::new();
        if self.eat("[") {
            let text = self.take_while(|c| c != ']');
            if !self.eat("]") {
                return Err(self.expected("`]`"));
            }
            words = text.split_whitespace().map(str::to_owned).collect();
        }
        Ok(Expr::Leaf(Written {
            name: name.to_owned(),
            words,
        }))
    }
}
