// SPDX-License-Identifier: GPL-2.0-only
//! The thread that reads accounts. What reads them holds the kernel's programs and
//! belongs to one thread; servers have many.

use corun_events::account::Snapshot;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// What was read less long ago is given again: many who ask cost no more than ten a
/// second.
const FRESH: Duration = Duration::from_millis(100);
/// Reads at least this often, also when nobody asks: reading is what notices that kvm
/// was loaded, or should be let go.
const IDLE: Duration = Duration::from_secs(2);

/// A snapshot, or why there is none.
pub type Read = Result<Arc<Snapshot>, String>;

/// Handle of the thread; it ends when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Reader {
    ask: SyncSender<SyncSender<Read>>,
}

impl Reader {
    /// Starts the thread, in which `open` makes what reads; its error is returned.
    pub fn start<Open, R>(open: Open) -> Result<Self, String>
    where
        Open: FnOnce() -> Result<R, String> + Send + 'static,
        R: FnMut() -> Result<Snapshot, String> + 'static,
    {
        let (ask, asked) = sync_channel(0);
        let (opened, outcome) = sync_channel(1);
        std::thread::spawn(move || match open() {
            Ok(read) => {
                // The receiver waits for just this.
                let _ = opened.send(Ok(()));
                serve(&asked, read);
            }
            Err(why) => {
                let _ = opened.send(Err(why));
            }
        });
        let ended = |_| "the thread that reads accounts ended".to_owned();
        outcome.recv().map_err(ended)??;
        Ok(Self { ask })
    }

    /// The accounts, at most a tenth of a second old.
    pub fn read(&self) -> Read {
        let ended = "the thread that reads accounts ended";
        let (reply, answer) = sync_channel(1);
        self.ask.send(reply).map_err(|_| ended.to_owned())?;
        answer.recv().map_err(|_| ended.to_owned())?
    }
}

fn serve(asked: &Receiver<SyncSender<Read>>, mut read: impl FnMut() -> Result<Snapshot, String>) {
    let mut last: Option<(Instant, Read)> = None;
    loop {
        let reply = match asked.recv_timeout(IDLE) {
            Ok(reply) => Some(reply),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let now = match last.take() {
            Some((at, same)) if at.elapsed() < FRESH => (at, same),
            _ => (Instant::now(), read().map(Arc::new)),
        };
        if let Some(reply) = reply {
            // Who asked may have left.
            let _ = reply.send(now.1.clone());
        }
        last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_opened_says_why() {
        type Never = fn() -> Result<Snapshot, String>;
        let failed = Reader::start(|| Err::<Never, _>("no rights".to_owned()));
        assert_eq!(failed.expect_err("fails"), "no rights");
    }

    #[test]
    fn all_threads_get_answers_and_errors_pass() {
        let mut reads = 0;
        let reader = Reader::start(move || {
            Ok(move || {
                reads += 1;
                if reads > 1 {
                    return Err("kvm went".to_owned());
                }
                Ok(Snapshot {
                    at_ns: 7,
                    ..Snapshot::default()
                })
            })
        })
        .expect("starts");
        assert_eq!(reader.read().expect("first").at_ns, 7);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let reader = reader.clone();
                scope.spawn(move || {
                    // Fresh or read anew: an answer in any case.
                    let _ = reader.read();
                });
            }
        });
        std::thread::sleep(FRESH);
        assert_eq!(reader.read().expect_err("second"), "kvm went");
    }
}
