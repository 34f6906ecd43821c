//! What is seen of a run: for each flow and hop, values over time.

use paceline_lab::rows::{HalfName, Row, RowSink, RunHeader};
use paceline_units::Time;

/// A number over time.
pub struct Series {
    /// Whose it is and what, such as `video.target_bps`.
    pub name: String,
    /// Unit of its values; empty for a pure number or a state.
    pub unit: String,
    /// When, s.
    pub time_s: Vec<f64>,
    /// What.
    pub value: Vec<f64>,
}

impl Series {
    fn push(&mut self, at: Time, value: f64) {
        self.time_s.push(at.as_secs_f64());
        self.value.push(value);
    }
}

/// What every flow has, with its unit; the constants below are places in it.
const OF_FLOWS: [(&str, &str); 9] = [
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
/// What every hop has.
const OF_HOPS: [(&str, &str); 2] = [("queue_ms", "ms"), ("dropped_bytes", "B")];

/// A sink that keeps all of it.
pub struct Watch {
    all: Vec<Series>,
    /// Where the series of each flow begin, and those of its two halves' signals.
    flows: Vec<(usize, [usize; 2])>,
    /// Where the series of each hop begin.
    hops: Vec<usize>,
}

impl Watch {
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
            let own = add(id, &mut OF_FLOWS.iter().map(owned));
            let signals = [send, receive].map(|names| add(id, &mut names.iter().cloned()));
            flows.push((own, signals));
        }
        let hops = header.hops.iter().map(|id| add(id, &mut OF_HOPS.iter().map(owned))).collect();
        Self { all, flows, hops }
    }

    /// Those that have a value, each in order of time.
    pub fn finish(mut self) -> Vec<Series> {
        self.all.retain(|series| !series.time_s.is_empty());
        self.all.iter_mut().for_each(order);
        self.all
    }
}

/// A hop tells of a packet when it is at the far end: with jitter that is not the order of leaving.
fn order(series: &mut Series) {
    if !series.time_s.is_sorted() {
        let mut points: Vec<(f64, f64)> = series.time_s.iter().copied().zip(series.value.iter().copied()).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        (series.time_s, series.value) = points.into_iter().unzip();
    }
}

impl RowSink for Watch {
    fn row(&mut self, row: &Row) {
        let mut of_flow = |flow: paceline_units::FlowId, which: usize, at: Time, value: f64| {
            self.all[self.flows[usize::from(flow.0)].0 + which].push(at, value);
        };
        match *row {
            Row::Sent { at, packet } if !packet.class.goes_back() => {
                of_flow(packet.flow, SENT, at, packet.size.as_bytes() as f64);
            }
            Row::Arrived { at, packet, delay, .. } if !packet.class.goes_back() => {
                of_flow(packet.flow, RECEIVED, at, packet.size.as_bytes() as f64);
                of_flow(packet.flow, ONE_WAY, at, delay.as_millis_f64());
            }
            Row::RoundTrip { at, flow, rtt } => of_flow(flow, RTT, at, rtt.as_millis_f64()),
            Row::FractionLost { at, flow, fraction } => of_flow(flow, LOST, at, fraction),
            Row::Decision { at, flow, target, pacing } => {
                of_flow(flow, TARGET, at, target.as_bps_f64());
                of_flow(flow, PACING, at, pacing.as_bps_f64());
            }
            Row::Remb { at, flow, rate } => of_flow(flow, REMB, at, rate.as_bps_f64()),
            Row::Frame { at, flow, captured, .. } => of_flow(flow, FRAME, at, (at - captured).as_millis_f64()),
            Row::Signal { at, flow, half, signal, value } => {
                let [send, receive] = self.flows[usize::from(flow.0)].1;
                let first = if half == HalfName::Send { send } else { receive };
                self.all[first + usize::from(signal)].push(at, value);
            }
            Row::Crossed { hop, waited, left, .. } => {
                self.all[self.hops[usize::from(hop)]].push(left, waited.as_millis_f64());
            }
            Row::Dropped { at, hop, packet, .. } => {
                self.all[self.hops[usize::from(hop)] + 1].push(at, packet.size.as_bytes() as f64);
            }
            Row::Sent { .. }
            | Row::Arrived { .. }
            | Row::FrameRefused { .. }
            | Row::Read { .. }
            | Row::Moved { .. } => {}
        }
    }
    fn wants_signals(&self) -> bool {
        true
    }
}
