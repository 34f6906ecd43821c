//! The packets of a run as columns in memory: those of `packets.parquet`.

use numpy::{Element, PyArray1};
use paceline_lab::results::tables::{ECN_NAMES, EVENTS};
use paceline_netsim::records::{DropReason, EventObserver, EventRecord, PacketClass, PacketRecord, RunHeader};
use paceline_units::Time;
use pyo3::prelude::*;

/// In a column that has no value in this row.
const NULL: i8 = -1;

/// Records what happens to each packet. Names are indices.
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
        Self {
            flows: header.flows.clone(),
            hops: header.hops.clone(),
            time_ns: Vec::new(),
            event: Vec::new(),
            packet: Vec::new(),
            flow: Vec::new(),
            class: Vec::new(),
            size_bytes: Vec::new(),
            hop: Vec::new(),
            waited_ns: Vec::new(),
            left_ns: Vec::new(),
            delay_ns: Vec::new(),
            reason: Vec::new(),
            marked: Vec::new(),
            ecn: Vec::new(),
        }
    }

    /// Adds a row in which only the columns of every event have a value.
    fn row(&mut self, at: Time, event: i8, packet: &PacketRecord) {
        self.time_ns.push(at.as_nanos());
        self.event.push(event);
        self.packet.push(i64::try_from(packet.packet).unwrap_or(i64::MAX));
        self.flow.push(packet.flow.0 as i16);
        self.class.push(packet.class as i8);
        self.size_bytes.push(i32::try_from(packet.size.as_bytes()).unwrap_or(i32::MAX));
        self.hop.push(NULL.into());
        self.waited_ns.push(NULL.into());
        self.left_ns.push(NULL.into());
        self.delay_ns.push(NULL.into());
        self.reason.push(NULL);
        self.marked.push(NULL);
        self.ecn.push(NULL);
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

/// Replaces the value of the row that was added last.
fn set<T>(column: &mut [T], value: T) {
    *column.last_mut().expect("a row was added") = value;
}

impl EventObserver for PacketRecorder {
    fn on_event(&mut self, event: &EventRecord) {
        match *event {
            EventRecord::Sent { at, packet } => self.row(at, 0, &packet),
            EventRecord::Crossed { at, hop, packet, waited, left, marked } => {
                self.row(at, 1, &packet);
                set(&mut self.hop, hop as i16);
                set(&mut self.waited_ns, waited.as_nanos());
                set(&mut self.left_ns, left.as_nanos());
                set(&mut self.marked, marked.into());
            }
            EventRecord::Dropped { at, hop, packet, reason, left } => {
                self.row(at, 2, &packet);
                set(&mut self.hop, hop as i16);
                set(&mut self.reason, reason as i8);
                if let Some(left) = left {
                    set(&mut self.left_ns, left.as_nanos());
                }
            }
            EventRecord::Arrived { at, packet, delay, ecn } => {
                self.row(at, 3, &packet);
                set(&mut self.delay_ns, delay.as_nanos());
                set(&mut self.ecn, ecn as i8);
            }
            _ => {}
        }
    }
}
