// SPDX-License-Identifier: GPL-2.0-only
//! Drives an agent as the lab's driver does, over its standard streams.

use corun_lab_proto::agent::{Command, Event, ParamValue, RunResult, WorkloadSpec};
use corun_lab_proto::{from_line, to_line};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A running agent.
pub(crate) struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Agent {
    /// Starts it and checks that it is ready.
    pub(crate) fn start() -> Self {
        let mut agent = Self::start_unready();
        match agent.next() {
            Event::Ready { .. } => agent,
            other => panic!("the first event must be Ready: {other:?}"),
        }
    }

    /// Starts it; its first event is still to be read.
    pub(crate) fn start_unready() -> Self {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_corun-agent"))
            .arg("--stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the agent starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Self {
            child,
            input,
            output,
        }
    }

    /// Sends a command.
    pub(crate) fn send(&mut self, command: &Command) {
        self.send_line(&to_line(command).expect("commands encode"));
    }

    /// Sends a line of text.
    pub(crate) fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("not closed");
        input.write_all(line.as_bytes()).expect("the agent reads");
    }

    /// Closes its standard input.
    pub(crate) fn close(&mut self) {
        self.input = None;
    }

    /// The next event.
    pub(crate) fn next(&mut self) -> Event {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the agent writes");
        from_line(&line).expect("every line is an event")
    }

    /// The next event must be that run `id` started.
    pub(crate) fn expect_started(&mut self, id: u64) {
        assert_eq!(self.next(), Event::Started { id });
    }

    /// The next event must be the result of run `id`.
    pub(crate) fn expect_finished(&mut self, id: u64) -> RunResult {
        match self.next() {
            Event::Finished { id: of, result } if of == id => result,
            other => panic!("run {id} must be finished: {other:?}"),
        }
    }

    /// The next event must be the failure of `id`.
    pub(crate) fn expect_failed(&mut self, id: u64) -> String {
        match self.next() {
            Event::Failed { id: of, message } if of == id => message,
            other => panic!("{id} must have failed: {other:?}"),
        }
    }

    /// Runs `workload` for a short window.
    pub(crate) fn measure(&mut self, id: u64, workload: WorkloadSpec) -> RunResult {
        self.send(&Command::Run {
            id,
            workload,
            warmup_ms: 10,
            measure_ms: Some(100),
        });
        self.expect_started(id);
        self.expect_finished(id)
    }

    /// It must end by itself now, without an error and without another event.
    pub(crate) fn expect_end(mut self) {
        let mut rest = String::new();
        self.output
            .read_line(&mut rest)
            .expect("the agent's output can be read");
        assert_eq!(rest, "");
        assert!(self.child.wait().expect("a child").success());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // A failed test must not leave workers burning.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A workload with words as parameters.
pub(crate) fn spec(name: &str, params: &[(&str, &str)]) -> WorkloadSpec {
    let params = params
        .iter()
        .map(|(name, value)| {
            let value = value
                .parse()
                .map_or_else(|_| ParamValue::Text((*value).to_owned()), ParamValue::Int);
            ((*name).to_owned(), value)
        })
        .collect();
    WorkloadSpec {
        name: name.to_owned(),
        threads: None,
        params,
    }
}

/// A run until it is stopped.
pub(crate) fn endless(id: u64, name: &str) -> Command {
    Command::Run {
        id,
        workload: spec(name, &[]),
        warmup_ms: 0,
        measure_ms: None,
    }
}
