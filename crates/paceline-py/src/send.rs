//! A send half in Python.
//!
//! Its methods are those of `paceline::SendHalf`, with one call per feedback. Only methods that the class defines are called.
//! After each call, `decision()` and, where defined, `poll_timeout()` are called, and their results are cached until the next
//! call. A half that raised an exception is not called again, and its run ends.

use crate::half::{self, Maker, copied, forward_emitted, raise};
use crate::types;
use paceline::{
    Bounds, Decision, Event, Feedback, Message, QueuedFrame, ReceiverReport, RoundTrip, SendHalf, SentPacket, Setup,
    SignalSpec, Signals, StreamState,
};
use paceline_units::{Ecn, StreamId, Time};
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
    StreamRemoved,
    Bounds,
    RouteChange,
    Availability,
    Timeout,
    PollTimeout,
}

const METHODS: [&str; 14] = [
    "handle_sent",
    "handle_feedback",
    "handle_rtt",
    "handle_report",
    "handle_message",
    "handle_stream",
    "handle_frame",
    "handle_application_limit",
    "handle_stream_removed",
    "handle_bounds",
    "handle_route_change",
    "handle_availability",
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
    /// Makes the half again after a change of the route; `None` for a half that could not be made.
    maker: Option<Maker>,
    /// Limits that the half does not handle itself.
    bounds: Option<Bounds>,
    decision: Decision,
    /// The ECN codepoint of RTP packets.
    ecn: Ecn,
    timeout: Option<Time>,
}

impl PythonSendHalf {
    /// Makes an instance.
    pub fn new(
        name: &'static str,
        maker: Maker,
        setup: &Setup,
        ecn: Ecn,
        signals: &'static [SignalSpec],
    ) -> PyResult<Self> {
        let half = maker.make(setup)?;
        Python::attach(|py| {
            let bound = half.bind(py);
            let defined = half::defined(bound, "SendHalf", METHODS)?;
            let (decision, timeout) = poll(bound, defined[Method::PollTimeout as usize])?;
            let (half, maker) = (Some(half.clone_ref(py)), Some(maker));
            Ok(Self { name, half, defined, signals, maker, bounds: None, decision, ecn, timeout })
        })
    }

    /// Creates a half that always returns the same decision.
    pub fn constant(name: &'static str, decision: Decision) -> Self {
        Self {
            name,
            half: None,
            defined: [false; METHODS.len()],
            signals: &[],
            maker: None,
            bounds: None,
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
        Self { half: copied(self.half.as_ref(), self.name, "send"), maker: self.maker.clone(), ..*self }
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
    fn handle_event(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        match *event {
            Event::Sent(packet) => self.handle_sent(now, packet),
            Event::Feedback(feedback) => self.handle_feedback(now, feedback, signals),
            Event::RoundTrip(rtt) => self.handle_rtt(now, rtt, signals),
            Event::Report(report) => self.handle_report(now, report, signals),
            Event::Message(message) => self.handle_message(now, message, signals),
            Event::Stream(stream) => self.handle_stream(now, stream),
            Event::StreamRemoved(stream) => self.handle_stream_removed(now, stream),
            Event::Frame(frame) => self.handle_frame(now, frame),
            Event::ApplicationLimit(limited) => self.handle_application_limit(now, limited),
            Event::Bounds(bounds) => self.handle_bounds(now, bounds, signals),
            Event::RouteChange(setup) => self.handle_route_change(now, setup, signals),
            Event::Availability(available) => self.handle_availability(now, available),
            Event::Timeout => self.handle_timeout(now, signals),
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.timeout
    }

    fn decision(&self) -> Decision {
        let decision = Decision { ecn: self.ecn, ..self.decision };
        let Some(bounds) = self.bounds else { return decision };
        let target = bounds.clamp(decision.target);
        let pacing = if target > decision.target { decision.pacing.max(target) } else { decision.pacing };
        Decision { target, stable_target: target, pacing, padding: decision.padding.min(target), ..decision }
    }
}

impl PythonSendHalf {
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

    fn handle_stream_removed(&mut self, now: Time, stream: StreamId) {
        if self.defines(Method::StreamRemoved) {
            self.call(now, Method::StreamRemoved, None, (now.as_secs_f64(), stream.0));
        }
    }

    fn handle_bounds(&mut self, now: Time, bounds: &Bounds, signals: &mut Signals) {
        if self.defines(Method::Bounds) {
            let bounds = types::Bounds::from(bounds);
            self.call(now, Method::Bounds, Some(signals), (now.as_secs_f64(), bounds));
        } else {
            self.bounds = Some(*bounds);
        }
    }

    fn handle_route_change(&mut self, now: Time, setup: &Setup, signals: &mut Signals) {
        let Some(maker) = self.maker.as_ref().filter(|_| self.half.is_some()) else { return };
        if self.defines(Method::RouteChange) {
            let setup = maker.setup(setup);
            self.call(now, Method::RouteChange, Some(signals), (now.as_secs_f64(), setup));
            return;
        }
        // Everything that was measured is of the earlier route.
        match Self::new(self.name, maker.clone(), setup, self.ecn, self.signals) {
            Ok(half) => *self = half,
            Err(error) => self.fail(now, error),
        }
    }

    fn handle_availability(&mut self, now: Time, available: bool) {
        if self.defines(Method::Availability) {
            self.call(now, Method::Availability, None, (now.as_secs_f64(), available));
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
}
