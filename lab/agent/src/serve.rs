// SPDX-License-Identifier: GPL-2.0-only
//! The protocol: commands in, events out, one run at a time.

use crate::control::Control;
use crate::error::Error;
use crate::run::{self, Plan};
use crate::sync::lock;
use crate::{affinity, external, kvm, module, workload};
use corun_lab_proto::agent::{Command, Event, RunResult};
use corun_lab_proto::{PROTOCOL_VERSION, from_line, to_line};
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The way out, shared by all threads. One event is one write.
#[derive(Clone)]
pub(crate) struct Output(Arc<Mutex<Box<dyn Write + Send>>>);

impl Output {
    /// Sends events to `sink`.
    pub(crate) fn new(sink: Box<dyn Write + Send>) -> Self {
        Self(Arc::new(Mutex::new(sink)))
    }

    fn send(&self, event: &Event) -> io::Result<()> {
        let line = to_line(event)?;
        let mut sink = lock(&self.0);
        sink.write_all(line.as_bytes())?;
        sink.flush()
    }
}

/// What to do when the way in has no more to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtEnd {
    /// Nobody will write again: end.
    Finish,
    /// The other side of a port is not connected now: look again after this time.
    Retry(Duration),
}

/// Anything that the server has to react to.
enum Message {
    Command(Command),
    BadLine(String),
    Closed(io::Result<()>),
    Over {
        id: u64,
        outcome: Result<RunResult, Error>,
    },
}

struct Active {
    id: u64,
    control: Arc<Control>,
    thread: JoinHandle<()>,
}

struct Server {
    output: Output,
    inbox: Sender<Message>,
    active: Option<Active>,
    /// A stop may cross the result of the run that it means.
    last: Option<u64>,
}

/// Says [`Event::Ready`], then serves commands until [`Command::PowerOff`] or the
/// end of `input`.
pub(crate) fn serve(
    input: impl BufRead + Send + 'static,
    at_end: AtEnd,
    output: Output,
) -> io::Result<()> {
    output.send(&ready())?;
    let (inbox, messages) = channel();
    let mut server = Server {
        output,
        inbox: inbox.clone(),
        active: None,
        last: None,
    };
    std::thread::Builder::new()
        .name("reader".to_owned())
        .spawn(move || {
            let end = read_commands(input, at_end, &inbox);
            // The server may be gone already, and then nobody cares.
            let _ = inbox.send(Message::Closed(end));
        })?;
    let outcome = server.run(&messages);
    server.end_active(&messages)?;
    outcome
}

fn ready() -> Event {
    let kernel = nix::sys::utsname::uname()
        .map(|name| name.release().to_string_lossy().into_owned())
        .unwrap_or_default();
    Event::Ready {
        protocol: PROTOCOL_VERSION,
        kernel,
        vcpus: u32::try_from(affinity::cpus().len()).unwrap_or(u32::MAX),
        workloads: workload::ALL
            .iter()
            .filter(|w| w.available())
            .map(|w| w.name.to_owned())
            .collect(),
        pv_features: kvm::pv_features(),
    }
}

fn read_commands(
    mut input: impl BufRead,
    at_end: AtEnd,
    inbox: &Sender<Message>,
) -> io::Result<()> {
    let mut line = String::new();
    loop {
        // Appends: a line may arrive in pieces with ends of file between them.
        let got = input.read_line(&mut line)?;
        if !line.ends_with('\n') {
            match at_end {
                AtEnd::Finish if got == 0 => return Ok(()),
                AtEnd::Finish => {}
                AtEnd::Retry(pause) => {
                    std::thread::sleep(pause);
                    continue;
                }
            }
        }
        if !line.trim().is_empty() {
            let message = match from_line(&line) {
                Ok(command) => Message::Command(command),
                Err(e) => Message::BadLine(e.to_string()),
            };
            if inbox.send(message).is_err() {
                return Ok(());
            }
        }
        line.clear();
    }
}

impl Server {
    fn run(&mut self, messages: &Receiver<Message>) -> io::Result<()> {
        // Cannot end by itself: `self.inbox` keeps the channel open.
        for message in messages {
            match message {
                Message::Command(Command::PowerOff) => return Ok(()),
                Message::Command(command) => self.command(command)?,
                // No command, so no id to answer to.
                Message::BadLine(message) => self.failed(0, message)?,
                Message::Over { id, outcome } => self.over(id, outcome)?,
                Message::Closed(end) => return end,
            }
        }
        Ok(())
    }

    fn command(&mut self, command: Command) -> io::Result<()> {
        match command {
            Command::Run {
                id,
                workload,
                warmup_ms,
                measure_ms,
            } => {
                let plan = Plan {
                    spec: workload,
                    warmup: Duration::from_millis(warmup_ms),
                    measure: measure_ms.map(Duration::from_millis),
                };
                self.begin(id, plan)
            }
            Command::Stop { id } => match &self.active {
                Some(active) if active.id == id => {
                    active.control.stop();
                    Ok(())
                }
                _ if self.last == Some(id) => Ok(()),
                _ => self.failed(id, format!("cannot stop run {id}: it is not running")),
            },
            Command::TimeExits { id, count } => self.time_exits(id, count),
            Command::LoadModule { id, name, params } => match module::load(&name, &params) {
                Ok(()) => self.output.send(&Event::ModuleLoaded { id }),
                Err(error) => self.failed(id, error.to_string()),
            },
            Command::PowerOff => Ok(()),
        }
    }

    fn begin(&mut self, id: u64, plan: Plan) -> io::Result<()> {
        if let Some(active) = &self.active {
            let message = format!("run {} is still going on: one at a time", active.id);
            return self.failed(id, message);
        }
        let control = Arc::new(Control::default());
        let thread = {
            let (control, output, inbox) = (
                Arc::clone(&control),
                self.output.clone(),
                self.inbox.clone(),
            );
            std::thread::Builder::new()
                .name("run".to_owned())
                .spawn(move || {
                    let outcome = run::execute(&plan, &control, || {
                        // A broken way out also breaks the result's, which is told.
                        let _ = output.send(&Event::Started { id });
                    });
                    let _ = inbox.send(Message::Over { id, outcome });
                })?
        };
        self.active = Some(Active {
            id,
            control,
            thread,
        });
        Ok(())
    }

    /// The run's thread is done. Told from here and not by that thread, so that a
    /// driver which has the result may start the next run at once.
    fn over(&mut self, id: u64, outcome: Result<RunResult, Error>) -> io::Result<()> {
        if let Some(active) = self.active.take() {
            let _ = active.thread.join();
        }
        self.last = Some(id);
        external::reap_orphans();
        match outcome {
            Ok(result) => self.output.send(&Event::Finished { id, result }),
            Err(error) => self.failed(id, error.to_string()),
        }
    }

    /// On a thread of its own, which it pins, and so that commands are still heard.
    fn time_exits(&self, id: u64, count: u64) -> io::Result<()> {
        let output = self.output.clone();
        std::thread::Builder::new()
            .name("exits".to_owned())
            .spawn(move || {
                let event = match kvm::time_exits(count) {
                    Ok((mean_ns, min_ns)) => Event::ExitsTimed {
                        id,
                        mean_ns,
                        min_ns,
                    },
                    Err(error) => Event::Failed {
                        id,
                        message: error.to_string(),
                    },
                };
                let _ = output.send(&event);
            })?;
        Ok(())
    }

    /// Stops the run in flight, if there is one, and reports it.
    fn end_active(&mut self, messages: &Receiver<Message>) -> io::Result<()> {
        if let Some(active) = &self.active {
            active.control.stop();
        }
        while self.active.is_some() {
            match messages.recv() {
                Ok(Message::Over { id, outcome }) => self.over(id, outcome)?,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        Ok(())
    }

    fn failed(&self, id: u64, message: String) -> io::Result<()> {
        self.output.send(&Event::Failed { id, message })
    }
}
