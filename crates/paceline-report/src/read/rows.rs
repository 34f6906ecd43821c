//! The rows of the four tables, in the columns that figures need.

use super::Run;
use crate::error::ReportError;
use paceline_lab::rows::PacketClass;
use parquet::data_type::{BoolType, DoubleType, Int32Type, Int64Type};

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An endpoint sent it.
    Sent,
    /// It crossed a hop.
    Crossed {
        /// Which: index among the run's hops.
        hop: u16,
        /// How long it waited, ns.
        waited_ns: i64,
        /// When its last bit left the server, ns.
        left_ns: i64,
    },
    /// A hop dropped it.
    Dropped {
        /// Which: index among the run's hops.
        hop: u16,
    },
    /// It reached its endpoint.
    Arrived {
        /// Since it was sent, ns.
        delay_ns: i64,
    },
}

/// A row of `packets`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRow {
    /// When, ns since the run's start.
    pub time_ns: i64,
    /// What happened.
    pub event: Event,
    /// Whose it is: index among the run's flows.
    pub flow: u16,
    /// Whether it travels with the flow's data, and not against.
    pub forth: bool,
    /// Size on the network.
    pub size_bytes: i32,
}

/// What a row of `flows` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// A round-trip time, ms.
    RoundTrip,
    /// A reported fraction lost.
    FractionLost,
    /// The target, bit/s.
    Target,
    /// The pacing rate, bit/s.
    Pacing,
    /// What a REMB says, bit/s.
    Remb,
    /// Bytes that TCP's application read.
    Read,
}

/// A row of `flows`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowRow {
    /// When, ns since the run's start.
    pub time_ns: i64,
    /// Of which flow: index among the run's.
    pub flow: u16,
    /// What it tells.
    pub kind: FlowKind,
    /// In that kind's unit.
    pub value: f64,
}

/// A row of `frames`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRow {
    /// When, ns since the run's start.
    pub time_ns: i64,
    /// Of which flow: index among the run's.
    pub flow: u16,
    /// Which of its streams.
    pub stream: usize,
    /// When it was captured; none if the sender refused it.
    pub captured_ns: Option<i64>,
}

/// A row of `signals`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignalRow<'a> {
    /// When, ns since the run's start.
    pub time_ns: i64,
    /// Of which flow: index among the run's.
    pub flow: u16,
    /// From the receive half, and not the send half.
    pub receive: bool,
    /// Which signal.
    pub name: &'a str,
    /// Unit of the value.
    pub unit: &'a str,
    /// What it says.
    pub value: f64,
}

const EVENTS: [&str; 4] = ["sent", "crossed", "dropped", "arrived"];
const HALVES: [&str; 2] = ["send", "receive"];
const FLOW_KINDS: [(&str, FlowKind); 6] = [
    ("rtt", FlowKind::RoundTrip),
    ("fraction_lost", FlowKind::FractionLost),
    ("target", FlowKind::Target),
    ("pacing", FlowKind::Pacing),
    ("remb", FlowKind::Remb),
    ("read", FlowKind::Read),
];

impl Run {
    /// Calls `each` with every row of `packets`, in order.
    ///
    /// # Errors
    /// The file cannot be read, or is not such a table.
    pub fn packets(&self, mut each: impl FnMut(&PacketRow)) -> Result<(), ReportError> {
        let events = owned(EVENTS);
        let classes = owned(PacketClass::NAMES);
        self.table("packets.parquet")?.groups(|group| {
            let time = group.required::<Int64Type>("time_ns")?;
            let event = group.names("event", &events)?;
            let flow = group.names("flow", &self.about.flows)?;
            let class = group.names("class", &classes)?;
            let size = group.required::<Int32Type>("size_bytes")?;
            let hop = group.optional_names("hop", &self.about.hops)?;
            let waited = group.optional::<Int64Type>("waited_ns")?;
            let left = group.optional::<Int64Type>("left_ns")?;
            let delay = group.optional::<Int64Type>("delay_ns")?;
            for row in 0..time.len() {
                let hop = hop[row].unwrap_or(0);
                let or_zero = |value: Option<i64>| value.unwrap_or(0);
                let event = match event[row] {
                    0 => Event::Sent,
                    1 => Event::Crossed { hop, waited_ns: or_zero(waited[row]), left_ns: or_zero(left[row]) },
                    2 => Event::Dropped { hop },
                    _ => Event::Arrived { delay_ns: or_zero(delay[row]) },
                };
                let forth = !PacketClass::ALL[usize::from(class[row])].goes_back();
                let (time_ns, flow, size_bytes) = (time[row], flow[row], size[row]);
                each(&PacketRow { time_ns, event, flow, forth, size_bytes });
            }
            Ok(())
        })
    }

    /// Calls `each` with every row of `flows`, in order.
    ///
    /// # Errors
    /// The file cannot be read, or is not such a table.
    pub fn flows(&self, mut each: impl FnMut(&FlowRow)) -> Result<(), ReportError> {
        let kinds = owned(FLOW_KINDS.map(|(name, _)| name));
        self.table("flows.parquet")?.groups(|group| {
            let time = group.required::<Int64Type>("time_ns")?;
            let flow = group.names("flow", &self.about.flows)?;
            let kind = group.names("kind", &kinds)?;
            let value = group.required::<DoubleType>("value")?;
            for row in 0..time.len() {
                let (_, kind) = FLOW_KINDS[usize::from(kind[row])];
                each(&FlowRow { time_ns: time[row], flow: flow[row], kind, value: value[row] });
            }
            Ok(())
        })
    }

    /// Calls `each` with every row of `frames`, in order.
    ///
    /// # Errors
    /// The file cannot be read, or is not such a table.
    pub fn frames(&self, mut each: impl FnMut(&FrameRow)) -> Result<(), ReportError> {
        self.table("frames.parquet")?.groups(|group| {
            let time = group.required::<Int64Type>("time_ns")?;
            let flow = group.names("flow", &self.about.flows)?;
            let stream = group.required::<Int32Type>("stream")?;
            let captured = group.optional::<Int64Type>("captured_ns")?;
            let refused = group.required::<BoolType>("refused")?;
            for row in 0..time.len() {
                let stream = usize::try_from(stream[row]).unwrap_or(0);
                let captured_ns = captured[row].filter(|_| !refused[row]);
                each(&FrameRow { time_ns: time[row], flow: flow[row], stream, captured_ns });
            }
            Ok(())
        })
    }

    /// Calls `each` with every row of `signals`, in order.
    ///
    /// # Errors
    /// The file cannot be read, or is not such a table.
    pub fn signals(&self, mut each: impl FnMut(&SignalRow<'_>)) -> Result<(), ReportError> {
        let halves = owned(HALVES);
        // What signals there are, and their units, only the table itself says in a folder of an older version.
        let (mut signals, mut units) = (Vec::new(), Vec::new());
        self.table("signals.parquet")?.groups(|group| {
            let time = group.required::<Int64Type>("time_ns")?;
            let flow = group.names("flow", &self.about.flows)?;
            let half = group.names("half", &halves)?;
            let name = group.any_names("signal", &mut signals)?;
            let unit = group.any_names("unit", &mut units)?;
            let value = group.required::<DoubleType>("value")?;
            for row in 0..time.len() {
                each(&SignalRow {
                    time_ns: time[row],
                    flow: flow[row],
                    receive: half[row] == 1,
                    name: &signals[usize::from(name[row])],
                    unit: &units[usize::from(unit[row])],
                    value: value[row],
                });
            }
            Ok(())
        })
    }
}

fn owned<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).into()
}
