// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time series of a run, for each flow and hop.

use paceline_netsim::records::{EventObserver, EventRecord, HalfName, RunHeader};
use paceline_units::Time;

/// A number over time.
pub struct Series {
    /// Flow or hop, and quantity, such as `video.target_bps`.
    pub name: String,
    /// Unit of the values; empty for a pure number or a state.
    pub unit: String,
    /// Times, s.
    pub time_s: Vec<f64>,
    /// Values.
    pub value: Vec<f64>,
}

impl Series {
    fn push(&mut self, at: Time, value: f64) {
        self.time_s.push(at.as_secs_f64());
        self.value.push(value);
    }
}

/// Series of each flow, with their units. The constants below are indices.
const FLOW_SERIES: [(&str, &str); 9] = [
    ("target_bps", "bit/s"),
    ("pacing_bps", "bit/s"),
    ("sent_bytes", "B"),
    ("received_bytes", "B"),
    ("one_way_ms", "ms"),
    ("rtt_ms", "ms"),
    ("fraction_lost", ""),
    ("remb_bps", "bit/s"),
    ("frame_delay_ms", "ms"),
];
const TARGET: usize = 0;
const PACING: usize = 1;
const SENT: usize = 2;
const RECEIVED: usize = 3;
const ONE_WAY: usize = 4;
const RTT: usize = 5;
const LOST: usize = 6;
const REMB: usize = 7;
const FRAME: usize = 8;
/// Series of each hop.
const HOP_SERIES: [(&str, &str); 2] = [("queue_ms", "ms"), ("dropped_bytes", "B")];

/// Records all series of a run.
pub struct SeriesRecorder {
    all: Vec<Series>,
    /// Index of the first series of each flow, and of the signals of its two halves.
    flows: Vec<(usize, [usize; 2])>,
    /// Index of the first series of each hop.
    hops: Vec<usize>,
}

impl SeriesRecorder {
    /// Creates the series of these flows and hops.
    pub fn new(header: &RunHeader) -> Self {
        let mut all = Vec::new();
        let mut add = |of: &str, names: &mut dyn Iterator<Item = (String, String)>| {
            let first = all.len();
            all.extend(names.map(|(name, unit)| Series {
                name: format!("{of}.{name}"),
                unit,
                time_s: Vec::new(),
                value: Vec::new(),
            }));
            first
        };
        let owned = |(name, unit): &(&str, &str)| ((*name).to_owned(), (*unit).to_owned());
        let mut flows = Vec::new();
        for (id, [send, receive]) in header.flows.iter().zip(&header.signals) {
            let own = add(id, &mut FLOW_SERIES.iter().map(owned));
            let signals = [send, receive].map(|names| add(id, &mut names.iter().cloned()));
            flows.push((own, signals));
        }
        let hops = header.hops.iter().map(|id| add(id, &mut HOP_SERIES.iter().map(owned))).collect();
        Self { all, flows, hops }
    }

    /// Returns the series that have values, each in order of time.
    pub fn finish(mut self) -> Vec<Series> {
        self.all.retain(|series| !series.time_s.is_empty());
        self.all.iter_mut().for_each(order);
        self.all
    }
}

/// Sorts a series by time: with jitter, packets do not reach the end of a hop in the order in which they left the
/// queue.
fn order(series: &mut Series) {
    if !series.time_s.is_sorted() {
        let mut points: Vec<(f64, f64)> = series.time_s.iter().copied().zip(series.value.iter().copied()).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        (series.time_s, series.value) = points.into_iter().unzip();
    }
}

impl EventObserver for SeriesRecorder {
    fn on_event(&mut self, event: &EventRecord) {
        let mut of_flow = |flow: paceline_units::FlowId, which: usize, at: Time, value: f64| {
            self.all[self.flows[usize::from(flow.0)].0 + which].push(at, value);
        };
        match *event {
            EventRecord::Sent { at, packet } if !packet.class.is_from_receiver() => {
                of_flow(packet.flow, SENT, at, packet.size.as_bytes() as f64);
            }
            EventRecord::Arrived { at, packet, delay, .. } if !packet.class.is_from_receiver() => {
                of_flow(packet.flow, RECEIVED, at, packet.size.as_bytes() as f64);
                of_flow(packet.flow, ONE_WAY, at, delay.as_millis_f64());
            }
            EventRecord::RoundTrip { at, flow, rtt } => of_flow(flow, RTT, at, rtt.as_millis_f64()),
            EventRecord::FractionLost { at, flow, fraction } => of_flow(flow, LOST, at, fraction),
            EventRecord::Decision { at, flow, target, pacing } => {
                of_flow(flow, TARGET, at, target.as_bps_f64());
                of_flow(flow, PACING, at, pacing.as_bps_f64());
            }
            EventRecord::Remb { at, flow, rate } => of_flow(flow, REMB, at, rate.as_bps_f64()),
            EventRecord::Frame { at, flow, captured, .. } => of_flow(flow, FRAME, at, (at - captured).as_millis_f64()),
            EventRecord::Signal { at, flow, half, signal, value } => {
                let [send, receive] = self.flows[usize::from(flow.0)].1;
                let first = if half == HalfName::Send { send } else { receive };
                self.all[first + usize::from(signal)].push(at, value);
            }
            EventRecord::Crossed { hop, waited, left, .. } => {
                self.all[self.hops[usize::from(hop)]].push(left, waited.as_millis_f64());
            }
            EventRecord::Dropped { at, hop, packet, .. } => {
                self.all[self.hops[usize::from(hop)] + 1].push(at, packet.size.as_bytes() as f64);
            }
            EventRecord::Sent { .. }
            | EventRecord::Arrived { .. }
            | EventRecord::FrameDropped { .. }
            | EventRecord::Read { .. }
            | EventRecord::LinkUpdated { .. } => {}
        }
    }
    fn wants_signals(&self) -> bool {
        true
    }
}
