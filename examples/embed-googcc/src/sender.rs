//! A sender with transport-wide feedback around `googcc`: what a program adds to the controller.
//!
//! ```text
//! encoder ─▶ Pacer ─▶ packet with a transport-wide number ─▶ socket
//!              ▲         │
//!         Decision       ▼
//!              └── SendHalf ◀── History ◀── transport-wide feedback
//! ```
//!
//! All times are arguments. Call [`TwccSender::poll_transmit`] until it returns `None`, after each other call and at the time of
//! [`TwccSender::poll_timeout`].

use paceline::{
    ConfigError, Decision, Event, Feedback, History, Pacer, PacketKind, PacketPriority, PacketReport, ProbeCluster,
    Registry, SendHalf, SentPacket, Setup, Signals, StreamState,
};
use paceline_units::{DataSize, Rate, RemoteTime, StreamId, Time, TimeDelta};
use paceline_wire::{Rtcp, TWCC_TICK, TransportFeedback, parse_compound, unwrap_ticks};
use std::collections::VecDeque;

/// The one stream of this sender.
const STREAM: StreamId = StreamId(0);
/// The longest time that packets may wait in the pacer.
const PACER_LIMIT: TimeDelta = TimeDelta::from_secs(2);
/// The size of a padding packet on the network: 255 bytes of payload are the most that RTP can count.
const PADDING_SIZE: DataSize = DataSize::from_bytes(280);

/// A packet to send now.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// The transport-wide sequence number, for the header extension.
    pub sequence: u16,
    /// The size on the network, IP and UDP headers included.
    pub size: DataSize,
    /// Media or padding.
    pub kind: PacketKind,
}

/// A cluster that is being sent.
struct Probing {
    cluster: ProbeCluster,
    began: Time,
    sent: DataSize,
    packets: u16,
}

pub struct TwccSender {
    half: Box<dyn SendHalf>,
    decision: Decision,
    history: History,
    pacer: Pacer<DataSize>,
    clusters: VecDeque<ProbeCluster>,
    probing: Option<Probing>,
    /// The last arrival time in feedback, in its units, without wraparound.
    last_ticks: Option<i64>,
    reports: Vec<PacketReport>,
    signals: Signals,
}

impl TwccSender {
    pub fn new(start: Rate, min: Rate, max: Rate) -> Result<Self, ConfigError> {
        let registry = Registry::standard();
        let entry = registry.get("googcc").expect("it is registered");
        let controller = entry.build(&Setup::new(start, min, max), &[])?;
        let half = controller.send.expect("googcc has a send half");
        let decision = half.decision();
        Ok(Self {
            pacer: Pacer::new(decision.pacing, PACER_LIMIT, [1.0]),
            half,
            decision,
            history: History::new(),
            clusters: VecDeque::new(),
            probing: None,
            last_ticks: None,
            reports: Vec::new(),
            signals: Signals::disabled(),
        })
    }

    /// Returns the rate for the encoder, of which IP, UDP and RTP headers take a part.
    pub fn target(&self) -> Rate {
        self.decision.target
    }

    /// Handles a frame that was cut into packets of these sizes. The encoder makes between `min` and `max`.
    pub fn handle_frame(&mut self, now: Time, packets: &[DataSize], (min, max): (Rate, Rate)) {
        let queued = self.pacer.queued();
        self.half.handle_event(
            now,
            &Event::Stream(&StreamState { min, max, ..StreamState::new(STREAM, queued) }),
            &mut self.signals,
        );
        if self.pacer.has_room(packets.iter().copied().sum()) {
            packets.iter().for_each(|size| self.pacer.push(now, PacketPriority::Video, 0, *size, *size));
        }
        self.follow(now);
    }

    /// Handles an RTCP datagram. Damaged ones are ignored. A complete program also passes on receiver reports
    /// (`handle_report`, `handle_rtt`) and REMB (`handle_message`).
    pub fn handle_rtcp(&mut self, now: Time, datagram: &[u8]) {
        for packet in parse_compound(datagram).into_iter().flatten() {
            if let Rtcp::TransportFeedback(feedback) = packet {
                self.handle_feedback(now, &feedback);
            }
        }
        self.follow(now);
    }

    /// Joins the feedback with the packets that were sent, and passes the result to the controller.
    fn handle_feedback(&mut self, now: Time, feedback: &TransportFeedback<'_>) {
        if let Some(base) = self.history.unwrap(feedback.base_sequence) {
            self.history.abandon_below(base); // feedback in between was lost
        }
        self.reports.clear();
        for (number, ticks) in feedback.packets() {
            let Some(sequence) = self.history.unwrap(number) else { continue };
            let arrival = ticks.map(|ticks| {
                let ticks = unwrap_ticks(self.last_ticks.unwrap_or(ticks), ticks);
                self.last_ticks = Some(ticks);
                RemoteTime::from_nanos(ticks.saturating_mul(TWCC_TICK.as_nanos()))
            });
            self.reports.extend(self.history.settle(sequence, arrival, None));
        }
        if !self.reports.is_empty() {
            let flight = self.history.flight();
            let joined = Feedback::new(&self.reports, flight.outstanding, flight.after_highest);
            self.half.handle_event(now, &Event::Feedback(&joined), &mut self.signals);
        }
    }

    /// Handles the time of [`poll_timeout`](Self::poll_timeout).
    pub fn handle_timeout(&mut self, now: Time) {
        if self.half.poll_timeout().is_some_and(|due| due <= now) {
            self.half.handle_event(now, &Event::Timeout, &mut self.signals);
            self.follow(now);
        }
    }

    /// Reads the decision and the probes of the controller.
    fn follow(&mut self, now: Time) {
        self.decision = self.half.decision();
        self.pacer.set_rate(self.decision.pacing);
        self.pacer.set_burst(self.decision.burst);
        while let Some(cluster) = self.half.poll_probe(now) {
            self.clusters.push_back(cluster);
        }
    }

    /// Returns the next packet that may leave at `now`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Outgoing> {
        if self.probing.is_none() && self.history.next_sequence() > 0 {
            let begin = |cluster| Probing { cluster, began: now, sent: DataSize::ZERO, packets: 0 };
            self.probing = self.clusters.pop_front().map(begin);
        }
        let (size, kind) = match &self.probing {
            // A packet of a cluster is due when those before it have left at the cluster's rate.
            Some(probing) if now >= probing.due() => match self.pacer.pop_at_once(now) {
                Some(size) => (size, PacketKind::Media),
                None => {
                    self.pacer.spend(now, PADDING_SIZE);
                    (PADDING_SIZE, PacketKind::Padding)
                }
            },
            Some(_) => return None,
            None => (self.pacer.pop(now)?, PacketKind::Media),
        };
        Some(self.handle_sent(now, size, kind))
    }

    fn handle_sent(&mut self, now: Time, size: DataSize, kind: PacketKind) -> Outgoing {
        let sequence = self.history.next_sequence();
        let packet = SentPacket {
            kind,
            stream: STREAM,
            probe: self.probing.as_ref().map(|probing| probing.cluster.id),
            in_flight: Some(self.history.flight().outstanding),
            ..SentPacket::new(sequence, size)
        };
        self.history.handle_sent(now, &packet);
        self.half.handle_event(now, &Event::Sent(&packet), &mut self.signals);
        if let Some(probing) = &mut self.probing {
            probing.sent += size;
            probing.packets += 1;
        }
        self.probing.take_if(|probing| probing.is_complete());
        if self.half.decides_on_sent() {
            self.follow(now);
        }
        Outgoing { sequence: sequence as u16, size, kind }
    }

    /// Returns the next time at which [`handle_timeout`](Self::handle_timeout) and then
    /// [`poll_transmit`](Self::poll_transmit) must be called.
    pub fn poll_timeout(&self) -> Option<Time> {
        let packet = match &self.probing {
            Some(probing) => Some(probing.due()),
            None => self.pacer.poll_timeout(),
        };
        [packet, self.half.poll_timeout()].into_iter().flatten().min()
    }
}

impl Probing {
    fn due(&self) -> Time {
        self.began + self.sent / self.cluster.rate
    }

    fn is_complete(&self) -> bool {
        self.sent >= self.cluster.rate * self.cluster.duration && self.packets >= self.cluster.packets
    }
}
