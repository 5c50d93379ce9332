// SPDX-License-Identifier: GPL-2.0-only
//! Numbers for people.

use super::spread::Spread;

/// Three significant digits, thousands apart: "0.0123", "12.3", "12,300".
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    match value.abs() {
        0.0 => "0".to_owned(),
        a if a < 0.1 => format!("{value:.4}"),
        a if a < 1.0 => format!("{value:.3}"),
        a if a < 10.0 => format!("{value:.2}"),
        a if a < 100.0 => format!("{value:.1}"),
        _ => thousands(&format!("{value:.0}")),
    }
}

/// A whole number, thousands apart.
pub fn count(value: u64) -> String {
    thousands(&value.to_string())
}

fn thousands(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |d| ("-", d));
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|g| std::str::from_utf8(g).ok())
        .collect();
    format!("{sign}{}", groups.join(","))
}

/// A time with the unit that suits it.
pub fn nanos(ns: f64) -> String {
    match ns {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{} us", number(n / 1e3)),
        n if n < 1e9 => format!("{} ms", number(n / 1e6)),
        n => format!("{} s", number(n / 1e9)),
    }
}

/// "2.13x [2.05..2.40]".
pub fn slowdown(s: &Spread) -> String {
    format!("{:.2}x [{:.2}..{:.2}]", s.median, s.min, s.max)
}

/// "49.8 % [48.9..50.3]" of a spread of shares.
pub fn share(s: &Spread) -> String {
    let percent = |x: f64| format!("{:.1}", x * 100.0);
    format!(
        "{} % [{}..{}]",
        percent(s.median),
        percent(s.min),
        percent(s.max)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits() {
        let cases = [
            (0.0, "0"),
            (0.012_34, "0.0123"),
            (0.5, "0.500"),
            (2.345, "2.35"),
            (12.34, "12.3"),
            (999.6, "1,000"),
            (1_234_567.0, "1,234,567"),
            (-1234.0, "-1,234"),
            (f64::NAN, "-"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn times_get_their_unit() {
        let cases = [
            (12.0, "12 ns"),
            (1_500.0, "1.50 us"),
            (7_340_000.0, "7.34 ms"),
            (2e9, "2.00 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(nanos(ns), text);
        }
    }
}
