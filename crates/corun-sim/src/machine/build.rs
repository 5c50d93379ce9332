// SPDX-License-Identifier: GPL-2.0-only
//! From a scenario to a machine.

use super::Machine;
use super::slots::Slots;
use super::state::{
    Barrier, Base, FOREVER, Family, Flow, IdleState, Mode, Pcpu, Phase, Place, Queue, RING, Seg,
    Sem, SpinLock, Then, Thread, ThreadState, Vcpu, Vm,
};
use super::stats::Stats;
use crate::SimError;
use crate::engine::rng::{Rng, Stream};
use crate::engine::timers::Timers;
use crate::host::sched::build::{CorunOptions, build};
use crate::host::sched::{HostCpu, HostTask, Requests, TaskState};
use crate::kvm::steer::HaltSteering;
use crate::outcome::ACCOUNTS;
use crate::scenario::{Scenario, VmSpec, WorkSpec};
use crate::symbols::{self, Symbols};
use crate::trace::{Sink, Trace};
use crate::workload::model::{Model, QueueDecl, Role};
use crate::workload::program::{Instr, MAX_NESTING, compile, threads_of};
use std::collections::VecDeque;

/// Tables that grow while guests are laid out.
#[derive(Default)]
struct Parts {
    tasks: Vec<HostTask>,
    vcpus: Vec<Vcpu>,
    vms: Vec<Vm>,
    threads: Vec<Thread>,
    codes: Vec<Vec<Instr>>,
    lock_families: Vec<Family>,
    locks: Vec<SpinLock>,
    sem_families: Vec<Family>,
    sems: Vec<Sem>,
    queue_families: Vec<Family>,
    queues: Vec<Queue>,
    barriers: Vec<Barrier>,
    flows: Vec<Flow>,
    stats: Vec<Stats>,
    names: Vec<String>,
    symbols: Symbols,
    /// Address spaces so far; 0 is none.
    mms: u32,
}

impl<'a> Machine<'a> {
    /// Builds what `scenario` describes; `sink` gets its events.
    pub(crate) fn new(
        scenario: &Scenario,
        sink: Option<&'a mut dyn Sink>,
    ) -> Result<Self, SimError> {
        check(scenario)?;
        let mut parts = Parts::default();
        for spec in &scenario.vms {
            parts.add_vm(scenario, spec)?;
        }
        let pcpus = scenario.pcpus as usize;
        let slots = Slots::new(
            pcpus,
            parts.vcpus.len(),
            parts.threads.len(),
            parts.flows.len(),
        );
        let spec = &scenario.scheduler;
        let options = CorunOptions {
            tunables: spec.tunables,
            mechanisms: spec.mechanisms,
        };
        let sched = build(spec.kind, &spec.settings, options, pcpus, &parts.tasks);
        Ok(Self {
            now_ns: 0,
            timers: Timers::new(slots.count()),
            slots,
            costs: scenario.costs.clone(),
            kvm: scenario.kvm.clone(),
            steering: HaltSteering::default(),
            sched,
            requests: Requests::default(),
            cpus: host_cpus(scenario),
            pcpus: (0..pcpus).map(|p| pcpu(scenario, p)).collect(),
            tasks: parts.tasks,
            vcpus: parts.vcpus,
            vms: parts.vms,
            threads: parts.threads,
            codes: parts.codes,
            lock_families: parts.lock_families,
            locks: parts.locks,
            sem_families: parts.sem_families,
            sems: parts.sems,
            queue_families: parts.queue_families,
            queues: parts.queues,
            barriers: parts.barriers,
            flows: parts.flows,
            stats: parts.stats,
            names: parts.names,
            symbols: parts.symbols,
            trace: Trace::new(sink),
            check: scenario.check,
            targets: Vec::with_capacity(256),
            events: 0,
            measured_from_ns: 0,
        })
    }
}

fn check(scenario: &Scenario) -> Result<(), SimError> {
    let bad = |what: &str| Err(SimError::Scenario(what.to_owned()));
    if scenario.pcpus == 0 {
        return bad("0 pCPUs: expected at least 1");
    }
    if !(1..=2).contains(&scenario.threads_per_core) {
        return bad("threads_per_core: expected 1 or 2");
    }
    if scenario.costs.cpu_mhz == 0 || scenario.costs.smt_speed_pm == 0 {
        return bad("cpu_mhz and smt_speed_pm: expected more than 0");
    }
    for vm in &scenario.vms {
        if vm.vcpus == 0 {
            return Err(SimError::Scenario(format!(
                "guest {}: 0 vCPUs: expected at least 1",
                vm.name
            )));
        }
    }
    Ok(())
}

fn host_cpus(scenario: &Scenario) -> Vec<HostCpu> {
    let llc = match scenario.pcpus_per_llc {
        0 => scenario.pcpus,
        n => n,
    };
    let cpus = (0..scenario.pcpus).map(|p| HostCpu {
        current: None,
        charged_ns: 0,
        core: p / scenario.threads_per_core,
        llc: p / llc,
        kicked: false,
    });
    cpus.collect()
}

fn pcpu(scenario: &Scenario, p: usize) -> Pcpu {
    let other = p ^ 1;
    let sibling = scenario.threads_per_core == 2 && other < scenario.pcpus as usize;
    Pcpu {
        mode: Mode::Idle,
        since_ns: 0,
        exit_left_ns: 0,
        host_left_ns: 0,
        then: Then::Schedule,
        need_resched: false,
        stolen_until_ns: 0,
        noise_due_ns: 0,
        last: None,
        touched_ns: 0,
        sibling: sibling.then_some(other),
        speed_pm: 1000,
        idle_from_ns: 0,
        yielding: false,
        accounts: [0; ACCOUNTS],
        noise: Rng::new(scenario.seed, Stream::Pcpu, p),
    }
}

impl Parts {
    fn add_vm(&mut self, scenario: &Scenario, spec: &VmSpec) -> Result<(), SimError> {
        let vm = self.vms.len();
        let first_vcpu = self.vcpus.len();
        let vcpus = spec.vcpus as usize;
        self.vms.push(Vm {
            first_vcpu,
            vcpus,
            spinlock: spec.kernel.spinlock,
            tlb: spec.kernel.tlb,
            lazy_tlb: spec.kernel.lazy_tlb,
            pv: spec.pv,
            tick_ns: spec.kernel.tick_ns,
            queued: 0,
            last_boosted: 0,
            flows: Vec::new(),
        });
        self.stats.push(Stats::new(spec.work.len()));
        self.names.push(spec.name.clone());
        for index in 0..vcpus {
            self.add_vcpu(scenario, spec, vm, index);
        }
        for (work, program) in spec.work.iter().enumerate() {
            self.add_work(scenario, spec, program, work)?;
        }
        Ok(())
    }

    fn add_vcpu(&mut self, scenario: &Scenario, spec: &VmSpec, vm: usize, index: usize) {
        let v = self.vcpus.len();
        let pcpu = (if spec.kernel.pinned { index } else { v } % scenario.pcpus as usize) as u32;
        self.tasks.push(HostTask {
            vm: vm as u32,
            vm_weight: spec.weight,
            pinned: spec.kernel.pinned.then_some(pcpu),
            state: TaskState::Blocked,
            cpu: pcpu,
            critical: false,
            region: corun_policy::Region::Unknown,
            in_kernel: false,
        });
        let window = scenario.kvm.ple.map_or(0, |p| p.window_cycles);
        self.vcpus.push(Vcpu {
            vm,
            index,
            place: Place::Blocked,
            since_ns: 0,
            preempted: false,
            halted: true,
            pv_wait: false,
            halt_start_ns: 0,
            poll_ns: 0,
            pending: 0,
            arriving: VecDeque::with_capacity(32),
            calls: Vec::with_capacity(spec.vcpus as usize),
            ipi_sent_ns: 0,
            mm: 0,
            irq: None,
            soft: None,
            thread: None,
            idle: Vcpu::idle_seg(),
            idle_state: IdleState::Halted,
            queue: Vec::with_capacity(16),
            min_vruntime: 0,
            need_resched: false,
            cold_ns: 0,
            left_touched_ns: 0,
            due: Vec::with_capacity(16),
            kernel_debt_ns: 0,
            exit_debt_ns: 0,
            flush_queued: false,
            acks: 0,
            shootdown_ns: 0,
            ple_window_ns: scenario.costs.cycles_ns(window),
            ple_spun_ns: 0,
            ple_run: 0,
            spun_last: false,
            boost_passed: false,
            ipi_from: 0,
            rng: Rng::new(scenario.seed, Stream::Vcpu, v),
        });
    }

    fn add_work(
        &mut self,
        scenario: &Scenario,
        spec: &VmSpec,
        program: &WorkSpec,
        work: usize,
    ) -> Result<(), SimError> {
        let model = &program.model;
        let base = Base {
            lock_family: self.lock_families.len(),
            sem_family: self.sem_families.len(),
            queue_family: self.queue_families.len(),
            barrier: self.barriers.len(),
            flow: self.flows.len(),
        };
        self.add_objects(spec, model);
        self.add_flows(scenario, model);
        self.mms += 1;
        let mm = self.mms;
        let parallel = program.threads.unwrap_or(spec.vcpus);
        for role in &model.roles {
            let code = self.codes.len();
            self.codes.push(compile(model, role, &mut self.symbols)?);
            let count = threads_of(role, parallel);
            self.set_parties(model, base, count);
            for number in 0..count as usize {
                self.add_thread(scenario, role, (work, code, number), base, mm);
            }
        }
        Ok(())
    }

    /// Locks, sleeping locks, queues and barriers of `model`.
    fn add_objects(&mut self, spec: &VmSpec, model: &Model) {
        let vm = self.vms.len() - 1;
        for lock in &model.locks {
            let stat = self.stats[vm].histogram(&format!("lock.{}", lock.name));
            let symbol = self.symbols.intern(&lock.symbol);
            let family = add_family(&mut self.locks, lock.count, || SpinLock {
                kind: spec.kernel.spinlock,
                irq_off: lock.irq_off,
                symbol,
                owner: None,
                waiters: VecDeque::with_capacity(spec.vcpus as usize),
                vm,
                stat,
            });
            self.lock_families.push(family);
        }
        for sem in &model.sems {
            let family = add_family(&mut self.sems, sem.count, || Sem {
                spin: sem.spin,
                wakes_one: sem.wakes_one,
                writer: None,
                readers: 0,
                sleepers: VecDeque::with_capacity(64),
                spinners: VecDeque::with_capacity(64),
            });
            self.sem_families.push(family);
        }
        for queue in &model.queues {
            let family = add_family(&mut self.queues, queue.count, || Queue {
                capacity: queue.capacity,
                wake_at: queue.wake_at.unwrap_or(u32::MAX),
                items: queue.initial,
                pushers: VecDeque::with_capacity(64),
                poppers: VecDeque::with_capacity(64),
                wait_lock: None,
            });
            if queue.wait_lock {
                self.add_wait_locks(spec, queue, family);
            }
            self.queue_families.push(family);
        }
        for barrier in &model.barriers {
            self.barriers.push(Barrier {
                parties: 0,
                arrived: 0,
                spin_ns: barrier.spin_ns,
                wakes_one: barrier.wakes_one,
                waiters: Vec::with_capacity(64),
                released: VecDeque::with_capacity(64),
            });
        }
    }

    /// Gives each queue of `family` the spinlock of its wait queue.
    fn add_wait_locks(&mut self, spec: &VmSpec, decl: &QueueDecl, family: Family) {
        let vm = self.vms.len() - 1;
        let stat = self.stats[vm].histogram(&format!("lock.{}.wait", decl.name));
        // Who is preempted inside mostly is so in the exit for its IPI.
        let symbol = self.symbols.intern("native_write_msr");
        let locks = add_family(&mut self.locks, decl.count, || SpinLock {
            kind: spec.kernel.spinlock,
            irq_off: true,
            symbol,
            owner: None,
            waiters: VecDeque::with_capacity(spec.vcpus as usize),
            vm,
            stat,
        });
        let queues = &mut self.queues[family.first..];
        for (queue, lock) in queues.iter_mut().zip(locks.first..) {
            queue.wait_lock = Some(lock);
        }
    }

    fn add_flows(&mut self, scenario: &Scenario, model: &Model) {
        let vm = self.vms.len() - 1;
        for decl in &model.flows {
            let index = decl.vcpu as usize % self.vms[vm].vcpus;
            let bits = u64::from(decl.batch_bytes) * 8;
            let f = self.flows.len();
            self.vms[vm].flows.push(f);
            self.flows.push(Flow {
                vcpu: self.vms[vm].first_vcpu + index,
                batch_ns: bits * 1000 / u64::from(decl.line_mbps.max(1)),
                window: decl.window,
                rtt: decl.rtt,
                wobble: decl.wobble,
                in_flight: 0,
                line_busy: false,
                late_ns: 0,
                ring: VecDeque::with_capacity(RING),
                socket: VecDeque::with_capacity(2 * RING),
                socket_limit: decl.socket as usize,
                acks: VecDeque::with_capacity(2 * RING),
                reader: None,
                last: None,
                jitter_ns: 0,
                stat: self.stats[vm].histogram(&format!("jitter.{}", decl.name)),
                rng: Rng::new(scenario.seed, Stream::Flow, f),
            });
        }
    }

    /// All threads of `role` meet at the barriers that it uses.
    fn set_parties(&mut self, model: &Model, base: Base, count: u32) {
        let code = &self.codes[self.codes.len() - 1];
        for (i, _) in model.barriers.iter().enumerate() {
            if code.contains(&Instr::Barrier { barrier: i as u32 }) {
                self.barriers[base.barrier + i].parties += count;
            }
        }
    }

    fn add_thread(
        &mut self,
        scenario: &Scenario,
        role: &Role,
        (work, code, number): (usize, usize, usize),
        base: Base,
        mm: u32,
    ) {
        let t = self.threads.len();
        let vm = self.vms.len() - 1;
        let (first, n) = (self.vms[vm].first_vcpu, self.vms[vm].vcpus);
        // Spread over the vCPUs in the order of their making, across roles.
        let nth = self.threads.iter().filter(|t| t.vm == vm).count();
        let pinned_to = number + role.first_vcpu as usize;
        let v = first + if role.pinned { pinned_to } else { nth } % n;
        if role.own_mm {
            self.mms += 1;
        }
        self.vcpus[v].queue.push(t);
        self.vms[vm].queued += 1;
        self.threads.push(Thread {
            vm,
            work,
            code,
            number,
            pinned: role.pinned,
            mm: if role.own_mm { self.mms } else { mm },
            base,
            pc: 0,
            rounds: [0; MAX_NESTING],
            state: ThreadState::Queued,
            vcpu: v,
            vruntime: 0,
            slice_start: 0,
            seg: Seg::kernel(0, symbols::KERNEL),
            phase: Phase::Fetch,
            granted: false,
            grant_ns: FOREVER,
            wait_since_ns: 0,
            spun_ns: 0,
            woken_ns: 0,
            last_unit_ns: 0,
            locked_op: None,
            after_unlock: None,
            held: Vec::with_capacity(4),
            rng: Rng::new(scenario.seed, Stream::Thread, t),
        });
    }
}

/// Adds as many things as a model declares, at least one, and tells which they are.
fn add_family<T>(things: &mut Vec<T>, declared: u32, thing: impl Fn() -> T) -> Family {
    let (first, count) = (things.len(), declared.max(1));
    things.extend((0..count).map(|_| thing()));
    Family { first, count }
}
