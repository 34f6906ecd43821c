//! Writes the events of a run to its four tables.

use super::join::join;
use super::parquet_writer::{Column, ColumnType, ColumnValue, TableWriter};
use super::schema::{FLOWS, FRAMES, FlowKind, PACKETS, PacketEvent, SIGNALS, TABLES, TableSchema, UNITS, Values};
use crate::StoreError;
use crate::manifest::StoredFile;
use paceline_records::{EventRecord, HalfName, PacketRecord, RunHeader};
use paceline_units::{DataSize, FlowId, Rate, StreamId, Time, TimeDelta};
use parquet::file::metadata::KeyValue;
use std::path::{Path, PathBuf};

/// Positions in [`PACKETS`] of the columns that depend on the event.
const HOP: usize = 6;
const WAITED: usize = 7;
const LEFT: usize = 8;
const DELAY: usize = 9;
const REASON: usize = 10;
const MARKED: usize = 11;
const ECN: usize = 12;

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
            EventRecord::Sent { at, packet } => self.packet(at, PacketEvent::Sent, packet, []),
            EventRecord::Crossed { at, hop, packet, waited, left, marked } => {
                let marked = (MARKED, ColumnValue::Bool(marked));
                let rest = [(HOP, self.hop(hop)?), (WAITED, span(waited)), (LEFT, time(left)), marked];
                self.packet(at, PacketEvent::Crossed, packet, rest)
            }
            EventRecord::Dropped { at, hop, packet, reason, left } => {
                let reason = (REASON, ColumnValue::Name(reason as u32));
                let left = (LEFT, left.map_or(ColumnValue::Null, time));
                self.packet(at, PacketEvent::Dropped, packet, [(HOP, self.hop(hop)?), left, reason])
            }
            EventRecord::Arrived { at, packet, delay, ecn } => {
                let rest = [(DELAY, span(delay)), (ECN, ColumnValue::Name(ecn as u32))];
                self.packet(at, PacketEvent::Arrived, packet, rest)
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
                let values = [time(captured), bytes(size), ColumnValue::Int32(i32::from(dropped))];
                self.frame(at, flow, stream, values, false)
            }
            EventRecord::FrameDropped { at, flow, stream } => {
                self.frame(at, flow, stream, [ColumnValue::Null; 3], true)
            }
            EventRecord::Signal { at, flow, half, signal, value } => self.signal(at, flow, half, signal.into(), value),
            // `about.json` has the capacity over time.
            EventRecord::LinkUpdated { .. } => Ok(()),
        }
    }

    /// Writes the remaining rows of each table.
    pub(crate) fn finish(self) -> Result<Vec<StoredFile>, StoreError> {
        let Self { packets, flows, frames, signals, .. } = self;
        let tables = TABLES.iter().zip([packets, flows, frames, signals]);
        tables.map(|(schema, table)| Ok(StoredFile { name: schema.file_name(), rows: table.finish()? })).collect()
    }

    /// Writes tables to `dir` that contain the rows of those in other folders, in order.
    pub(crate) fn join(parts: &[PathBuf], dir: &Path) -> Result<Vec<StoredFile>, StoreError> {
        let joined = |schema: &TableSchema| {
            let name = schema.file_name();
            let parts: Vec<PathBuf> = parts.iter().map(|part| part.join(&name)).collect();
            let rows = join(&parts, &dir.join(&name))?;
            Ok(StoredFile { name, rows })
        };
        TABLES.iter().map(joined).collect()
    }

    /// `rest`: positions and values of the columns that depend on the event.
    #[inline]
    fn packet<const N: usize>(
        &mut self,
        at: Time,
        event: PacketEvent,
        packet: PacketRecord,
        rest: [(usize, ColumnValue); N],
    ) -> Result<(), StoreError> {
        let of_all = [
            time(at),
            ColumnValue::Name(event as u32),
            ColumnValue::Int64(i64::try_from(packet.packet).unwrap_or(i64::MAX)),
            self.flow(packet.flow)?,
            ColumnValue::Name(packet.class as u32),
            bytes(packet.size),
        ];
        for (column, value) in of_all.into_iter().enumerate().chain(rest) {
            self.packets.set(column, value);
        }
        self.packets.end_row()
    }

    fn flow_value(&mut self, at: Time, flow: FlowId, kind: FlowKind, value: f64) -> Result<(), StoreError> {
        let flow = self.flow(flow)?;
        let kind = ColumnValue::Name(kind as u32);
        self.flows.push(&[time(at), flow, kind, ColumnValue::Float64(value), kind])
    }

    fn flow_rate(&mut self, at: Time, flow: FlowId, kind: FlowKind, rate: Rate) -> Result<(), StoreError> {
        self.flow_value(at, flow, kind, rate.as_bps_f64())
    }

    /// `values`: captured, size, dropped.
    fn frame(
        &mut self,
        at: Time,
        flow: FlowId,
        stream: StreamId,
        values: [ColumnValue; 3],
        refused: bool,
    ) -> Result<(), StoreError> {
        let flow = self.flow(flow)?;
        let [captured, size, dropped] = values;
        self.frames.push(&[
            time(at),
            flow,
            ColumnValue::Int32(stream.0.into()),
            captured,
            size,
            dropped,
            ColumnValue::Bool(refused),
        ])
    }

    fn signal(&mut self, at: Time, flow: FlowId, half: HalfName, signal: usize, value: f64) -> Result<(), StoreError> {
        let name = self.flow(flow)?;
        let spans = self.signal_spans.get(usize::from(flow.0));
        let half_index = half as usize;
        let signal = match spans.map(|halves| halves[half_index]) {
            Some((start, count)) if signal < count => index(start + signal),
            _ => return Err(StoreError::Undeclared { what: "signal", index: signal }),
        };
        self.signals.push(&[time(at), name, index(half_index), signal, signal, ColumnValue::Float64(value)])
    }

    fn flow(&self, flow: FlowId) -> Result<ColumnValue, StoreError> {
        checked("flow", flow.0, self.flow_count)
    }

    fn hop(&self, hop: u16) -> Result<ColumnValue, StoreError> {
        checked("hop", hop, self.hop_count)
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

fn time(at: Time) -> ColumnValue {
    ColumnValue::Int64(at.as_nanos())
}

fn span(span: TimeDelta) -> ColumnValue {
    ColumnValue::Int64(span.as_nanos())
}

/// Sizes above 2 GiB do not occur; they would become the largest value.
fn bytes(size: DataSize) -> ColumnValue {
    ColumnValue::Int32(i32::try_from(size.as_bytes()).unwrap_or(i32::MAX))
}

fn index(index: usize) -> ColumnValue {
    ColumnValue::Name(u32::try_from(index).expect("65,536 flows have fewer than 2^32 signals"))
}

fn checked(what: &'static str, index: u16, count: usize) -> Result<ColumnValue, StoreError> {
    if usize::from(index) < count {
        Ok(ColumnValue::Name(index.into()))
    } else {
        Err(StoreError::Undeclared { what, index: index.into() })
    }
}
