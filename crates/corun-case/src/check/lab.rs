// SPDX-License-Identifier: GPL-2.0-only
//! What the lab cannot do.

use super::{Problem, Step};
use crate::{Case, MIN_GUEST_MIB_WITH_TOOLS, SchedulerKind};

pub(super) fn check(case: &Case) -> Result<(), Problem> {
    check_host(case)?;
    check_kinds(case)?;
    check_guests(case)?;
    check_gate(case)
}

fn check_host(case: &Case) -> Result<(), Problem> {
    let h = &case.host;
    ensure!(
        h.memory_mib >= 512,
        ["host", "memory_mib"],
        "{} MiB: expected at least 512",
        h.memory_mib
    );
    let guests: u32 = case
        .guests
        .iter()
        .map(|g| g.memory_mib)
        .fold(0, u32::saturating_add);
    ensure!(
        guests.saturating_add(512) <= h.memory_mib,
        ["host", "memory_mib"],
        "{} MiB are too few: the guests have {guests} MiB and the host itself needs 512",
        h.memory_mib
    );
    ensure!(
        is_kernel(&h.kernel),
        ["host", "kernel"],
        "{}",
        bad_kernel(&h.kernel)
    );
    Ok(())
}

fn check_kinds(case: &Case) -> Result<(), Problem> {
    for (i, s) in case.schedulers.iter().enumerate() {
        ensure!(
            matches!(s.kind, SchedulerKind::Kernel | SchedulerKind::Corun)
                || s.kind.comparator().is_some(),
            ["scheduler", i, "kind"],
            "the lab runs the real kernel: expected \"kernel\", \"corun\", \"scx_bpfland\" or \"scx_lavd\"; for the others use `corun sim run`"
        );
    }
    Ok(())
}

fn check_guests(case: &Case) -> Result<(), Problem> {
    for (i, g) in case.guests.iter().enumerate() {
        ensure!(
            g.memory_mib >= 96,
            ["guest", i, "memory_mib"],
            "{} MiB: expected at least 96",
            g.memory_mib
        );
        ensure!(
            g.memory_mib >= MIN_GUEST_MIB_WITH_TOOLS || !case.guest_needs_tools(&g.name),
            ["guest", i, "memory_mib"],
            "{} MiB: stress-ng and sysbench live in the guest's memory, expected at least {}",
            g.memory_mib,
            MIN_GUEST_MIB_WITH_TOOLS
        );
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let module = g.module.as_deref().unwrap_or("x");
        ensure!(
            !module.is_empty() && module.chars().all(is_plain),
            ["guest", i, "module"],
            "`{module}`: expected a module's name, such as \"corun_guest\""
        );
        ensure!(
            g.module.is_some() || g.module_params.is_empty(),
            ["guest", i, "module_params"],
            "parameters of which module? expected module = \"...\" beside them"
        );
        ensure!(
            is_kernel(&g.kernel),
            ["guest", i, "kernel"],
            "{}",
            bad_kernel(&g.kernel)
        );
    }
    Ok(())
}

fn check_gate(case: &Case) -> Result<(), Problem> {
    let able = case
        .guests
        .iter()
        .take(2)
        .filter(|g| g.vcpus >= case.host.pcpus)
        .count();
    ensure!(
        !case.gate.enabled || able == 2,
        ["gate", "enabled"],
        "the gate needs the first two guests to have at least {} vCPUs each (one per pCPU); give them more, or set enabled = false in [gate]",
        case.host.pcpus
    );
    Ok(())
}

fn is_kernel(kernel: &str) -> bool {
    let mut parts = kernel.split('.');
    let number =
        |p: Option<&str>| p.is_some_and(|p| !p.is_empty() && p.chars().all(|c| c.is_ascii_digit()));
    number(parts.next()) && number(parts.next()) && parts.next().is_none()
}

fn bad_kernel(kernel: &str) -> String {
    format!("kernel `{kernel}`: expected a series such as \"7.3\"")
}
