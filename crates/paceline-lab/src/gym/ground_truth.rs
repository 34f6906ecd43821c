// SPDX-License-Identifier: MIT OR Apache-2.0
//! The truth of a step: the fate of the packets of the controlled flow, and the rate that the path could carry. No
//! sender sees it.

use super::agent::{Quantity, quantity};
use paceline_netsim::plan::{FlowPlan, Plan};
use paceline_netsim::records::{EventObserver, EventRecord, PacketClass, PacketRecord};
use paceline_units::{DataSize, Rate, Time, TimeDelta};
use std::collections::VecDeque;
use std::sync::Arc;

/// Defines [`Truth`] and [`TRUTHS`]: name, unit and meaning of each value.
macro_rules! truths {
    ($($(#[$doc:meta])* $name:ident, $unit:literal, $meaning:literal;)*) => {
        /// The truth of a step, in the units of [`TRUTHS`]. Packets are those that the flow sends forward, RTCP included.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct Truth {
            $(#[doc = $meaning] #[doc = ""] $(#[$doc])* pub $name: f64,)*
        }

        /// The values of [`Truth::values`], in order.
        pub const TRUTHS: [Quantity; 14] = [$(quantity(stringify!($name), $unit, $meaning)),*];

        impl Truth {
            /// Returns every value, in the order of [`TRUTHS`].
            pub fn values(&self) -> [f64; TRUTHS.len()] {
                [$(self.$name),*]
            }
        }
    };
}

truths! {
    time_s, "s", "end of the step, in time of the run";
    capacity_bps, "bit/s", "capacity of the narrowest hop of the flow's route; 0: unlimited, or an outage";
    /// See [`Reward`](super::Reward).
    share_bps, "bit/s", "what the flow could have used: capacity over the flows on it, at most what it makes";
    sent_bps, "bit/s", "what the flow sent, headers, repair and RTCP included";
    goodput_bps, "bit/s", "media that arrived at its first transmission, headers included";
    /// Without an arrival: how long the oldest packet has been in flight, over propagation. Propagation is taken when
    /// the packet is sent, so it is off while propagation changes.
    delay_s, "s", "mean one-way delay over propagation; of the oldest packet in flight if nothing arrived";
    loss, "fraction", "packets lost in the step, of those that arrived or were lost in it";
    propagation_s, "s", "the smallest round-trip time that the path allows";
    sent, "packets", "sent since the episode began";
    arrived, "packets", "arrived since the episode began";
    lost, "packets", "lost since the episode began";
    in_flight, "packets", "in flight";
    refused, "frames", "dropped by the sender since the episode began, because its pacer was full";
    seed, "", "of the run: the same seed, the same episode";
}

#[derive(Debug)]
pub(super) struct GroundTruth {
    plan: Arc<Plan>,
    flow: usize,
    starts: Vec<Time>,
    /// Packets in flight, in order of number: number and time of sending.
    in_flight: VecDeque<(u64, Time)>,
    /// Counts since the episode began, and the seed.
    totals: Truth,
    /// The last decision, until it is taken.
    target: Option<Rate>,
    step: StepSums,
}

#[derive(Debug, Default)]
struct StepSums {
    sent: DataSize,
    goodput: DataSize,
    arrived: u64,
    lost: u64,
    /// Sum of the delays over propagation of what arrived.
    delays: TimeDelta,
}

impl GroundTruth {
    pub fn new(plan: Arc<Plan>, flow: usize, starts: Vec<Time>, seed: u64) -> Self {
        let totals = Truth { seed: seed as f64, ..Truth::default() };
        Self { plan, flow, starts, in_flight: VecDeque::new(), totals, target: None, step: StepSums::default() }
    }

    /// Returns the last decision, if there was one since the last call.
    pub fn take_target(&mut self) -> Option<Rate> {
        self.target.take()
    }

    /// Returns the truth of the step from `from` to `to`, and begins the next.
    pub fn take(&mut self, from: Time, to: Time) -> Truth {
        let StepSums { sent, goodput, arrived, lost, delays } = core::mem::take(&mut self.step);
        let flow = &self.plan.flows[self.flow];
        let (capacity, share) = self.usable(from, to);
        let delay = match (arrived, self.in_flight.front()) {
            (0, None) => TimeDelta::ZERO,
            (0, Some((_, sent))) => (to - *sent - flow.base_owd(&self.plan, *sent)).max(TimeDelta::ZERO),
            (arrived, _) => delays.scale(1.0 / arrived as f64),
        };
        let rate = |size: DataSize| Rate::from_size_and_time(size, to - from).as_bps_f64();
        Truth {
            time_s: to.as_secs_f64(),
            capacity_bps: capacity.map_or(0.0, Rate::as_bps_f64),
            share_bps: share.as_bps_f64(),
            sent_bps: rate(sent),
            goodput_bps: rate(goodput),
            delay_s: delay.as_secs_f64(),
            loss: if arrived + lost == 0 { 0.0 } else { lost as f64 / (arrived + lost) as f64 },
            propagation_s: flow.base_rtt_at(&self.plan, to).as_secs_f64(),
            in_flight: self.in_flight.len() as f64,
            ..self.totals
        }
    }

    /// Returns the capacity of the narrowest hop of the route, and the least equal part of a hop among the flows that
    /// cross it.
    fn usable(&self, from: Time, to: Time) -> (Option<Rate>, Rate) {
        let flow = &self.plan.flows[self.flow];
        let mut share = flow.max_rate().unwrap_or(Rate::from_bps(u64::MAX));
        let mut narrowest = None;
        for hop in &flow.route {
            let Some(capacity) = &self.plan.hops[*hop].capacity else { continue };
            let rate = Rate::from_size_and_time(capacity.volume(from, to), to - from);
            let crosses = |(f, start): &(&FlowPlan, &Time)| f.route.contains(hop) && **start <= from && from < f.stop;
            let flows = self.plan.flows.iter().zip(&self.starts).filter(crosses).count().max(1);
            share = share.min(rate.scale(1.0 / flows as f64));
            narrowest = Some(narrowest.map_or(rate, |narrowest: Rate| narrowest.min(rate)));
        }
        (narrowest, share)
    }

    fn is_own(&self, packet: &PacketRecord) -> bool {
        packet.flow.0 as usize == self.flow && !packet.class.is_from_receiver()
    }

    /// Removes a packet from those in flight and returns when it was sent.
    fn remove(&mut self, packet: u64) -> Option<Time> {
        let index = match self.in_flight.front() {
            Some((first, _)) if *first == packet => 0,
            _ => self.in_flight.binary_search_by_key(&packet, |(number, _)| *number).ok()?,
        };
        self.in_flight.remove(index).map(|(_, sent)| sent)
    }
}

impl EventObserver for GroundTruth {
    fn on_event(&mut self, event: &EventRecord) {
        match event {
            EventRecord::Sent { at, packet } if self.is_own(packet) => {
                self.in_flight.push_back((packet.packet, *at));
                self.totals.sent += 1.0;
                self.step.sent += packet.size;
            }
            EventRecord::Arrived { packet, delay, .. } if self.is_own(packet) => {
                let Some(sent) = self.remove(packet.packet) else { return };
                self.totals.arrived += 1.0;
                self.step.arrived += 1;
                let queued = *delay - self.plan.flows[self.flow].base_owd(&self.plan, sent);
                self.step.delays += queued.max(TimeDelta::ZERO);
                if packet.class == PacketClass::Media {
                    self.step.goodput += packet.size;
                }
            }
            EventRecord::Dropped { packet, .. } if self.is_own(packet) => {
                self.remove(packet.packet);
                self.totals.lost += 1.0;
                self.step.lost += 1;
            }
            EventRecord::Decision { flow, target, .. } if flow.0 as usize == self.flow => self.target = Some(*target),
            EventRecord::FrameDropped { flow, .. } if flow.0 as usize == self.flow => self.totals.refused += 1.0,
            _ => {}
        }
    }
}
