// SPDX-License-Identifier: GPL-2.0-only
//! Records of the ring buffer to events: in the order of their times, with
//! numbers for VMs, reasons and names as they turn up.

use crate::exits;
use crate::text::c_string;
use corun_events::{Event, Header, Kind, NO_PCPU, NO_VM, Vm};
use std::collections::{BTreeMap, HashMap};

/// Bytes of a record (`struct trace_record`).
const RECORD_BYTES: usize = 40;
/// Most vCPUs of a VM that are believed; KVM allows fewer.
const VCPUS_MAX: u32 = 16_384;
/// How long a record may be on its way while others overtake it. Nanoseconds.
const OVERTAKEN_NS: u64 = 1_000_000_000;

/// Where the kernel side has what `flag` says of exits (`EXIT_INTERRUPTS_ON`), and how
/// far above the event's bits that is.
const EXIT_FLAGS: u64 = 3 << 62;
const EXIT_FLAGS_DOWN: u32 = 30;

/// What a record says: an event's kind, or that a vCPU was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Event(Kind),
    VcpuSeen,
}

/// A record as it comes from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Record {
    at_ns: u64,
    arg: u64,
    ip: u64,
    vm: u32,
    vcpu: u32,
    cpu: u32,
    kind: u32,
}

/// Turns records into events.
#[derive(Debug)]
pub(super) struct Records {
    start_ns: u64,
    /// By the record's number of the kind.
    kinds: Vec<Option<Says>>,
    /// Those that others may still overtake.
    waiting: Vec<Record>,
    newest_ns: u64,
    /// By VM's number.
    vms: Vec<Vm>,
    reasons: HashMap<u64, u64>,
    reason_names: Vec<String>,
    tasks: BTreeMap<u32, String>,
}

impl Records {
    /// `kinds` are the kernel side's names of them; times count from `start_ns` of
    /// the monotonic clock.
    pub(super) fn new(kinds: &[String], start_ns: u64) -> Self {
        let kinds = kinds.iter().map(|name| says(name));
        Self {
            start_ns,
            // The last one is made here.
            kinds: kinds.chain([Some(Says::Event(Kind::Mark))]).collect(),
            waiting: Vec::new(),
            newest_ns: 0,
            vms: Vec::new(),
            reasons: HashMap::new(),
            reason_names: Vec::new(),
            tasks: BTreeMap::new(),
        }
    }

    /// Takes a record's bytes; others than a record's are passed over.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        if let Some(record) = decode(bytes) {
            self.newest_ns = self.newest_ns.max(record.at_ns);
            self.waiting.push(record);
        }
    }

    /// Puts mark `number` between the events, at `at_ns` of the monotonic clock.
    pub(super) fn mark(&mut self, at_ns: u64, number: u64) {
        self.waiting.push(Record {
            at_ns,
            arg: number,
            ip: 0,
            vm: NO_VM,
            vcpu: 0,
            cpu: NO_PCPU,
            kind: u32::try_from(self.kinds.len() - 1).unwrap_or(u32::MAX),
        });
    }

    /// The events that nothing can overtake any more, or all when it is over.
    pub(super) fn drain(&mut self, all: bool) -> Vec<Event> {
        let until_ns = if all {
            u64::MAX
        } else {
            self.newest_ns.saturating_sub(OVERTAKEN_NS)
        };
        // Stable: a pCPU's records of one moment stay in their order.
        self.waiting.sort_by_key(|r| r.at_ns);
        let ready = self.waiting.partition_point(|r| r.at_ns < until_ns);
        let ready: Vec<Record> = self.waiting.drain(..ready).collect();
        ready.iter().filter_map(|r| self.event(r)).collect()
    }

    fn event(&mut self, r: &Record) -> Option<Event> {
        let kind = match self.kinds.get(r.kind as usize).copied().flatten()? {
            Says::Event(kind) => kind,
            Says::VcpuSeen => {
                self.see_vcpu(r);
                return None;
            }
        };
        let event = Event {
            at_ns: r.at_ns.saturating_sub(self.start_ns),
            kind,
            pcpu: r.cpu,
            vm: r.vm,
            vcpu: r.vcpu,
            arg: r.arg,
            ip: r.ip,
        };
        Some(match kind {
            Kind::Exit => Event {
                arg: self.reason(r.arg & !EXIT_FLAGS) | (r.arg & EXIT_FLAGS) >> EXIT_FLAGS_DOWN,
                ..event
            },
            Kind::HostIn => {
                self.see_task(r);
                Event {
                    vm: NO_VM,
                    vcpu: 0,
                    ip: 0,
                    ..event
                }
            }
            _ => event,
        })
    }

    fn see_vcpu(&mut self, r: &Record) {
        if r.vcpu >= VCPUS_MAX {
            return;
        }
        let (tid, pid) = (half(r.arg >> 32), half(r.arg));
        let vm = self.vm(r.vm);
        if vm.pid != pid {
            vm.pid = pid;
            vm.name = crate::vms::name_of(&crate::root::Root::default(), pid);
        }
        vm.vcpus = vm.vcpus.max(r.vcpu + 1);
        vm.tids.resize(vm.vcpus as usize, 0);
        vm.tids[r.vcpu as usize] = tid;
    }

    /// VM `number`, made if need be: a place that two vCPUs claimed at once may be
    /// left without one.
    fn vm(&mut self, number: u32) -> &mut Vm {
        let index = number as usize;
        if self.vms.len() <= index {
            self.vms.resize(index + 1, Vm::new("(none)", 0));
        }
        &mut self.vms[index]
    }

    fn see_task(&mut self, r: &Record) {
        let tid = half(r.arg);
        if tid == 0 || self.tasks.contains_key(&tid) {
            return;
        }
        let [b0, b1, b2, b3, b4, b5, b6, b7] = r.ip.to_le_bytes();
        let second = u64::from(r.vcpu) << 32 | u64::from(r.vm);
        let first = [b0, b1, b2, b3, b4, b5, b6, b7];
        let bytes: Vec<i8> = first
            .into_iter()
            .chain(second.to_le_bytes())
            .map(u8::cast_signed)
            .collect();
        self.tasks.insert(tid, c_string(&bytes));
    }

    /// The number in the header of the exit that the kernel calls `code`.
    fn reason(&mut self, code: u64) -> u64 {
        if let Some(number) = self.reasons.get(&code) {
            return *number;
        }
        let name = exits::name_of_code(code);
        let known = self.reason_names.iter().position(|n| *n == name);
        let number = known.unwrap_or_else(|| {
            self.reason_names.push(name);
            self.reason_names.len() - 1
        }) as u64;
        self.reasons.insert(code, number);
        number
    }

    /// VMs that were seen so far.
    pub(super) fn vms(&self) -> &[Vm] {
        &self.vms
    }

    /// Names of all numbers in the events so far.
    pub(super) fn describe(&self, header: &mut Header) {
        header.vms.clone_from(&self.vms);
        header.exits.clone_from(&self.reason_names);
        header.tasks.clone_from(&self.tasks);
    }
}

fn says(name: &str) -> Option<Says> {
    if name == "vcpu_seen" {
        return Some(Says::VcpuSeen);
    }
    let name = serde_json::Value::String(name.to_owned());
    serde_json::from_value(name).ok().map(Says::Event)
}

fn half(value: u64) -> u32 {
    u32::try_from(value & u64::from(u32::MAX)).unwrap_or(0)
}

fn decode(bytes: &[u8]) -> Option<Record> {
    if bytes.len() != RECORD_BYTES {
        return None;
    }
    let long = |at: usize| {
        let word = bytes.get(at..at + 8)?.try_into().ok()?;
        Some(u64::from_ne_bytes(word))
    };
    let word = |at: usize| {
        let word = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_ne_bytes(word))
    };
    Some(Record {
        at_ns: long(0)?,
        arg: long(8)?,
        ip: long(16)?,
        vm: word(24)?,
        vcpu: word(28)?,
        cpu: word(32)?,
        kind: word(36)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds() -> Vec<String> {
        ["switch_in", "exit", "host_in", "vcpu_seen", "of_the_future"]
            .map(str::to_owned)
            .to_vec()
    }

    fn bytes(r: &Record) -> Vec<u8> {
        let mut bytes = Vec::new();
        for long in [r.at_ns, r.arg, r.ip] {
            bytes.extend(long.to_ne_bytes());
        }
        for word in [r.vm, r.vcpu, r.cpu, r.kind] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes
    }

    fn record(at_ns: u64, kind: u32, arg: u64) -> Record {
        Record {
            at_ns,
            arg,
            ip: 0,
            vm: 1,
            vcpu: 2,
            cpu: 3,
            kind,
        }
    }

    fn records(all: &[Record]) -> Records {
        let mut records = Records::new(&kinds(), 1000);
        for record in all {
            records.take(&bytes(record));
        }
        records
    }

    #[test]
    fn events_come_in_order_once_nothing_can_overtake_them() {
        let late_ns = 2000 + OVERTAKEN_NS;
        let mut r = records(&[
            record(1500, 0, 0),
            record(1200, 0, 0),
            record(late_ns, 0, 0),
        ]);
        let times = |events: Vec<Event>| events.iter().map(|e| e.at_ns).collect::<Vec<_>>();
        assert_eq!(times(r.drain(false)), [200, 500]);
        assert_eq!(times(r.drain(true)), [late_ns - 1000]);
        assert!(r.drain(true).is_empty());
    }

    #[test]
    fn reasons_get_numbers_and_names() {
        let (pause, hlt) = (2 << 32 | 0x77, 2 << 32 | 0x78);
        let mut r = records(&[
            record(1001, 1, hlt),
            record(1002, 1, 1 << 62 | pause),
            record(1003, 1, 1 << 63 | hlt),
        ]);
        let exits = r.drain(true);
        let exits = exits.iter().map(|e| (e.reason(), e.takes_interrupts()));
        let seen: Vec<(u64, Option<bool>)> = exits.collect();
        assert_eq!(seen, [(0, None), (1, Some(true)), (0, Some(false))]);
        let mut header = Header::default();
        r.describe(&mut header);
        assert_eq!(header.exits, ["hlt", "pause"]);
    }

    #[test]
    fn vcpus_and_tasks_are_told_of_once() {
        let seen = record(1001, 3, 77 << 32 | u64::from(u32::MAX));
        let name = u64::from_le_bytes(*b"kworker/");
        let host = Record {
            ip: name,
            vm: u32::from_le_bytes(*b"1:2\0"),
            vcpu: 0,
            ..record(1002, 2, 55)
        };
        let mut r = records(&[seen, host, record(1003, 4, 0)]);
        let events = r.drain(true);
        assert_eq!(events.len(), 1);
        assert_eq!((events[0].vm, events[0].arg), (NO_VM, 55));
        let mut header = Header::default();
        r.describe(&mut header);
        assert_eq!(header.tasks[&55], "kworker/1:2");
        assert_eq!(header.vms[1].tids, [0, 0, 77]);
        assert_eq!(header.vms[1].name, format!("pid-{}", u32::MAX));
        assert_eq!(header.vms[0].vcpus, 0);
    }

    #[test]
    fn a_mark_stands_among_the_events_of_its_time() {
        let mut r = records(&[record(1500, 0, 0), record(1700, 0, 0)]);
        r.mark(1600, 4);
        let events = r.drain(true);
        assert_eq!(
            events.iter().map(|e| e.at_ns).collect::<Vec<_>>(),
            [500, 600, 700]
        );
        assert_eq!(
            (events[1].kind, events[1].arg, events[1].vm),
            (Kind::Mark, 4, NO_VM)
        );
    }

    #[test]
    fn what_is_no_record_is_passed_over() {
        let mut r = Records::new(&kinds(), 0);
        r.take(&[0; 39]);
        r.take(&[]);
        assert!(r.drain(true).is_empty());
    }
}
