// SPDX-License-Identifier: GPL-2.0-only
//! The control channel: one JSON message per line, both ways.

use super::BootError;
use corun_lab_proto::control::{Order, Report};
use corun_lab_proto::{from_line, to_line};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often a wait looks at the stop flag.
const POLL: Duration = Duration::from_millis(100);

/// What a wait for the driver ended with.
#[derive(Debug)]
pub enum Next {
    /// It said something.
    Report(Report),
    /// It said nothing for the time given.
    Silent,
    /// QEMU has ended, or closed the channel.
    Ended,
}

/// Our end of the control channel.
#[derive(Debug)]
pub(super) struct ControlChannel {
    lines: Receiver<String>,
    writer: UnixStream,
}

impl ControlChannel {
    /// Talks over `stream`. A thread reads it until the other end closes.
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        let reader = stream.try_clone()?;
        // A driver that no longer reads must not block us for ever.
        stream.set_write_timeout(Some(Duration::from_secs(5)))?;
        let (sender, lines) = channel();
        thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || forward(reader, &sender))?;
        Ok(Self {
            lines,
            writer: stream,
        })
    }

    /// Waits up to `timeout` for a message.
    pub(super) fn next(&self, timeout: Duration, stop: &AtomicBool) -> Result<Next, BootError> {
        let deadline = Instant::now() + timeout;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(BootError::Interrupted);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(POLL)) {
                Ok(line) => return Ok(Next::Report(from_line(&line)?)),
                Err(RecvTimeoutError::Disconnected) => return Ok(Next::Ended),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Ok(Next::Silent),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Sends an order. That the driver is gone shows at the next wait.
    pub(super) fn send(&mut self, order: &Order) -> Result<(), BootError> {
        let line =
            to_line(order).map_err(|e| BootError::Io("encoding an order".to_owned(), e.into()))?;
        match self.writer.write_all(line.as_bytes()) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                Err(BootError::io("sending to L1")(e))
            }
            _ => Ok(()),
        }
    }
}

fn forward(reader: UnixStream, sender: &Sender<String>) {
    for line in BufReader::new(reader).lines() {
        let Ok(line) = line else { return };
        if !line.trim().is_empty() && sender.send(line).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_arrive_silence_and_the_end_are_told() {
        let (ours, mut theirs) = UnixStream::pair().expect("pair");
        let mut channel = ControlChannel::new(ours).expect("channel");
        let stop = AtomicBool::new(false);
        let wait = Duration::from_millis(20);
        assert!(matches!(channel.next(wait, &stop), Ok(Next::Silent)));
        theirs.write_all(b"{\"event\":\"done\"}\n").expect("writes");
        assert!(matches!(
            channel.next(POLL, &stop),
            Ok(Next::Report(Report::Done))
        ));
        channel.send(&Order::Abort).expect("sends");
        let mut line = String::new();
        let mut reader = BufReader::new(theirs);
        reader.read_line(&mut line).expect("reads");
        assert_eq!(line, "{\"order\":\"abort\"}\n");
        drop(reader);
        assert!(matches!(channel.next(POLL, &stop), Ok(Next::Ended)));
        channel
            .send(&Order::Abort)
            .expect("a gone driver is no error here");
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let (ours, _theirs) = UnixStream::pair().expect("pair");
        let channel = ControlChannel::new(ours).expect("channel");
        let result = channel.next(Duration::from_mins(1), &AtomicBool::new(true));
        assert!(matches!(result, Err(BootError::Interrupted)));
    }
}
