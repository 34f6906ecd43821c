//! The failure of a controller outside the program. It ends the run that the controller belongs to.

use paceline_units::Time;
use std::cell::{Cell, RefCell};
use std::sync::{Mutex, PoisonError};

/// What went wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Cause {
    /// The program did not start.
    #[error("did not start: `{program}`: {error}")]
    Start {
        /// The program.
        program: String,
        /// The error of the system.
        error: String,
    },
    /// There was no line in time.
    #[error(
        "gave no answer within {seconds} s: one line is due after each line; `answer_timeout_ms` in the hello sets the limit"
    )]
    NoAnswer {
        /// The limit.
        seconds: f64,
    },
    /// The program did not read its input in time.
    #[error("read none of its input for {seconds} s, and its pipe is full")]
    NotReading {
        /// The limit.
        seconds: f64,
    },
    /// The program wrote something before its next input.
    #[error("wrote more than one line in answer to a line: print nothing else to the standard output")]
    Unasked,
    /// The program closed its output or ended.
    #[error("{}", match status {
        Some(status) => format!("ended ({status}) before the end of its input"),
        None => "closed its standard output".to_owned(),
    })]
    Exited {
        /// Its exit status, if it ended.
        status: Option<String>,
    },
    /// A line is too long.
    #[error("wrote a line of more than {limit} bytes")]
    LongLine {
        /// The limit.
        limit: usize,
    },
    /// A line or a value is invalid.
    #[error("answered invalid data: {problem}")]
    Invalid {
        /// What is wrong, with the line.
        problem: String,
    },
    /// A function of a shared library returned an error.
    #[error("{0}")]
    Library(String),
}

/// A failure as the run reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The controller.
    pub controller: &'static str,
    /// The time in the run.
    pub at: Time,
    /// What went wrong.
    pub cause: Cause,
    /// The last lines on the standard error.
    pub messages: Vec<String>,
}

thread_local! {
    /// The first failure of the run on this thread. A simulated run stays on one thread, and a half does not know which run
    /// it belongs to.
    static FAILED: RefCell<Option<Failure>> = const { RefCell::new(None) };
    /// Whether the work on this thread collects its failures.
    static COLLECTS: Cell<bool> = const { Cell::new(false) };
}

/// The first failure on another thread, which a backend in real time started. [`World`](crate::World) makes one run with external
/// controllers at a time there.
static FAILED_ELSEWHERE: Mutex<Option<Failure>> = Mutex::new(None);

/// Calls `work`, which makes halves and runs on this thread. The first failure of a half is then that of `take`.
pub fn collect<T>(work: impl FnOnce() -> T) -> T {
    // Discards the failure of earlier work.
    FAILED.take();
    let outer = COLLECTS.replace(true);
    let result = work();
    COLLECTS.set(outer);
    result
}

/// Stores a failure. The half must not be used again.
pub fn fail(failure: Failure) {
    if COLLECTS.get() {
        FAILED.with_borrow_mut(|first| _ = first.get_or_insert(failure));
    } else {
        FAILED_ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    }
}

/// Takes the failure of a half in the work of [`collect`] on this thread.
pub fn take() -> Option<Failure> {
    FAILED.take()
}

/// Takes the failure of a half on a thread of a backend.
pub fn take_elsewhere() -> Option<Failure> {
    FAILED_ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner).take()
}
