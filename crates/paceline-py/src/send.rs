//! A send half in Python.
//!
//! Its methods are those of `paceline::SendHalf`, one call per feedback. Only what the class defines is called; after each call
//! `decision()` is asked, and `poll_timeout()` where there is one, and the answers are kept until the next. A half that
//! raised an exception is not called again: its run ends.

use crate::controller::raise;
use crate::told;
use paceline::{Decision, Feedback, Message, ReceiverReport, SendHalf, SentPacket, SignalSpec, Signals, StreamState};
use paceline_units::Time;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Which methods the class defines beyond `decision`.
#[derive(Clone, Copy, Default)]
struct Defined {
    sent: bool,
    feedback: bool,
    report: bool,
    message: bool,
    stream: bool,
    timeout: bool,
    poll: bool,
}

/// The half, and what it last answered.
pub struct Sender {
    name: &'static str,
    half: Option<Py<PyAny>>,
    defined: Defined,
    signals: &'static [SignalSpec],
    decision: Decision,
    timeout: Time,
}

impl Sender {
    /// One that Python made.
    pub fn new(name: &'static str, half: Py<PyAny>, signals: &'static [SignalSpec]) -> PyResult<Self> {
        Python::attach(|py| {
            let bound = half.bind(py);
            let base = py.import("paceline.controllers")?.getattr("SendHalf")?;
            let own = |method: &str| -> PyResult<bool> {
                let class = bound.get_type();
                Ok(class.hasattr(method)? && !class.getattr(method)?.is(&base.getattr(method)?))
            };
            let defined = Defined {
                sent: own("handle_sent")?,
                feedback: own("handle_feedback")?,
                report: own("handle_report")?,
                message: own("handle_message")?,
                stream: own("handle_stream")?,
                timeout: own("handle_timeout")?,
                poll: own("poll_timeout")?,
            };
            let (decision, timeout) = ask(bound, defined)?;
            let half = Some(half.clone_ref(py));
            Ok(Self { name, half, defined, signals, decision, timeout })
        })
    }

    /// One that says the same forever.
    pub fn mute(name: &'static str, decision: Decision) -> Self {
        Self { name, half: None, defined: Defined::default(), signals: &[], decision, timeout: Time::MAX }
    }

    #[cold]
    fn fail(&mut self, now: Time, error: PyErr) {
        (self.half, self.timeout) = (None, Time::MAX);
        raise(self.name, "send", format!("{:.6} s into", now.as_secs_f64()), error);
    }

    /// Calls a method, and keeps what the half then wants.
    fn tell(
        &mut self,
        now: Time,
        signals: Option<&mut Signals>,
        call: impl FnOnce(&Bound<'_, PyAny>, f64) -> PyResult<()>,
    ) {
        let Some(half) = &self.half else { return };
        let told = Python::attach(|py| {
            let half = half.bind(py);
            call(half, now.as_secs_f64())?;
            if let Some(signals) = signals {
                emit(half, self.signals, signals)?;
            }
            ask(half, self.defined)
        });
        match told {
            Ok((decision, timeout)) => (self.decision, self.timeout) = (decision, timeout),
            Err(error) => self.fail(now, error),
        }
    }
}

/// What the half wants now.
fn ask(half: &Bound<'_, PyAny>, defined: Defined) -> PyResult<(Decision, Time)> {
    let decision = told::Decision::of(&half.call_method0("decision")?)?;
    let timeout = if defined.poll { half.call_method0("poll_timeout")?.extract::<Option<f64>>()? } else { None };
    match timeout {
        None => Ok((decision, Time::MAX)),
        Some(at) if at.is_nan() => Err(PyValueError::new_err("poll_timeout() answers a time in s, or None for never")),
        Some(at) => Ok((decision, Time::from_secs_f64(at))),
    }
}

/// Takes what the half emitted (`emit(name, value)`) to those who listen.
pub fn emit(half: &Bound<'_, PyAny>, specs: &'static [SignalSpec], signals: &mut Signals) -> PyResult<()> {
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
        signals.emit(index as u8, value);
    }
    emitted.call_method0("clear")?;
    Ok(())
}

impl SendHalf for Sender {
    fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        if self.defined.sent {
            let (sequence, size, stream) = (packet.sequence, packet.size.as_bytes(), packet.stream.0);
            let packet = told::SentPacket { sequence, size, stream, kind: told::kind(packet.kind) };
            self.tell(now, None, |half, now_s| half.call_method1("handle_sent", (now_s, packet)).map(drop));
        }
    }
    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        if self.defined.feedback {
            let feedback = told::Feedback {
                packets: feedback.packets.to_vec(),
                outstanding_bytes: feedback.outstanding.as_bytes(),
                after_highest_bytes: feedback.after_highest.as_bytes(),
            };
            self.tell(now, Some(signals), |half, now_s| {
                half.call_method1("handle_feedback", (now_s, feedback)).map(drop)
            });
        }
    }
    fn handle_report(&mut self, now: Time, report: &ReceiverReport, signals: &mut Signals) {
        if self.defined.report {
            let (fraction_lost, rtt_s) = (report.fraction_lost.get(), report.rtt.map(|rtt| rtt.as_secs_f64()));
            let report = told::ReceiverReport { fraction_lost, rtt_s };
            self.tell(now, Some(signals), |half, now_s| half.call_method1("handle_report", (now_s, report)).map(drop));
        }
    }
    fn handle_message(&mut self, now: Time, message: &Message, signals: &mut Signals) {
        if let Some(message) = told::Message::of(message).filter(|_| self.defined.message) {
            self.tell(now, Some(signals), |half, now_s| {
                half.call_method1("handle_message", (now_s, message)).map(drop)
            });
        }
    }
    fn handle_stream(&mut self, now: Time, stream: &StreamState) {
        if self.defined.stream {
            let stream = told::StreamState {
                stream: stream.stream.0,
                queued_bytes: stream.queued.as_bytes(),
                unused_bps: stream.unused.as_bps(),
                priority: stream.priority,
            };
            self.tell(now, None, |half, now_s| half.call_method1("handle_stream", (now_s, stream)).map(drop));
        }
    }
    fn handle_timeout(&mut self, now: Time, signals: &mut Signals) {
        if !self.defined.timeout {
            self.timeout = Time::MAX;
            return;
        }
        self.tell(now, Some(signals), |half, now_s| half.call_method1("handle_timeout", (now_s,)).map(drop));
        if self.timeout <= now {
            // The run would stand still.
            let message = "poll_timeout() must answer a later time after handle_timeout()";
            self.fail(now, PyRuntimeError::new_err(message));
        }
    }
    fn poll_timeout(&self) -> Time {
        self.timeout
    }
    fn decision(&self) -> Decision {
        self.decision
    }
}
