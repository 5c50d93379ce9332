// SPDX-License-Identifier: GPL-2.0-only
//! The channel to the runner on L0.

use super::error::{Context, DriverError, Result};
use super::rt;
use corun_lab_proto::control::{Order, Report};
use corun_lab_proto::{CONTROL_PORT, from_line, to_line};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// How long the runner may take to judge a window.
const VERDICT_TIMEOUT: Duration = Duration::from_mins(1);

/// The driver's end of the channel.
pub(super) struct Control {
    out: Box<dyn Write + Send>,
    verdicts: Receiver<(u32, bool)>,
    aborted: Arc<AtomicBool>,
    /// Without a runner (a person started the driver by hand) nobody judges.
    judged: bool,
}

impl Control {
    /// Opens the virtio-serial port to the runner. Without one, reports go to
    /// standard output and every window is kept.
    pub(super) fn open() -> Result<Self> {
        let Some(device) = find_port(Path::new("/sys/class/virtio-ports"), CONTROL_PORT) else {
            return Ok(Self::without_runner());
        };
        let doing = || format!("open the control port {}", device.display());
        let port = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&device)
            .doing(doing)?;
        let input = port.try_clone().doing(doing)?;
        Ok(Self::over(input, Box::new(port)))
    }

    /// A channel over the two halves of any stream.
    pub(super) fn over(input: impl Read + Send + 'static, out: Box<dyn Write + Send>) -> Self {
        let (sender, verdicts) = channel();
        let aborted = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&aborted);
        thread::spawn(move || {
            rt::make_responsive();
            read_orders(input, &sender, &flag);
        });
        Self {
            out,
            verdicts,
            aborted,
            judged: true,
        }
    }

    fn without_runner() -> Self {
        Self {
            out: Box::new(std::io::stdout()),
            ..Self::silent()
        }
    }

    /// A channel to nobody.
    pub(super) fn silent() -> Self {
        Self {
            out: Box::new(std::io::sink()),
            verdicts: channel().1,
            aborted: Arc::new(AtomicBool::new(false)),
            judged: false,
        }
    }

    /// Sends `report`.
    pub(super) fn send(&mut self, report: &Report) -> Result<()> {
        let line = to_line(report).doing(|| "encode a report".to_owned())?;
        self.out
            .write_all(line.as_bytes())
            .and_then(|()| self.out.flush())
            .doing(|| "send a report to the runner".to_owned())
    }

    /// Whether the runner ordered the end.
    pub(super) fn aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }

    /// The runner's verdict on `window`: whether to keep it.
    pub(super) fn verdict(&mut self, window: u32) -> Result<bool> {
        if !self.judged {
            return Ok(true);
        }
        loop {
            match self.verdicts.recv_timeout(VERDICT_TIMEOUT) {
                Ok((w, keep)) if w == window => return Ok(keep),
                Ok(_) => {}
                Err(_) if self.aborted() => return Err(DriverError::Aborted),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(DriverError::EmulatorSuspect(format!(
                        "no verdict on window {window} from the runner in {} s",
                        VERDICT_TIMEOUT.as_secs()
                    )));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(DriverError::Own(
                        "the runner closed the control port".to_owned(),
                    ));
                }
            }
        }
    }
}

/// Ends, and with it the verdicts' channel, at [`Order::Abort`] or at the end of
/// the stream.
fn read_orders(input: impl Read, verdicts: &Sender<(u32, bool)>, aborted: &AtomicBool) {
    for line in BufReader::new(input).lines() {
        let Ok(line) = line else { return };
        match from_line::<Order>(&line) {
            Ok(Order::Verdict { window, keep }) => {
                if verdicts.send((window, keep)).is_err() {
                    return;
                }
            }
            Ok(Order::Abort) => {
                aborted.store(true, Ordering::Relaxed);
                return;
            }
            Err(e) => eprintln!("corun lab-driver: {e}"),
        }
    }
}

/// The device of the virtio-serial port called `name`.
fn find_port(class: &Path, name: &str) -> Option<PathBuf> {
    fs::read_dir(class).ok()?.flatten().find_map(|entry| {
        let found = fs::read_to_string(entry.path().join("name")).ok()?;
        (found.trim() == name).then(|| Path::new("/dev").join(entry.file_name()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn pair() -> (Control, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("socketpair");
        let input = ours.try_clone().expect("dup");
        (Control::over(input, Box::new(ours)), theirs)
    }

    #[test]
    fn verdicts_of_other_windows_are_skipped() {
        let (mut control, mut runner) = pair();
        for (window, keep) in [(3, true), (4, false)] {
            let line = to_line(&Order::Verdict { window, keep }).expect("encodes");
            runner.write_all(line.as_bytes()).expect("writes");
        }
        assert!(!control.verdict(4).expect("a verdict"));
    }

    #[test]
    fn abort_ends_the_wait_for_a_verdict() {
        let (mut control, mut runner) = pair();
        let line = to_line(&Order::Abort).expect("encodes");
        runner.write_all(line.as_bytes()).expect("writes");
        assert!(matches!(control.verdict(0), Err(DriverError::Aborted)));
        assert!(control.aborted());
    }

    #[test]
    fn a_runner_that_is_gone_is_an_error() {
        let (mut control, runner) = pair();
        drop(runner);
        assert!(matches!(control.verdict(0), Err(DriverError::Own(_))));
    }

    #[test]
    fn ports_are_found_by_name() {
        let class = tempfile::tempdir().expect("tempdir");
        for (port, name) in [("vport0p1", "other\n"), ("vport0p2", "corun.control\n")] {
            fs::create_dir(class.path().join(port)).expect("mkdir");
            fs::write(class.path().join(port).join("name"), name).expect("write");
        }
        let found = find_port(class.path(), CONTROL_PORT);
        assert_eq!(found, Some(PathBuf::from("/dev/vport0p2")));
        assert_eq!(find_port(class.path(), "absent"), None);
    }
}
