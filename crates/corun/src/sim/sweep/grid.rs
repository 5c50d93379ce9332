// SPDX-License-Identifier: GPL-2.0-only
//! The grid of a sweep: keys, their values, and all combinations.

use anyhow::{Result, bail, ensure};
use corun_case::Override;

/// Most points of a sweep: beyond it, a typing error is likelier than patience.
const MAX_POINTS: usize = 100_000;

/// Splits `key=v1,v2,...` into an override for each value.
pub(crate) fn parse(text: &str) -> Result<Vec<Override>> {
    let Some((key, values)) = text.split_once('=') else {
        bail!("{text:?}: expected key=v1,v2,..., for example sim.kvm.spin_handler=2011,2019");
    };
    let sets = split(values).into_iter().map(|v| format!("{key}={v}"));
    let axis = sets
        .map(|set| set.parse())
        .collect::<Result<Vec<Override>, _>>()?;
    for (i, set) in axis.iter().enumerate() {
        let twice = axis[..i].iter().any(|other| other.value() == set.value());
        ensure!(!twice, "{text:?}: {} is there twice", set.value());
    }
    Ok(axis)
}

/// Splits at commas that are in no list, table or quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0i32, None);
    for (at, c) in text.char_indices() {
        if let Some(open) = quote {
            quote = quote.filter(|_| c != open);
            continue;
        }
        match c {
            '"' | '\'' => quote = Some(c),
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// All combinations of `axes`, the last axis the fastest.
pub(crate) fn points(axes: &[Vec<Override>]) -> Result<Vec<Vec<Override>>> {
    for (i, axis) in axes.iter().enumerate() {
        let key = axis.first().map(Override::key);
        let twice = axes[..i]
            .iter()
            .any(|other| other.first().map(Override::key) == key);
        ensure!(
            !twice,
            "--grid {}: is there twice; list all values in one",
            key.unwrap_or_default()
        );
    }
    let count = axes
        .iter()
        .map(Vec::len)
        .try_fold(1usize, usize::checked_mul);
    ensure!(
        count.is_some_and(|n| n <= MAX_POINTS),
        "the grid has more than {MAX_POINTS} points"
    );
    let mut points = vec![Vec::new()];
    for axis in axes {
        let longer = |point: &Vec<Override>| -> Vec<Vec<Override>> {
            let with = |set: &Override| [point.as_slice(), std::slice::from_ref(set)].concat();
            axis.iter().map(with).collect()
        };
        points = points.iter().flat_map(longer).collect();
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(point: &[Override]) -> Vec<String> {
        point.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_last_axis_is_the_fastest() {
        let axes = ["sim.seed=1,2", "case.name=a,b"].map(|t| parse(t).expect(t));
        let points = points(&axes).expect("a grid");
        assert_eq!(points.len(), 4);
        assert_eq!(texts(&points[1]), ["sim.seed=1", "case.name=b"]);
        assert_eq!(texts(&points[2]), ["sim.seed=2", "case.name=a"]);
    }

    #[test]
    fn without_axes_there_is_one_point() {
        assert_eq!(points(&[]).expect("a grid").len(), 1);
    }

    #[test]
    fn commas_within_values_split_nothing() {
        let axis = parse("a.b=[\"x\", \"y\"],{ c = 1, d = 2 },\"p,q\"").expect("three");
        assert_eq!(
            axis.iter().map(Override::value).collect::<Vec<_>>(),
            ["[\"x\", \"y\"]", "{ c = 1, d = 2 }", "\"p,q\""]
        );
    }

    #[test]
    fn slips_are_refused() {
        for (text, expected) in [
            ("sim.seed", "expected key=v1,v2"),
            ("sim.seed=1,,2", "no TOML"),
            ("sim.seed=1,2,1", "1 is there twice"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let axis = parse("sim.seed=1,2").expect("an axis");
        let error = points(&[axis.clone(), axis])
            .expect_err("twice")
            .to_string();
        assert!(error.contains("sim.seed: is there twice"), "{error}");
    }

    #[test]
    fn huge_grids_are_refused() {
        let many: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
        let axes = ["a", "b"].map(|k| parse(&format!("{k}={}", many.join(","))).expect(k));
        assert!(points(&axes).is_err());
    }
}
