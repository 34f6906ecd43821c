// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packets of a run as columns in memory: those of `packets.parquet`.

use numpy::{Element, PyArray1};
use paceline_lab::results::tables::{ECN_NAMES, EVENTS};
use paceline_netsim::records::{DropReason, EventObserver, EventRecord, PacketClass, PacketRecord, RunHeader};
use paceline_units::Time;
use pyo3::prelude::*;

/// The columns that some events have.
struct More {
    hop: i16,
    waited_ns: i64,
    left_ns: i64,
    delay_ns: i64,
    reason: i8,
    marked: i8,
    ecn: i8,
}

/// -1 stands for no value.
const NONE: More = More { hop: -1, waited_ns: -1, left_ns: -1, delay_ns: -1, reason: -1, marked: -1, ecn: -1 };

/// Records what happens to each packet. Names are indices.
#[derive(Default)]
pub struct PacketRecorder {
    flows: Vec<String>,
    hops: Vec<String>,
    time_ns: Vec<i64>,
    event: Vec<i8>,
    packet: Vec<i64>,
    flow: Vec<i16>,
    class: Vec<i8>,
    size_bytes: Vec<i32>,
    hop: Vec<i16>,
    waited_ns: Vec<i64>,
    left_ns: Vec<i64>,
    delay_ns: Vec<i64>,
    reason: Vec<i8>,
    marked: Vec<i8>,
    ecn: Vec<i8>,
}

/// Name, values, and the names that the values are indices of. -1 is a missing value in columns that may lack one.
pub type Column = (&'static str, Py<PyAny>, Option<Vec<String>>);

impl PacketRecorder {
    /// Creates a recorder of a run with these flows and hops.
    pub fn new(header: &RunHeader) -> Self {
        Self { flows: header.flows.clone(), hops: header.hops.clone(), ..Self::default() }
    }

    fn row(&mut self, at: Time, event: i8, packet: &PacketRecord, more: &More) {
        self.time_ns.push(at.as_nanos());
        self.event.push(event);
        self.packet.push(i64::try_from(packet.packet).unwrap_or(i64::MAX));
        self.flow.push(packet.flow.0 as i16);
        self.class.push(packet.class as i8);
        self.size_bytes.push(i32::try_from(packet.size.as_bytes()).unwrap_or(i32::MAX));
        self.hop.push(more.hop);
        self.waited_ns.push(more.waited_ns);
        self.left_ns.push(more.left_ns);
        self.delay_ns.push(more.delay_ns);
        self.reason.push(more.reason);
        self.marked.push(more.marked);
        self.ecn.push(more.ecn);
    }

    /// Returns the columns in the order of the Parquet table.
    pub fn columns(self, py: Python<'_>) -> Vec<Column> {
        let texts = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        vec![
            ("time_ns", array(py, self.time_ns), None),
            ("event", array(py, self.event), texts(&EVENTS)),
            ("packet", array(py, self.packet), None),
            ("flow", array(py, self.flow), Some(self.flows)),
            ("class", array(py, self.class), texts(&PacketClass::NAMES)),
            ("size_bytes", array(py, self.size_bytes), None),
            ("hop", array(py, self.hop), Some(self.hops)),
            ("waited_ns", array(py, self.waited_ns), None),
            ("left_ns", array(py, self.left_ns), None),
            ("delay_ns", array(py, self.delay_ns), None),
            ("reason", array(py, self.reason), texts(&DropReason::NAMES)),
            ("marked", array(py, self.marked), None),
            ("ecn", array(py, self.ecn), texts(&ECN_NAMES)),
        ]
    }
}

/// Converts values to a numpy array, which owns them.
pub fn array<T: Element>(py: Python<'_>, values: Vec<T>) -> Py<PyAny> {
    PyArray1::from_vec(py, values).into_any().unbind()
}

impl EventObserver for PacketRecorder {
    fn on_event(&mut self, event: &EventRecord) {
        match *event {
            EventRecord::Sent { at, packet } => self.row(at, 0, &packet, &NONE),
            EventRecord::Crossed { at, hop, packet, waited, left, marked } => {
                let (waited_ns, left_ns) = (waited.as_nanos(), left.as_nanos());
                self.row(at, 1, &packet, &More { hop: hop as i16, waited_ns, left_ns, marked: marked.into(), ..NONE });
            }
            EventRecord::Dropped { at, hop, packet, reason, left } => {
                let left_ns = left.map_or(NONE.left_ns, |left| left.as_nanos());
                self.row(at, 2, &packet, &More { hop: hop as i16, reason: reason as i8, left_ns, ..NONE });
            }
            EventRecord::Arrived { at, packet, delay, ecn } => {
                self.row(at, 3, &packet, &More { delay_ns: delay.as_nanos(), ecn: ecn as i8, ..NONE });
            }
            _ => {}
        }
    }
}
