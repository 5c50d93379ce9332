// SPDX-License-Identifier: GPL-2.0-only
//! `corun lab shell`: a shell in the emulated host, for a person at a terminal
//! or for commands from a pipe.

use crate::boot::{
    Boot, BootError, BootSpec, Console, Diagnosis, Failure, MARKER_DOWN, MARKER_UP,
    has_stopped_pcpu,
};
use crate::image::{Image, RunLayer};
use crate::packages::Stop;
use crate::paths::LabDirs;
use corun_lab_proto::COMMANDS_PORT;
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use std::io::{self, IsTerminal, Read, Write, stdin, stdout};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// Printed by the entry after commands from a pipe.
const END: &str = "corun-lab: commands ended with ";

/// How long L1 may take to its init. Measured: 4 s on an idle machine.
const UP_WITHIN: Duration = Duration::from_mins(2);
/// How long L1 may take from the end of the commands to its power-off.
const DOWN_WITHIN: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(100);

/// A shell session cannot be held, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// It could not be started.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// L1 ended otherwise than by the end of the shell.
    #[error(transparent)]
    Diagnosed(#[from] Diagnosis),
    /// Standard input or output fails.
    #[error("{0}: {1}")]
    Io(&'static str, #[source] io::Error),
}

/// Guests that are there before the shell.
#[derive(Debug)]
pub struct Guests {
    /// The case that tells of them, as JSON.
    pub case: Vec<u8>,
    /// They do the work of its first phase.
    pub load: bool,
}

/// What there is to a session beside the host.
#[derive(Debug, Clone, Copy, Default)]
pub struct Session<'a> {
    /// Are started first.
    pub guests: Option<&'a Guests>,
    /// How long commands from standard input may print nothing; `None`: as they like.
    pub silent: Option<Duration>,
}

/// Boots L1 and gives its shell to the terminal, or runs the commands on standard input
/// when that is no terminal. Returns the exit code of the commands; 0 after an
/// interactive session.
pub fn run(
    spec: &BootSpec,
    image: &Image,
    session: Session<'_>,
    dirs: &LabDirs,
    stop: Stop<'_>,
) -> Result<u8, ShellError> {
    let guests = session.guests;
    let with_case = |layer: RunLayer| match guests {
        Some(guests) => layer.with("case.json", guests.case.as_slice()),
        None => layer,
    };
    if stdin().is_terminal() && stdout().is_terminal() {
        let layer = with_case(RunLayer::new(&interactive_entry(guests)));
        interactive(spec, image, &layer, dirs, stop).map(|()| 0)
    } else {
        let mut commands = Vec::new();
        let read = stdin().read_to_end(&mut commands);
        read.map_err(|e| ShellError::Io("reading the commands", e))?;
        let layer = with_case(RunLayer::new(&batch_entry(guests)));
        let layer = layer.with("commands", commands);
        batch(spec, image, &layer, session.silent, dirs, stop)
    }
}

fn interactive(
    spec: &BootSpec,
    image: &Image,
    layer: &RunLayer,
    dirs: &LabDirs,
    stop: Stop<'_>,
) -> Result<(), ShellError> {
    eprintln!("Booting the emulated host; `exit` or Ctrl-A X leaves it.");
    let spec = BootSpec {
        console: Console::Terminal,
        ..spec.clone()
    };
    // Dropped last: QEMU puts the terminal in raw mode.
    let _terminal = TerminalGuard::new();
    let mut boot = Boot::start(&spec, image, layer, dirs)?;
    let status = loop {
        if let Some(status) = boot.wait_exit(POLL, stop)? {
            break status;
        }
    };
    if ended_well(&boot.console(), status) {
        Ok(())
    } else {
        Err(boot.diagnose(Failure::Ended).into())
    }
}

/// Whether an interactive session ended by `exit`, or by Ctrl-A X in a shell.
/// The latter cannot be told from a silent reset, and the user knows which.
fn ended_well(console: &str, status: ExitStatus) -> bool {
    let left = status.success() && console.contains(MARKER_UP);
    console.contains(MARKER_DOWN) || (left && !console.contains("Kernel panic"))
}

fn batch(
    spec: &BootSpec,
    image: &Image,
    layer: &RunLayer,
    silent: Option<Duration>,
    dirs: &LabDirs,
    stop: Stop<'_>,
) -> Result<u8, ShellError> {
    let spec = BootSpec {
        console: Console::Log,
        ..spec.clone()
    };
    let mut boot = Boot::start(&spec, image, layer, dirs)?;
    let mut shown = Shown::default();
    let mut heard = Instant::now();
    loop {
        let exit = boot.wait_exit(POLL, stop)?;
        let fresh = shown.advance(&boot.commands_output());
        let written = stdout()
            .write_all(fresh.as_bytes())
            .and_then(|()| stdout().flush());
        written.map_err(|e| ShellError::Io("writing to standard output", e))?;
        if exit.is_some() {
            break;
        }
        if !fresh.is_empty() {
            heard = Instant::now();
        }
        if let Some(waited) = silent.filter(|limit| heard.elapsed() > *limit) {
            return Err(boot.diagnose(Failure::Silent { waited }).into());
        }
        let console = boot.console();
        if !console.contains(MARKER_UP) && boot.age() > UP_WITHIN {
            return Err(boot.diagnose(Failure::Silent { waited: UP_WITHIN }).into());
        }
        if has_stopped_pcpu(&console) {
            // What the commands would report from here on is not their doing.
            return Err(boot.diagnose(Failure::Ended).into());
        }
        if shown.code.is_some() {
            // The commands are done: how L1 goes down is of no interest.
            boot.wait_exit(DOWN_WITHIN, stop)?;
            break;
        }
    }
    match shown.code {
        Some(code) => Ok(code),
        None => Err(boot.diagnose(Failure::Ended).into()),
    }
}

/// What of the commands' output has been passed on. Whole lines only.
#[derive(Debug, Default)]
struct Shown {
    upto: usize,
    code: Option<u8>,
}

impl Shown {
    /// What is new in `output` since the last call.
    fn advance(&mut self, output: &str) -> String {
        let mut fresh = String::new();
        for line in output[self.upto.min(output.len())..].split_inclusive('\n') {
            if !line.ends_with('\n') || self.code.is_some() {
                break;
            }
            self.upto += line.len();
            // The commands' last line may lack its newline.
            if let Some((before, code)) = line.split_once(END) {
                fresh.push_str(before);
                self.code = Some(code.trim().parse().unwrap_or(u8::MAX));
            } else {
                fresh.push_str(line);
            }
        }
        fresh
    }
}

/// The driver tells when the guests are up; a script must not race with that.
const START_GUESTS: &str = r"
corun lab-driver --guests-only LOAD /corun/case.json > /run/guests.log 2>&1 &
guests=$!
while kill -0 $guests 2>/dev/null && ! grep -q 'guests are up' /run/guests.log; do
    sleep 0.2
done
cat /run/guests.log
";

fn start_guests(guests: Option<&Guests>) -> String {
    let Some(guests) = guests else {
        return String::new();
    };
    START_GUESTS.replace(" LOAD", if guests.load { " --load" } else { "" })
}

fn batch_entry(guests: Option<&Guests>) -> String {
    let start = start_guests(guests);
    format!(
        "#!/bin/sh\n{start}\n\
         {{ sh /corun/commands < /dev/null; echo \"{END}$?\"; }} \
         > /dev/virtio-ports/{COMMANDS_PORT} 2>&1\n\
         {stop}\n",
        stop = stop_guests(guests)
    )
}

fn interactive_entry(guests: Option<&Guests>) -> String {
    let start = start_guests(guests);
    let (columns, rows) =
        terminal_size::terminal_size().map_or((80, 24), |(columns, rows)| (columns.0, rows.0));
    // cttyhack opens the console as a terminal that can do job control.
    format!(
        "#!/bin/sh\n{start}\nstty -F /dev/ttyS0 rows {rows} cols {columns}\n\
         cd /root\nsetsid cttyhack sh -l\n{stop}\n",
        stop = stop_guests(guests)
    )
}

fn stop_guests(guests: Option<&Guests>) -> &'static str {
    if guests.is_some() {
        "kill $guests 2>/dev/null; wait $guests"
    } else {
        ""
    }
}

/// Puts the terminal back as it was, even when QEMU was killed.
struct TerminalGuard(Option<Termios>);

impl TerminalGuard {
    fn new() -> Self {
        Self(tcgetattr(stdin()).ok())
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // A terminal that is gone needs no mode.
            let _ = tcsetattr(stdin(), SetArg::TCSADRAIN, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_commands_output_is_shown() {
        let mut shown = Shown::default();
        let mut output = "7.3.4\nhal".to_owned();
        assert_eq!(shown.advance(&output), "7.3.4\n");
        output.push_str("f a line\nno newline");
        assert_eq!(shown.advance(&output), "half a line\n");
        assert_eq!(shown.code, None);
        let end = format!("{END}3\na left-over process's word\n");
        output.push_str(&end);
        assert_eq!(shown.advance(&output), "no newline");
        assert_eq!(shown.code, Some(3));
        assert_eq!(shown.advance(&output), "");
    }

    #[test]
    fn guests_are_started_only_when_asked_for() {
        let idle = Guests {
            case: Vec::new(),
            load: false,
        };
        assert!(!batch_entry(None).contains("lab-driver"));
        assert!(batch_entry(Some(&idle)).contains("--guests-only /corun/case.json"));
        assert!(interactive_entry(Some(&idle)).contains("lab-driver"));
        let busy = Guests { load: true, ..idle };
        assert!(batch_entry(Some(&busy)).contains("--guests-only --load /corun/case.json"));
    }
}
