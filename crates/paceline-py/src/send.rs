// SPDX-License-Identifier: MIT OR Apache-2.0
//! A send half in Python.
//!
//! It has a method for each `paceline::Event` that programs need, with one call per feedback. Only methods that the class defines
//! are called. After each call, `decision()` and, where defined, `poll_timeout()` are called, and their results are cached until
//! the next call. A half that raised an exception is not called again, and its run ends.

use crate::half::{self, Instance, Maker, forward_emitted};
use crate::types;
use paceline::{Bounds, Decision, Event, Failure, SendHalf, Setup, SignalSpec, Signals};
use paceline_units::{Ecn, Time};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// The name of the half in errors.
const SEND: &str = "send";

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
#[derive(Clone, Debug)]
pub struct PythonSendHalf {
    half: Instance,
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
    pub fn new(maker: Maker, setup: &Setup, ecn: Ecn, signals: &'static [SignalSpec]) -> PyResult<Self> {
        let half = maker.make(setup)?;
        Python::attach(|py| {
            let bound = half.bind(py);
            let defined = half::defined(bound, "SendHalf", METHODS)?;
            let (decision, timeout) = poll(bound, defined[Method::PollTimeout as usize])?;
            let half = Instance::new(SEND, half.clone_ref(py));
            Ok(Self { half, defined, signals, maker: Some(maker), bounds: None, decision, ecn, timeout })
        })
    }

    /// Creates a half that could not be made because of an exception.
    pub fn failed(decision: Decision, error: PyErr) -> Self {
        Self {
            half: Instance::failed(SEND, error),
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
        self.half.get().is_some() && self.defined[method as usize]
    }

    #[cold]
    fn fail(&mut self, error: PyErr) {
        self.half.fail(error);
        self.timeout = None;
    }

    /// Calls a method with these arguments, then updates the decision and the timeout.
    fn call(&mut self, method: Method, signals: Option<&mut Signals>, arguments: impl for<'py> PyCallArgs<'py>) {
        let Some(half) = self.half.get() else { return };
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
            Err(error) => self.fail(error),
        }
    }

    /// Calls a method with the time and this argument, if the class defines it.
    fn call_defined<A>(
        &mut self,
        now: Time,
        method: Method,
        signals: Option<&mut Signals>,
        argument: impl FnOnce() -> A,
    ) where
        (f64, A): for<'py> PyCallArgs<'py>,
    {
        if self.defines(method) {
            self.call(method, signals, (now.as_secs_f64(), argument()));
        }
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
            Event::Sent(packet) => self.call_defined(now, Method::Sent, None, || types::SentPacket::from(packet)),
            Event::Feedback(feedback) => {
                self.call_defined(now, Method::Feedback, Some(signals), || types::Feedback::from(feedback));
            }
            Event::RoundTrip(rtt) => {
                self.call_defined(now, Method::Rtt, Some(signals), || types::RoundTrip::from(rtt));
            }
            Event::Report(report) => {
                self.call_defined(now, Method::Report, Some(signals), || types::ReceiverReport::from(report));
            }
            Event::Message(message) => {
                if let Some(message) = types::Message::of(message) {
                    self.call_defined(now, Method::Message, Some(signals), || message);
                }
            }
            Event::Stream(stream) => {
                self.call_defined(now, Method::Stream, None, || types::StreamState::from(stream));
            }
            Event::StreamRemoved(stream) => self.call_defined(now, Method::StreamRemoved, None, || stream.0),
            Event::Frame(frame) => self.call_defined(now, Method::Frame, None, || types::QueuedFrame::from(frame)),
            Event::ApplicationLimit(limited) => {
                self.call_defined(now, Method::ApplicationLimit, None, || limited);
            }
            Event::Bounds(bounds) if self.defines(Method::Bounds) => {
                self.call_defined(now, Method::Bounds, Some(signals), || types::Bounds::from(bounds));
            }
            Event::Bounds(bounds) => self.bounds = Some(*bounds),
            Event::RouteChange(setup) => self.handle_route_change(now, setup, signals),
            Event::Availability(available) => self.call_defined(now, Method::Availability, None, || available),
            Event::Timeout => self.handle_timeout(now, signals),
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        if self.half.has_failure() { Some(Time::ZERO) } else { self.timeout }
    }

    fn decision(&self) -> Decision {
        let mut decision = self.decision.with_ecn(self.ecn);
        let Some(bounds) = self.bounds else { return decision };
        let target = bounds.clamp(decision.target);
        if target > decision.target {
            decision.pacing = decision.pacing.max(target);
        }
        decision.target = target;
        decision.with_stable_target(target).with_padding(decision.padding.min(target))
    }

    fn poll_failure(&mut self) -> Option<Failure> {
        self.half.take_failure()
    }
}

impl PythonSendHalf {
    fn handle_route_change(&mut self, now: Time, setup: &Setup, signals: &mut Signals) {
        let Some(maker) = self.maker.as_ref().filter(|_| self.half.get().is_some()) else { return };
        if self.defines(Method::RouteChange) {
            let setup = maker.setup(setup);
            self.call(Method::RouteChange, Some(signals), (now.as_secs_f64(), setup));
            return;
        }
        // Everything that was measured is of the earlier route.
        match Self::new(maker.clone(), setup, self.ecn, self.signals) {
            Ok(half) => *self = half,
            Err(error) => self.fail(error),
        }
    }

    fn handle_timeout(&mut self, now: Time, signals: &mut Signals) {
        if !self.defined[Method::Timeout as usize] {
            self.timeout = None;
            return;
        }
        self.call(Method::Timeout, Some(signals), (now.as_secs_f64(),));
        if self.timeout.is_some_and(|at| at <= now) {
            // Else the run would not advance.
            let message = "poll_timeout() must return a later time after handle_timeout()";
            self.fail(PyRuntimeError::new_err(message));
        }
    }
}
