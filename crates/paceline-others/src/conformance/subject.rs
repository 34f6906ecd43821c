// SPDX-License-Identifier: MIT OR Apache-2.0
//! The subject: the controller of this library.

use crate::conformance::input::{Cluster, Input, MAX_BPS, MIN_BPS, Output, Packet, START_BPS};
use paceline::GoogCcConfig;
use paceline::internals::googcc::GoogCc;
use paceline::{
    Event, Feedback, PacketReport, ReceiverReport, RoundTrip, SendHalf, SentPacket, Setup, Signals, StreamState,
};
use paceline_units::{DataSize, Fraction, Rate, RemoteTime, StreamId, Time, TimeDelta};
use std::sync::Arc;

/// The controller, and reports over too few packets.
pub struct Subject {
    half: GoogCc,
    unreported: (u64, u64),
    reports: Vec<PacketReport>,
    output: Output,
    signals: Signals,
}

/// The limits of both controllers.
const SETUP: Setup = Setup::new(Rate::from_bps(START_BPS), Rate::from_bps(MIN_BPS), Rate::from_bps(MAX_BPS));

impl Subject {
    /// Creates a controller without feedback, and without the guard of registered controllers.
    pub fn new(config: &GoogCcConfig) -> Self {
        Self {
            half: GoogCc::new(&Arc::new(config.clone()), &SETUP),
            unreported: (0, 0),
            reports: Vec::new(),
            output: Output::default(),
            signals: Signals::disabled(),
        }
    }

    /// Handles an input. Returns the decision and new clusters.
    pub fn handle(&mut self, input: &Input) -> &Output {
        let now = time(input.at());
        match input {
            Input::Start(_) | Input::Tick(_) => {
                if self.half.poll_timeout().is_some_and(|due| due <= now) {
                    self.half.handle_event(now, &Event::Timeout, &mut self.signals);
                }
            }
            Input::Sent(sent) => {
                let packet = SentPacket::new(sent.number, DataSize::from_bytes(sent.size))
                    .with_probe(sent.probe.map(|probe| probe.id as u16))
                    .with_in_flight(Some(DataSize::from_bytes(sent.in_flight)));
                self.half.handle_event(now, &Event::Sent(&packet), &mut self.signals);
            }
            Input::Feedback { packets, in_flight, .. } => {
                self.reports.clear();
                self.reports.extend(packets.iter().map(report));
                let in_flight = DataSize::from_bytes(*in_flight);
                let feedback = Feedback::new(&self.reports, in_flight, in_flight);
                self.half.handle_event(now, &Event::Feedback(&feedback), &mut self.signals);
            }
            Input::Rtt(_, ms) => {
                let rtt = RoundTrip::after(None, TimeDelta::from_millis(*ms));
                self.half.handle_event(now, &Event::RoundTrip(&rtt), &mut self.signals);
            }
            Input::Report(_, lost, all) => self.handle_report(now, *lost, *all),
            Input::Allocation(_, bps) => {
                let max = Rate::from_bps(*bps);
                let stream = StreamState::new(StreamId(0), DataSize::ZERO).with_max(max);
                self.half.handle_event(now, &Event::Stream(&stream), &mut self.signals);
            }
        }
        self.read(now);
        &self.output
    }

    /// Returns whether the application limits the flow.
    pub fn is_in_alr(&self) -> bool {
        self.half.is_in_alr()
    }

    /// Returns the state as text.
    pub fn state(&self) -> String {
        format!("{:#?}", self.half)
    }

    /// The flow collects reports until they cover 20 packets.
    fn handle_report(&mut self, now: Time, lost: u64, all: u64) {
        let (lost, all) = (self.unreported.0 + lost, self.unreported.1 + all);
        if all < 20 {
            self.unreported = (lost, all);
            self.half.handle_event(now, &Event::Liveness, &mut self.signals);
            return;
        }
        self.unreported = (0, 0);
        let fraction_lost = Fraction::new(lost as f64 / all as f64).expect("at most all packets are lost");
        self.half.handle_event(now, &Event::Report(&ReceiverReport::new(fraction_lost)), &mut self.signals);
    }

    fn read(&mut self, now: Time) {
        let decision = self.half.decision();
        let Output { target, pacing, padding, pushed_back, clusters } = &mut self.output;
        (*target, *pacing) = (decision.target.as_bps(), decision.pacing.as_bps());
        (*padding, *pushed_back) = (decision.padding.as_bps(), self.half.pushed_back().as_bps());
        clusters.clear();
        while let Some(cluster) = self.half.poll_probe(now) {
            clusters.push(Cluster {
                id: cluster.id.into(),
                bps: cluster.rate.as_bps(),
                us: cluster.duration.as_nanos() / 1000,
                packets: cluster.packets.into(),
            });
        }
    }
}

fn time(us: i64) -> Time {
    Time::from_nanos(us * 1000)
}

fn report(packet: &Packet) -> PacketReport {
    let arrival = packet.arrival.map(|us| RemoteTime::from_nanos(us * 1000));
    let size = DataSize::from_bytes(packet.sent.size);
    PacketReport::new(packet.sent.number, time(packet.sent.at), size, arrival)
        .with_probe(packet.sent.probe.map(|probe| probe.id as u16))
        .with_in_flight(DataSize::from_bytes(packet.sent.in_flight))
}
