// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names, types and values of the columns. Writer, reader and documentation use this declaration.

use paceline_netsim::records::{DropReason, PacketClass};

pub(super) struct TableSchema {
    pub(super) name: &'static str,
    pub(super) columns: &'static [ColumnSchema],
}

#[derive(Clone, Copy)]
pub(super) struct ColumnSchema {
    pub(super) name: &'static str,
    pub(super) values: Values,
    pub(super) optional: bool,
    /// The rows with a value, or its meaning, if the name does not show it.
    #[cfg_attr(not(test), expect(dead_code, reason = "only for the documentation"))]
    note: &'static str,
}

#[derive(Clone, Copy)]
pub(super) enum Values {
    Int64,
    Int32,
    Float64,
    Bool,
    OneOf(&'static [&'static str]),
    /// Names and units in the run's header.
    Flow,
    Hop,
    Signal,
    SignalUnit,
}

/// What happened to a packet, in the order of [`EVENTS`].
#[derive(Clone, Copy)]
pub(super) enum PacketEvent {
    Sent,
    Crossed,
    Dropped,
    Arrived,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowKind {
    /// A round-trip time, ms.
    RoundTrip,
    /// A reported fraction lost.
    FractionLost,
    /// The target, bit/s.
    Target,
    /// The pacing rate, bit/s.
    Pacing,
    /// The rate in a REMB, bit/s.
    Remb,
    /// Bytes read by the application of a TCP receiver.
    Read,
}

impl FlowKind {
    pub(super) const ALL: [Self; 6] =
        [Self::RoundTrip, Self::FractionLost, Self::Target, Self::Pacing, Self::Remb, Self::Read];
}

impl PacketEvent {
    pub(super) const ALL: [Self; 4] = [Self::Sent, Self::Crossed, Self::Dropped, Self::Arrived];
}

/// The events of a packet: the names in the column `event` of `packets`.
pub const EVENTS: [&str; 4] = ["sent", "crossed", "dropped", "arrived"];
/// In the order of [`FlowKind::ALL`].
pub(super) const FLOW_KINDS: [&str; 6] = ["rtt", "fraction_lost", "target", "pacing", "remb", "read"];
/// Unit of each of [`FLOW_KINDS`].
const FLOW_UNITS: [&str; 6] = ["ms", "", "bit/s", "bit/s", "bit/s", "bytes"];
/// The ECN codepoints, in order: the names in the column `ecn` of `packets`.
pub const ECN_NAMES: [&str; 4] = ["not_ect", "ect1", "ect0", "ce"];
/// In the order of [`HalfName`](paceline_netsim::records::HalfName).
pub(super) const HALVES: [&str; 2] = ["send", "receive"];

/// Units, for the metadata of each file.
pub(super) const UNITS: &str = "time_ns, captured_ns and left_ns: ns since the start of the run, on the world's clock; waited_ns and delay_ns: ns; \
     packets.size_bytes: bytes on the network, IP and UDP headers included; frames.size_bytes: bytes encoded; \
     value: in the row's unit, which is empty for a plain number";

pub(super) const TIME: ColumnSchema = column("time_ns", Values::Int64);
pub(super) const FLOW: ColumnSchema = column("flow", Values::Flow);
pub(super) const VALUE: ColumnSchema = column("value", Values::Float64);

pub(super) const EVENT: ColumnSchema = column("event", Values::OneOf(&EVENTS));
pub(super) const CLASS: ColumnSchema = column("class", Values::OneOf(&PacketClass::NAMES));
pub(super) const PACKET_SIZE: ColumnSchema = column("size_bytes", Values::Int32);
pub(super) const HOP: ColumnSchema = optional("hop", Values::Hop, "null at endpoints");
pub(super) const WAITED: ColumnSchema = optional("waited_ns", Values::Int64, "`crossed` only");
pub(super) const LEFT: ColumnSchema = optional("left_ns", Values::Int64, "`crossed`, and `dropped` on the wire");
pub(super) const DELAY: ColumnSchema = optional("delay_ns", Values::Int64, "`arrived` only");

pub(super) const PACKET: ColumnSchema = column("packet", Values::Int64);
pub(super) const REASON: ColumnSchema = optional("reason", Values::OneOf(&DropReason::NAMES), "`dropped` only");
pub(super) const MARKED: ColumnSchema =
    optional("marked", Values::Bool, "`crossed` only; congestion experienced, set by this hop");
pub(super) const ECN: ColumnSchema = optional("ecn", Values::OneOf(&ECN_NAMES), "`arrived` only");

pub(super) const KIND: ColumnSchema = column("kind", Values::OneOf(&FLOW_KINDS));

pub(super) const STREAM: ColumnSchema = column("stream", Values::Int32);
pub(super) const CAPTURED: ColumnSchema = optional("captured_ns", Values::Int64, "null for a refused frame");
pub(super) const FRAME_SIZE: ColumnSchema = optional("size_bytes", Values::Int32, "null for a refused frame");
pub(super) const FRAMES_DROPPED: ColumnSchema =
    optional("dropped", Values::Int32, "frames given up before this one; null for a refused frame");
pub(super) const REFUSED: ColumnSchema = column("refused", Values::Bool);

pub(super) const HALF: ColumnSchema = column("half", Values::OneOf(&HALVES));
pub(super) const SIGNAL: ColumnSchema = column("signal", Values::Signal);
pub(super) const SIGNAL_UNIT: ColumnSchema = column("unit", Values::SignalUnit);

pub(super) const PACKETS: TableSchema = TableSchema {
    name: "packets",
    columns: &[TIME, EVENT, PACKET, FLOW, CLASS, PACKET_SIZE, HOP, WAITED, LEFT, DELAY, REASON, MARKED, ECN],
};

pub(super) const FLOWS: TableSchema =
    TableSchema { name: "flows", columns: &[TIME, FLOW, KIND, VALUE, column("unit", Values::OneOf(&FLOW_UNITS))] };

pub(super) const FRAMES: TableSchema =
    TableSchema { name: "frames", columns: &[TIME, FLOW, STREAM, CAPTURED, FRAME_SIZE, FRAMES_DROPPED, REFUSED] };

pub(super) const SIGNALS: TableSchema = TableSchema {
    name: "signals",
    columns: &[TIME, FLOW, HALF, SIGNAL, SIGNAL_UNIT, ColumnSchema { note: "index of a state", ..VALUE }],
};

pub(super) const TABLES: [TableSchema; 4] = [PACKETS, FLOWS, FRAMES, SIGNALS];

impl TableSchema {
    pub(super) fn file_name(&self) -> String {
        format!("{}.parquet", self.name)
    }
}

const fn column(name: &'static str, values: Values) -> ColumnSchema {
    ColumnSchema { name, values, optional: false, note: "" }
}

const fn optional(name: &'static str, values: Values, note: &'static str) -> ColumnSchema {
    ColumnSchema { name, values, optional: true, note }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_columns_are_those_of_the_schema() {
        let describe = |column: &ColumnSchema| {
            let mut names: Vec<String> = match column.values {
                Values::OneOf(names) => {
                    names.iter().filter(|name| !name.is_empty()).map(|n| format!("`{n}`")).collect()
                }
                _ => Vec::new(),
            };
            names.dedup();
            let parts = [names.join(", "), column.note.to_owned()];
            let about: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
            let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join("; ")) };
            format!("`{}`{about}", column.name)
        };
        let row = |table: &TableSchema| {
            let columns: Vec<String> = table.columns.iter().map(describe).collect();
            format!("| {} | {} |\n", table.name, columns.join(", "))
        };
        let rows: String = TABLES.iter().map(row).collect();
        assert_eq!(include_str!("columns.md"), format!("| table | columns |\n|---|---|\n{rows}"));
    }
}
