// SPDX-License-Identifier: GPL-2.0-only
//! A recording for Perfetto's viewer: a VM is a process, a vCPU a thread of it
//! whose slices are its states with guest time and exits inside, a pCPU a track
//! of who had it. Arrows lead from IPIs to their receipt, from wake-ups and
//! directed yields to the turn that they gave.

mod packets;
#[cfg(test)]
mod tests;
mod wire;

use super::flows::{Flow, Flows, is_shown};
use crate::state::{Follower, State};
use crate::{Event, Header, Kind, NO_PCPU, Symbols};
use packets::{Item, Packets, Row, Track, Type};
use std::collections::BTreeMap;
use std::io::Write;

/// Process ids of VMs that have none: beyond `PID_MAX_LIMIT`.
const MADE_UP_PID: u32 = 1 << 23;
/// Thread ids of vCPUs that have none: so many a VM.
const MADE_UP_TIDS: u32 = 1 << 12;

/// Groups of tracks; a track's number in its group is below.
mod group {
    pub(super) const VM: u64 = 1 << 40;
    pub(super) const VCPU: u64 = 2 << 40;
    pub(super) const PCPU: u64 = 3 << 40;
    pub(super) const RUNNING: u64 = 4 << 40;
    pub(super) const READY: u64 = 5 << 40;
    pub(super) const MARKS: u64 = 6 << 40;
}

fn vcpu_track(vm: u32, vcpu: u32) -> u64 {
    group::VCPU | u64::from(vm) << 20 | u64::from(vcpu)
}

fn pcpu_track(pcpu: u32) -> u64 {
    group::PCPU | (u64::from(pcpu) + 1)
}

/// Writes a recording as a Perfetto trace.
#[derive(Debug)]
pub struct Perfetto<'a, W> {
    header: &'a Header,
    symbols: &'a Symbols,
    flows: &'a Flows,
    packets: Packets<W>,
    follower: Follower,
    /// vCPUs inside of whose state a slice is open: guest time, or an exit.
    inner: BTreeMap<(u32, u32), bool>,
    /// pCPUs with an open slice.
    busy: BTreeMap<u32, bool>,
    /// vCPUs of each VM that run, and that want to.
    counts: BTreeMap<u32, (u64, u64)>,
    next_event: u64,
    last_ns: u64,
}

fn plain(uuid: u64, parent: u64, name: &str) -> Track<'_> {
    Track {
        uuid,
        parent,
        name,
        is: Row::Plain,
    }
}

impl<'a, W: Write> Perfetto<'a, W> {
    /// Begins a trace: writes its tracks. Wants a buffered `out`, and the `flows`
    /// of the same events.
    pub fn new(
        out: W,
        header: &'a Header,
        symbols: &'a Symbols,
        flows: &'a Flows,
    ) -> std::io::Result<Self> {
        let mut this = Self {
            header,
            symbols,
            flows,
            packets: Packets::new(out),
            follower: Follower::new(header),
            inner: BTreeMap::new(),
            busy: BTreeMap::new(),
            counts: BTreeMap::new(),
            next_event: 0,
            last_ns: 0,
        };
        this.tracks()?;
        Ok(this)
    }

    fn tracks(&mut self) -> std::io::Result<()> {
        self.packets.track(&plain(group::PCPU, 0, "pCPUs"))?;
        for pcpu in 0..self.header.pcpus {
            let name = format!("pCPU {pcpu}");
            self.packets
                .track(&plain(pcpu_track(pcpu), group::PCPU, &name))?;
        }
        self.packets.track(&plain(group::MARKS, 0, "marks"))?;
        let numbered = (0..).zip(&self.header.vms);
        for (number, vm) in numbered.filter(|(_, vm)| vm.vcpus > 0) {
            self.vm_tracks(number, vm)?;
        }
        Ok(())
    }

    fn vm_tracks(&mut self, number: u32, vm: &crate::Vm) -> std::io::Result<()> {
        let process = group::VM | u64::from(number);
        let pid = if vm.pid == 0 {
            MADE_UP_PID + number
        } else {
            vm.pid
        };
        self.packets.track(&Track {
            uuid: process,
            parent: 0,
            name: &format!("VM {}", vm.name),
            is: Row::Process { pid },
        })?;
        for (counter, name) in [
            (group::RUNNING, "vCPUs running"),
            (group::READY, "vCPUs ready"),
        ] {
            self.packets.track(&Track {
                uuid: counter | u64::from(number),
                parent: process,
                name,
                is: Row::Counter,
            })?;
        }
        for vcpu in 0..vm.vcpus {
            let tid = vm.tids.get(vcpu as usize).copied().filter(|t| *t != 0);
            let made_up = 2 * MADE_UP_PID + number * MADE_UP_TIDS + vcpu;
            self.packets.track(&Track {
                uuid: vcpu_track(number, vcpu),
                parent: process,
                name: &format!("vCPU {vcpu}"),
                is: Row::Thread {
                    pid,
                    tid: tid.unwrap_or(made_up),
                },
            })?;
        }
        Ok(())
    }

    /// Takes the next event.
    pub fn take(&mut self, event: &Event) -> std::io::Result<()> {
        // Viewers want each track in order.
        self.last_ns = self.last_ns.max(event.at_ns);
        let flows = self.flows.of(self.next_event);
        self.next_event += 1;
        match event.kind {
            Kind::Mark => return self.mark(event),
            Kind::HostIn => return self.host_in(event),
            _ => {}
        }
        if !self.follower.knows(event) {
            return Ok(());
        }
        let before = self.follower.state(event.vm, event.vcpu);
        // Flows that end at a turn end at its slice, others at an instant.
        let turn = if event.kind == Kind::SwitchIn {
            flows
        } else {
            &[]
        };
        if self.follower.take(event).is_some() {
            self.change_state(event, before, turn)?;
        }
        self.pcpu(event)?;
        match event.kind {
            Kind::Exit | Kind::Enter => self.inside(event),
            Kind::SwitchIn | Kind::SwitchOut | Kind::Halt | Kind::HaltEnd => Ok(()),
            _ => self.instant(event, flows),
        }
    }

    /// The vCPU's state became another one.
    fn change_state(
        &mut self,
        event: &Event,
        before: State,
        flows: &[Flow],
    ) -> std::io::Result<()> {
        let track = vcpu_track(event.vm, event.vcpu);
        if self.inner.remove(&(event.vm, event.vcpu)).is_some() {
            self.end(track)?;
        }
        if is_shown(before) {
            self.end(track)?;
        }
        let state = self.follower.state(event.vm, event.vcpu);
        let place = match event.pcpu {
            NO_PCPU => String::new(),
            pcpu => pcpu.to_string(),
        };
        self.begin(track, state.name(), "state", ("pcpu", &place), flows)?;
        self.count(event.vm, before, state)
    }

    fn count(&mut self, vm: u32, before: State, state: State) -> std::io::Result<()> {
        let is_ready = |s| u64::from(matches!(s, State::Ready(_)));
        let is_on = |s: State| u64::from(s.is_on());
        let (running, ready) = self.counts.entry(vm).or_default();
        let was = (*running, *ready);
        *running = *running + is_on(state) - is_on(before);
        *ready = *ready + is_ready(state) - is_ready(before);
        let now = (*running, *ready);
        if now.0 != was.0 {
            self.counter(group::RUNNING | u64::from(vm), now.0)?;
        }
        if now.1 != was.1 {
            self.counter(group::READY | u64::from(vm), now.1)?;
        }
        Ok(())
    }

    /// Guest time and exits, inside of the state.
    fn inside(&mut self, event: &Event) -> std::io::Result<()> {
        let track = vcpu_track(event.vm, event.vcpu);
        if self.inner.insert((event.vm, event.vcpu), true).is_some() {
            self.end(track)?;
        }
        if event.kind == Kind::Enter {
            return self.begin(track, "guest", "guest", ("", ""), &[]);
        }
        let name = format!("exit {}", self.header.exit_name(event.reason()));
        let place = match event.ip {
            0 => String::new(),
            ip => self.symbols.place(event.vm, ip).name,
        };
        self.begin(track, &name, "exit", ("at", &place), &[])
    }

    fn instant(&mut self, event: &Event, flows: &[Flow]) -> std::io::Result<()> {
        let name = super::text::what(event, self.header);
        let item = self.item(vcpu_track(event.vm, event.vcpu), Type::Instant);
        self.packets.item(&Item {
            name: &name,
            category: "event",
            flows,
            ..item
        })
    }

    /// Who has the pCPU.
    fn pcpu(&mut self, event: &Event) -> std::io::Result<()> {
        if event.pcpu >= self.header.pcpus {
            return Ok(());
        }
        match event.kind {
            Kind::SwitchIn => {
                let name = format!("{}/{}", self.header.vm_name(event.vm), event.vcpu);
                self.occupy(event.pcpu, &name)
            }
            Kind::SwitchOut => self.vacate(event.pcpu),
            _ => Ok(()),
        }
    }

    fn host_in(&mut self, event: &Event) -> std::io::Result<()> {
        if event.pcpu >= self.header.pcpus || event.arg == 0 {
            return Ok(());
        }
        let name = super::text::task_name(event, self.header);
        self.occupy(event.pcpu, &format!("host: {name}"))
    }

    fn occupy(&mut self, pcpu: u32, name: &str) -> std::io::Result<()> {
        self.vacate(pcpu)?;
        self.busy.insert(pcpu, true);
        self.begin(pcpu_track(pcpu), name, "pcpu", ("", ""), &[])
    }

    fn vacate(&mut self, pcpu: u32) -> std::io::Result<()> {
        if self.busy.remove(&pcpu).is_none() {
            return Ok(());
        }
        self.end(pcpu_track(pcpu))
    }

    fn mark(&mut self, event: &Event) -> std::io::Result<()> {
        let name = super::text::what(event, self.header);
        let item = self.item(group::MARKS, Type::Instant);
        self.packets.item(&Item {
            name: &name,
            category: "mark",
            ..item
        })
    }

    fn item<'b>(&self, track: u64, kind: Type) -> Item<'b> {
        Item {
            at_ns: self.last_ns,
            track,
            kind,
            name: "",
            category: "",
            note: ("", ""),
            flows: &[],
            counter: 0,
        }
    }

    fn begin(
        &mut self,
        track: u64,
        name: &str,
        category: &str,
        note: (&str, &str),
        flows: &[Flow],
    ) -> std::io::Result<()> {
        let item = self.item(track, Type::Begin);
        self.packets.item(&Item {
            name,
            category,
            note,
            flows,
            ..item
        })
    }

    fn end(&mut self, track: u64) -> std::io::Result<()> {
        let item = self.item(track, Type::End);
        self.packets.item(&item)
    }

    fn counter(&mut self, track: u64, counter: u64) -> std::io::Result<()> {
        let item = self.item(track, Type::Counter);
        self.packets.item(&Item { counter, ..item })
    }

    /// Ends the trace, and all that is open in it.
    pub fn finish(mut self) -> std::io::Result<W> {
        self.last_ns = self.last_ns.max(self.header.duration_ns);
        let open: Vec<_> = self.follower.end(self.last_ns).collect();
        for (vm, vcpu, stretch) in open {
            let inner = self.inner.remove(&(vm, vcpu)).is_some();
            for _ in 0..u8::from(inner) + u8::from(is_shown(stretch.state)) {
                self.end(vcpu_track(vm, vcpu))?;
            }
        }
        for pcpu in 0..self.header.pcpus {
            self.vacate(pcpu)?;
        }
        self.packets.finish()
    }
}
