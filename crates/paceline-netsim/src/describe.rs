// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metadata of a plan: the header of its runs, and the description for plots.

use crate::flow::tcp::TcpSender;
use crate::link::queue::QueueLimit;
use crate::plan::{FlowKind, FlowPlan, Plan};
use crate::records::{FlowDescription, HopDescription, RunDescription, RunHeader, SignalDescription};
use paceline::{Registry, SignalShape, SignalSpec};
use paceline_units::{Time, TimeDelta};

/// Interval over which recorded delivery opportunities are averaged.
pub(crate) const CAPACITY_BIN: TimeDelta = TimeDelta::from_millis(100);

impl Plan {
    /// Returns the objects to which event records refer by index: the names of hops, flows and signals.
    pub fn header(&self, registry: &Registry, world: &str, seed: u64) -> RunHeader {
        let names = |specs: &[SignalSpec]| -> Vec<(String, String)> {
            specs.iter().map(|s| (s.name.to_owned(), s.unit.to_owned())).collect()
        };
        RunHeader {
            scenario: self.id.clone(),
            world: world.to_owned(),
            seed,
            hops: self.hops.iter().map(|h| h.id.clone()).collect(),
            flows: self.flows.iter().map(|f| f.id.clone()).collect(),
            controllers: self.flows.iter().map(|f| Some(f.control().to_owned())).collect(),
            signals: self.flows.iter().map(|flow| signals(flow, registry).map(names)).collect(),
        }
    }

    /// Returns the metadata that plots need and events do not carry: title, capacity and propagation over time, signals.
    pub fn describe(&self, registry: &Registry) -> RunDescription {
        let end = Time::ZERO + self.duration;
        let hops = self.hops.iter().enumerate().map(|(index, hop)| HopDescription {
            id: hop.id.clone(),
            forward: index < self.forward_hops,
            capacity: hop.capacity.as_ref().map(|capacity| {
                let steps = capacity.steps(end, CAPACITY_BIN);
                steps.iter().map(|(at, rate)| (at.as_secs_f64(), rate.as_bps_f64())).collect()
            }),
            queue: hop.queue.name().to_owned(),
            limit: match hop.queue.limit {
                QueueLimit::Bytes(size) => (size.as_bytes() as f64, "B".to_owned()),
                QueueLimit::Packets(count) => (f64::from(count), "packets".to_owned()),
                QueueLimit::DrainTime(time) => (time.as_millis_f64(), "ms".to_owned()),
            },
        });
        let flows = self.flows.iter().map(|flow| {
            let mut changes: Vec<Time> = flow
                .route
                .iter()
                .chain(&flow.return_route)
                .flat_map(|hop| self.hops[*hop].delay.points().iter().map(|(at, _)| *at))
                .chain([Time::ZERO])
                .filter(|at| *at < end)
                .collect();
            changes.sort_unstable();
            changes.dedup();
            let rtt = |at: Time| (at.as_secs_f64(), flow.base_rtt_at(self, at).as_millis_f64());
            FlowDescription {
                id: flow.id.clone(),
                kind: flow.kind.name().to_owned(),
                route: flow.route.iter().map(|hop| self.hops[*hop].id.clone()).collect(),
                lives_s: (flow.start.as_secs_f64(), flow.stop.min(end).as_secs_f64()),
                propagation: changes.into_iter().map(rtt).collect(),
                streams: flow.media().map_or(Vec::new(), |m| m.streams.iter().map(|s| s.id.clone()).collect()),
                signals: signals(flow, registry).map(|specs| specs.iter().map(describe_signal).collect()),
            }
        });
        RunDescription {
            title: self.title.clone(),
            source: self.source.clone(),
            duration_s: self.duration.as_secs_f64(),
            hops: hops.collect(),
            flows: flows.collect(),
        }
    }
}

fn signals<'a>(flow: &FlowPlan, registry: &'a Registry) -> [&'a [SignalSpec]; 2] {
    match &flow.kind {
        FlowKind::Tcp(_) => [TcpSender::SIGNALS, &[]],
        FlowKind::Media(media) => {
            registry.get(&media.controller.name).map_or([&[], &[]], |entry| <[_; 2]>::from(entry.signals()))
        }
    }
}

fn describe_signal(spec: &SignalSpec) -> SignalDescription {
    SignalDescription {
        name: spec.name.to_owned(),
        unit: spec.unit.to_owned(),
        states: match spec.shape {
            SignalShape::Series => Vec::new(),
            SignalShape::State(states) => states.iter().map(|s| (*s).to_owned()).collect(),
        },
    }
}
