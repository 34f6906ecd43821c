// SPDX-License-Identifier: MIT OR Apache-2.0
//! Common code of both halves of a controller in Python: the exceptions that they raise and the signals that they emit.

use crate::types;
use paceline::{Failure, Setup, SignalSpec, Signals};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

/// A half in Python, until it raises an exception.
#[derive(Debug)]
pub struct Instance {
    /// `send` or `receive`, for errors.
    name: &'static str,
    object: Option<Py<PyAny>>,
    /// The exception, until it is taken.
    failure: Option<Failure>,
}

impl Instance {
    pub fn new(name: &'static str, object: Py<PyAny>) -> Self {
        Self { name, object: Some(object), failure: None }
    }

    /// Creates a half that could not be made because of an exception.
    pub fn failed(name: &'static str, error: PyErr) -> Self {
        let failure = Failure::new(format!("raised an exception in its {name} half")).with_source(error);
        Self { name, object: None, failure: Some(failure) }
    }

    /// Returns the object; `None` after an exception.
    pub fn get(&self) -> Option<&Py<PyAny>> {
        self.object.as_ref()
    }

    #[cold]
    pub fn fail(&mut self, error: PyErr) {
        *self = Self::failed(self.name, error);
    }

    /// Returns whether an exception was not taken yet.
    pub fn has_failure(&self) -> bool {
        self.failure.is_some()
    }

    pub fn take_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }
}

/// A snapshot has a deep copy of the object (`copy.deepcopy`).
impl Clone for Instance {
    fn clone(&self) -> Self {
        let copy = |object: &Py<PyAny>| {
            Python::attach(|py| Ok(py.import("copy")?.call_method1("deepcopy", (object,))?.unbind()))
        };
        match self.object.as_ref().map(copy).transpose() {
            Ok(object) => Self { name: self.name, object, failure: self.failure.clone() },
            Err(error) => Self::failed(self.name, error),
        }
    }
}

/// Returns the exception that caused the failure of a controller.
pub fn exception(py: Python<'_>, failure: &dyn Error) -> Option<PyErr> {
    failure.source()?.downcast_ref::<PyErr>().map(|error| error.clone_ref(py))
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

/// Returns which of these methods an object's class defines, other than the base class of this name. Warns of methods whose
/// names resemble theirs.
pub fn defined<const N: usize>(half: &Bound<'_, PyAny>, base: &str, methods: [&str; N]) -> PyResult<[bool; N]> {
    let module = half.py().import("paceline.controllers")?;
    let (class, base) = (half.get_type(), module.getattr(base)?);
    module.call_method1("warn_of_unknown_methods", (&class, &base))?;
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
