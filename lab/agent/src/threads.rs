// SPDX-License-Identifier: GPL-2.0-only
//! Workloads that run inside the agent: pinned threads, each doing steps.

use crate::affinity;
use crate::control::Control;
use crate::error::Error;
use crate::session::{Session, Window, histogram};
use crate::sync::{lock, nanos};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Whether a worker has more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Call it again.
    Continue,
    /// Its partner is gone; only right when the run is being stopped.
    Done,
}

/// The work of one thread.
pub(crate) trait Worker: Send {
    /// Does a little work and counts it on `meter`. Must come back soon: a step
    /// is what stopping has to wait for.
    fn step(&mut self, meter: &Meter) -> Result<Flow, Error>;
}

/// One thread's counters. On cache lines of its own (two, as the hardware
/// fetches pairs), or counting would itself be a contended workload.
#[repr(align(128))]
#[derive(Debug)]
pub(crate) struct Meter {
    work: AtomicU64,
    latency: Mutex<Histogram<u64>>,
}

impl Meter {
    fn new() -> Self {
        Self {
            work: AtomicU64::new(0),
            latency: Mutex::new(histogram()),
        }
    }

    /// Does `job`, one unit of work, and records how long it took.
    pub(crate) fn time<T>(&self, job: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = job();
        self.record(start.elapsed());
        result
    }

    /// One unit of work was done, and its latency was `took`.
    pub(crate) fn record(&self, took: Duration) {
        // The lock is only ever contended for the swap at a window's edge.
        lock(&self.latency).saturating_record(nanos(took));
        self.work.fetch_add(1, Ordering::Relaxed);
    }

    fn swap_latency(&self, other: &mut Histogram<u64>) {
        std::mem::swap(&mut *lock(&self.latency), other);
    }
}

/// A workload made of threads.
pub(crate) struct Threads {
    meters: Vec<Arc<Meter>>,
    handles: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    /// One per meter, to swap at a window's edges. Kept, because making one takes
    /// long where page faults are slow, and the workers go on meanwhile.
    spare: Vec<Histogram<u64>>,
    begin: Instant,
    work_at_begin: u64,
}

impl Threads {
    /// Starts one thread for each of `workers`, pinned round robin to `cpus`. A
    /// worker's failure is told to `control`.
    pub(crate) fn start(
        workers: Vec<Box<dyn Worker>>,
        cpus: &[usize],
        control: &Arc<Control>,
    ) -> Result<Self, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        // Built before its threads, so that a failed start ends those it has.
        let mut this = Self {
            meters: Vec::new(),
            handles: Vec::new(),
            stop: Arc::clone(&stop),
            spare: Vec::new(),
            begin: Instant::now(),
            work_at_begin: 0,
        };
        for (worker, &cpu) in workers.into_iter().zip(cpus.iter().cycle()) {
            let meter = Arc::new(Meter::new());
            this.meters.push(Arc::clone(&meter));
            this.spare.push(histogram());
            let (stop, control) = (Arc::clone(&stop), Arc::clone(control));
            let body = move || {
                if let Err(error) = work(worker, cpu, &meter, &stop) {
                    control.fail(error);
                }
            };
            let handle = std::thread::Builder::new()
                .name(format!("worker-{}", this.handles.len()))
                .spawn(body)
                .map_err(|e| Error::os("cannot start a worker thread", e))?;
            this.handles.push(handle);
        }
        Ok(this)
    }

    fn swap_latency(&mut self) {
        for (meter, spare) in self.meters.iter().zip(&mut self.spare) {
            meter.swap_latency(spare);
        }
    }

    fn total_work(&self) -> u64 {
        self.meters
            .iter()
            .map(|meter| meter.work.load(Ordering::Relaxed))
            .sum()
    }
}

fn work(
    mut worker: Box<dyn Worker>,
    cpu: usize,
    meter: &Meter,
    stop: &AtomicBool,
) -> Result<(), Error> {
    affinity::pin(cpu)?;
    while !stop.load(Ordering::Relaxed) {
        if worker.step(meter)? == Flow::Done && !stop.load(Ordering::Relaxed) {
            return Err(Error::EndedEarly);
        }
    }
    Ok(())
}

impl Session for Threads {
    fn threads(&self) -> usize {
        self.handles.len()
    }

    fn run_until(&mut self, deadline: Option<Instant>, control: &Control) -> Result<(), Error> {
        control.wait_until(deadline)
    }

    fn open_window(&mut self) {
        for spare in &mut self.spare {
            spare.reset();
        }
        self.swap_latency();
        // Last, and next to each other: this thread may be delayed anywhere, and
        // the rate needs the work that belongs to this very moment.
        self.work_at_begin = self.total_work();
        self.begin = Instant::now();
    }

    fn close_window(&mut self) -> Window {
        for spare in &mut self.spare {
            spare.reset();
        }
        let work = self.total_work() - self.work_at_begin;
        let end = Instant::now();
        self.swap_latency();
        let mut latency = histogram();
        for samples in &self.spare {
            latency
                .add(samples)
                .expect("histograms of equal bounds can be added");
        }
        Window {
            begin: self.begin,
            end,
            work: work as f64,
            latency,
            module_counts: BTreeMap::new(),
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for handle in self.handles.drain(..) {
            // A panic was told by the panic hook already.
            let _ = handle.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Count;

    impl Worker for Count {
        fn step(&mut self, meter: &Meter) -> Result<Flow, Error> {
            meter.time(|| ());
            Ok(Flow::Continue)
        }
    }

    struct Quits;

    impl Worker for Quits {
        fn step(&mut self, _: &Meter) -> Result<Flow, Error> {
            Ok(Flow::Done)
        }
    }

    #[test]
    fn a_window_counts_what_is_in_it() {
        let control = Arc::new(Control::default());
        let mut session = Threads::start(
            vec![Box::new(Count), Box::new(Count)],
            &affinity::cpus(),
            &control,
        )
        .expect("starts");
        session.open_window();
        while session.total_work() < session.work_at_begin + 1000 {
            std::thread::yield_now();
        }
        let window = session.close_window();
        assert_eq!(session.threads(), 2);
        assert!(window.work > 0.0 && !window.latency.is_empty());
        assert!(window.end > window.begin);
    }

    #[test]
    fn a_worker_that_quits_is_a_failure() {
        let control = Arc::new(Control::default());
        let mut session =
            Threads::start(vec![Box::new(Quits)], &affinity::cpus(), &control).expect("starts");
        assert!(matches!(
            session.run_until(None, &control),
            Err(Error::EndedEarly)
        ));
    }
}
