//! Common code of both halves of a controller in Python: the exceptions that they raise and the signals that they emit.

use crate::types;
use paceline::{Setup, SignalSpec, Signals};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};

/// An exception raised by a half.
pub struct Raised {
    /// Name of the controller.
    pub controller: &'static str,
    /// `send` or `receive`.
    pub half: &'static str,
    /// The time, as a phrase that ends before `a run of …`. A receive half only knows the receiver's clock.
    pub when: String,
    /// The exception.
    pub error: PyErr,
}

thread_local! {
    /// The first exception of the run on this thread. A simulated run stays on one thread, and a half does not know
    /// which run it belongs to.
    static RAISED: RefCell<Option<Raised>> = const { RefCell::new(None) };
    /// Whether the work on this thread collects its exceptions.
    static COLLECTS: Cell<bool> = const { Cell::new(false) };
}

/// The first exception on another thread, which a backend in real time started. Such a backend makes one run at a time.
static RAISED_ELSEWHERE: Mutex<Option<Raised>> = Mutex::new(None);

/// Calls `work`, which makes halves and runs on this thread. The first exception of a half is then that of [`take_raised`].
pub fn collect_raised<T>(work: impl FnOnce() -> T) -> T {
    // Discards the exception of earlier work.
    RAISED.take();
    let outer = COLLECTS.replace(true);
    let result = work();
    COLLECTS.set(outer);
    result
}

/// Stores an exception for the run on this thread. The half must not be called again.
pub fn raise(controller: &'static str, half: &'static str, when: String, error: PyErr) {
    let raised = Raised { controller, half, when, error };
    if COLLECTS.get() {
        RAISED.with_borrow_mut(|first| _ = first.get_or_insert(raised));
    } else {
        RAISED_ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(raised);
    }
}

/// Takes the exception that a half raised in the work of [`collect_raised`] on this thread.
pub fn take_raised() -> Option<Raised> {
    RAISED.take()
}

/// Takes the exception that a half raised on a thread of a backend.
pub fn take_raised_elsewhere() -> Option<Raised> {
    RAISED_ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Returns a deep copy of a half (`copy.deepcopy`). `None` if it has none, or if the copy raises an exception, which then
/// ends the run.
pub fn copied(half: Option<&Py<PyAny>>, controller: &'static str, name: &'static str) -> Option<Py<PyAny>> {
    let half = half?;
    Python::attach(|py| match py.import("copy").and_then(|copy| copy.call_method1("deepcopy", (half,))) {
        Ok(copy) => Some(copy.unbind()),
        Err(error) => {
            raise(controller, name, "while it was copied in".to_owned(), error);
            None
        }
    })
}

/// Makes a half in Python: its class, and the values of its parameters.
#[derive(Clone)]
pub struct Maker {
    pub class: Arc<Py<PyAny>>,
    pub parameters: Arc<BTreeMap<String, f64>>,
}

impl Maker {
    /// Makes the half of a flow.
    pub fn make(&self, setup: &Setup) -> PyResult<Py<PyAny>> {
        Python::attach(|py| self.class.call1(py, (self.setup(setup),)))
    }

    /// Returns a setup as Python sees it.
    pub fn setup(&self, setup: &Setup) -> types::Setup {
        types::Setup {
            start_bps: setup.start.as_bps(),
            min_bps: setup.min.as_bps(),
            max_bps: setup.max.as_bps(),
            packet_size_bytes: setup.packet_size.as_bytes(),
            parameters: (*self.parameters).clone(),
        }
    }
}

impl Debug for Maker {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Maker").field("parameters", &self.parameters).finish_non_exhaustive()
    }
}

/// Returns which of these methods an object's class defines, other than the base class of this name.
pub fn defined<const N: usize>(half: &Bound<'_, PyAny>, base: &str, methods: [&str; N]) -> PyResult<[bool; N]> {
    let (class, base) = (half.get_type(), half.py().import("paceline.controllers")?.getattr(base)?);
    let mut defined = [false; N];
    for (defined, method) in defined.iter_mut().zip(methods) {
        *defined = class.hasattr(method)? && !class.getattr(method)?.is(&base.getattr(method)?);
    }
    Ok(defined)
}

/// Forwards the values that the half emitted with `emit(name, value)`.
pub fn forward_emitted(half: &Bound<'_, PyAny>, specs: &'static [SignalSpec], signals: &mut Signals) -> PyResult<()> {
    if specs.is_empty() {
        return Ok(());
    }
    let Ok(emitted) = half.getattr("_emitted") else { return Ok(()) };
    let emitted = emitted.cast_into::<PyList>()?;
    for item in &emitted {
        let (name, value): (String, f64) = item.extract()?;
        let index = specs.iter().position(|spec| spec.name == name).ok_or_else(|| {
            let known: Vec<&str> = specs.iter().map(|spec| spec.name).collect();
            PyValueError::new_err(format!("no signal `{name}` is declared; declared: {}", known.join(", ")))
        })?;
        signals.emit_index(index as u8, value);
    }
    emitted.call_method0("clear")?;
    Ok(())
}
