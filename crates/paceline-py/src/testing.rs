// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drives the halves of a controller by hand, so that programs can test what no scenario does: new limits, another route, no
//! network.

use crate::controller::Registered;
use crate::half::exception;
use crate::request::{check_controller, registry};
use crate::types::Decision;
use paceline::{Bounds, Controller, Event, Failure, Guard, ReceiveHalf, SendHalf, Setup, Signals};
use paceline_units::{DataSize, Rate, RemoteTime, StreamId, Time, TimeDelta};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The start, the minimum and the maximum of the target, bit/s, and the size of packets, bytes.
pub(crate) type SetupNumbers = (u64, u64, u64, u64);

/// Builds a controller, its send half under the guard.
pub(crate) fn build(
    name: &str,
    setup: SetupNumbers,
    parameters: &[(String, f64)],
    controllers: Vec<Registered>,
) -> PyResult<Controller> {
    let registry = registry(controllers)?;
    check_controller(name, &registry)?;
    let entry = registry.get(name).expect("it was checked");
    let built = entry.build(&setup_of(setup), parameters).map_err(|e| PyValueError::new_err(e.to_string()));
    let mut controller = built?;
    raised(controller.send.as_mut().and_then(|half| half.poll_failure()))?;
    raised(controller.receive.as_mut().and_then(|half| half.poll_failure()))?;
    Ok(controller)
}

/// Raises the exception of a half that failed.
pub(crate) fn raised(failure: Option<Failure>) -> PyResult<()> {
    let Some(failure) = failure else { return Ok(()) };
    Err(Python::attach(|py| exception(py, &failure))
        .unwrap_or_else(|| PyRuntimeError::new_err(format!("the controller {failure}"))))
}

pub(crate) fn setup_of((start, min, max, packet_size): SetupNumbers) -> Setup {
    let mut setup = Setup::new(Rate::from_bps(start), Rate::from_bps(min), Rate::from_bps(max));
    setup.packet_size = DataSize::from_bytes(packet_size);
    setup
}

pub(crate) fn bounds_of(min_bps: u64, max_bps: u64) -> Bounds {
    Bounds::new(Rate::from_bps(min_bps), Rate::from_bps(max_bps))
}

fn lacks(half: &str) -> PyErr {
    PyValueError::new_err(format!("the controller has no {half} half"))
}

fn locked<T>(half: &Mutex<T>) -> MutexGuard<'_, T> {
    half.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The send half of a controller.
#[pyclass(frozen, module = "paceline.testing")]
pub struct Sender(Mutex<Guard>);

#[pymethods]
impl Sender {
    #[new]
    fn new(
        name: &str,
        setup: SetupNumbers,
        parameters: Vec<(String, f64)>,
        controllers: Vec<Registered>,
    ) -> PyResult<Self> {
        let controller = build(name, setup, &parameters, controllers)?;
        controller.send.map(|half| Self(Mutex::new(half))).ok_or_else(|| lacks("send"))
    }

    /// Returns the current decision.
    #[getter]
    fn decision(&self) -> Decision {
        Decision::from(&locked(&self.0).decision())
    }

    /// Passes new limits of the target.
    fn handle_bounds(&self, now_s: f64, min_bps: u64, max_bps: u64) -> PyResult<()> {
        self.call(now_s, &Event::Bounds(&bounds_of(min_bps, max_bps)))
    }

    /// Passes a change of the route.
    fn handle_route_change(&self, now_s: f64, setup: SetupNumbers) -> PyResult<()> {
        self.call(now_s, &Event::RouteChange(&setup_of(setup)))
    }

    /// Passes the loss or the return of the network.
    fn handle_availability(&self, now_s: f64, available: bool) -> PyResult<()> {
        self.call(now_s, &Event::Availability(available))
    }

    /// Passes the end of a stream.
    fn handle_stream_removed(&self, now_s: f64, stream: u8) -> PyResult<()> {
        self.call(now_s, &Event::StreamRemoved(StreamId(stream)))
    }
}

impl Sender {
    fn call(&self, now_s: f64, event: &Event<'_>) -> PyResult<()> {
        let mut half = locked(&self.0);
        half.handle_event(Time::from_secs_f64(now_s), event, &mut Signals::disabled());
        raised(half.poll_failure())
    }
}

/// The receive half of a controller.
#[pyclass(frozen, module = "paceline.testing")]
pub struct Receiver(Mutex<Box<dyn ReceiveHalf>>);

#[pymethods]
impl Receiver {
    #[new]
    fn new(
        name: &str,
        setup: SetupNumbers,
        parameters: Vec<(String, f64)>,
        controllers: Vec<Registered>,
    ) -> PyResult<Self> {
        let controller = build(name, setup, &parameters, controllers)?;
        controller.receive.map(|half| Self(Mutex::new(half))).ok_or_else(|| lacks("receive"))
    }

    /// Passes new limits of the target.
    fn handle_bounds(&self, now_s: f64, min_bps: u64, max_bps: u64) -> PyResult<()> {
        self.call(|half| half.handle_bounds(remote(now_s), &bounds_of(min_bps, max_bps)))
    }

    /// Passes a change of the route.
    fn handle_route_change(&self, now_s: f64, setup: SetupNumbers) -> PyResult<()> {
        self.call(|half| half.handle_route_change(remote(now_s), &setup_of(setup)))
    }
}

impl Receiver {
    fn call(&self, work: impl FnOnce(&mut dyn ReceiveHalf)) -> PyResult<()> {
        let half = &mut **locked(&self.0);
        work(half);
        raised(half.poll_failure())
    }
}

fn remote(now_s: f64) -> RemoteTime {
    RemoteTime::from_nanos(0) + TimeDelta::from_secs_f64(now_s)
}
