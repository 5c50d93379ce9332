// SPDX-License-Identifier: GPL-2.0-only
//! The selected row in full.

use crate::top::figures::{self, Figures};
use crate::top::view::Row;
use corun_events::account::ReadyCause;

/// The details of `row`, in lines of at most `width` characters.
pub(super) fn lines(row: &Row, width: usize) -> Vec<String> {
    let f = &row.figures;
    let name = row.name.trim_start_matches([' ', '+', '-']);
    let mut lines = vec![format!("{:-<width$}", format!("-- {name} "))];
    lines.extend(wrapped("behind:", &ready(f), width));
    lines.extend(wrapped("preempted/s:", &preempted(f), width));
    lines.extend(wrapped("from and to siblings/s:", &siblings(f), width));
    lines.extend(wrapped("halts/s:", &halts(f), width));
    lines.extend(wrapped("exits/s:", &exits(f), width));
    lines
}

/// `words` after `head`, in lines of at most `width` characters; further lines are indented.
fn wrapped(head: &str, words: &[String], width: usize) -> Vec<String> {
    let mut lines = vec![head.to_owned()];
    for word in words {
        match lines.last_mut() {
            Some(line) if line.len() + 2 + word.len() <= width => {
                line.push_str("  ");
                line.push_str(word);
            }
            _ => lines.push(format!("    {word}")),
        }
    }
    lines
}

fn ready(f: &Figures) -> Vec<String> {
    let share = |ns: u64| figures::percent(f.percent(ns));
    let ready = &f.account.times.ready;
    ReadyCause::ALL
        .iter()
        .filter(|cause| ready.of(**cause) > 0)
        .map(|cause| {
            format!(
                "{} {}%",
                figures::cause(Some(*cause)),
                share(ready.of(*cause))
            )
        })
        .collect()
}

fn preempted(f: &Figures) -> Vec<String> {
    let (n, times) = (&f.account.counts, &f.account.latencies);
    vec![
        named("user", f.rate(n.preempted_user)),
        named("kernel", f.rate(n.preempted_kernel)),
        named("outside KVM", f.rate(n.preempted_outside)),
        format!("for p50 {}", figures::quantile(&times.preempted, 0.5)),
        format!("p99 {}", figures::quantile(&times.preempted, 0.99)),
        format!(
            "IPI pending p99 {}",
            figures::quantile(&times.preempted_with_ipi, 0.99)
        ),
    ]
}

fn siblings(f: &Figures) -> Vec<String> {
    let (n, shootdown) = (&f.account.counts, &f.account.latencies.shootdown);
    vec![
        named("IPIs sent", f.rate(n.ipis_sent)),
        named("taken", f.rate(n.ipis_received)),
        named("yields asked", f.rate(n.yields_asked)),
        named("honoured", f.rate(n.yields_honoured)),
        named("shootdowns", f.rate(shootdown.count)),
        format!("p99 {}", figures::quantile(shootdown, 0.99)),
    ]
}

fn halts(f: &Figures) -> Vec<String> {
    let n = &f.account.counts;
    vec![
        figures::rate(f.rate(n.halts)),
        named("polls paid", f.rate(n.polls_succeeded)),
        named("in vain", f.rate(n.polls_failed)),
        named("wake-ups", f.rate(n.wakeups)),
        named("device interrupts", f.rate(n.device_interrupts)),
    ]
}

/// By reason, the most frequent first.
fn exits(f: &Figures) -> Vec<String> {
    let mut reasons: Vec<(&String, u64)> = f.account.exits.iter().map(|(r, n)| (r, *n)).collect();
    reasons.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let all = figures::rate(f.rate(f.account.all_exits()));
    let each = reasons.iter().map(|(reason, n)| named(reason, f.rate(*n)));
    std::iter::once(all).chain(each).collect()
}

fn named(name: &str, rate: f64) -> String {
    format!("{name} {}", figures::rate(rate))
}
