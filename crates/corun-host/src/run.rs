// SPDX-License-Identifier: GPL-2.0-only
//! `corun run`: checks the host, loads the scheduler, reports, leaves cleanly.

pub(crate) mod report;

use crate::error::{During, HostError, Result};
use crate::events::Present;
use crate::guests::{Guests, Kernels};
use crate::halt::{HaltSteering, Places};
use crate::kernel_exit::KernelExit;
use crate::options::RunOptions;
use crate::root::Root;
use crate::sched::Scheduler;
use crate::vms::Vm;
use crate::{features, host_info, preflight};
use corun_policy::Mechanisms;
use corun_symbols::{Evidence, Library, Match, NoMatch};
use report::{Reporter, Stats};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often weights, VMs and the kernel's verdict are looked at.
const POLL: Duration = Duration::from_millis(200);
/// How often names and weights are read again from /proc and cgroups.
const REFRESH: Duration = Duration::from_secs(1);

/// Runs the scheduler in the foreground until `stop` is set or the kernel ends it.
pub fn run(options: &RunOptions, stop: &AtomicBool) -> Result<()> {
    let tunables = options.tunables()?;
    let reporter = Reporter::new(options.json);
    let root = Root::default();
    reporter.host(&root.kernel_release(), &features::of_scheduling(&root))?;
    preflight::check(&root, &options.ignored_hazards)?;
    let symbols = Library::read(&options.symbols)?;
    reporter.symbols(&symbols)?;
    // Outlives the schedulers: whatever ends this function, its drop restores.
    let mut halt = HaltSteering::start(
        options.mechanisms.has(Mechanisms::HALT),
        options.halt_tunables(),
        Places::default(),
    );
    loop {
        let present = Present::here()?.without(&options.without_events);
        let mut scheduler = Scheduler::load(&tunables, options.mechanisms, &symbols, present)?;
        reporter.scheduling(options, &tunables)?;
        reporter.missing(&scheduler.missing)?;
        let costs = options
            .hook_costs
            .then(|| scheduler.count_costs())
            .transpose()?;
        match serve(
            &mut scheduler,
            &mut halt,
            options,
            &symbols,
            &reporter,
            stop,
        )? {
            End::Stopped => {
                report_stats(&scheduler, &halt, &reporter)?;
                if let Some(costs) = costs {
                    reporter.hook_costs(&costs.read())?;
                }
                scheduler.unload();
                halt.stop()
                    .during("putting halt_poll_ns back (`corun doctor --repair` does it)")?;
                return reporter.left();
            }
            End::KvmArrived => reporter.kvm_arrived()?,
            End::KvmLeaves => reporter.kvm_leaves()?,
            End::Kernel(mut exit) => {
                scheduler.unload();
                exit.look_again();
                reporter.ended(&exit)?;
                return Err(HostError::KernelEnded(exit));
            }
        }
    }
}

/// Why one load of the scheduler ended.
enum End {
    Stopped,
    KvmArrived,
    /// The vendor's module was unloaded: kvm itself should be free to go.
    KvmLeaves,
    Kernel(KernelExit),
}

/// The scheduler's VMs, by slot and generation; what is found is told to the user.
struct Told<'a> {
    scheduler: &'a mut Scheduler,
    reporter: &'a Reporter,
}

impl Kernels<(usize, u32)> for Told<'_> {
    fn evidence(&self, (slot, _): (usize, u32)) -> Evidence {
        self.scheduler.evidence(slot)
    }

    fn set_image(&mut self, (slot, _): (usize, u32), found: Option<Match>) {
        self.scheduler.set_image(slot, found);
    }

    fn told(
        &mut self,
        name: &str,
        found: std::result::Result<(&str, u64), &NoMatch>,
    ) -> Result<()> {
        self.reporter.kernel(name, found)
    }
}

fn serve(
    scheduler: &mut Scheduler,
    halt: &mut HaltSteering,
    options: &RunOptions,
    symbols: &Library,
    reporter: &Reporter,
    stop: &AtomicBool,
) -> Result<End> {
    let mut known = BTreeMap::new();
    let mut guests = Guests::default();
    let mut refreshed: Option<Instant> = None;
    let mut reported = Instant::now();
    loop {
        if let Some(exit) = scheduler.kernel_exit() {
            return Ok(End::Kernel(exit));
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(End::Stopped);
        }
        match (scheduler.discovers, host_info::kvm_is_ready()) {
            (false, true) => return Ok(End::KvmArrived),
            (true, false) => return Ok(End::KvmLeaves),
            _ => {}
        }
        if refreshed.is_none_or(|at| at.elapsed() >= REFRESH) {
            scheduler.forget_ended_vms()?;
            let vms = scheduler.vms();
            scheduler.tell_about(&vms);
            let mut kernels = Told {
                scheduler,
                reporter,
            };
            let named = vms
                .iter()
                .map(|v| ((v.slot, v.generation), v.name.as_str()));
            guests.resolve(symbols, &mut kernels, named)?;
            tell_changes(reporter, &mut known, vms)?;
            refreshed = Some(Instant::now());
        }
        // Reading all counters is not free: only for who looks at one.
        let waited_ns = if options.mechanisms.has(Mechanisms::HALT) {
            scheduler.counters()?.get("waited_ns").copied()
        } else {
            None
        };
        reporter.halt(&halt.step(Instant::now(), waited_ns))?;
        if options
            .stats
            .is_some_and(|every| reported.elapsed() >= every)
        {
            report_stats(scheduler, halt, reporter)?;
            reported = Instant::now();
        }
        std::thread::sleep(POLL);
    }
}

fn report_stats(scheduler: &Scheduler, halt: &HaltSteering, reporter: &Reporter) -> Result<()> {
    let counters = scheduler.counters()?;
    reporter.stats(&Stats {
        in_use: scheduler.in_use(&counters)?,
        vms: scheduler.vms(),
        counters,
        halt_polling: halt.report(),
    })
}

/// Reports VMs that came, changed or went since the last look.
fn tell_changes(
    reporter: &Reporter,
    known: &mut BTreeMap<(usize, u32), Vm>,
    now: Vec<Vm>,
) -> Result<()> {
    let now: BTreeMap<_, _> = now
        .into_iter()
        .map(|vm| ((vm.slot, vm.generation), vm))
        .collect();
    for (key, vm) in known.iter() {
        if !now.contains_key(key) {
            reporter.vm("gone", vm)?;
        }
    }
    for (key, vm) in &now {
        match known.get(key) {
            None => reporter.vm("found", vm)?,
            Some(old) if (old.weight, old.vcpus) != (vm.weight, vm.vcpus) => {
                reporter.vm("changed", vm)?;
            }
            Some(_) => {}
        }
    }
    *known = now;
    Ok(())
}
