// SPDX-License-Identifier: GPL-2.0-only
//! The report for people.

use super::report::{Finding, Report, Sampled, Verdict};
use super::setup::ranges;
use super::vm::VmReport;
use std::fmt::Write as _;

/// The report as text, in lines of any length.
pub fn text(report: &Report) -> String {
    let mut out = format!(
        "corun doctor {} on kernel {}\n",
        report.version, report.kernel
    );
    host(&mut out, report);
    vms(&mut out, report);
    findings(&mut out, &report.findings);
    for what in &report.repaired {
        // Writing to a String cannot fail; so everywhere here.
        let _ = writeln!(out, "repaired: {what}");
    }
    if !report.unseen.is_empty() {
        out.push_str("\nNot seen\n");
        for unseen in &report.unseen {
            let _ = writeln!(out, "  ? {}: {}", unseen.what, unseen.why);
        }
    }
    let _ = writeln!(out, "\n{}", verdict(report.verdict));
    out
}

fn host(out: &mut String, report: &Report) {
    out.push_str("\nHost\n");
    for f in &report.features {
        let mark = if f.found { '+' } else { '-' };
        let _ = writeln!(out, "  {mark} {:<13} {}", f.name, f.detail);
    }
}

fn vms(out: &mut String, report: &Report) {
    if report.vms.is_empty() {
        out.push_str("\nNo VM runs\n");
        return;
    }
    match report.sampled {
        Some(Sampled { length_s, .. }) => {
            let _ = writeln!(out, "\nVMs, watched for {length_s:.1} s");
        }
        None => out.push_str("\nVMs, not watched\n"),
    }
    let width = report.vms.iter().map(|vm| vm.name.len()).max().unwrap_or(0);
    for vm in &report.vms {
        let _ = writeln!(
            out,
            "  {:<width$}  {}",
            vm.name,
            vm_line(vm, report.sampled)
        );
    }
}

fn vm_line(vm: &VmReport, sampled: Option<Sampled>) -> String {
    let mut line = format!("pid {}, {} vCPUs", vm.pid, vm.vcpus);
    if let Some(cpus) = &vm.cpus {
        let _ = write!(line, " on pCPUs {}", ranges(cpus));
    }
    let _ = write!(line, ", weight {}", vm.weight);
    for limit in &vm.limits {
        let _ = write!(line, ", limit {:.2} pCPUs", limit.cpus);
    }
    if let Some(account) = &vm.account {
        let percent = |ns| account.share(ns) * 100.0;
        let _ = write!(
            line,
            "; run {:.0} %, ready {:.0} %",
            percent(account.times.run_ns),
            percent(account.times.ready.total_ns())
        );
        if sampled.is_some_and(|s| s.by_bpf) {
            let seconds = account.wall_ns as f64 / 1e9;
            let _ = write!(
                line,
                ", polling {:.0} %, {:.0} exits/s a vCPU",
                percent(account.times.poll_ns),
                account.all_exits() as f64 / seconds
            );
        }
    }
    line
}

fn findings(out: &mut String, findings: &[Finding]) {
    if findings.is_empty() {
        return;
    }
    out.push_str("\nFindings, worst first\n");
    for (number, finding) in (1..).zip(findings) {
        let severity = finding.severity.name();
        let _ = writeln!(
            out,
            "{number:>3}. {severity} {}: {}",
            finding.id, finding.what
        );
        for evidence in &finding.evidence {
            let _ = writeln!(out, "       {evidence}");
        }
        let _ = writeln!(out, "     -> {}", finding.next_step);
        let _ = writeln!(out, "        see {}", finding.docs);
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Healthy => "healthy: no finding that matters",
        Verdict::Findings => "not healthy: see the findings",
        Verdict::CouldNotLook => "no finding that matters, but not all could be looked at",
    }
}
