// SPDX-License-Identifier: MIT OR Apache-2.0
//! A receive half in Python: `handle_arrivals` receives the packets of an interval and returns the rate of a REMB, or `None`.

use crate::half::{self, Instance, Maker, forward_emitted};
use crate::types::{self, Arrived};
use paceline::{Arrival, Bounds, Failure, Message, ReceiveHalf, Setup, SignalSpec, Signals};
use paceline_units::{RemoteTime, TimeDelta};
use pyo3::prelude::*;

/// The name of the half in errors.
const RECEIVE: &str = "receive";
/// A time that is always due.
const AT_ONCE: RemoteTime = RemoteTime::from_nanos(i64::MIN);

/// The optional methods.
const METHODS: [&str; 2] = ["handle_bounds", "handle_route_change"];

/// A receive half whose method is in Python, with the packets of the current interval and its last message.
#[derive(Clone, Debug)]
pub struct PythonReceiveHalf {
    half: Instance,
    /// Which of `METHODS` the class defines.
    defined: [bool; METHODS.len()],
    maker: Maker,
    signals: &'static [SignalSpec],
    /// Interval of the calls; zero: one call for each packet.
    batch: TimeDelta,
    pending: Vec<Arrived>,
    due: Option<RemoteTime>,
    message: Option<Message>,
}

impl PythonReceiveHalf {
    /// Makes an instance.
    pub fn new(maker: Maker, setup: &Setup, batch: TimeDelta, signals: &'static [SignalSpec]) -> PyResult<Self> {
        let half = maker.make(setup)?;
        let defined = Python::attach(|py| half::defined(half.bind(py), "ReceiveHalf", METHODS))?;
        let (half, pending) = (Instance::new(RECEIVE, half), Vec::new());
        Ok(Self { half, defined, maker, signals, batch, pending, due: None, message: None })
    }

    /// Creates a half that could not be made because of an exception.
    pub fn failed(maker: Maker, error: PyErr) -> Self {
        let (half, defined, pending) = (Instance::failed(RECEIVE, error), [false; METHODS.len()], Vec::new());
        Self { half, defined, maker, signals: &[], batch: TimeDelta::ZERO, pending, due: None, message: None }
    }

    /// Calls a method that returns nothing.
    fn notify(&mut self, now: RemoteTime, method: &str, argument: impl for<'py> IntoPyObject<'py, Error: Into<PyErr>>) {
        let Some(half) = self.half.get() else { return };
        if let Err(error) = Python::attach(|py| half.call_method1(py, method, (seconds(now), argument))) {
            self.half.fail(error);
        }
    }

    /// Calls `handle_arrivals` with the pending packets.
    fn call(&mut self, now: RemoteTime, signals: &mut Signals) {
        self.due = None;
        let packets = core::mem::take(&mut self.pending);
        let Some(half) = self.half.get() else { return };
        let result = Python::attach(|py| {
            let half = half.bind(py);
            let result = half.call_method1("handle_arrivals", (seconds(now), types::Arrivals { packets }))?;
            forward_emitted(half, self.signals, signals)?;
            let bps: Option<f64> = result.extract()?;
            bps.map(|bps| types::rate("the result of handle_arrivals()", bps)).transpose()
        });
        match result {
            Ok(rate) => self.message = rate.map(Message::Remb),
            Err(error) => self.half.fail(error),
        }
    }
}

fn seconds(now: RemoteTime) -> f64 {
    now.as_nanos() as f64 / 1e9
}

impl ReceiveHalf for PythonReceiveHalf {
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, signals: &mut Signals) {
        if self.half.get().is_none() {
            return;
        }
        self.pending.push((now, *arrival));
        if self.batch == TimeDelta::ZERO {
            self.call(now, signals);
        } else {
            self.due.get_or_insert(now + self.batch);
        }
    }
    fn handle_bounds(&mut self, now: RemoteTime, bounds: &Bounds) {
        if self.defined[0] {
            self.notify(now, METHODS[0], types::Bounds::from(bounds));
        }
    }
    fn handle_route_change(&mut self, now: RemoteTime, setup: &Setup) {
        if self.half.get().is_none() {
            return;
        }
        // Arrivals and messages are of the earlier route.
        (self.pending, self.due, self.message) = (Vec::new(), None, None);
        if self.defined[1] {
            self.notify(now, METHODS[1], self.maker.setup(setup));
            return;
        }
        match Self::new(self.maker.clone(), setup, self.batch, self.signals) {
            Ok(half) => *self = half,
            Err(error) => self.half.fail(error),
        }
    }
    fn handle_timeout(&mut self, now: RemoteTime, signals: &mut Signals) {
        if self.due.is_some_and(|due| due <= now) {
            self.call(now, signals);
        }
    }
    fn poll_timeout(&self) -> Option<RemoteTime> {
        if self.half.has_failure() { Some(AT_ONCE) } else { self.due }
    }
    fn poll_message(&mut self, _: RemoteTime) -> Option<Message> {
        self.message.take()
    }
    fn poll_failure(&mut self) -> Option<Failure> {
        self.half.take_failure()
    }
}
