// SPDX-License-Identifier: GPL-2.0-only
//! `pingpong`: one byte to and fro between two threads on different vCPUs: every
//! round trip is two wake-ups across vCPUs.

use super::{Setup, ThreadRule, Workload};
use crate::error::Error;
use crate::futex;
use crate::params::{Kind, Param};
use crate::session::Session;
use crate::threads::{Flow, Meter, Threads, Worker};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub(super) static WORKLOAD: Workload = Workload {
    name: "pingpong",
    about: "one-byte round trips between two threads on different vCPUs: wake-ups across vCPUs",
    unit: "round trips",
    latency: "one round trip",
    threads: ThreadRule::Pairs,
    program: None,
    params: &[Param {
        name: "via",
        about: "what the byte goes through; tcp is on the loopback interface",
        kind: Kind::Choice {
            default: "tcp",
            of: &["tcp", "unix", "pipe", "futex"],
        },
    }],
    start,
};

fn start(setup: &Setup) -> Result<Box<dyn Session>, Error> {
    let via = setup.params.text("via");
    let mut workers = Vec::new();
    for _ in 0..setup.threads / 2 {
        let (first, second) = match via {
            "futex" => Turns::pair(),
            stream => stream_pair(stream)
                .map_err(|e| Error::os(format!("cannot make a {stream} connection"), e))?,
        };
        workers.push(first);
        workers.push(second);
    }
    Ok(Box::new(Threads::start(
        workers,
        &setup.cpus,
        &setup.control,
    )?))
}

pub(super) type Pair = (Box<dyn Worker>, Box<dyn Worker>);

fn stream_pair(via: &str) -> io::Result<Pair> {
    let (first, second) = match via {
        "unix" => {
            let (a, b) = UnixStream::pair()?;
            (End::new(a.try_clone()?, a), End::new(b.try_clone()?, b))
        }
        "pipe" => {
            let (forth, back) = (io::pipe()?, io::pipe()?);
            (End::new(back.0, forth.1), End::new(forth.0, back.1))
        }
        _ => {
            let (a, b) = tcp_pair()?;
            (End::new(a.try_clone()?, a), End::new(b.try_clone()?, b))
        }
    };
    Ok((Box::new(Ping(first)), Box::new(Pong(second))))
}

fn tcp_pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let a = TcpStream::connect(listener.local_addr()?)?;
    let (b, _) = listener.accept()?;
    a.set_nodelay(true)?;
    b.set_nodelay(true)?;
    Ok((a, b))
}

/// One end of a connection. Closed when its thread leaves, which wakes the other.
struct End {
    reader: Box<dyn Read + Send>,
    writer: Box<dyn Write + Send>,
}

impl End {
    fn new(reader: impl Read + Send + 'static, writer: impl Write + Send + 'static) -> Self {
        Self {
            reader: Box::new(reader),
            writer: Box::new(writer),
        }
    }
}

/// Sends first, and times.
struct Ping(End);

impl Worker for Ping {
    fn step(&mut self, meter: &Meter) -> Result<Flow, Error> {
        let end = &mut self.0;
        let trip = || {
            end.writer
                .write_all(&[1])
                .and_then(|()| end.reader.read_exact(&mut [0]))
        };
        done_when_closed(meter.time(trip))
    }
}

/// Sends back.
struct Pong(End);

impl Worker for Pong {
    fn step(&mut self, _: &Meter) -> Result<Flow, Error> {
        let end = &mut self.0;
        done_when_closed(
            end.reader
                .read_exact(&mut [0])
                .and_then(|()| end.writer.write_all(&[1])),
        )
    }
}

fn done_when_closed(trip: io::Result<()>) -> Result<Flow, Error> {
    match trip {
        Ok(()) => Ok(Flow::Continue),
        Err(e)
            if matches!(
                e.kind(),
                ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
            ) =>
        {
            Ok(Flow::Done)
        }
        Err(e) => Err(Error::os("round trip", e)),
    }
}

const PING: u32 = 0;
const PONG: u32 = 1;
const CLOSED: u32 = 2;

/// One end of a pair that takes turns by a futex. Holds whose turn it is.
pub(super) struct Turns {
    turn: Arc<AtomicU32>,
    me: u32,
}

impl Turns {
    /// Both ends; the first one counts round trips.
    pub(super) fn pair() -> Pair {
        let turn = Arc::new(AtomicU32::new(PING));
        let ping = Self {
            turn: Arc::clone(&turn),
            me: PING,
        };
        (Box::new(ping), Box::new(Self { turn, me: PONG }))
    }

    /// Gives the turn away; false when the other end is gone.
    fn pass(&self) -> bool {
        let passed = self
            .turn
            .compare_exchange(self.me, 1 - self.me, Ordering::AcqRel, Ordering::Acquire)
            .is_ok();
        futex::wake_one(&self.turn);
        passed
    }

    /// Waits for the turn; false when the other end is gone.
    fn await_turn(&self) -> Result<bool, Error> {
        loop {
            match self.turn.load(Ordering::Acquire) {
                CLOSED => return Ok(false),
                turn if turn == self.me => return Ok(true),
                other => futex::wait(&self.turn, other)?,
            }
        }
    }
}

impl Worker for Turns {
    fn step(&mut self, meter: &Meter) -> Result<Flow, Error> {
        let trip = || Ok(self.pass() && self.await_turn()?);
        let alive = if self.me == PING {
            meter.time(trip)
        } else {
            self.await_turn().map(|mine| mine && self.pass())
        };
        alive.map(|alive| if alive { Flow::Continue } else { Flow::Done })
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        self.turn.store(CLOSED, Ordering::Release);
        futex::wake_one(&self.turn);
    }
}
