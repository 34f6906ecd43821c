// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the ends of a run know of its path: packets at both ends, and round-trip times.

use paceline_netsim::records::{EventObserver, EventRecord, PacketClass, RunDescription, RunHeader};
use paceline_units::{Time, TimeDelta};
use std::collections::BTreeMap;

/// A packet at both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// Time of sending, s.
    pub sent: f64,
    /// Time of arrival, s; `None` if it did not arrive.
    pub arrived: Option<f64>,
    /// Size with all headers, bits.
    pub bits: f64,
    /// Whether it arrived marked as congestion experienced.
    pub marked: bool,
}

impl Packet {
    /// Returns its one-way delay, s.
    pub fn delay(&self) -> Option<f64> {
        self.arrived.map(|arrived| arrived - self.sent)
    }
}

/// How the clocks of both ends relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// One clock: delays are known.
    Same,
    /// Two clocks that are not synchronised: delays are known above the smallest one, and round-trip times.
    Apart,
}

/// The flows that a run sent over one path, as their ends saw them.
pub struct Observation {
    /// How the clocks relate.
    pub clocks: Clocks,
    /// Names of the flows whose packets are among [`forward`](Self::forward).
    pub flows: Vec<String>,
    /// Packets from senders to receivers, in order of sending.
    pub forward: Vec<Packet>,
    /// Packets from receivers to senders, in order of sending; none if the input does not have them.
    pub reverse: Vec<Packet>,
    /// Time, s, and round-trip time, s, of each receiver report.
    pub round_trips: Vec<(f64, f64)>,
    /// First and highest target of each flow, bit/s; `None` for one without targets, such as TCP.
    pub targets: Vec<Option<(f64, f64)>>,
}

/// Collects the packets of a run.
pub struct Collector {
    clocks: Clocks,
    names: Vec<String>,
    /// For each flow, what its path is; flows with the same value share a path.
    paths: Vec<String>,
    sent: Vec<(u16, u64, bool, Packet)>,
    arrived: BTreeMap<u64, (f64, bool)>,
    round_trips: Vec<(u16, f64, f64)>,
    targets: Vec<Option<(f64, f64)>>,
}

impl Collector {
    /// Creates a collector of a run. Flows share a path if their routes and propagation delays are the same.
    pub fn new(header: &RunHeader, setting: Option<&RunDescription>, clocks: Clocks) -> Self {
        let path = |index: usize| match setting.and_then(|setting| setting.flows.get(index)) {
            Some(flow) => format!("{:?} {:?}", flow.route, flow.propagation),
            None => index.to_string(),
        };
        Self {
            clocks,
            names: header.flows.clone(),
            paths: (0..header.flows.len()).map(path).collect(),
            sent: Vec::new(),
            arrived: BTreeMap::new(),
            round_trips: Vec::new(),
            targets: vec![None; header.flows.len()],
        }
    }

    /// Returns the packets of the flows that share the path with most packets; `None` if no packet arrived.
    pub fn finish(self) -> Option<Observation> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (flow, number, forward, _) in &self.sent {
            if let (true, Some(path)) = (*forward, self.paths.get(usize::from(*flow))) {
                *counts.entry(path).or_default() += usize::from(self.arrived.contains_key(number));
            }
        }
        let (path, _) = counts.into_iter().filter(|(_, count)| *count > 0).max_by_key(|(_, count)| *count)?;
        let is_on_path = |flow: u16| self.paths.get(usize::from(flow)).is_some_and(|other| other == path);
        let packets = |forward: bool| {
            let mut packets: Vec<(u64, Packet)> = Vec::new();
            for (flow, number, is_forward, packet) in &self.sent {
                if *is_forward == forward && is_on_path(*flow) {
                    let arrival = self.arrived.get(number);
                    let (arrived, marked) = (arrival.map(|a| a.0), arrival.is_some_and(|a| a.1));
                    packets.push((*number, Packet { arrived, marked, ..*packet }));
                }
            }
            packets.sort_by(|a, b| (a.1.sent, a.0).partial_cmp(&(b.1.sent, b.0)).expect("times are numbers"));
            let last = packets.iter().rposition(|(_, packet)| packet.arrived.is_some());
            // Later packets may have been on their way.
            packets.truncate(last.map_or(0, |last| last + 1));
            packets.into_iter().map(|(_, packet)| packet).collect::<Vec<_>>()
        };
        let flows = (0..self.names.len()).filter(|flow| is_on_path(*flow as u16));
        Some(Observation {
            clocks: self.clocks,
            flows: flows.clone().map(|flow| self.names[flow].clone()).collect(),
            forward: packets(true),
            reverse: packets(false),
            round_trips: self.round_trips.iter().filter(|r| is_on_path(r.0)).map(|r| (r.1, r.2)).collect(),
            targets: flows.map(|flow| self.targets[flow]).collect(),
        })
    }
}

fn seconds(at: Time) -> f64 {
    (at - Time::ZERO).as_secs_f64()
}

impl EventObserver for Collector {
    fn on_event(&mut self, event: &EventRecord) {
        match *event {
            EventRecord::Sent { at, packet } => {
                let bits = packet.size.as_bytes() as f64 * 8.0;
                let sent = Packet { sent: seconds(at), arrived: None, bits, marked: false };
                self.sent.push((packet.flow.0, packet.packet, !packet.class.is_from_receiver(), sent));
            }
            EventRecord::Arrived { at, packet, ecn, .. } => {
                let marked = ecn == paceline_units::Ecn::Ce && packet.class != PacketClass::SenderControl;
                self.arrived.insert(packet.packet, (seconds(at), marked));
            }
            EventRecord::RoundTrip { at, flow, rtt } => {
                self.round_trips.push((flow.0, seconds(at), TimeDelta::as_secs_f64(rtt)));
            }
            EventRecord::Decision { flow, target, .. } => {
                if let Some(targets) = self.targets.get_mut(usize::from(flow.0)) {
                    let target = target.as_bps_f64();
                    let (_, highest) = targets.get_or_insert((target, target));
                    *highest = highest.max(target);
                }
            }
            _ => {}
        }
    }
}
