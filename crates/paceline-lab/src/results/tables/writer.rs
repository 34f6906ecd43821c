// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the events of a run to its four tables.

use super::join::join;
use super::parquet_writer::{Column, ColumnType, TableWriter};
use super::schema::{FLOWS, FRAMES, FlowKind, PACKETS, PacketEvent, SIGNALS, TABLES, TableSchema, UNITS, Values};
use crate::results::StoreError;
use crate::results::stored::StoredFile;
use paceline_netsim::records::{EventRecord, HalfName, PacketRecord, RunHeader};
use paceline_units::{DataSize, FlowId, Rate, StreamId, Time};
use parquet::file::metadata::KeyValue;
use std::path::{Path, PathBuf};

// Positions in `PACKETS` of the columns that depend on the event.
const HOP: usize = 6;
const WAITED: usize = 7;
const LEFT: usize = 8;
const DELAY: usize = 9;
const REASON: usize = 10;
const MARKED: usize = 11;
const ECN: usize = 12;

// Positions in `FRAMES` of the columns that are null for a refused frame.
const CAPTURED: usize = 3;
const FRAME_SIZE: usize = 4;
const FRAMES_DROPPED: usize = 5;

#[derive(Debug)]
pub(crate) struct EventTables {
    packets: TableWriter,
    flows: TableWriter,
    frames: TableWriter,
    signals: TableWriter,
    hop_count: usize,
    flow_count: usize,
    /// For each flow and half: index of its first signal among all signals, and number of signals.
    signal_spans: Vec<[(usize, usize); 2]>,
}

impl EventTables {
    pub(crate) fn create(dir: &Path, header: &RunHeader, version: &str) -> Result<Self, StoreError> {
        let (mut signal_names, mut signal_units, mut signal_spans) = (Vec::new(), Vec::new(), Vec::new());
        for halves in &header.signals {
            signal_spans.push(halves.each_ref().map(|half| {
                let start = signal_names.len();
                signal_names.extend(half.iter().map(|(name, _)| name.as_str()));
                signal_units.extend(half.iter().map(|(_, unit)| unit.as_str()));
                (start, half.len())
            }));
        }
        let column_type = |values: Values| match values {
            Values::Int64 => ColumnType::Int64,
            Values::Int32 => ColumnType::Int32,
            Values::Float64 => ColumnType::Float64,
            Values::Bool => ColumnType::Bool,
            Values::OneOf(names) => name_column(names),
            Values::Flow => name_column(&header.flows),
            Values::Hop => name_column(&header.hops),
            Values::Signal => name_column(&signal_names),
            Values::SignalUnit => name_column(&signal_units),
        };
        let table = |table: TableSchema| {
            let columns = table.columns.iter().map(|column| Column {
                name: column.name.into(),
                kind: column_type(column.values),
                optional: column.optional,
            });
            let metadata = metadata(table.name, header, version);
            TableWriter::create(dir.join(table.file_name()), columns.collect(), metadata)
        };
        Ok(Self {
            packets: table(PACKETS)?,
            flows: table(FLOWS)?,
            frames: table(FRAMES)?,
            signals: table(SIGNALS)?,
            hop_count: header.hops.len(),
            flow_count: header.flows.len(),
            signal_spans,
        })
    }

    pub(crate) fn push(&mut self, event: &EventRecord) -> Result<(), StoreError> {
        match *event {
            EventRecord::Sent { at, packet } => self.packet(at, PacketEvent::Sent, packet)?.end_row(),
            EventRecord::Crossed { at, hop, packet, waited, left, marked } => {
                let hop = checked("hop", hop, self.hop_count)?;
                let row = self.packet(at, PacketEvent::Crossed, packet)?;
                row.name(HOP, hop);
                row.int64(WAITED, waited.as_nanos());
                row.int64(LEFT, left.as_nanos());
                row.bool(MARKED, marked);
                row.end_row()
            }
            EventRecord::Dropped { at, hop, packet, reason, left } => {
                let hop = checked("hop", hop, self.hop_count)?;
                let row = self.packet(at, PacketEvent::Dropped, packet)?;
                row.name(HOP, hop);
                if let Some(left) = left {
                    row.int64(LEFT, left.as_nanos());
                }
                row.name(REASON, reason as u32);
                row.end_row()
            }
            EventRecord::Arrived { at, packet, delay, ecn } => {
                let row = self.packet(at, PacketEvent::Arrived, packet)?;
                row.int64(DELAY, delay.as_nanos());
                row.name(ECN, ecn as u32);
                row.end_row()
            }
            EventRecord::RoundTrip { at, flow, rtt } => {
                self.flow_value(at, flow, FlowKind::RoundTrip, rtt.as_millis_f64())
            }
            EventRecord::FractionLost { at, flow, fraction } => {
                self.flow_value(at, flow, FlowKind::FractionLost, fraction)
            }
            EventRecord::Decision { at, flow, target, pacing } => {
                self.flow_rate(at, flow, FlowKind::Target, target)?;
                self.flow_rate(at, flow, FlowKind::Pacing, pacing)
            }
            EventRecord::Remb { at, flow, rate } => self.flow_rate(at, flow, FlowKind::Remb, rate),
            EventRecord::Read { at, flow, size } => self.flow_value(at, flow, FlowKind::Read, size.as_bytes() as f64),
            EventRecord::Frame { at, flow, stream, captured, size, dropped } => {
                let row = self.frame(at, flow, stream, false)?;
                row.int64(CAPTURED, captured.as_nanos());
                row.int32(FRAME_SIZE, bytes(size));
                row.int32(FRAMES_DROPPED, dropped.into());
                row.end_row()
            }
            EventRecord::FrameDropped { at, flow, stream } => self.frame(at, flow, stream, true)?.end_row(),
            EventRecord::Signal { at, flow, half, signal, value } => self.signal(at, flow, half, signal.into(), value),
            // The description of the run has the capacity over time.
            EventRecord::LinkUpdated { .. } => Ok(()),
        }
    }

    pub(crate) fn finish(self) -> Result<Vec<StoredFile>, StoreError> {
        let Self { packets, flows, frames, signals, .. } = self;
        let finished = |table: TableWriter| {
            let path = table.path().to_path_buf();
            StoredFile::of(&path, table.finish()?)
        };
        [packets, flows, frames, signals].into_iter().map(finished).collect()
    }

    /// Writes tables to `dir` that contain the rows of those in other folders, in order.
    pub(crate) fn join(parts: &[PathBuf], dir: &Path) -> Result<Vec<StoredFile>, StoreError> {
        let joined = |schema: &TableSchema| {
            let name = schema.file_name();
            let parts: Vec<PathBuf> = parts.iter().map(|part| part.join(&name)).collect();
            let path = dir.join(&name);
            StoredFile::of(&path, join(&parts, &path)?)
        };
        TABLES.iter().map(joined).collect()
    }

    #[inline]
    fn packet(&mut self, at: Time, event: PacketEvent, packet: PacketRecord) -> Result<&mut TableWriter, StoreError> {
        let flow = self.flow(packet.flow)?;
        let row = &mut self.packets;
        row.int64(0, at.as_nanos());
        row.name(1, event as u32);
        row.int64(2, i64::try_from(packet.packet).unwrap_or(i64::MAX));
        row.name(3, flow);
        row.name(4, packet.class as u32);
        row.int32(5, bytes(packet.size));
        Ok(row)
    }

    fn flow_value(&mut self, at: Time, flow: FlowId, kind: FlowKind, value: f64) -> Result<(), StoreError> {
        let flow = self.flow(flow)?;
        let row = &mut self.flows;
        row.int64(0, at.as_nanos());
        row.name(1, flow);
        row.name(2, kind as u32);
        row.float64(3, value);
        row.name(4, kind as u32);
        row.end_row()
    }

    fn flow_rate(&mut self, at: Time, flow: FlowId, kind: FlowKind, rate: Rate) -> Result<(), StoreError> {
        self.flow_value(at, flow, kind, rate.as_bps_f64())
    }

    fn frame(
        &mut self,
        at: Time,
        flow: FlowId,
        stream: StreamId,
        refused: bool,
    ) -> Result<&mut TableWriter, StoreError> {
        let flow = self.flow(flow)?;
        let row = &mut self.frames;
        row.int64(0, at.as_nanos());
        row.name(1, flow);
        row.int32(2, stream.0.into());
        row.bool(6, refused);
        Ok(row)
    }

    fn signal(&mut self, at: Time, flow: FlowId, half: HalfName, signal: usize, value: f64) -> Result<(), StoreError> {
        let name = self.flow(flow)?;
        let spans = self.signal_spans.get(usize::from(flow.0));
        let signal = match spans.map(|halves| halves[half as usize]) {
            Some((start, count)) if signal < count => (start + signal) as u32,
            _ => return Err(StoreError::Undeclared { what: "signal", index: signal }),
        };
        let row = &mut self.signals;
        row.int64(0, at.as_nanos());
        row.name(1, name);
        row.name(2, half as u32);
        row.name(3, signal);
        row.name(4, signal);
        row.float64(5, value);
        row.end_row()
    }

    fn flow(&self, flow: FlowId) -> Result<u32, StoreError> {
        checked("flow", flow.0, self.flow_count)
    }
}

fn name_column<S: AsRef<str>>(names: &[S]) -> ColumnType {
    ColumnType::Name(names.iter().map(|name| name.as_ref().to_owned()).collect())
}

fn metadata(table: &str, header: &RunHeader, version: &str) -> Vec<KeyValue> {
    let controllers: Vec<&str> = header.controllers.iter().map(|c| c.as_deref().unwrap_or("none")).collect();
    [
        ("scenario", header.scenario.clone()),
        ("world", header.world.clone()),
        ("seed", header.seed.to_string()),
        ("controllers", controllers.join(",")),
        ("version", version.to_owned()),
        ("table", table.to_owned()),
        ("units", UNITS.to_owned()),
    ]
    .into_iter()
    .map(|(key, value)| KeyValue::new(key.to_owned(), value))
    .collect()
}

/// Sizes above 2 GiB do not occur; they would become the largest value.
fn bytes(size: DataSize) -> i32 {
    i32::try_from(size.as_bytes()).unwrap_or(i32::MAX)
}

fn checked(what: &'static str, index: u16, count: usize) -> Result<u32, StoreError> {
    if usize::from(index) < count {
        Ok(index.into())
    } else {
        Err(StoreError::Undeclared { what, index: index.into() })
    }
}
