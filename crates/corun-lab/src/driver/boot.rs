// SPDX-License-Identifier: GPL-2.0-only
//! The beginning of a boot: who we are, and the guests' start.

use super::error::{Context, DriverError, Result};
use super::qemu::{self, Vmm};
use super::session::Session;
use crate::case::{Case, Guest, PvFeatures};
use corun_lab_proto::PROTOCOL_VERSION;
use corun_lab_proto::agent::{Command, Event};
use corun_lab_proto::control::Report;
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

/// How long a guest may take to load its module.
const MODULE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long guests with `vcpus` in all may take to boot. Emulated ones need 3 to 16 s,
/// longer when many boot at once, and several times as long where others use the machine
/// (60 s were too few for six guests of one vCPU with two other labs beside them). Below
/// the runner's patience with a silent driver.
fn boot_timeout(vcpus: u32) -> Duration {
    (Duration::from_mins(1) + Duration::from_secs(10) * vcpus).min(Duration::from_secs(170))
}

/// Introduces the driver to the runner.
pub(super) fn hello(session: &mut Session) -> Result<()> {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let halt_poll = fs::read_to_string("/sys/module/kvm/parameters/halt_poll_ns");
    let pcpus = std::thread::available_parallelism().doing(|| "count CPUs".to_owned())?;
    session.report(&Report::Hello {
        protocol: PROTOCOL_VERSION,
        kernel: kernel.trim().to_owned(),
        pcpus: u32::try_from(pcpus.get()).unwrap_or(u32::MAX),
        qemu: qemu::version(),
        halt_poll_ns: halt_poll.ok().and_then(|t| t.trim().parse().ok()),
    })
}

/// Starts all guests of `case` and waits for their agents. The VM returned must
/// live as long as the guests do.
pub(super) fn start_guests(session: &mut Session, case: &Case) -> Result<Vmm> {
    let run = session.places.run.clone();
    fs::create_dir_all(&run).doing(|| format!("make {}", run.display()))?;
    let key_holder = Vmm::start_key_holder(&session.places)?;
    let begin = Instant::now();
    for guest in &case.guests {
        let mut vmm = Vmm::start(guest, case.guest_needs_tools(&guest.name), &session.places)?;
        let stream = vmm.connect(&guest.name, &session.places)?;
        let listening = session.agents.add(&guest.name, stream);
        listening.doing(|| format!("listen to guest {}", guest.name))?;
        session.pids.insert(guest.name.clone(), vmm.pid());
        session.vmms.insert(guest.name.clone(), vmm);
    }
    await_agents(session, case, begin)?;
    load_modules(session, case)?;
    Ok(key_holder)
}

fn await_agents(session: &mut Session, case: &Case, begin: Instant) -> Result<()> {
    let mut waiting: BTreeMap<&str, &Guest> =
        case.guests.iter().map(|g| (g.name.as_str(), g)).collect();
    let vcpus: u32 = case.guests.iter().map(|g| g.vcpus).sum();
    let deadline = begin + boot_timeout(vcpus);
    while let Some(name) = waiting.keys().next().copied() {
        let (from, at, event) = session.next_event(deadline, name, "booting")?;
        let Some(guest) = waiting.remove(from.as_str()) else {
            return Err(session.suspect(&from, "said something before all were up: was it reset?"));
        };
        let report = check_ready(guest, event, at - begin)?;
        session.report(&report)?;
    }
    Ok(())
}

/// Loads the module of each guest that has one, one after the other: each patches
/// that guest's kernel text.
fn load_modules(session: &mut Session, case: &Case) -> Result<()> {
    for guest in &case.guests {
        let Some(name) = guest.module.clone() else {
            continue;
        };
        let id = session.agents.new_id();
        let params = guest.module_params.clone();
        session.send(&guest.name, &Command::LoadModule { id, name, params })?;
        let deadline = Instant::now() + MODULE_TIMEOUT;
        match session.next_event(deadline, &guest.name, "loading its module")? {
            (from, _, Event::ModuleLoaded { id: got }) if from == guest.name && got == id => {}
            (from, _, event) => {
                return Err(DriverError::Own(format!(
                    "guest {from}: expected its module to be loaded, got {event:?}"
                )));
            }
        }
    }
    Ok(())
}

/// What `guest` says of itself must be what the case asked for.
fn check_ready(guest: &Guest, event: Event, took: Duration) -> Result<Report> {
    let Event::Ready {
        protocol,
        kernel,
        vcpus,
        pv_features,
        ..
    } = event
    else {
        return Err(DriverError::Own(format!(
            "guest {}: expected Ready, got {event:?}",
            guest.name
        )));
    };
    let refuse = |what: String| Err(DriverError::Own(format!("guest {}: {what}", guest.name)));
    if protocol != PROTOCOL_VERSION {
        return refuse(format!(
            "its agent speaks protocol {protocol}, this driver {PROTOCOL_VERSION}; build the image again"
        ));
    }
    if vcpus != guest.vcpus {
        return refuse(format!("{vcpus} of {} vCPUs are online", guest.vcpus));
    }
    for (name, asked) in asked_features(guest.pv) {
        let found = pv_features.iter().any(|f| f == name);
        if found != asked {
            let is = |on: bool| if on { "on" } else { "off" };
            return refuse(format!(
                "{name} is {} in the case and {} in the guest; this host's KVM or QEMU decides otherwise",
                is(asked),
                is(found)
            ));
        }
    }
    Ok(Report::GuestReady {
        guest: guest.name.clone(),
        kernel,
        vcpus,
        pv_features,
        boot_ns: u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
    })
}

/// Features by the agent's names for them.
fn asked_features(pv: PvFeatures) -> [(&'static str, bool); 7] {
    [
        ("steal_time", pv.steal_time),
        ("pv_sched_yield", pv.sched_yield),
        ("pv_tlb_flush", pv.tlb_flush),
        ("pv_send_ipi", pv.ipi),
        ("pv_unhalt", pv.unhalt),
        ("pv_eoi", pv.eoi),
        ("poll_control", pv.poll_control),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest() -> Guest {
        let text = "name = 'a'\nvcpus = 2\npv = { sched_yield = true }\n";
        toml::from_str(text).expect("is a guest")
    }

    fn ready(protocol: u32, vcpus: u32, features: &[&str]) -> Event {
        Event::Ready {
            protocol,
            kernel: "7.3.4".to_owned(),
            vcpus,
            workloads: vec![],
            pv_features: features.iter().map(|f| (*f).to_owned()).collect(),
        }
    }

    #[test]
    fn a_guest_that_differs_from_its_case_is_refused() {
        let good = ["steal_time", "pv_sched_yield", "pv_eoi", "clocksource"];
        let check = |e| check_ready(&guest(), e, Duration::from_secs(1));
        assert!(check(ready(PROTOCOL_VERSION, 2, &good)).is_ok());
        for (event, words) in [
            (ready(PROTOCOL_VERSION + 1, 2, &good), "protocol"),
            (ready(PROTOCOL_VERSION, 1, &good), "1 of 2 vCPUs"),
            (
                ready(PROTOCOL_VERSION, 2, &good[..1]),
                "pv_sched_yield is on in the case and off",
            ),
            (
                ready(
                    PROTOCOL_VERSION,
                    2,
                    &["steal_time", "pv_sched_yield", "pv_eoi", "pv_unhalt"],
                ),
                "pv_unhalt is off in the case and on",
            ),
            (Event::Started { id: 1 }, "expected Ready"),
        ] {
            let error = check(event).expect_err("must be refused").to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
