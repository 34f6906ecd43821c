// SPDX-License-Identifier: MIT OR Apache-2.0
//! A controller in Python as an entry of the registry.

use crate::half::Maker;
use crate::receive::PythonReceiveHalf;
use crate::send::PythonSendHalf;
use paceline::{
    Config, Controller, Decision, Entry, FeedbackRequirement, FieldInfo, FieldVisitor, Guard, Parameters, ReceiveHalf,
    Registry, Setup, SignalShape, SignalSpec,
};
use paceline_units::{Ecn, TimeDelta};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// A controller as `paceline.controllers._Registered` describes it.
#[derive(FromPyObject)]
pub struct Registered {
    /// Name in scenarios.
    pub name: String,
    summary: String,
    source: String,
    /// Class or function that makes the send half.
    send: Option<Py<PyAny>>,
    /// Class or function that makes the receive half.
    receive: Option<Py<PyAny>>,
    /// A controller of the library whose receive half, feedback and ECN codepoint are used.
    receive_of: Option<String>,
    feedback: String,
    interval_ms: f64,
    longest_ms: f64,
    batch_ms: f64,
    ecn: bool,
    /// Each with name, default, minimum, maximum, unit and description.
    parameters: Vec<(String, f64, f64, f64, String, String)>,
    /// Each with name, unit and the names of its states; without states: a number.
    send_signals: Vec<(String, String, Vec<String>)>,
    receive_signals: Vec<(String, String, Vec<String>)>,
}

type Signals = &'static [SignalSpec];

/// A parameter with its current value.
#[derive(Clone)]
struct Parameter {
    name: &'static str,
    unit: &'static str,
    description: &'static str,
    range: (f64, f64),
    value: f64,
}

impl Parameter {
    fn of(field: &FieldInfo) -> Self {
        let FieldInfo { name, unit, source, range, default } = field;
        Self { name, unit, description: intern_static(source), range: *range, value: *default }
    }
}

/// Makes the halves of a flow.
#[derive(Clone)]
struct PythonConfig {
    send: Option<Arc<Py<PyAny>>>,
    receive: Option<Arc<Py<PyAny>>>,
    receive_of: Option<&'static str>,
    feedback: Option<FeedbackRequirement>,
    batch: TimeDelta,
    ecn: Ecn,
    parameters: Vec<Parameter>,
    /// Parameters of the controller whose receive half is used.
    receive_parameters: Vec<Parameter>,
    signals: (Signals, Signals),
}

impl Registered {
    /// Returns the entry of the registry.
    pub fn entry(self) -> PyResult<Entry> {
        let millis = TimeDelta::from_millis_f64;
        let (interval, longest) = (millis(self.interval_ms), millis(self.longest_ms.max(self.interval_ms)));
        if !(interval.is_positive() && self.batch_ms >= 0.0) {
            return Err(PyValueError::new_err("interval_ms must be above 0, and batch_ms 0 or more"));
        }
        let feedback = match self.feedback.as_str() {
            "none" => None,
            "transport-wide" => Some(FeedbackRequirement::new(interval, longest)),
            "rfc8888" => Some(FeedbackRequirement::new(interval, longest).with_ecn(true)),
            other => {
                let message = format!("feedback must be `none`, `transport-wide` or `rfc8888`, not `{other}`");
                return Err(PyValueError::new_err(message));
            }
        };
        let (mut receive_signals, mut receive_parameters) = (specs(&self.receive_signals), Vec::new());
        if let Some(of) = &self.receive_of {
            let registry = Registry::standard();
            let entry = registry.get(of).ok_or_else(|| PyValueError::new_err(format!("no controller `{of}`")))?;
            receive_signals = entry.signals().1;
            receive_parameters = entry.fields().iter().map(Parameter::of).collect();
            receive_parameters.retain(|of| !self.parameters.iter().any(|(name, ..)| name == of.name));
        }
        let parameter =
            |(name, value, low, high, unit, description): &(String, f64, f64, f64, String, String)| Parameter {
                name: intern_static(name),
                unit: intern_static(unit),
                description: intern_static(description),
                range: (*low, *high),
                value: *value,
            };
        let config = PythonConfig {
            send: self.send.map(Arc::new),
            receive: self.receive.map(Arc::new),
            receive_of: self.receive_of.as_deref().map(intern_static),
            feedback,
            batch: millis(self.batch_ms),
            ecn: if self.ecn { Ecn::Ect0 } else { Ecn::NotEct },
            parameters: self.parameters.iter().map(parameter).collect(),
            receive_parameters,
            signals: (specs(&self.send_signals), receive_signals),
        };
        let [name, summary, source] = [&self.name, &self.summary, &self.source].map(|text| intern_static(text));
        Ok(Entry::new(name, summary, source, config))
    }
}

impl Parameters for PythonConfig {
    fn fields(&mut self, fields: &mut FieldVisitor<'_>) {
        for p in self.parameters.iter_mut().chain(&mut self.receive_parameters) {
            let (name, unit, source, range, default) = (p.name, p.unit, p.description.to_owned(), p.range, p.value);
            fields.number(FieldInfo { name, unit, source, range, default }, &mut p.value);
        }
    }
}

impl Config for PythonConfig {
    const SIGNALS: (Signals, Signals) = (&[], &[]);

    fn signals(&self) -> (Signals, Signals) {
        self.signals
    }

    fn halves(&self, setup: &Setup) -> Controller {
        let mut controller = Controller::new(None, None).with_feedback(self.feedback);
        let mut ecn = self.ecn;
        let numbers: Vec<_> = self.receive_parameters.iter().map(|p| (p.name.to_owned(), p.value)).collect();
        if let Some(name) = self.receive_of
            && let Ok(other) = Registry::standard().get(name).expect("entry() found it").build(setup, &numbers)
        {
            ecn = other.send.map_or(ecn, |half| half.decision().ecn);
            (controller.receive, controller.feedback) = (other.receive, other.feedback);
        }
        if let Some(class) = &self.send {
            let half = PythonSendHalf::new(self.maker(class), setup, ecn, self.signals.0);
            let half = half.unwrap_or_else(|error| PythonSendHalf::failed(Decision::new(setup.start), error));
            controller.send = Some(Guard::off(Box::new(half)));
        }
        if let Some(class) = &self.receive {
            let half = PythonReceiveHalf::new(self.maker(class), setup, self.batch, self.signals.1);
            let half = half.unwrap_or_else(|error| PythonReceiveHalf::failed(self.maker(class), error));
            controller.receive = Some(Box::new(half) as Box<dyn ReceiveHalf>);
        }
        controller
    }
}

impl PythonConfig {
    fn maker(&self, class: &Arc<Py<PyAny>>) -> Maker {
        let parameters = self.parameters.iter().map(|p| (p.name.to_owned(), p.value)).collect();
        Maker { class: Arc::clone(class), parameters: Arc::new(parameters) }
    }
}

fn specs(signals: &[(String, String, Vec<String>)]) -> Signals {
    let spec = |(name, unit, states): &(String, String, Vec<String>)| SignalSpec {
        name: intern_static(name),
        unit: intern_static(unit),
        shape: match states.as_slice() {
            [] => SignalShape::Series,
            // Leaks a short list for each registered controller with states.
            states => SignalShape::State(states.iter().map(|s| intern_static(s)).collect::<Vec<_>>().leak()),
        },
    };
    signals.iter().map(spec).collect::<Vec<_>>().leak()
}

/// Returns the text with the lifetime of the program, because the registry holds `&'static str`. Leaks each text once.
fn intern_static(text: &str) -> &'static str {
    static INTERNED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut interned = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = interned.get(text) {
        return known;
    }
    let text: &'static str = text.to_owned().leak();
    interned.insert(text);
    text
}
