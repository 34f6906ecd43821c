//! A send half in Python.
//!
//! Its methods are those of `paceline::SendHalf`, with one call per feedback. Only methods that the class defines are called.
//! After each call, `decision()` and, where defined, `poll_timeout()` are called, and their results are cached until the next
//! call. A half that raised an exception is not called again, and its run ends.

use crate::half::{copied, forward_emitted, raise};
use crate::types;
use paceline::{
    Decision, Feedback, Message, QueuedFrame, ReceiverReport, RoundTrip, SendHalf, SentPacket, SignalSpec, Signals,
    StreamState,
};
use paceline_units::{Ecn, Time};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// The optional methods, as indices of `METHODS`.
#[derive(Clone, Copy)]
enum Method {
    Sent,
    Feedback,
    Rtt,
    Report,
    Message,
    Stream,
    Frame,
    ApplicationLimit,
    Timeout,
    PollTimeout,
}

const METHODS: [&str; 10] = [
    "handle_sent",
    "handle_feedback",
    "handle_rtt",
    "handle_report",
    "handle_message",
    "handle_stream",
    "handle_frame",
    "handle_application_limit",
    "handle_timeout",
    "poll_timeout",
];

/// A send half whose methods are in Python, with its last results.
#[derive(Debug)]
pub struct PythonSendHalf {
    name: &'static str,
    /// `None` after an exception.
    half: Option<Py<PyAny>>,
    /// Which of `METHODS` the class defines.
    defined: [bool; METHODS.len()],
    signals: &'static [SignalSpec],
    decision: Decision,
    /// The ECN codepoint of RTP packets.
    ecn: Ecn,
    timeout: Option<Time>,
}

impl PythonSendHalf {
    /// Wraps an instance.
    pub fn new(name: &'static str, half: Py<PyAny>, ecn: Ecn, signals: &'static [SignalSpec]) -> PyResult<Self> {
        Python::attach(|py| {
            let bound = half.bind(py);
            let (class, base) = (bound.get_type(), py.import("paceline.controllers")?.getattr("SendHalf")?);
            let mut defined = [false; METHODS.len()];
            for (defined, method) in defined.iter_mut().zip(METHODS) {
                *defined = class.hasattr(method)? && !class.getattr(method)?.is(&base.getattr(method)?);
            }
            let (decision, timeout) = poll(bound, defined[Method::PollTimeout as usize])?;
            Ok(Self { name, half: Some(half.clone_ref(py)), defined, signals, decision, ecn, timeout })
        })
    }

    /// Creates a half that always returns the same decision.
    pub fn constant(name: &'static str, decision: Decision) -> Self {
        Self {
            name,
            half: None,
            defined: [false; METHODS.len()],
            signals: &[],
            decision,
            ecn: Ecn::NotEct,
            timeout: None,
        }
    }

    fn defines(&self, method: Method) -> bool {
        self.half.is_some() && self.defined[method as usize]
    }

    #[cold]
    fn fail(&mut self, now: Time, error: PyErr) {
        (self.half, self.timeout) = (None, None);
        raise(self.name, "send", format!("{:.6} s into", now.as_secs_f64()), error);
    }

    /// Calls a method with these arguments, then updates the decision and the timeout.
    fn call(
        &mut self,
        now: Time,
        method: Method,
        signals: Option<&mut Signals>,
        arguments: impl for<'py> PyCallArgs<'py>,
    ) {
        let Some(half) = &self.half else { return };
        let polled = Python::attach(|py| {
            let half = half.bind(py);
            half.call_method1(METHODS[method as usize], arguments)?;
            if let Some(signals) = signals {
                forward_emitted(half, self.signals, signals)?;
            }
            poll(half, self.defined[Method::PollTimeout as usize])
        });
        match polled {
            Ok((decision, timeout)) => (self.decision, self.timeout) = (decision, timeout),
            Err(error) => self.fail(now, error),
        }
    }
}

/// A snapshot has a deep copy of the instance.
impl Clone for PythonSendHalf {
    fn clone(&self) -> Self {
        Self { half: copied(self.half.as_ref(), self.name, "send"), ..*self }
    }
}

/// Returns the half's decision and timeout.
fn poll(half: &Bound<'_, PyAny>, has_timeout: bool) -> PyResult<(Decision, Option<Time>)> {
    let decision = types::Decision::of(&half.call_method0("decision")?)?;
    let timeout = if has_timeout { half.call_method0("poll_timeout")?.extract::<Option<f64>>()? } else { None };
    match timeout {
        Some(at) if at.is_nan() => Err(PyValueError::new_err("poll_timeout() must return a time in s, or None")),
        timeout => Ok((decision, timeout.map(Time::from_secs_f64).filter(|at| *at < Time::MAX))),
    }
}

impl SendHalf for PythonSendHalf {
    fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        if self.defines(Method::Sent) {
            self.call(now, Method::Sent, None, (now.as_secs_f64(), types::SentPacket::from(packet)));
        }
    }
    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        if self.defines(Method::Feedback) {
            let feedback = types::Feedback::from(feedback);
            self.call(now, Method::Feedback, Some(signals), (now.as_secs_f64(), feedback));
        }
    }
    fn handle_rtt(&mut self, now: Time, rtt: &RoundTrip, signals: &mut Signals) {
        if self.defines(Method::Rtt) {
            let rtt = types::RoundTrip::from(rtt);
            self.call(now, Method::Rtt, Some(signals), (now.as_secs_f64(), rtt));
        }
    }
    fn handle_report(&mut self, now: Time, report: &ReceiverReport, signals: &mut Signals) {
        if self.defines(Method::Report) {
            let report = types::ReceiverReport::from(report);
            self.call(now, Method::Report, Some(signals), (now.as_secs_f64(), report));
        }
    }
    fn handle_message(&mut self, now: Time, message: &Message, signals: &mut Signals) {
        if let Some(message) = types::Message::of(message).filter(|_| self.defines(Method::Message)) {
            self.call(now, Method::Message, Some(signals), (now.as_secs_f64(), message));
        }
    }
    fn handle_stream(&mut self, now: Time, stream: &StreamState) {
        if self.defines(Method::Stream) {
            self.call(now, Method::Stream, None, (now.as_secs_f64(), types::StreamState::from(stream)));
        }
    }
    fn handle_frame(&mut self, now: Time, frame: &QueuedFrame) {
        if self.defines(Method::Frame) {
            self.call(now, Method::Frame, None, (now.as_secs_f64(), types::QueuedFrame::from(frame)));
        }
    }
    fn handle_application_limit(&mut self, now: Time, limited: bool) {
        if self.defines(Method::ApplicationLimit) {
            self.call(now, Method::ApplicationLimit, None, (now.as_secs_f64(), limited));
        }
    }
    fn handle_timeout(&mut self, now: Time, signals: &mut Signals) {
        if !self.defined[Method::Timeout as usize] {
            self.timeout = None;
            return;
        }
        self.call(now, Method::Timeout, Some(signals), (now.as_secs_f64(),));
        if self.timeout.is_some_and(|at| at <= now) {
            // Else the run would not advance.
            let message = "poll_timeout() must return a later time after handle_timeout()";
            self.fail(now, PyRuntimeError::new_err(message));
        }
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.timeout
    }
    fn decision(&self) -> Decision {
        Decision { ecn: self.ecn, ..self.decision }
    }
}
