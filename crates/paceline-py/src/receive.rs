//! A receive half in Python: `handle_arrivals` for the packets of an interval at once, which answers the rate of a REMB or
//! nothing.

use crate::controller::raise;
use crate::send::emit;
use crate::told::{self, Arrived};
use paceline::{Arrival, Message, ReceiveHalf, SignalSpec, Signals};
use paceline_units::{RemoteTime, TimeDelta};
use pyo3::prelude::*;

/// The half, the packets that it was not told of yet, and what it wants to tell.
pub struct Receiver {
    name: &'static str,
    half: Option<Py<PyAny>>,
    signals: &'static [SignalSpec],
    /// So long packets are gathered; zero: each is told at once.
    batch: TimeDelta,
    waiting: Vec<Arrived>,
    due: RemoteTime,
    message: Option<Message>,
}

impl Receiver {
    /// One that Python made.
    pub fn new(name: &'static str, half: Py<PyAny>, batch: TimeDelta, signals: &'static [SignalSpec]) -> Self {
        Self { name, half: Some(half), signals, batch, waiting: Vec::new(), due: RemoteTime::MAX, message: None }
    }

    fn tell(&mut self, now: RemoteTime, signals: &mut Signals) {
        self.due = RemoteTime::MAX;
        let packets = core::mem::take(&mut self.waiting);
        let Some(half) = &self.half else { return };
        let now_s = now.as_nanos() as f64 / 1e9;
        let answer = Python::attach(|py| {
            let half = half.bind(py);
            let answer = half.call_method1("handle_arrivals", (now_s, told::Arrivals { packets }))?;
            emit(half, self.signals, signals)?;
            let bps: Option<f64> = answer.extract()?;
            bps.map(|bps| told::rate("what handle_arrivals() answers", bps)).transpose()
        });
        match answer {
            Ok(rate) => self.message = rate.map(Message::Remb),
            Err(error) => {
                self.half = None;
                raise(self.name, "receive", format!("at {now_s:.6} s on the receiver's clock in"), error);
            }
        }
    }
}

impl ReceiveHalf for Receiver {
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, signals: &mut Signals) {
        if self.half.is_none() {
            return;
        }
        self.waiting.push((now, *arrival));
        if self.batch == TimeDelta::ZERO {
            self.tell(now, signals);
        } else if self.due == RemoteTime::MAX {
            self.due = now + self.batch;
        }
    }
    fn handle_timeout(&mut self, now: RemoteTime, signals: &mut Signals) {
        if self.due <= now {
            self.tell(now, signals);
        }
    }
    fn poll_timeout(&self) -> RemoteTime {
        self.due
    }
    fn poll_message(&mut self, _: RemoteTime) -> Option<Message> {
        self.message.take()
    }
}
