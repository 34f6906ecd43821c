// SPDX-License-Identifier: MIT OR Apache-2.0
//! The definition of a metric.

use super::{StreamResult, WindowResult, documents::FlowResult};
use paceline_netsim::records::{Better, EventRecord, MetricInfo, MetricKind};
use paceline_scenario::{Measure, Scenario, Window};
use serde::Serialize;

/// A metric. Each file of this folder defines one or a family of them.
pub struct MetricSpec {
    pub id: &'static str,
    /// The kind of number: unit and format.
    pub kind: MetricKind,
    pub better: Better,
    pub summary: &'static str,
    /// The allowed difference between a measured and a published value.
    pub tolerance: Tolerance,
    /// Returns the value for one flow (by index) or, with none, for the run as a whole; `None` where it has none.
    pub value: fn(&WindowResult, Option<usize>, &Measure) -> Option<f64>,
    pub of_stream: Option<fn(&StreamResult) -> Option<f64>>,
    /// Creates the accumulator of the metric for a window; `None` if the scenario does not need it.
    pub(super) accumulator: Option<NewAccumulator>,
    pub(super) reads_freezes: bool,
    /// Whether it reads round-trip times, although it is no delay.
    pub(super) reads_round_trips: bool,
    pub(super) reads_shares: bool,
}

pub(super) type NewAccumulator = fn(&Scenario, Window) -> Option<Box<dyn Accumulator>>;

/// Collects the data of one metric in one window. Receives all events except those of packets, rendered frames, links and what
/// a TCP application read.
pub(super) trait Accumulator {
    /// Adds an event, whether or not it lies in the window.
    fn on_event(&mut self, event: &EventRecord);
    /// Whether it needs [`EventRecord::Signal`].
    fn wants_signals(&self) -> bool {
        false
    }
    fn values(&self) -> Vec<Option<f64>>;
}

impl MetricSpec {
    /// Creates a metric with the tolerance of its kind, and better values as for most metrics of its kind.
    pub(super) const fn new(
        id: &'static str,
        kind: MetricKind,
        summary: &'static str,
        value: fn(&WindowResult, Option<usize>, &Measure) -> Option<f64>,
    ) -> Self {
        let tolerance = Tolerance::of(kind);
        Self {
            id,
            kind,
            better: kind.better(),
            summary,
            tolerance,
            value,
            of_stream: None,
            accumulator: None,
            reads_freezes: false,
            reads_round_trips: false,
            reads_shares: false,
        }
    }

    /// Sets an accumulator of its own; `value` finds its values in [`WindowResult::own`].
    pub(super) const fn with_accumulator(mut self, accumulator: NewAccumulator) -> Self {
        self.accumulator = Some(accumulator);
        self
    }

    /// Declares that it reads the freezes of streams, which are followed only for such metrics.
    pub(super) const fn with_freezes(mut self) -> Self {
        self.reads_freezes = true;
        self
    }

    /// Declares that it reads round-trip times, although it is no delay.
    pub(super) const fn with_round_trips(mut self) -> Self {
        self.reads_round_trips = true;
        self
    }

    /// Declares that it reads the shares of flows in each second, which are computed only for such metrics.
    pub(super) const fn with_shares(mut self) -> Self {
        self.reads_shares = true;
        self
    }

    pub(super) const fn with_streams(mut self, of_stream: fn(&StreamResult) -> Option<f64>) -> Self {
        self.of_stream = Some(of_stream);
        self
    }

    pub(super) const fn with_better(mut self, better: Better) -> Self {
        self.better = better;
        self
    }

    /// Returns what scenarios and reports need to know of it.
    pub const fn info(&self) -> MetricInfo {
        let of_streams = self.of_stream.is_some();
        MetricInfo { id: self.id, kind: self.kind, better: self.better, of_streams, summary: self.summary }
    }
}

/// The allowed difference between a measured and a published value: a part of the published value, or `least`, whichever is
/// larger.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tolerance {
    /// Part of the published value.
    pub part: f64,
    /// The usual least tolerance, in the metric's unit.
    pub least: f64,
    /// The largest part of the published value that `least` may be, if it is limited: 0 does not reproduce 15 ms.
    pub least_part: Option<f64>,
    /// The least tolerance of any value, in the metric's unit: rounding, or counting noise.
    pub floor: f64,
}

/// Two standard deviations of four lost packets in 20,000, as many as a run of minutes at 1 Mbit/s has.
const LOSS_FLOOR: f64 = 0.0002;
/// Papers print delays in whole milliseconds.
const DELAY_FLOOR: f64 = 1.0;

impl Tolerance {
    pub const fn of(kind: MetricKind) -> Self {
        let (least_part, floor) = match kind {
            MetricKind::Loss => (Some(0.5), LOSS_FLOOR),
            MetricKind::Delay => (Some(0.5), DELAY_FLOOR),
            _ => (None, 0.0),
        };
        let (part, least) = match kind {
            MetricKind::Utilization => (0.0, 0.05),
            MetricKind::Rate => (0.15, 0.0),
            MetricKind::Share | MetricKind::Number | MetricKind::Count => (0.15, 0.05),
            MetricKind::Loss => (0.25, 0.005),
            MetricKind::Delay => (0.25, 15.0),
            MetricKind::Jain => (0.0, 0.07),
            MetricKind::Score => (0.0, 0.3),
            MetricKind::Points => (0.0, 5.0),
            MetricKind::Time => (0.30, 0.0),
        };
        Self { part, least, least_part, floor }
    }

    pub fn around(self, published: f64) -> f64 {
        let published = published.abs();
        let least = self.least_part.map_or(self.least, |part| self.least.min(part * published));
        (self.part * published).max(least).max(self.floor)
    }
}

impl WindowResult {
    /// Returns this flow; the first, if none is named.
    pub(super) fn flow(&self, flow: Option<usize>) -> &FlowResult {
        &self.flows[flow.unwrap_or(0)]
    }

    /// Returns the value of a metric that has an accumulator of its own.
    pub(super) fn own(&self, metric: &str, flow: usize) -> Option<f64> {
        self.own.get(metric)?[flow]
    }

    /// Returns the length of the window, s.
    pub(super) fn span(&self) -> f64 {
        self.window_s.1 - self.window_s.0
    }

    pub(super) fn media(&self) -> impl Iterator<Item = &FlowResult> {
        self.flows.iter().filter(|f| f.kind == "media")
    }

    /// Returns the sum over the media flows, or over all flows where none is media; or the value of the named flow.
    pub(super) fn sum_of_media(&self, flow: Option<usize>, of: impl Fn(&FlowResult) -> f64) -> f64 {
        match flow {
            Some(f) => of(&self.flows[f]),
            None if self.media().next().is_some() => self.media().map(of).sum(),
            None => self.flows.iter().map(of).sum(),
        }
    }

    /// Returns bytes over capacity: for a flow the capacity of the slowest hop of its route while it lived; for the run
    /// that of the forward bottleneck, with the bytes of the flows that cross it. `None` where no flow has a value.
    pub(super) fn over_capacity(&self, flow: Option<usize>, bytes: fn(&FlowResult) -> Option<u64>) -> Option<f64> {
        match flow {
            Some(f) => {
                let flow = &self.flows[f];
                let capacity = flow.capacity_bytes.filter(|c| *c > 0)?;
                Some(bytes(flow)? as f64 / capacity as f64)
            }
            None => {
                let bytes = self.flows.iter().filter(|f| f.crosses_link).filter_map(bytes).reduce(|a, b| a + b)?;
                Some(bytes as f64 * 8.0 / self.span() / self.link.capacity_bps.filter(|c| *c > 0.0)?)
            }
        }
    }
}
