//! Ctrl-C: Python tells its main thread alone, and only when it asks.

use crate::errors::Failure;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
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

/// Does `work` on a thread of its own, without the GIL. A signal meanwhile ends it, and is raised.
pub fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(&Stop) -> Result<T, Failure> + Send) -> PyResult<T> {
    let stop = Stop::default();
    let done = py.detach(|| {
        thread::scope(|scope| {
            let (tell, hear) = mpsc::channel::<()>();
            let worker = scope.spawn(|| {
                // Dropped when the work is over, however it ends.
                let _tell = tell;
                work(&stop)
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
