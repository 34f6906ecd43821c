//! A controller in Python as the registry holds one, and what its halves raise.

use crate::receive::Receiver;
use crate::send::Sender;
use crate::told;
use paceline::{
    Config, Controller, Decision, Entry, FeedbackKind, FieldInfo, Fields, ReceiveHalf, Registry, SendHalf, Setup,
    SignalShape, SignalSpec,
};
use paceline_units::{Ecn, Rate, TimeDelta};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// A controller as Python describes it: `paceline.Controller`.
#[derive(FromPyObject)]
pub struct Registered {
    /// By which scenarios ask for it.
    pub name: String,
    summary: String,
    source: String,
    /// What makes its send half.
    send: Option<Py<PyAny>>,
    /// What makes its receive half.
    receive: Option<Py<PyAny>>,
    /// The registered controller whose receive half, report and codepoint it takes.
    receive_of: Option<String>,
    feedback: String,
    interval_ms: f64,
    longest_ms: f64,
    batch_ms: f64,
    ecn: bool,
    /// Each with name, default, lowest, highest, unit and what it is.
    parameters: Vec<(String, f64, f64, f64, String, String)>,
    /// Each with name, unit and the names of its states; no states: a number.
    send_signals: Vec<(String, String, Vec<String>)>,
    receive_signals: Vec<(String, String, Vec<String>)>,
}

type Signals = &'static [SignalSpec];

/// A parameter, and what it is now.
#[derive(Clone)]
struct Parameter {
    name: &'static str,
    unit: &'static str,
    what: &'static str,
    range: (f64, f64),
    value: f64,
}

impl Parameter {
    fn of(field: &FieldInfo) -> Self {
        let FieldInfo { name, unit, source, range, default } = field;
        Self { name, unit, what: lasting(source), range: *range, value: *default }
    }
}

/// What makes the halves of a flow.
#[derive(Clone)]
struct PythonConfig {
    name: &'static str,
    send: Option<Arc<Py<PyAny>>>,
    receive: Option<Arc<Py<PyAny>>>,
    receive_of: Option<&'static str>,
    feedback: FeedbackKind,
    batch: TimeDelta,
    ecn: Ecn,
    parameters: Vec<Parameter>,
    /// Those of the controller whose receive half it takes.
    taken: Vec<Parameter>,
    signals: (Signals, Signals),
}

impl Registered {
    /// As the registry takes it.
    pub fn entry(self) -> PyResult<Entry> {
        let millis = TimeDelta::from_millis_f64;
        let (interval, longest) = (millis(self.interval_ms), millis(self.longest_ms.max(self.interval_ms)));
        if !(interval.is_positive() && self.batch_ms >= 0.0) {
            return Err(PyValueError::new_err("interval_ms is above 0, batch_ms 0 or more"));
        }
        let feedback = match self.feedback.as_str() {
            "none" => FeedbackKind::None,
            "transport-wide" => FeedbackKind::TransportWide { interval, longest },
            "rfc8888" => FeedbackKind::Rfc8888 { interval, longest },
            other => {
                let message = format!("feedback is `none`, `transport-wide` or `rfc8888`, not `{other}`");
                return Err(PyValueError::new_err(message));
            }
        };
        let (mut receive_signals, mut taken) = (specs(&self.receive_signals), Vec::new());
        if let Some(of) = &self.receive_of {
            let registry = Registry::standard();
            let entry = registry.get(of).ok_or_else(|| PyValueError::new_err(format!("no controller `{of}`")))?;
            receive_signals = entry.signals().1;
            taken = entry.fields().iter().map(Parameter::of).collect();
            taken.retain(|of| !self.parameters.iter().any(|(name, ..)| name == of.name));
        }
        let parameter = |(name, value, low, high, unit, what): &(String, f64, f64, f64, String, String)| Parameter {
            name: lasting(name),
            unit: lasting(unit),
            what: lasting(what),
            range: (*low, *high),
            value: *value,
        };
        let config = PythonConfig {
            name: lasting(&self.name),
            send: self.send.map(Arc::new),
            receive: self.receive.map(Arc::new),
            receive_of: self.receive_of.as_deref().map(lasting),
            feedback,
            batch: millis(self.batch_ms),
            ecn: if self.ecn { Ecn::Ect0 } else { Ecn::NotEct },
            parameters: self.parameters.iter().map(parameter).collect(),
            taken,
            signals: (specs(&self.send_signals), receive_signals),
        };
        Ok(Entry::new(config.name, lasting(&self.summary), lasting(&self.source), config))
    }
}

impl Config for PythonConfig {
    const SIGNALS: (Signals, Signals) = (&[], &[]);

    fn fields(&mut self, fields: &mut Fields<'_>) {
        for p in self.parameters.iter_mut().chain(&mut self.taken) {
            fields.number(p.name, p.unit, p.range, &mut p.value).says(p.what);
        }
    }

    fn signals(&self) -> (Signals, Signals) {
        self.signals
    }

    fn build(&self, setup: &Setup) -> Controller {
        let mut controller = Controller { send: None, receive: None, feedback: self.feedback, ecn: self.ecn };
        let numbers: Vec<_> = self.taken.iter().map(|p| (p.name.to_owned(), p.value)).collect();
        if let Some(name) = self.receive_of
            && let Ok(taken) = Registry::standard().get(name).expect("it was looked up before").build(setup, &numbers)
        {
            (controller.receive, controller.feedback, controller.ecn) = (taken.receive, taken.feedback, taken.ecn);
        }
        if let Some(class) = &self.send {
            let half = match self.make(class, setup).and_then(|half| Sender::new(self.name, half, self.signals.0)) {
                Ok(half) => half,
                Err(error) => {
                    raise(self.name, "send", BUILT.to_owned(), error);
                    Sender::mute(self.name, resting(setup.start))
                }
            };
            controller.send = Some(Box::new(half) as Box<dyn SendHalf>);
        }
        if let Some(class) = &self.receive {
            match self.make(class, setup) {
                Ok(half) => {
                    let half = Receiver::new(self.name, half, self.batch, self.signals.1);
                    controller.receive = Some(Box::new(half) as Box<dyn ReceiveHalf>);
                }
                Err(error) => raise(self.name, "receive", BUILT.to_owned(), error),
            }
        }
        controller
    }
}

impl PythonConfig {
    fn make(&self, class: &Py<PyAny>, setup: &Setup) -> PyResult<Py<PyAny>> {
        let parameters: BTreeMap<String, f64> = self.parameters.iter().map(|p| (p.name.to_owned(), p.value)).collect();
        let (start, min, max) = (setup.start.as_bps(), setup.min.as_bps(), setup.max.as_bps());
        let setup = told::Setup { start_bps: start, min_bps: min, max_bps: max, parameters };
        Python::attach(|py| class.call1(py, (setup,)))
    }
}

/// When a half is made.
const BUILT: &str = "as it was made for";

/// What a half decides that cannot.
fn resting(target: Rate) -> Decision {
    Decision { target, pacing: target, window: None, padding: Rate::ZERO }
}

fn specs(signals: &[(String, String, Vec<String>)]) -> Signals {
    let spec = |(name, unit, states): &(String, String, Vec<String>)| SignalSpec {
        name: lasting(name),
        unit: lasting(unit),
        shape: match states.as_slice() {
            [] => SignalShape::Series,
            // As few as there are controllers with states, and as short.
            states => SignalShape::State(states.iter().map(|s| lasting(s)).collect::<Vec<_>>().leak()),
        },
    };
    signals.iter().map(spec).collect::<Vec<_>>().leak()
}

/// The text for as long as the program runs, kept once: the registry's names are those of a program.
fn lasting(text: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept.get(text) {
        return known;
    }
    let text: &'static str = text.to_owned().leak();
    kept.insert(text);
    text
}

/// An exception of a half, where and when.
pub struct Raised {
    /// The controller.
    pub controller: &'static str,
    /// `send` or `receive`.
    pub half: &'static str,
    /// When, up to the words `a run`: a receive half knows the receiver's clock alone.
    pub when: String,
    /// What was raised.
    pub error: PyErr,
}

thread_local! {
    /// The first exception of the run that this thread makes: from its beginning to its end a simulated run is one
    /// thread's, and no half is told which run it is in.
    static RAISED: RefCell<Option<Raised>> = const { RefCell::new(None) };
}

/// Keeps the exception; the half that calls this is silent from then on.
pub fn raise(controller: &'static str, half: &'static str, when: String, error: PyErr) {
    RAISED.with_borrow_mut(|raised| {
        raised.get_or_insert(Raised { controller, half, when, error });
    });
}

/// What a half raised on this thread since the last call.
pub fn take_raised() -> Option<Raised> {
    RAISED.take()
}
