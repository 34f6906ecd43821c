//! A receive half in Python: `handle_arrivals` receives the packets of an interval and returns the rate of a REMB, or `None`.

use crate::half::{copied, forward_emitted, raise};
use crate::types::{self, Arrived};
use paceline::{Arrival, Message, ReceiveHalf, SignalSpec, Signals};
use paceline_units::{RemoteTime, TimeDelta};
use pyo3::prelude::*;

/// A receive half whose method is in Python, with the packets of the current interval and its last message.
#[derive(Debug)]
pub struct PythonReceiveHalf {
    name: &'static str,
    /// `None` after an exception.
    half: Option<Py<PyAny>>,
    signals: &'static [SignalSpec],
    /// Interval of the calls; zero: one call for each packet.
    batch: TimeDelta,
    pending: Vec<Arrived>,
    due: Option<RemoteTime>,
    message: Option<Message>,
}

impl PythonReceiveHalf {
    /// Wraps an instance.
    pub fn new(name: &'static str, half: Py<PyAny>, batch: TimeDelta, signals: &'static [SignalSpec]) -> Self {
        Self { name, half: Some(half), signals, batch, pending: Vec::new(), due: None, message: None }
    }

    /// Calls `handle_arrivals` with the pending packets.
    fn call(&mut self, now: RemoteTime, signals: &mut Signals) {
        self.due = None;
        let packets = core::mem::take(&mut self.pending);
        let Some(half) = &self.half else { return };
        let now_s = now.as_nanos() as f64 / 1e9;
        let result = Python::attach(|py| {
            let half = half.bind(py);
            let result = half.call_method1("handle_arrivals", (now_s, types::Arrivals { packets }))?;
            forward_emitted(half, self.signals, signals)?;
            let bps: Option<f64> = result.extract()?;
            bps.map(|bps| types::rate("the result of handle_arrivals()", bps)).transpose()
        });
        match result {
            Ok(rate) => self.message = rate.map(Message::Remb),
            Err(error) => {
                self.half = None;
                raise(self.name, "receive", format!("at {now_s:.6} s on the receiver's clock in"), error);
            }
        }
    }
}

/// A snapshot has a deep copy of the instance.
impl Clone for PythonReceiveHalf {
    fn clone(&self) -> Self {
        let half = copied(self.half.as_ref(), self.name, "receive");
        Self { half, pending: self.pending.clone(), ..*self }
    }
}

impl ReceiveHalf for PythonReceiveHalf {
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, signals: &mut Signals) {
        if self.half.is_none() {
            return;
        }
        self.pending.push((now, *arrival));
        if self.batch == TimeDelta::ZERO {
            self.call(now, signals);
        } else {
            self.due.get_or_insert(now + self.batch);
        }
    }
    fn handle_timeout(&mut self, now: RemoteTime, signals: &mut Signals) {
        if self.due.is_some_and(|due| due <= now) {
            self.call(now, signals);
        }
    }
    fn poll_timeout(&self) -> Option<RemoteTime> {
        self.due
    }
    fn poll_message(&mut self, _: RemoteTime) -> Option<Message> {
        self.message.take()
    }
}
