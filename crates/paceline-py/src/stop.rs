//! Where work is done, and how it ends early. Ctrl-C is told to Python's main thread alone, and only when it asks.

use crate::errors::Failure;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often a waiting thread asks for signals.
const PATIENCE: Duration = Duration::from_millis(50);

/// Whether work is to end early. Runs look at it as they go.
#[derive(Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Work is to end.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
    /// Whether it is.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Threads for runs; none said: as many as there are cores. Each has Python's state of a thread for as long as it lives, since to
/// make one for each call of a controller takes longer than the call. Threads begin with the GIL: build without.
pub fn pool(threads: Option<usize>) -> Result<ThreadPool, ThreadPoolBuildError> {
    let begin = |thread: ThreadBuilder| {
        let body = || Python::attach(|py| py.detach(|| thread.run()));
        thread::Builder::new().name("paceline".to_owned()).spawn(body).map(drop)
    };
    ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).spawn_handler(begin).build()
}

/// The pool that all functions share. A forked process has the memory of its parent's pool and none of its threads, so it
/// makes one of its own.
fn shared() -> Result<&'static ThreadPool, Failure> {
    static SHARED: Mutex<Option<(u32, &'static ThreadPool)>> = Mutex::new(None);
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((_, pool)) = shared.filter(|(of, _)| *of == process) {
        return Ok(pool);
    }
    let made = pool(None).map_err(|error| PyRuntimeError::new_err(format!("no threads are to be had: {error}")))?;
    Ok(shared.insert((process, Box::leak(Box::new(made)))).1)
}

/// Does `work` on the package's threads, without the GIL. A signal meanwhile ends it, and is raised.
pub fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(&Stop) -> Result<T, Failure> + Send) -> PyResult<T> {
    let stop = Stop::default();
    let done = py.detach(|| {
        thread::scope(|scope| {
            let (tell, hear) = mpsc::channel::<()>();
            let worker = scope.spawn(|| {
                // Dropped when the work is over, however it ends.
                let _tell = tell;
                shared()?.install(|| work(&stop))
            });
            let mut raised = None;
            while let Err(RecvTimeoutError::Timeout) = hear.recv_timeout(PATIENCE) {
                if raised.is_none() {
                    raised = Python::attach(|py| py.check_signals()).err();
                    raised.iter().for_each(|_| stop.ask());
                }
            }
            match (worker.join(), raised) {
                (Err(panic), _) => std::panic::resume_unwind(panic),
                (Ok(_), Some(raised)) => Err(Failure::Raised(raised)),
                (Ok(done), None) => done,
            }
        })
    });
    Ok(done?)
}
