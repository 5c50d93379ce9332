// SPDX-License-Identifier: GPL-2.0-only
//! A recording as lines for people.

use crate::{Event, Header, Kind, NO_PCPU, NO_VM, Symbols, out};
use std::io::Write;

/// Writes a line an event.
#[derive(Debug)]
pub struct Text<'a, W> {
    out: W,
    header: &'a Header,
    symbols: &'a Symbols,
}

impl<'a, W: Write> Text<'a, W> {
    /// Begins with what was recorded. Wants a buffered `out`.
    pub fn new(mut out: W, header: &'a Header, symbols: &'a Symbols) -> std::io::Result<Self> {
        writeln!(out, "# {} ({})", header.title, header.source)?;
        if header.dropped() > 0 {
            writeln!(out, "# {} events are missing: dropped", header.dropped())?;
        }
        for missing in &header.missing {
            writeln!(out, "# not recorded: {missing}")?;
        }
        writeln!(out, "#        ms  pcpu  vcpu          event")?;
        Ok(Self {
            out,
            header,
            symbols,
        })
    }

    /// Adds a line.
    pub fn take(&mut self, event: &Event) -> std::io::Result<()> {
        let pcpu = match event.pcpu {
            NO_PCPU => "-".to_owned(),
            pcpu => pcpu.to_string(),
        };
        let who = match event.vm {
            NO_VM => "host".to_owned(),
            vm => format!("{}/{}", self.header.vm_name(vm), event.vcpu),
        };
        let what = what(event, self.header);
        let ms = event.at_ns as f64 / 1e6;
        write!(self.out, "{ms:>11.6}  {pcpu:>4}  {who:<12}  {what}")?;
        if event.ip != 0 {
            let place = self.symbols.place(event.vm, event.ip);
            write!(self.out, "  in {} ({:#x})", place.name, event.ip)?;
        }
        writeln!(self.out)
    }

    /// Ends.
    pub fn finish(mut self) -> std::io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// The host task of a [`Kind::HostIn`].
pub(super) fn task_name(event: &Event, header: &Header) -> String {
    let tid = u32::try_from(event.arg).unwrap_or(0);
    let known = header.tasks.get(&tid);
    known.map_or_else(|| format!("task {tid}"), |name| format!("{name} ({tid})"))
}

/// What happened, in words.
pub(super) fn what(event: &Event, header: &Header) -> String {
    let target = event.target();
    let vector = match event.vector() {
        0 => String::new(),
        vector => format!(" vector {vector:#x}"),
    };
    let index = usize::try_from(event.arg).unwrap_or(usize::MAX);
    match event.kind {
        Kind::SwitchIn => "runs".to_owned(),
        Kind::SwitchOut => match event.arg {
            out::BLOCKED => "sleeps",
            out::YIELDED => "gives way",
            _ => "is preempted",
        }
        .to_owned(),
        Kind::Wake => match event.arg {
            0 => "is woken".to_owned(),
            waker => format!("is woken by vCPU {}", waker - 1),
        },
        Kind::Exit => format!("exit {}", header.exit_name(event.reason())),
        Kind::Enter => "enters the guest".to_owned(),
        Kind::IpiSend => format!("IPI to {target}{vector}"),
        Kind::IpiTake => format!("takes interrupt{vector}"),
        Kind::YieldAsk => format!("yield to {target} asked"),
        Kind::YieldGrant => format!("yield to {target} granted"),
        Kind::ShootdownStart => "shootdown begins".to_owned(),
        Kind::ShootdownEnd => format!("shootdown took {} us", event.arg as f64 / 1e3),
        Kind::LockSpin => format!("waits for lock {}", lock_name(index, header)),
        Kind::LockTaken => format!("has lock {}", lock_name(index, header)),
        Kind::Unit => format!("unit done by thread {}", event.arg),
        Kind::Halt => "halts".to_owned(),
        Kind::HaltEnd => "halt ends".to_owned(),
        Kind::Spin => "spins".to_owned(),
        Kind::HostIn if event.arg == 0 => "idle".to_owned(),
        Kind::HostIn => format!("{} runs", task_name(event, header)),
        Kind::Mark => {
            let name = header.marks.get(index);
            name.map_or_else(|| format!("mark {}", event.arg), String::clone)
        }
    }
}

fn lock_name(index: usize, header: &Header) -> String {
    header
        .locks
        .get(index)
        .map_or_else(|| index.to_string(), String::clone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Vm, interrupt_arg};
    use corun_symbols::Library;

    #[test]
    fn lines_say_who_did_what_where() {
        let mut header = Header::new("host", "a test", 2, vec![Vm::new("web", 2)]);
        header.drops = vec![0, 5];
        header.exits = vec!["HLT".to_owned()];
        header.tasks.insert(77, "ksoftirqd/0".to_owned());
        let symbols = Symbols::new(&header, &Library::default()).expect("no maps");
        let mut text = Text::new(Vec::new(), &header, &symbols).expect("text");
        let event = |kind, arg, ip| Event {
            at_ns: 1_500_000,
            kind,
            pcpu: 1,
            vm: 0,
            vcpu: 1,
            arg,
            ip,
        };
        for e in [
            event(Kind::Exit, 0, 0x1234),
            event(Kind::IpiSend, interrupt_arg(0, 0xfc), 0),
            Event {
                vm: NO_VM,
                ..event(Kind::HostIn, 77, 0)
            },
            Event {
                pcpu: NO_PCPU,
                ..event(Kind::Wake, 1, 0)
            },
        ] {
            text.take(&e).expect("a line");
        }
        let said = String::from_utf8(text.finish().expect("end")).expect("text");
        for line in [
            "# 5 events are missing",
            "   1.500000     1  web/1         exit HLT  in [user] (0x1234)",
            "IPI to 0 vector 0xfc",
            "host          ksoftirqd/0 (77) runs",
            "   -  web/1         is woken by vCPU 0",
        ] {
            assert!(said.contains(line), "no {line:?} in:\n{said}");
        }
    }
}
