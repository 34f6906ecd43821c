//! The four tables of a run: their columns, and which row goes where.

use super::join::join;
use super::table::{Cell, Column, Kind, Table};
use super::{StoreError, StoredFile};
use crate::rows::{DropReason, HalfName, PacketClass, PacketRow, Row, RunHeader};
use paceline_units::{DataSize, FlowId, Rate, StreamId, Time, TimeDelta};
use parquet::data_type::ByteArray;
use parquet::file::metadata::KeyValue;
use std::path::{Path, PathBuf};

/// The tables.
const NAMES: [&str; 4] = ["packets", "flows", "frames", "signals"];

/// Goes into each file's metadata.
const UNITS: &str = "time_ns, captured_ns and left_ns: ns since the start of the run, on the world's clock; waited_ns and delay_ns: ns; \
     packets.size_bytes: bytes on the network, IP and UDP headers included; frames.size_bytes: bytes encoded; \
     value: in the row's unit, which is empty for a plain number";

/// In the order of [`PacketEvent`].
const EVENTS: [&str; 4] = ["sent", "crossed", "dropped", "arrived"];
/// In the order of [`FlowKind`].
const FLOW_KINDS: [&str; 6] = ["rtt", "fraction_lost", "target", "pacing", "remb", "read"];
/// Unit of each of [`FLOW_KINDS`].
const FLOW_UNITS: [&str; 6] = ["ms", "", "bit/s", "bit/s", "bit/s", "bytes"];
/// In the order of the codepoints.
const ECN: [&str; 4] = ["not_ect", "ect1", "ect0", "ce"];
/// In the order of [`HalfName`].
const HALVES: [&str; 2] = ["send", "receive"];

#[derive(Clone, Copy)]
enum PacketEvent {
    Sent,
    Crossed,
    Dropped,
    Arrived,
}

#[derive(Clone, Copy)]
enum FlowKind {
    RoundTrip,
    FractionLost,
    Target,
    Pacing,
    Remb,
    Read,
}

/// The tables, open.
#[derive(Debug)]
pub(super) struct Tables {
    packets: Table,
    flows: Table,
    frames: Table,
    signals: Table,
    hop_count: usize,
    flow_count: usize,
    /// For each flow and half: where its signals start among all signals, and how many there are.
    signal_spans: Vec<[(usize, usize); 2]>,
}

impl Tables {
    /// Creates the files in `dir`.
    pub(super) fn create(dir: &Path, header: &RunHeader, version: &str) -> Result<Self, StoreError> {
        let flow = || column("flow", names(&header.flows));
        let mut signal_names = Vec::new();
        let mut signal_units = Vec::new();
        let mut signal_spans = Vec::new();
        for halves in &header.signals {
            signal_spans.push(halves.each_ref().map(|half| {
                let start = signal_names.len();
                signal_names.extend(half.iter().map(|(name, _)| ByteArray::from(name.as_str())));
                signal_units.extend(half.iter().map(|(_, unit)| ByteArray::from(unit.as_str())));
                (start, half.len())
            }));
        }
        let table =
            |name: &str, columns| Table::create(dir.join(file_name(name)), columns, metadata(name, header, version));
        Ok(Self {
            packets: table(
                "packets",
                vec![
                    column("time_ns", Kind::Int64),
                    column("event", names(&EVENTS)),
                    column("packet", Kind::Int64),
                    flow(),
                    column("class", names(&PacketClass::NAMES)),
                    column("size_bytes", Kind::Int32),
                    optional("hop", names(&header.hops)),
                    optional("waited_ns", Kind::Int64),
                    optional("left_ns", Kind::Int64),
                    optional("delay_ns", Kind::Int64),
                    optional("reason", names(&DropReason::NAMES)),
                    optional("marked", Kind::Bool),
                    optional("ecn", names(&ECN)),
                ],
            )?,
            flows: table(
                "flows",
                vec![
                    column("time_ns", Kind::Int64),
                    flow(),
                    column("kind", names(&FLOW_KINDS)),
                    column("value", Kind::Float64),
                    column("unit", names(&FLOW_UNITS)),
                ],
            )?,
            frames: table(
                "frames",
                vec![
                    column("time_ns", Kind::Int64),
                    flow(),
                    column("stream", Kind::Int32),
                    optional("captured_ns", Kind::Int64),
                    optional("size_bytes", Kind::Int32),
                    optional("dropped", Kind::Int32),
                    column("refused", Kind::Bool),
                ],
            )?,
            signals: table(
                "signals",
                vec![
                    column("time_ns", Kind::Int64),
                    flow(),
                    column("half", names(&HALVES)),
                    column("signal", Kind::Name(signal_names)),
                    column("unit", Kind::Name(signal_units)),
                    column("value", Kind::Float64),
                ],
            )?,
            hop_count: header.hops.len(),
            flow_count: header.flows.len(),
            signal_spans,
        })
    }

    /// Puts a row where it belongs.
    pub(super) fn row(&mut self, row: &Row) -> Result<(), StoreError> {
        use Cell::Null;
        match *row {
            Row::Sent { at, packet } => self.packet(at, PacketEvent::Sent, packet, [Null; 7]),
            Row::Crossed { at, hop, packet, waited, left, marked } => {
                let (hop, marked) = (self.hop(hop)?, Cell::Bool(marked));
                let told = [hop, span(waited), time(left), Null, Null, marked, Null];
                self.packet(at, PacketEvent::Crossed, packet, told)
            }
            Row::Dropped { at, hop, packet, reason, left } => {
                let (hop, reason) = (self.hop(hop)?, Cell::Name(reason as u32));
                let left = left.map_or(Null, time);
                self.packet(at, PacketEvent::Dropped, packet, [hop, Null, left, Null, reason, Null, Null])
            }
            Row::Arrived { at, packet, delay, ecn } => {
                let told = [Null, Null, Null, span(delay), Null, Null, Cell::Name(ecn as u32)];
                self.packet(at, PacketEvent::Arrived, packet, told)
            }
            Row::RoundTrip { at, flow, rtt } => self.flow_value(at, flow, FlowKind::RoundTrip, rtt.as_millis_f64()),
            Row::FractionLost { at, flow, fraction } => self.flow_value(at, flow, FlowKind::FractionLost, fraction),
            Row::Decision { at, flow, target, pacing } => {
                self.flow_rate(at, flow, FlowKind::Target, target)?;
                self.flow_rate(at, flow, FlowKind::Pacing, pacing)
            }
            Row::Remb { at, flow, rate } => self.flow_rate(at, flow, FlowKind::Remb, rate),
            Row::Read { at, flow, size } => self.flow_value(at, flow, FlowKind::Read, size.as_bytes() as f64),
            Row::Frame { at, flow, stream, captured, size, dropped } => {
                let told = [time(captured), bytes(size), Cell::Int32(i32::from(dropped))];
                self.frame(at, flow, stream, told, false)
            }
            Row::FrameRefused { at, flow, stream } => self.frame(at, flow, stream, [Null; 3], true),
            Row::Signal { at, flow, half, signal, value } => self.signal(at, flow, half, signal.into(), value),
        }
    }

    /// Writes what is left of each table.
    pub(super) fn finish(self) -> Result<Vec<StoredFile>, StoreError> {
        let Self { packets, flows, frames, signals, .. } = self;
        NAMES
            .into_iter()
            .zip([packets, flows, frames, signals])
            .map(|(name, table)| Ok(StoredFile { name: file_name(name), rows: table.finish()? }))
            .collect()
    }

    /// Makes the tables in `dir` of those in other folders, one after the other.
    pub(super) fn join(parts: &[PathBuf], dir: &Path) -> Result<Vec<StoredFile>, StoreError> {
        let joined = |name| {
            let name = file_name(name);
            let parts: Vec<PathBuf> = parts.iter().map(|part| part.join(&name)).collect();
            let rows = join(&parts, &dir.join(&name))?;
            Ok(StoredFile { name, rows })
        };
        NAMES.into_iter().map(joined).collect()
    }

    /// `rest`: hop, waited, left, delay, reason, marked, ECN field.
    fn packet(&mut self, at: Time, event: PacketEvent, packet: PacketRow, rest: [Cell; 7]) -> Result<(), StoreError> {
        let flow = self.flow(packet.flow)?;
        let [hop, waited, left, delay, reason, marked, ecn] = rest;
        self.packets.push(&[
            time(at),
            Cell::Name(event as u32),
            Cell::Int64(i64::try_from(packet.packet).unwrap_or(i64::MAX)),
            flow,
            Cell::Name(packet.class as u32),
            bytes(packet.size),
            hop,
            waited,
            left,
            delay,
            reason,
            marked,
            ecn,
        ])
    }

    fn flow_value(&mut self, at: Time, flow: FlowId, kind: FlowKind, value: f64) -> Result<(), StoreError> {
        let flow = self.flow(flow)?;
        let kind = Cell::Name(kind as u32);
        self.flows.push(&[time(at), flow, kind, Cell::Float64(value), kind])
    }

    fn flow_rate(&mut self, at: Time, flow: FlowId, kind: FlowKind, rate: Rate) -> Result<(), StoreError> {
        self.flow_value(at, flow, kind, rate.as_bps_f64())
    }

    /// `told`: captured, size, dropped.
    fn frame(
        &mut self,
        at: Time,
        flow: FlowId,
        stream: StreamId,
        told: [Cell; 3],
        refused: bool,
    ) -> Result<(), StoreError> {
        let flow = self.flow(flow)?;
        let [captured, size, dropped] = told;
        self.frames.push(&[time(at), flow, Cell::Int32(stream.0.into()), captured, size, dropped, Cell::Bool(refused)])
    }

    fn signal(&mut self, at: Time, flow: FlowId, half: HalfName, signal: usize, value: f64) -> Result<(), StoreError> {
        let name = self.flow(flow)?;
        let spans = self.signal_spans.get(usize::from(flow.0));
        let half_index = match half {
            HalfName::Send => 0,
            HalfName::Receive => 1,
        };
        let signal = match spans.map(|halves| halves[half_index]) {
            Some((start, count)) if signal < count => index(start + signal),
            _ => return Err(StoreError::Unnamed { what: "signal", index: signal }),
        };
        self.signals.push(&[time(at), name, index(half_index), signal, signal, Cell::Float64(value)])
    }

    fn flow(&self, flow: FlowId) -> Result<Cell, StoreError> {
        named("flow", flow.0, self.flow_count)
    }

    fn hop(&self, hop: u16) -> Result<Cell, StoreError> {
        named("hop", hop, self.hop_count)
    }
}

fn file_name(table: &str) -> String {
    format!("{table}.parquet")
}

fn column(name: &'static str, kind: Kind) -> Column {
    Column { name: name.into(), kind, optional: false }
}

fn optional(name: &'static str, kind: Kind) -> Column {
    Column { name: name.into(), kind, optional: true }
}

fn names<S: AsRef<str>>(names: &[S]) -> Kind {
    Kind::Name(names.iter().map(|name| ByteArray::from(name.as_ref())).collect())
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

fn time(at: Time) -> Cell {
    Cell::Int64(at.as_nanos())
}

fn span(span: TimeDelta) -> Cell {
    Cell::Int64(span.as_nanos())
}

/// Sizes above 2 GiB, of which there are none, become the largest.
fn bytes(size: DataSize) -> Cell {
    Cell::Int32(i32::try_from(size.as_bytes()).unwrap_or(i32::MAX))
}

fn index(index: usize) -> Cell {
    Cell::Name(u32::try_from(index).expect("65,536 flows have fewer than 2^32 signals"))
}

fn named(what: &'static str, index: u16, count: usize) -> Result<Cell, StoreError> {
    if usize::from(index) < count {
        Ok(Cell::Name(index.into()))
    } else {
        Err(StoreError::Unnamed { what, index: index.into() })
    }
}
