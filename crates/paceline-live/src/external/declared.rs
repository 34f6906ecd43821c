// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an external controller declares, in the form of the registry.

use crate::external::protocol::{FeedbackFormat, Hello, ParameterDeclaration, SignalDeclaration};
use paceline::{FeedbackRequirement, FieldInfo, Registry, SignalShape, SignalSpec};
use paceline_units::TimeDelta;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The most signals of a half.
const SIGNALS_MAX: usize = 256;

/// Signals, parameters and feedback of an external controller.
#[derive(Clone, Debug)]
pub struct Declared {
    /// The signals of the send half.
    pub send_signals: &'static [SignalSpec],
    /// The signals of the receive half, which is one of the library.
    pub receive_signals: &'static [SignalSpec],
    /// The controller whose receive half is used.
    pub receive_of: Option<&'static str>,
    /// The per-packet feedback, if no receive half of the library decides it.
    pub feedback: Option<FeedbackRequirement>,
    /// The parameters, each with its current value in place of the default.
    pub parameters: Vec<FieldInfo>,
    /// Those of the controller whose receive half is used.
    pub receive_parameters: Vec<FieldInfo>,
}

impl Declared {
    /// Checks and converts a hello. The error states what is wrong with it.
    pub fn new(hello: &Hello) -> Result<Self, String> {
        let millis = |ms: u32| TimeDelta::from_millis(ms.into());
        let interval = millis(hello.feedback_interval_ms);
        let longest = millis(hello.feedback_longest_ms).max(interval);
        if !interval.is_positive() {
            return Err("feedback_interval_ms must be above 0".to_owned());
        }
        let feedback = match hello.feedback {
            FeedbackFormat::None => None,
            FeedbackFormat::TransportWide => Some(FeedbackRequirement::new(interval, longest)),
            FeedbackFormat::Rfc8888 => Some(FeedbackRequirement::new(interval, longest).with_ecn(true)),
        };
        if hello.signals.len() > SIGNALS_MAX {
            return Err(format!("a controller has at most {SIGNALS_MAX} signals, not {}", hello.signals.len()));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = hello.signals.iter().find(|signal| !names.insert(&signal.name)) {
            return Err(format!("the signal `{}` is declared twice", twice.name));
        }
        let mut names = BTreeSet::new();
        for p in &hello.parameters {
            if !names.insert(&p.name) {
                return Err(format!("the parameter `{}` is declared twice", p.name));
            }
            if !(p.min <= p.default && p.default <= p.max) {
                return Err(format!("the parameter `{}` needs min <= default <= max", p.name));
            }
        }
        let (mut receive_signals, mut receive_parameters): (&[SignalSpec], Vec<FieldInfo>) = (&[], Vec::new());
        if let Some(of) = &hello.receive_of {
            let registry = Registry::standard();
            let entry = registry.get(of).ok_or_else(|| format!("receive_of: no controller `{of}`"))?;
            receive_signals = entry.signals().1;
            receive_parameters = entry.fields();
            receive_parameters.retain(|of| !names.contains(&of.name.to_owned()));
        }
        Ok(Self {
            send_signals: hello.signals.iter().map(spec).collect::<Vec<_>>().leak(),
            receive_signals,
            receive_of: hello.receive_of.as_deref().map(interned),
            feedback,
            parameters: hello.parameters.iter().map(parameter).collect(),
            receive_parameters,
        })
    }
}

fn parameter(p: &ParameterDeclaration) -> FieldInfo {
    let source = p.description.clone();
    FieldInfo { name: interned(&p.name), unit: interned(&p.unit), source, range: (p.min, p.max), default: p.default }
}

/// Leaks a short list for each controller, which exists as long as the process.
fn spec(signal: &SignalDeclaration) -> SignalSpec {
    SignalSpec {
        name: interned(&signal.name),
        unit: interned(&signal.unit),
        shape: match signal.states.as_slice() {
            [] => SignalShape::Series,
            states => SignalShape::State(states.iter().map(|state| interned(state)).collect::<Vec<_>>().leak()),
        },
    }
}

/// Returns the text with the lifetime of the process, because the registry holds `&'static str`. Leaks each text once.
pub fn interned(text: &str) -> &'static str {
    static INTERNED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut interned = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = interned.get(text) {
        return known;
    }
    let text: &'static str = text.to_owned().leak();
    interned.insert(text);
    text
}
