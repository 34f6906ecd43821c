// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads for runs, and how work ends early. Python delivers Ctrl-C only to its main thread, and only on request.

use crate::errors::Failure;
use paceline_netsim::link_control::LinkControl;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Interval at which the waiting thread checks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Called with the units of work that are done, and with their total.
pub type Progress = Option<Py<PyAny>>;

/// A request to end work early, and the progress of the work. Simulated runs check the request between steps; those in real time
/// end by the same control.
#[derive(Default)]
pub struct Stop {
    control: LinkControl,
    done: AtomicU64,
    total: AtomicU64,
}

impl Stop {
    /// Requests the end.
    pub fn request(&self) {
        self.control.stop();
    }
    /// Returns whether the end was requested.
    pub fn is_requested(&self) -> bool {
        self.control.is_stopped()
    }
    /// Returns the control of runs in real time.
    pub fn control(&self) -> &LinkControl {
        &self.control
    }
    /// Adds units of work to the total.
    pub fn expect(&self, units: u64) {
        self.total.fetch_add(units, Ordering::Relaxed);
    }
    /// Counts a finished unit.
    pub fn tick(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
    fn show(&self, py: Python<'_>, progress: &Progress) -> PyResult<()> {
        let total = self.total.load(Ordering::Relaxed);
        match progress {
            Some(show) if total > 0 => show.call1(py, (self.done.load(Ordering::Relaxed).min(total), total)).map(drop),
            _ => Ok(()),
        }
    }
    /// The last second of a run is not counted.
    fn finish(&self) {
        self.done.store(u64::MAX, Ordering::Relaxed);
    }
}

/// Creates threads for runs; `None`: one for each core. Each thread keeps its Python thread state, because creating one for
/// each call of a controller takes longer than the call. A thread needs the GIL to start: do not hold it.
pub fn pool(threads: Option<usize>) -> Result<ThreadPool, ThreadPoolBuildError> {
    let start = |thread: ThreadBuilder| {
        let body = || Python::attach(|py| py.detach(|| thread.run()));
        thread::Builder::new().name("paceline".to_owned()).spawn(body).map(drop)
    };
    ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).spawn_handler(start).build()
}

/// Returns the pool that all functions share. A forked process has none of its parent's threads, so it creates its own pool.
fn shared() -> Result<&'static ThreadPool, Failure> {
    static SHARED: Mutex<Option<(u32, &'static ThreadPool)>> = Mutex::new(None);
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((_, pool)) = shared.filter(|(owner, _)| *owner == process) {
        return Ok(pool);
    }
    let made = pool(None).map_err(|error| PyRuntimeError::new_err(format!("cannot start threads: {error}")))?;
    Ok(shared.insert((process, Box::leak(Box::new(made)))).1)
}

/// Calls `work` on this number of threads of its own; `None`: on the current ones.
pub fn on_threads<T: Send>(
    threads: Option<usize>,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    let Some(threads) = threads else { return work() };
    let pool = pool(Some(threads)).map_err(|e| Failure::Argument(format!("cannot start {threads} threads: {e}")))?;
    pool.install(work)
}

/// Calls `work` on the package's threads, without the GIL. A signal ends the work and raises its exception.
pub fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(&Stop) -> Result<T, Failure> + Send) -> PyResult<T> {
    interruptible_with(py, None, work)
}

/// As [`interruptible`], and shows the progress.
pub fn interruptible_with<T: Send>(
    py: Python<'_>,
    progress: Progress,
    work: impl FnOnce(&Stop) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let stop = Stop::default();
    let done = py.detach(|| {
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel::<()>();
            let worker = scope.spawn(|| {
                // Dropped at the end of the work, also on a panic.
                let _sender = sender;
                shared()?.install(|| work(&stop))
            });
            let mut raised = None;
            while let Err(RecvTimeoutError::Timeout) = receiver.recv_timeout(SIGNAL_INTERVAL) {
                if raised.is_none() {
                    raised = Python::attach(|py| py.check_signals().and_then(|()| stop.show(py, &progress))).err();
                    raised.iter().for_each(|_| stop.request());
                }
            }
            match (worker.join(), raised) {
                (Err(panic), _) => std::panic::resume_unwind(panic),
                (Ok(_), Some(raised)) => Err(Failure::Raised(raised)),
                (Ok(done), None) => done,
            }
        })
    });
    let done = done?;
    stop.finish();
    stop.show(py, &progress)?;
    Ok(done)
}
