//! Common code of both halves of a controller in Python: the exceptions that they raise and the signals that they emit.

use paceline::{SignalSpec, Signals};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::cell::RefCell;

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
}

/// Stores an exception for the run on this thread. The half must not be called again.
pub fn raise(controller: &'static str, half: &'static str, when: String, error: PyErr) {
    RAISED.with_borrow_mut(|raised| {
        raised.get_or_insert(Raised { controller, half, when, error });
    });
}

/// Takes the exception that a half raised on this thread since the last call.
pub fn take_raised() -> Option<Raised> {
    RAISED.take()
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
