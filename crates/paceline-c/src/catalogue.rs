// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each controller declares, as texts of C: its parameters and its signals. Made once; the texts live as long as the process.

use crate::status::{Failure, PACELINE_ERROR_CONTROLLER};
use paceline::{Entry, FieldInfo, Registry, SignalShape, SignalSpec};
use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::OnceLock;

/// A controller: its parameters, and the signals of its send half and of its receive half.
#[derive(Debug)]
pub(crate) struct Declared {
    name: &'static str,
    pub parameters: Vec<Parameter>,
    pub signals: [Vec<Signal>; 2],
}

#[derive(Debug)]
pub(crate) struct Parameter {
    pub name: CString,
    pub unit: Option<CString>,
    pub description: CString,
    pub default: f64,
    pub range: (f64, f64),
}

#[derive(Debug)]
pub(crate) struct Signal {
    pub name: CString,
    pub unit: Option<CString>,
    /// Empty for a number over time.
    pub states: Vec<CString>,
}

/// Returns what the controller of a name declares.
pub(crate) fn declared(name: &str) -> Result<&'static Declared, Failure> {
    static ALL: OnceLock<Vec<Declared>> = OnceLock::new();
    let all = ALL.get_or_init(|| Registry::standard().iter().map(Declared::new).collect());
    all.iter().find(|declared| declared.name == name).ok_or_else(|| unknown(name))
}

/// The error for a name that no controller has.
pub(crate) fn unknown(name: &str) -> Failure {
    let registry = Registry::standard();
    let known: Vec<&str> = registry.iter().map(Entry::name).collect();
    (PACELINE_ERROR_CONTROLLER, format!("there is no controller `{name}`; known: {}", known.join(", ")))
}

/// Returns the address of a text, or null.
pub(crate) fn address(text: Option<&CString>) -> *const c_char {
    text.map_or(ptr::null(), |text| text.as_ptr())
}

fn c_text(text: &str) -> CString {
    CString::new(text).expect("no text of the registry has a zero")
}

/// Returns a unit, or `None` if it is empty.
fn unit(unit: &str) -> Option<CString> {
    (!unit.is_empty()).then(|| c_text(unit))
}

impl Declared {
    fn new(entry: &Entry) -> Self {
        let (send, receive) = entry.signals();
        Self {
            name: entry.name(),
            parameters: entry.fields().iter().map(Parameter::new).collect(),
            signals: [send, receive].map(|table| table.iter().map(Signal::new).collect()),
        }
    }
}

impl Parameter {
    fn new(field: &FieldInfo) -> Self {
        Self {
            name: c_text(field.name),
            unit: unit(field.unit),
            description: c_text(&field.source),
            default: field.default,
            range: field.range,
        }
    }
}

impl Signal {
    fn new(signal: &SignalSpec) -> Self {
        let states = match signal.shape {
            SignalShape::Series => &[],
            SignalShape::State(states) => states,
        };
        Self {
            name: c_text(signal.name),
            unit: unit(signal.unit),
            states: states.iter().map(|state| c_text(state)).collect(),
        }
    }
}
