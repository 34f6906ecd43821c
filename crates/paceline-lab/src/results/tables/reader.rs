//! Reads the rows of the four tables, in the columns that figures need.

use super::parquet_reader::{RowGroup, TableReader};
use super::schema::{
    CAPTURED, CLASS, DELAY, EVENT, EVENTS, FLOW, FLOW_KINDS, FLOWS, FRAMES, FlowKind, HALF, HALVES, HOP, KIND, LEFT,
    PACKET_SIZE, PACKETS, PacketEvent, REFUSED, SIGNAL, SIGNAL_UNIT, SIGNALS, STREAM, TIME, TableSchema, VALUE, WAITED,
};
use crate::results::StoreError;
use crate::results::stored::About;
use paceline_netsim::records::PacketClass;
use parquet::data_type::{BoolType, DoubleType, Int32Type, Int64Type};
use std::path::Path;

/// Rows that are passed on together.
const BATCH: usize = 1024;

/// An event of a packet. Hops are indices among the run's hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An endpoint sent the packet.
    Sent,
    /// The packet crossed a hop.
    Crossed {
        hop: u16,
        /// Queuing delay, ns.
        waited_ns: i64,
        /// Time at which its last bit left the server, ns since the run's start.
        left_ns: i64,
    },
    Dropped {
        hop: u16,
    },
    /// The packet reached its endpoint.
    Arrived {
        /// One-way delay, ns.
        delay_ns: i64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRow {
    /// Time, ns since the run's start.
    pub time_ns: i64,
    pub event: Event,
    /// Index among the run's flows.
    pub flow: u16,
    /// Whether it travels in the direction of the flow's data.
    pub is_forward: bool,
    pub size_bytes: i32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowRow {
    /// Time, ns since the run's start.
    pub time_ns: i64,
    /// Index among the run's flows.
    pub flow: u16,
    pub kind: FlowKind,
    /// Value in the unit of the quantity.
    pub value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRow {
    /// Time, ns since the run's start.
    pub time_ns: i64,
    /// Index among the run's flows.
    pub flow: u16,
    /// Index among the flow's streams.
    pub stream: usize,
    /// Capture time, ns since the run's start; `None` if the sender refused the frame.
    pub captured_ns: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignalRow<'a> {
    /// Time, ns since the run's start.
    pub time_ns: i64,
    /// Index among the run's flows.
    pub flow: u16,
    /// Whether the receive half emitted it, and not the send half.
    pub receive: bool,
    pub name: &'a str,
    /// Number of the name: equal for equal names of a table.
    pub name_index: u16,
    pub unit: &'a str,
    pub value: f64,
}

/// The tables of a stored run. Each is compared with its stored checksum first, because the library panics on some
/// damage. They are read by row group and only in some columns, so memory is bounded for any length of
/// run.
#[derive(Clone, Copy, Debug)]
pub struct RunTables<'a> {
    dir: &'a Path,
    about: &'a About,
}

impl<'a> RunTables<'a> {
    pub fn new(dir: &'a Path, about: &'a About) -> Self {
        Self { dir, about }
    }

    /// Calls `each` with all rows of `packets`, in order, some at a time.
    pub fn packets(&self, mut each: impl FnMut(&[PacketRow])) -> Result<(), StoreError> {
        let [mut time, mut waited, mut left, mut delay] = [const { Vec::new() }; 4];
        let [mut event, mut flow, mut class, mut hop] = [const { Vec::new() }; 4];
        let mut size = Vec::new();
        self.row_groups(PACKETS, |group| {
            group.required::<Int64Type>(TIME, &mut time)?;
            group.check_times(TIME, &time)?;
            group.names(EVENT, &EVENTS, &mut event)?;
            group.names(FLOW, &self.about.flows, &mut flow)?;
            group.names(CLASS, &PacketClass::NAMES, &mut class)?;
            group.required::<Int32Type>(PACKET_SIZE, &mut size)?;
            group.names(HOP, &self.about.hops, &mut hop)?;
            let at_hop = [PacketEvent::Crossed as u16, PacketEvent::Dropped as u16];
            group.names_exist(HOP, |row| at_hop.contains(&event[row]))?;
            group.optional::<Int64Type>(WAITED, &mut waited)?;
            group.optional::<Int64Type>(LEFT, &mut left)?;
            group.optional::<Int64Type>(DELAY, &mut delay)?;
            batches(time.len(), &mut each, |row| {
                let hop = hop[row];
                let event = match PacketEvent::ALL[usize::from(event[row])] {
                    PacketEvent::Sent => Event::Sent,
                    PacketEvent::Crossed => Event::Crossed { hop, waited_ns: waited[row], left_ns: left[row] },
                    PacketEvent::Dropped => Event::Dropped { hop },
                    PacketEvent::Arrived => Event::Arrived { delay_ns: delay[row] },
                };
                let is_forward = !PacketClass::ALL[usize::from(class[row])].is_from_receiver();
                PacketRow { time_ns: time[row], event, flow: flow[row], is_forward, size_bytes: size[row] }
            });
            Ok(())
        })
    }

    /// Calls `each` with all rows of `flows`, in order, some at a time.
    pub fn flows(&self, mut each: impl FnMut(&[FlowRow])) -> Result<(), StoreError> {
        let (mut time, mut value) = (Vec::new(), Vec::new());
        let [mut flow, mut kind] = [const { Vec::new() }; 2];
        self.row_groups(FLOWS, |group| {
            group.required::<Int64Type>(TIME, &mut time)?;
            group.check_times(TIME, &time)?;
            group.names(FLOW, &self.about.flows, &mut flow)?;
            group.names(KIND, &FLOW_KINDS, &mut kind)?;
            group.required::<DoubleType>(VALUE, &mut value)?;
            batches(time.len(), &mut each, |row| {
                let kind = FlowKind::ALL[usize::from(kind[row])];
                FlowRow { time_ns: time[row], flow: flow[row], kind, value: value[row] }
            });
            Ok(())
        })
    }

    /// Calls `each` with all rows of `frames`, in order, some at a time.
    pub fn frames(&self, mut each: impl FnMut(&[FrameRow])) -> Result<(), StoreError> {
        let [mut time, mut captured] = [const { Vec::new() }; 2];
        let (mut flow, mut stream, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        self.row_groups(FRAMES, |group| {
            group.required::<Int64Type>(TIME, &mut time)?;
            group.check_times(TIME, &time)?;
            group.names(FLOW, &self.about.flows, &mut flow)?;
            group.required::<Int32Type>(STREAM, &mut stream)?;
            group.check_streams(STREAM, &stream)?;
            group.optional::<Int64Type>(CAPTURED, &mut captured)?;
            group.check_times(CAPTURED, &captured)?;
            group.required::<BoolType>(REFUSED, &mut refused)?;
            batches(time.len(), &mut each, |row| {
                let stream = usize::try_from(stream[row]).unwrap_or(0);
                let captured_ns = (!refused[row]).then_some(captured[row]);
                FrameRow { time_ns: time[row], flow: flow[row], stream, captured_ns }
            });
            Ok(())
        })
    }

    /// Calls `each` with all rows of `signals`, in order, some at a time.
    pub fn signals(&self, mut each: impl FnMut(&[SignalRow<'_>])) -> Result<(), StoreError> {
        // In a folder of an older version only the table itself has the names and units of signals.
        let (mut signals, mut units) = (Vec::new(), Vec::new());
        let (mut time, mut value) = (Vec::new(), Vec::new());
        let [mut flow, mut half, mut name, mut unit] = [const { Vec::new() }; 4];
        self.row_groups(SIGNALS, |group| {
            group.required::<Int64Type>(TIME, &mut time)?;
            group.check_times(TIME, &time)?;
            group.names(FLOW, &self.about.flows, &mut flow)?;
            group.names(HALF, &HALVES, &mut half)?;
            group.any_names(SIGNAL, &mut signals, &mut name)?;
            group.any_names(SIGNAL_UNIT, &mut units, &mut unit)?;
            group.required::<DoubleType>(VALUE, &mut value)?;
            batches(time.len(), &mut each, |row| SignalRow {
                time_ns: time[row],
                flow: flow[row],
                receive: half[row] == 1,
                name: &signals[usize::from(name[row])],
                name_index: name[row],
                unit: &units[usize::from(unit[row])],
                value: value[row],
            });
            Ok(())
        })
    }

    pub(super) fn about(&self) -> &About {
        self.about
    }

    pub(super) fn row_groups(
        &self,
        table: TableSchema,
        each: impl FnMut(&mut RowGroup<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (name, path) = (table.file_name(), self.dir.join(table.file_name()));
        if let Some(stored) = self.about.run.files.iter().find(|file| file.name == name) {
            stored.check(&path)?;
        }
        TableReader::open(path)?.row_groups(each)
    }
}

/// Calls `each` with all rows, in order, [`BATCH`] at a time.
fn batches<R>(rows: usize, each: &mut impl FnMut(&[R]), row: impl Fn(usize) -> R) {
    let mut batch = Vec::with_capacity(BATCH.min(rows));
    for from in (0..rows).step_by(BATCH) {
        batch.clear();
        batch.extend((from..rows.min(from + BATCH)).map(&row));
        each(&batch);
    }
}
