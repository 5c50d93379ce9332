// SPDX-License-Identifier: GPL-2.0-only
//! The messages of Perfetto's trace format that are used here. Numbers are those
//! of its public schema (`protos/perfetto/trace`).

use super::super::flows::Flow;
use super::wire::Message;
use std::io::Write;

/// `Trace`.
mod trace {
    pub(super) const PACKET: u32 = 1;
}
/// `TracePacket`.
mod packet {
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
}
/// `TrackDescriptor`.
mod track {
    pub(super) const UUID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const PROCESS: u32 = 3;
    pub(super) const THREAD: u32 = 4;
    pub(super) const PARENT: u32 = 5;
    pub(super) const COUNTER: u32 = 8;
}
/// `ProcessDescriptor` and `ThreadDescriptor`.
mod task {
    pub(super) const PID: u32 = 1;
    pub(super) const TID: u32 = 2;
    pub(super) const THREAD_NAME: u32 = 5;
    pub(super) const PROCESS_NAME: u32 = 6;
}
/// `TrackEvent`.
mod event {
    pub(super) const ANNOTATION: u32 = 4;
    pub(super) const TYPE: u32 = 9;
    pub(super) const TRACK: u32 = 11;
    pub(super) const CATEGORY: u32 = 22;
    pub(super) const NAME: u32 = 23;
    pub(super) const COUNTER_VALUE: u32 = 30;
    pub(super) const FLOW: u32 = 47;
    pub(super) const FLOW_END: u32 = 48;
}
/// `DebugAnnotation`.
mod annotation {
    pub(super) const TEXT: u32 = 6;
    pub(super) const NAME: u32 = 10;
}

/// `TrackEvent.Type`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Type {
    Begin = 1,
    End = 2,
    Instant = 3,
    Counter = 4,
}

/// The one writer of this trace (`trusted_packet_sequence_id`).
const SEQUENCE: u64 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED`.
const STATE_CLEARED: u64 = 1;

/// A track: a row of the viewer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Track<'a> {
    pub(super) uuid: u64,
    pub(super) parent: u64,
    pub(super) name: &'a str,
    pub(super) is: Row,
}

/// What a track stands for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Row {
    /// A named row.
    #[default]
    Plain,
    /// A process.
    Process { pid: u32 },
    /// A thread of a process.
    Thread { pid: u32, tid: u32 },
    /// A number over time.
    Counter,
}

impl Track<'_> {
    fn message(&self) -> Message {
        let mut m = Message::default()
            .number(track::UUID, self.uuid)
            .text(track::NAME, self.name);
        if self.parent != 0 {
            m = m.number(track::PARENT, self.parent);
        }
        let empty = Message::default();
        match self.is {
            Row::Plain => m,
            Row::Counter => m.message(track::COUNTER, &empty),
            Row::Process { pid } => {
                let process = empty
                    .number(task::PID, u64::from(pid))
                    .text(task::PROCESS_NAME, self.name);
                m.message(track::PROCESS, &process)
            }
            Row::Thread { pid, tid } => {
                let thread = empty
                    .number(task::PID, u64::from(pid))
                    .number(task::TID, u64::from(tid))
                    .text(task::THREAD_NAME, self.name);
                m.message(track::THREAD, &thread)
            }
        }
    }
}

/// An event of a track.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) at_ns: u64,
    pub(super) track: u64,
    pub(super) kind: Type,
    /// Empty for ends and counters.
    pub(super) name: &'a str,
    pub(super) category: &'a str,
    /// A name and a text, when not empty.
    pub(super) note: (&'a str, &'a str),
    pub(super) flows: &'a [Flow],
    pub(super) counter: u64,
}

impl Item<'_> {
    fn message(&self) -> Message {
        let mut m = Message::default()
            .number(event::TYPE, self.kind as u64)
            .number(event::TRACK, self.track);
        if matches!(self.kind, Type::Counter) {
            m = m.number(event::COUNTER_VALUE, self.counter);
        }
        if !self.name.is_empty() {
            m = m
                .text(event::CATEGORY, self.category)
                .text(event::NAME, self.name);
        }
        let (name, text) = self.note;
        if !text.is_empty() {
            let note = Message::default()
                .text(annotation::NAME, name)
                .text(annotation::TEXT, text);
            m = m.message(event::ANNOTATION, &note);
        }
        for flow in self.flows {
            let field = if flow.ends {
                event::FLOW_END
            } else {
                event::FLOW
            };
            m = m.fixed64(field, flow.id);
        }
        m
    }
}

/// Writes packets.
#[derive(Debug)]
pub(super) struct Packets<W> {
    out: W,
    begun: bool,
}

impl<W: Write> Packets<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, begun: false }
    }

    pub(super) fn track(&mut self, track: &Track<'_>) -> std::io::Result<()> {
        let packet = Message::default().message(packet::TRACK_DESCRIPTOR, &track.message());
        self.put(packet)
    }

    pub(super) fn item(&mut self, item: &Item<'_>) -> std::io::Result<()> {
        let packet = Message::default()
            .number(packet::TIMESTAMP, item.at_ns)
            .message(packet::TRACK_EVENT, &item.message());
        self.put(packet)
    }

    fn put(&mut self, mut packet: Message) -> std::io::Result<()> {
        packet = packet.number(packet::SEQUENCE, SEQUENCE);
        if !self.begun {
            packet = packet.number(packet::SEQUENCE_FLAGS, STATE_CLEARED);
            self.begun = true;
        }
        let framed = Message::default().message(trace::PACKET, &packet);
        self.out.write_all(framed.as_bytes())
    }

    pub(super) fn finish(mut self) -> std::io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}
