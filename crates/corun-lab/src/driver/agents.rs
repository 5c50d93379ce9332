// SPDX-License-Identifier: GPL-2.0-only
//! The channels to the guests' agents, merged into one stream of events.

use super::rt;
use corun_lab_proto::agent::{Command, Event};
use corun_lab_proto::{from_line, to_line};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

/// Something that came from a guest.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) guest: String,
    /// When it came, on L1's clock.
    pub(super) at: Instant,
    pub(super) what: What,
}

/// What came.
#[derive(Debug)]
pub(super) enum What {
    Event(Event),
    /// The channel's end: QEMU is gone.
    Closed,
    /// A line that is no event.
    Garbage(String),
}

/// All agents of a boot.
pub(super) struct Agents {
    writers: BTreeMap<String, UnixStream>,
    sender: Sender<Arrival>,
    arrivals: Receiver<Arrival>,
    next_id: u64,
}

impl Agents {
    pub(super) fn new() -> Self {
        let (sender, arrivals) = channel();
        Self {
            writers: BTreeMap::new(),
            sender,
            arrivals,
            next_id: 1,
        }
    }

    /// Listens to `guest` on `stream` from now on.
    pub(super) fn add(&mut self, guest: &str, stream: UnixStream) -> io::Result<()> {
        let input = stream.try_clone()?;
        let (name, sender) = (guest.to_owned(), self.sender.clone());
        thread::spawn(move || {
            rt::make_responsive();
            listen(&name, input, &sender);
        });
        self.writers.insert(guest.to_owned(), stream);
        Ok(())
    }

    /// A number for a run that no other has.
    pub(super) fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Sends `command` to `guest`.
    pub(super) fn send(&mut self, guest: &str, command: &Command) -> io::Result<()> {
        let writer = self
            .writers
            .get_mut(guest)
            .ok_or_else(|| io::Error::other(format!("no guest {guest}")))?;
        writer.write_all(to_line(command)?.as_bytes())
    }

    /// The next arrival, or `None` when nothing came until `deadline`.
    pub(super) fn next(&self, deadline: Instant) -> Option<Arrival> {
        let timeout = deadline.saturating_duration_since(Instant::now());
        // We hold a sender ourselves, so this channel never disconnects: the only
        // error is the timeout.
        self.arrivals.recv_timeout(timeout).ok()
    }
}

fn listen(guest: &str, input: UnixStream, sender: &Sender<Arrival>) {
    let arrive = |what| {
        sender
            .send(Arrival {
                guest: guest.to_owned(),
                at: Instant::now(),
                what,
            })
            .is_ok()
    };
    for line in BufReader::new(input).lines().map_while(Result::ok) {
        let what = match from_line::<Event>(&line) {
            Ok(event) => What::Event(event),
            Err(e) => What::Garbage(e.to_string()),
        };
        if !arrive(what) {
            return;
        }
    }
    arrive(What::Closed);
}
