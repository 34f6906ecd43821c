// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the tables of a run as the events that they were written from.

use super::parquet_reader::{RowGroup, TableReader};
use super::schema::{
    CAPTURED, CLASS, DELAY, ECN, ECN_NAMES, EVENT, EVENTS, FLOW, FLOW_KINDS, FLOWS, FRAME_SIZE, FRAMES, FRAMES_DROPPED,
    FlowKind, HALF, HALVES, HOP, KIND, LEFT, MARKED, PACKET, PACKET_SIZE, PACKETS, PacketEvent, REASON, REFUSED,
    SIGNAL, SIGNAL_UNIT, SIGNALS, STREAM, TIME, TableSchema, VALUE, WAITED,
};
use crate::results::stored::About;
use crate::results::{StoreError, files};
use paceline_netsim::records::{
    DropReason, EventObserver, EventRecord, HalfName, PacketClass, PacketRecord, RunHeader,
};
use paceline_units::{DataSize, Ecn, FlowId, Rate, StreamId, Time, TimeDelta};
use parquet::data_type::{BoolType, DoubleType, Int32Type, Int64Type};
use std::fs::File;
use std::path::Path;

/// Rows that are passed on together.
const BATCH: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignalRow<'a> {
    pub at: Time,
    pub flow: FlowId,
    /// Whether the receive half emitted it, and not the send half.
    pub receive: bool,
    pub name: &'a str,
    /// Number of the name: equal for equal names of a table.
    pub name_index: u16,
    pub unit: &'a str,
    pub value: f64,
}

/// The tables of a stored run. Each is compared with its stored checksum first, because the library panics on some
/// damage. They are read by row group, so memory is bounded for any length of run.
#[derive(Clone, Copy, Debug)]
pub struct RunTables<'a> {
    dir: &'a Path,
    about: &'a About,
}

impl<'a> RunTables<'a> {
    pub fn new(dir: &'a Path, about: &'a About) -> Self {
        Self { dir, about }
    }

    /// Passes the events of the run to `observer`: those of one table after the other, each in order of time. Changes of the link
    /// during the run are not among them, nor are signals that `header` does not name.
    ///
    /// # Errors
    /// A file cannot be read, is not as it was written, or has other columns. So it is for the other functions.
    pub fn replay(&self, header: &RunHeader, observer: &mut dyn EventObserver) -> Result<(), StoreError> {
        self.events(|events| events.iter().for_each(|event| observer.on_event(event)))?;
        self.signals(|rows| {
            for row in rows {
                let half = if row.receive { HalfName::Receive } else { HalfName::Send };
                let names = header.signals.get(usize::from(row.flow.0)).map(|halves| &halves[half as usize]);
                let index = names.and_then(|names| names.iter().position(|(name, _)| name == row.name));
                if let Some(signal) = index.and_then(|index| u8::try_from(index).ok()) {
                    let SignalRow { at, flow, value, .. } = *row;
                    observer.on_event(&EventRecord::Signal { at, flow, half, signal, value });
                }
            }
        })
    }

    /// Calls `each` with all events except signals, some at a time: those of one table after the other, each in order of time.
    pub fn events(&self, mut each: impl FnMut(&[EventRecord])) -> Result<(), StoreError> {
        self.packets(&mut each)?;
        self.flows(&mut each)?;
        self.frames(each)
    }

    /// Calls `each` with the events of `packets`.
    pub fn packets(&self, mut each: impl FnMut(&[EventRecord])) -> Result<(), StoreError> {
        let [mut time, mut number, mut waited, mut left, mut delay] = [const { Vec::new() }; 5];
        let [mut event, mut flow, mut class, mut hop, mut reason, mut ecn] = [const { Vec::new() }; 6];
        let (mut size, mut marked) = (Vec::new(), Vec::new());
        self.row_groups(PACKETS, |group| {
            group.required::<Int64Type>(TIME, &mut time)?;
            group.check_times(TIME, &time)?;
            group.names(EVENT, &EVENTS, &mut event)?;
            group.required::<Int64Type>(PACKET, &mut number)?;
            group.names(FLOW, &self.about.flows, &mut flow)?;
            group.names(CLASS, &PacketClass::NAMES, &mut class)?;
            group.required::<Int32Type>(PACKET_SIZE, &mut size)?;
            group.names(HOP, &self.about.hops, &mut hop)?;
            let at_hop = [PacketEvent::Crossed as u16, PacketEvent::Dropped as u16];
            group.names_exist(HOP, |row| at_hop.contains(&event[row]))?;
            group.optional::<Int64Type>(WAITED, &mut waited)?;
            group.optional::<Int64Type>(LEFT, &mut left)?;
            group.optional::<Int64Type>(DELAY, &mut delay)?;
            group.names(REASON, &DropReason::NAMES, &mut reason)?;
            group.optional::<BoolType>(MARKED, &mut marked)?;
            group.names(ECN, &ECN_NAMES, &mut ecn)?;
            batches(time.len(), &mut each, |row| {
                let (at, hop, left) = (Time::from_nanos(time[row]), hop[row], Time::from_nanos(left[row]));
                let packet = PacketRecord {
                    packet: number[row] as u64,
                    flow: FlowId(flow[row]),
                    class: PacketClass::ALL[usize::from(class[row])],
                    size: bytes(size[row]),
                };
                Some(match PacketEvent::ALL[usize::from(event[row])] {
                    PacketEvent::Sent => EventRecord::Sent { at, packet },
                    PacketEvent::Crossed => {
                        let waited = TimeDelta::from_nanos(waited[row]);
                        EventRecord::Crossed { at, hop, packet, waited, left, marked: marked[row] }
                    }
                    PacketEvent::Dropped => {
                        let reason = DropReason::ALL[usize::from(reason[row])];
                        // Only packets that are lost on the wire were served before.
                        let left = (reason == DropReason::Loss).then_some(left);
                        EventRecord::Dropped { at, hop, packet, reason, left }
                    }
                    PacketEvent::Arrived => {
                        let (delay, ecn) = (TimeDelta::from_nanos(delay[row]), Ecn::from_bits(ecn[row] as u8));
                        EventRecord::Arrived { at, packet, delay, ecn }
                    }
                })
            });
            Ok(())
        })
    }

    /// Calls `each` with the events of `flows`.
    pub fn flows(&self, mut each: impl FnMut(&[EventRecord])) -> Result<(), StoreError> {
        let (mut time, mut value) = (Vec::new(), Vec::new());
        let [mut flow, mut kind] = [const { Vec::new() }; 2];
        // A decision has two rows: the target, then the pacing rate.
        let mut target = Rate::ZERO;
        self.row_groups(FLOWS, |group| {
            group.required::<Int64Type>(TIME, &mut time)?;
            group.check_times(TIME, &time)?;
            group.names(FLOW, &self.about.flows, &mut flow)?;
            group.names(KIND, &FLOW_KINDS, &mut kind)?;
            group.required::<DoubleType>(VALUE, &mut value)?;
            batches(time.len(), &mut each, |row| {
                let (at, flow, value) = (Time::from_nanos(time[row]), FlowId(flow[row]), value[row]);
                let rate = Rate::from_bps_f64(value);
                Some(match FlowKind::ALL[usize::from(kind[row])] {
                    FlowKind::RoundTrip => EventRecord::RoundTrip { at, flow, rtt: TimeDelta::from_millis_f64(value) },
                    FlowKind::FractionLost => EventRecord::FractionLost { at, flow, fraction: value },
                    FlowKind::Target => {
                        target = rate;
                        return None;
                    }
                    FlowKind::Pacing => EventRecord::Decision { at, flow, target, pacing: rate },
                    FlowKind::Remb => EventRecord::Remb { at, flow, rate },
                    FlowKind::Read => EventRecord::Read { at, flow, size: DataSize::from_bytes(value as u64) },
                })
            });
            Ok(())
        })
    }

    /// Calls `each` with the events of `frames`.
    pub fn frames(&self, mut each: impl FnMut(&[EventRecord])) -> Result<(), StoreError> {
        let [mut time, mut captured] = [const { Vec::new() }; 2];
        let [mut stream, mut size, mut dropped] = [const { Vec::new() }; 3];
        let (mut flow, mut refused) = (Vec::new(), Vec::new());
        self.row_groups(FRAMES, |group| {
            group.required::<Int64Type>(TIME, &mut time)?;
            group.check_times(TIME, &time)?;
            group.names(FLOW, &self.about.flows, &mut flow)?;
            group.required::<Int32Type>(STREAM, &mut stream)?;
            group.check_streams(STREAM, &stream)?;
            group.optional::<Int64Type>(CAPTURED, &mut captured)?;
            group.check_times(CAPTURED, &captured)?;
            group.optional::<Int32Type>(FRAME_SIZE, &mut size)?;
            group.optional::<Int32Type>(FRAMES_DROPPED, &mut dropped)?;
            group.required::<BoolType>(REFUSED, &mut refused)?;
            batches(time.len(), &mut each, |row| {
                let (at, flow) = (Time::from_nanos(time[row]), FlowId(flow[row]));
                let stream = StreamId(u8::try_from(stream[row]).unwrap_or(u8::MAX));
                Some(match refused[row] {
                    true => EventRecord::FrameDropped { at, flow, stream },
                    false => EventRecord::Frame {
                        at,
                        flow,
                        stream,
                        captured: Time::from_nanos(captured[row]),
                        size: bytes(size[row]),
                        dropped: u16::try_from(dropped[row]).unwrap_or(u16::MAX),
                    },
                })
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
            batches(time.len(), &mut each, |row| {
                Some(SignalRow {
                    at: Time::from_nanos(time[row]),
                    flow: FlowId(flow[row]),
                    receive: half[row] == 1,
                    name: &signals[usize::from(name[row])],
                    name_index: name[row],
                    unit: &units[usize::from(unit[row])],
                    value: value[row],
                })
            });
            Ok(())
        })
    }

    fn row_groups(
        &self,
        table: TableSchema,
        each: impl FnMut(&mut RowGroup<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (name, path) = (table.file_name(), self.dir.join(table.file_name()));
        let file = match self.about.run.files.iter().find(|file| file.name == name) {
            Some(stored) => stored.open(&path)?,
            None => File::open(&path).map_err(files::io("open", &path))?,
        };
        TableReader::new(file, path)?.row_groups(each)
    }
}

/// Calls `each` with what `row` makes of the rows, in order, up to [`BATCH`] at a time.
fn batches<R>(rows: usize, each: &mut impl FnMut(&[R]), mut row: impl FnMut(usize) -> Option<R>) {
    let mut batch = Vec::with_capacity(BATCH.min(rows));
    for from in (0..rows).step_by(BATCH) {
        batch.clear();
        batch.extend((from..rows.min(from + BATCH)).filter_map(&mut row));
        each(&batch);
    }
}

fn bytes(size: i32) -> DataSize {
    DataSize::from_bytes(u64::try_from(size).unwrap_or(0))
}
