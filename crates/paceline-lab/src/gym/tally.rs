//! The truth of a step: what became of the steered flow's packets, and what the path had to give. No sender sees this.

use super::agent::Quantity;
use crate::plan::Plan;
use crate::rows::{PacketClass, PacketRow, Row, RowSink};
use paceline_units::{DataSize, Rate, Time, TimeDelta};
use std::collections::VecDeque;
use std::sync::Arc;

/// What is true of a step. Counts are of the episode so far; the packets are those of the flow's way forward, RTCP
/// included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Truth {
    /// When the step ended, s of the run.
    pub time_s: f64,
    /// What the narrowest hop of the flow's way could carry, bit/s; 0 where nothing limits it.
    pub capacity_bps: f64,
    /// What the flow could have used: see [`Reward`](super::Reward).
    pub share_bps: f64,
    /// What the flow sent, bit/s.
    pub sent_bps: f64,
    /// Media that arrived for the first time, bit/s.
    pub goodput_bps: f64,
    /// Mean one-way delay beyond propagation of what arrived, s. When nothing did: how long the oldest packet on its way
    /// has been on it, beyond propagation.
    pub delay_s: f64,
    /// Packets lost in the step, of those that arrived or were lost in it.
    pub loss: f64,
    /// Smallest round-trip time that the path allows, s.
    pub propagation_s: f64,
    /// Packets sent.
    pub sent: f64,
    /// Packets arrived.
    pub arrived: f64,
    /// Packets lost.
    pub lost: f64,
    /// Packets on their way.
    pub in_flight: f64,
    /// Frames that the sender gave up because its pacer was full.
    pub refused: f64,
    /// The run's seed.
    pub seed: f64,
}

const fn truth(name: &'static str, unit: &'static str, meaning: &'static str) -> Quantity {
    Quantity { name, unit, meaning }
}

/// What [`Truth::values`] are, in order.
pub const TRUTHS: [Quantity; 14] = [
    truth("time_s", "s", "when the step ended, in time of the run"),
    truth("capacity_bps", "bit/s", "what the narrowest hop of the flow's way could carry; 0: unlimited, or an outage"),
    truth("share_bps", "bit/s", "what the flow could have used: capacity over the flows on it, at most what it makes"),
    truth("sent_bps", "bit/s", "what the flow sent, headers, repair and RTCP included"),
    truth("goodput_bps", "bit/s", "media that arrived for the first time, headers included"),
    truth("delay_s", "s", "mean one-way delay beyond propagation; of the oldest on its way if nothing arrived"),
    truth("loss", "fraction", "packets lost in the step, of those that arrived or were lost in it"),
    truth("propagation_s", "s", "the smallest round-trip time that the path allows"),
    truth("sent", "packets", "sent since the episode began"),
    truth("arrived", "packets", "arrived since the episode began"),
    truth("lost", "packets", "lost since the episode began"),
    truth("in_flight", "packets", "on their way"),
    truth("refused", "frames", "given up by the sender since the episode began: its pacer was full"),
    truth("seed", "", "of the run: the same seed, the same episode"),
];

impl Truth {
    /// All of it, in the order of [`TRUTHS`].
    pub fn values(&self) -> [f64; TRUTHS.len()] {
        [
            self.time_s,
            self.capacity_bps,
            self.share_bps,
            self.sent_bps,
            self.goodput_bps,
            self.delay_s,
            self.loss,
            self.propagation_s,
            self.sent,
            self.arrived,
            self.lost,
            self.in_flight,
            self.refused,
            self.seed,
        ]
    }
}

/// The sink of rows that counts. Sums are of the step that goes on.
#[derive(Debug)]
pub(super) struct Tally {
    plan: Arc<Plan>,
    flow: usize,
    /// When each flow of the plan begins.
    begins: Vec<Time>,
    /// Packets on their way, in order of number: number, and when it was sent.
    under_way: VecDeque<(u64, Time)>,
    /// Since the episode began: sent, arrived, lost, refused.
    totals: [u64; 4],
    target: Option<Rate>,
    sent: DataSize,
    goodput: DataSize,
    arrived: u64,
    lost: u64,
    delays: TimeDelta,
}

const SENT: usize = 0;
const ARRIVED: usize = 1;
const LOST: usize = 2;
const REFUSED: usize = 3;

impl Tally {
    pub fn new(plan: Arc<Plan>, flow: usize, begins: Vec<Time>) -> Self {
        Self {
            plan,
            flow,
            begins,
            under_way: VecDeque::new(),
            totals: [0; 4],
            target: None,
            sent: DataSize::ZERO,
            goodput: DataSize::ZERO,
            arrived: 0,
            lost: 0,
            delays: TimeDelta::ZERO,
        }
    }

    /// The decision last made, if one was since this was last asked.
    pub fn take_target(&mut self) -> Option<Rate> {
        self.target.take()
    }

    /// What was true from `from` to `to`; begins the next step.
    pub fn take(&mut self, from: Time, to: Time, seed: u64) -> Truth {
        let step = to - from;
        let flow = &self.plan.flows[self.flow];
        let decided = self.arrived + self.lost;
        let (capacity, share) = self.could_use(from, to);
        let delay = match (self.arrived, self.under_way.front()) {
            (0, None) => TimeDelta::ZERO,
            (0, Some((_, sent))) => (to - *sent - flow.base_owd(&self.plan, *sent)).max(TimeDelta::ZERO),
            (arrived, _) => self.delays.scale(1.0 / arrived as f64),
        };
        let truth = Truth {
            time_s: to.as_secs_f64(),
            capacity_bps: capacity.map_or(0.0, Rate::as_bps_f64),
            share_bps: share.as_bps_f64(),
            sent_bps: Rate::of(self.sent, step).as_bps_f64(),
            goodput_bps: Rate::of(self.goodput, step).as_bps_f64(),
            delay_s: delay.as_secs_f64(),
            loss: if decided == 0 { 0.0 } else { self.lost as f64 / decided as f64 },
            propagation_s: flow.base_rtt_at(&self.plan, to).as_secs_f64(),
            sent: self.totals[SENT] as f64,
            arrived: self.totals[ARRIVED] as f64,
            lost: self.totals[LOST] as f64,
            in_flight: self.under_way.len() as f64,
            refused: self.totals[REFUSED] as f64,
            seed: seed as f64,
        };
        (self.sent, self.goodput, self.delays) = (DataSize::ZERO, DataSize::ZERO, TimeDelta::ZERO);
        (self.arrived, self.lost) = (0, 0);
        truth
    }

    /// What the narrowest hop of the way could carry, and the flow's part in that: as many parts as flows cross the hop.
    fn could_use(&self, from: Time, to: Time) -> (Option<Rate>, Rate) {
        let flow = &self.plan.flows[self.flow];
        let most = flow.most().unwrap_or(Rate::from_bps(u64::MAX));
        let mut narrowest = None;
        let mut share = most;
        for hop in &flow.route {
            let Some(capacity) = &self.plan.hops[*hop].capacity else { continue };
            let rate = Rate::of(capacity.volume(from, to), to - from);
            let crosses = |(f, begin): &(&crate::plan::FlowPlan, &Time)| {
                f.route.contains(hop) && **begin <= from && from < f.stop
            };
            let flows = self.plan.flows.iter().zip(&self.begins).filter(crosses).count().max(1);
            share = share.min(rate.scale(1.0 / flows as f64));
            narrowest = Some(narrowest.map_or(rate, |narrowest: Rate| narrowest.min(rate)));
        }
        (narrowest, share)
    }

    fn is_ours(&self, packet: &PacketRow) -> bool {
        packet.flow.0 as usize == self.flow && !packet.class.goes_back()
    }

    /// A packet is no longer on its way: when it was sent.
    fn settle(&mut self, packet: u64) -> Option<Time> {
        let index = match self.under_way.front() {
            Some((first, _)) if *first == packet => 0,
            _ => self.under_way.binary_search_by_key(&packet, |(number, _)| *number).ok()?,
        };
        self.under_way.remove(index).map(|(_, sent)| sent)
    }
}

impl RowSink for Tally {
    fn row(&mut self, row: &Row) {
        match row {
            Row::Sent { at, packet } if self.is_ours(packet) => {
                self.under_way.push_back((packet.packet, *at));
                self.totals[SENT] += 1;
                self.sent += packet.size;
            }
            Row::Arrived { packet, delay, .. } if self.is_ours(packet) => {
                let Some(sent) = self.settle(packet.packet) else { return };
                self.totals[ARRIVED] += 1;
                self.arrived += 1;
                let beyond = *delay - self.plan.flows[self.flow].base_owd(&self.plan, sent);
                self.delays += beyond.max(TimeDelta::ZERO);
                if packet.class == PacketClass::Media {
                    self.goodput += packet.size;
                }
            }
            Row::Dropped { packet, .. } if self.is_ours(packet) => {
                self.settle(packet.packet);
                self.totals[LOST] += 1;
                self.lost += 1;
            }
            Row::Decision { flow, target, .. } if flow.0 as usize == self.flow => self.target = Some(*target),
            Row::FrameRefused { flow, .. } if flow.0 as usize == self.flow => self.totals[REFUSED] += 1,
            _ => {}
        }
    }
}
