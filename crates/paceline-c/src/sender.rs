//! One flow's sender: a send half, the history that joins feedback with sent packets, and the pacer with its probes.

use crate::catalogue::unknown;
use crate::receiver::SSRCS_MAX;
use crate::signals::LastSignals;
use crate::status::{
    Failure, PACELINE_ERROR_CONTROLLER, PACELINE_ERROR_FULL, PACELINE_ERROR_PARAMETER, PACELINE_ERROR_RTCP, argument,
};
use paceline::{
    Bounds, ConfigError, Controller, Decision, Event, Feedback, Flight, History, Message, Pacer, PacketKind,
    PacketPriority, ReceiverReport, Registry, RoundTrip, SendHalf, SentPacket, Setup, SignalTables, StreamState,
    Window,
};
use paceline_flow::{FeedbackReader, Prober, SequenceMap, messages};
use paceline_units::{DataSize, Ecn, Fraction, Rate, RemoteTime, StreamId, Time, TimeDelta};
use paceline_wire::{Rtcp, parse_compound};

/// The one stream of a sender.
const STREAM: StreamId = StreamId(0);
/// The longest time that packets may wait in the pacer: libwebrtc's `kMaxExpectedQueueLength`.
const PACER_LIMIT: TimeDelta = TimeDelta::from_secs(2);
/// The size of a padding packet on the network: the 224 bytes of libwebrtc's `kMaxPaddingLength`, 20 bytes of RTP header with the
/// transport-wide number, and UDP and IP headers.
const PADDING_SIZE: DataSize = DataSize::from_bytes(224 + 20 + 28);

/// A packet that waits in the pacer.
#[derive(Clone, Copy, Debug)]
struct Queued {
    token: u64,
    size: DataSize,
    since: Time,
}

/// A packet to send now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub sequence: u64,
    /// The token of a packet from the queue; `None` for padding.
    pub token: Option<u64>,
    pub size: DataSize,
    pub probe: Option<u16>,
}

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    half: Box<dyn SendHalf>,
    pub signals: LastSignals,
    decision: Decision,
    /// Whether there is a network to send to.
    available: bool,
    /// Whether packets have per-packet feedback, so that bytes in flight are known.
    per_packet: bool,
    history: History,
    pacer: Pacer<Queued>,
    /// Whether a frame was ever queued. Probes wait for the first one: a program with a pacer of its own sends none.
    has_frames: bool,
    prober: Prober,
    /// Whether the window has been full since the last packet left.
    window_was_full: bool,
    reader: FeedbackReader,
    /// The packets of each SSRC that the caller named, the oldest SSRC first.
    sequence_maps: Vec<SequenceMap>,
    rtt: Option<RoundTrip>,
    /// The latest time so far; earlier times are read as this one.
    now: Time,
    pub lost: u64,
    pub arrived: u64,
}

/// Builds the controller of a name, with some parameters changed. Also returns the signals of its halves.
pub(crate) fn controller(
    name: &str,
    setup: &Setup,
    settings: &[(String, f64)],
) -> Result<(Controller, SignalTables), Failure> {
    let registry = Registry::standard();
    let entry = registry.get(name).ok_or_else(|| unknown(name))?;
    let built = entry.build(setup, settings).map_err(|error| match &error {
        ConfigError::UnknownField { known, .. } => {
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            (PACELINE_ERROR_PARAMETER, format!("{error}; known: {known}"))
        }
        _ => argument(error.to_string()),
    })?;
    Ok((built, entry.signals()))
}

impl Sender {
    pub fn new(name: &str, setup: &Setup, settings: &[(String, f64)]) -> Result<Self, Failure> {
        let (controller, (signals, _)) = controller(name, setup, settings)?;
        let no_half = || (PACELINE_ERROR_CONTROLLER, format!("`{name}` has no half at the sender"));
        let half = controller.send.ok_or_else(no_half)?;
        let decision = half.decision();
        Ok(Self {
            pacer: Pacer::new(decision.pacing, PACER_LIMIT, [1.0]),
            half,
            signals: LastSignals::new(signals),
            decision,
            available: true,
            per_packet: controller.feedback.is_some(),
            history: History::new(),
            has_frames: false,
            prober: Prober::default(),
            window_was_full: false,
            reader: FeedbackReader::default(),
            sequence_maps: Vec::new(),
            rtt: None,
            now: Time::ZERO,
            lost: 0,
            arrived: 0,
        })
    }

    /// Advances the time, which never decreases.
    fn at(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }

    /// Reads the decision and the probes of the controller.
    fn follow(&mut self, now: Time) {
        self.signals.update();
        self.decision = self.half.decision();
        self.pacer.set_rate(self.decision.pacing);
        self.pacer.set_burst(self.decision.burst);
        self.pacer.set_tick(self.decision.tick);
        while let Some(cluster) = self.half.poll_probe(now) {
            self.prober.push(cluster);
        }
        self.window_was_full |= !self.window_is_open();
    }

    /// Records a packet that leaves, and returns its number.
    pub fn handle_sent(&mut self, now: Time, size: DataSize, kind: PacketKind, probe: Option<u16>) -> u64 {
        let now = self.at(now);
        let sequence = self.history.next_sequence();
        let in_flight = self.per_packet.then(|| self.history.flight().outstanding);
        let packet = SentPacket { kind, stream: STREAM, probe, in_flight, ..SentPacket::new(sequence, size) };
        self.history.handle_sent(now, &packet);
        self.half.handle_event(now, &Event::Sent(&packet), self.signals.collector());
        if self.half.decides_on_sent() {
            self.follow(now);
        }
        self.window_was_full |= !self.window_is_open();
        sequence
    }

    /// Records the SSRC and the RTP number of a packet that left, by which RFC 8888 reports name it.
    pub fn handle_rtp_number(&mut self, sequence: u64, ssrc: u32, number: u16) -> Result<(), Failure> {
        let sent = self.history.next_sequence();
        if sequence >= sent {
            return Err(argument(format!("`sequence` is {sequence}, but {sent} packets have left, from 0 on")));
        }
        let index = self.sequence_maps.iter().position(|map| map.ssrc() == ssrc).unwrap_or_else(|| {
            if self.sequence_maps.len() == SSRCS_MAX {
                self.sequence_maps.remove(0);
            }
            self.sequence_maps.push(SequenceMap::new(ssrc));
            self.sequence_maps.len() - 1
        });
        self.sequence_maps[index].handle_sent(number, sequence);
        Ok(())
    }

    /// Queues a frame that was cut into packets: tokens of the caller, and sizes.
    pub fn handle_frame(
        &mut self,
        now: Time,
        packets: &[(u64, DataSize)],
        key: bool,
        (min, max): (Rate, Rate),
    ) -> Result<(), Failure> {
        let now = self.at(now);
        let size = packets.iter().map(|(_, size)| *size).sum();
        self.half.handle_event(
            now,
            &Event::Stream(&StreamState { min, max, ..StreamState::new(STREAM, self.pacer.queued()) }),
            self.signals.collector(),
        );
        let rejected = match () {
            _ if !self.available => Some("there is no network; drop the frame"),
            _ if self.decision.pacing.is_zero() => Some("the pacing rate is 0, so no packet leaves; drop the frame"),
            _ if !self.pacer.has_room(size) => Some("the queue of the pacer would take more than 2 s; drop the frame"),
            _ if self.waits_too_long(now) => Some("a frame waits longer than the controller allows; drop this one"),
            _ => None,
        };
        if rejected.is_none() {
            self.has_frames = true;
            let push = |&(token, size)| {
                self.pacer.push(now, PacketPriority::Video, 0, Queued { token, size, since: now }, size);
            };
            packets.iter().for_each(push);
            let count = packets.len() as u32;
            self.half.handle_event(
                now,
                &Event::Frame(&paceline::QueuedFrame { stream: STREAM, size, packets: count, key }),
                self.signals.collector(),
            );
        }
        self.follow(now);
        rejected.map_or(Ok(()), |text| Err((PACELINE_ERROR_FULL, text.to_owned())))
    }

    /// Returns whether the window lets a packet leave. Without a network it is closed.
    fn window_is_open(&self) -> bool {
        let Flight { outstanding, after_highest } = self.history.flight();
        match self.decision.window {
            _ if !self.available => false,
            None => true,
            Some(Window::Outstanding(window)) => outstanding < window,
            Some(Window::AfterHighest(window)) => after_highest < window,
        }
    }

    /// Returns whether the first packet of the pacer waits longer than the controller allows.
    fn waits_too_long(&self, now: Time) -> bool {
        self.pacer.first_video(0).is_some_and(|first| now - first.since > self.decision.queue_max)
    }

    /// Returns the time at which a packet of a probe is due.
    fn probe_due(&self) -> Option<Time> {
        self.prober.due().filter(|_| self.has_frames)
    }

    /// Returns the next packet that may leave: one of a probe, or else the next one of the pacer.
    pub fn poll_packet(&mut self, now: Time) -> Option<Outgoing> {
        let now = self.at(now);
        if !self.window_is_open() {
            return None;
        }
        if std::mem::take(&mut self.window_was_full) {
            self.pacer.block_until(now);
        }
        let probe = self.probe_due().filter(|due| *due <= now).and_then(|_| self.prober.poll(now));
        let queued = match probe {
            Some(_) => self.pacer.pop_at_once(now),
            // Packets between those of a cluster would lower the rate that it measures.
            None if self.prober.is_active() => return None,
            None => Some(self.pacer.pop(now)?),
        };
        if queued.is_none() {
            self.pacer.spend(now, PADDING_SIZE);
        }
        let size = queued.map_or(PADDING_SIZE, |queued| queued.size);
        if probe.is_some() {
            self.prober.handle_sent(size);
        }
        let kind = if queued.is_some() { PacketKind::Media } else { PacketKind::Padding };
        let sequence = self.handle_sent(now, size, kind, probe);
        Some(Outgoing { sequence, token: queued.map(|queued| queued.token), size, probe })
    }

    /// Handles reports on packets: number, arrival or `None`, ECN field.
    pub fn handle_feedback(
        &mut self,
        now: Time,
        packets: impl Iterator<Item = (u64, Option<RemoteTime>, Option<Ecn>)>,
    ) {
        let now = self.at(now);
        self.reader.handle_reports(&mut self.history, packets);
        self.pass_reports(now);
        self.follow(now);
    }

    /// Passes the packet reports that were read to the half, if there are any.
    fn pass_reports(&mut self, now: Time) {
        let packets = self.reader.reports();
        if packets.is_empty() {
            return;
        }
        let arrived = packets.iter().filter(|report| report.arrival.is_some()).count();
        self.arrived += arrived as u64;
        self.lost += (packets.len() - arrived) as u64;
        let Flight { outstanding, after_highest } = self.history.flight();
        let feedback = Feedback { packets, outstanding, after_highest, rtt: self.reader.rtt() };
        self.half.handle_event(now, &Event::Feedback(&feedback), self.signals.collector());
    }

    /// Handles an RTCP datagram: transport-wide feedback, RFC 8888 reports and the messages of receive halves. Other packets
    /// prove that packets arrive if they are receiver reports, and are skipped otherwise.
    pub fn handle_rtcp(&mut self, now: Time, datagram: &[u8]) -> Result<(), Failure> {
        let now = self.at(now);
        let compound = parse_compound(datagram).map_err(|error| (PACELINE_ERROR_RTCP, error.to_string()))?;
        let mut is_unreadable = false;
        for packet in compound {
            match packet {
                Rtcp::TransportFeedback(feedback) => {
                    self.reader.handle_transport_feedback(&mut self.history, &feedback);
                    self.pass_reports(now);
                }
                Rtcp::CongestionFeedback(_) if self.sequence_maps.is_empty() => is_unreadable = true,
                Rtcp::CongestionFeedback(feedback) => {
                    let (history, maps) = (&mut self.history, &self.sequence_maps);
                    self.reader.handle_congestion_feedback(now, history, maps, &feedback);
                    self.pass_reports(now);
                }
                Rtcp::ReceiverReport { .. } | Rtcp::SenderReport { .. } => {
                    self.half.handle_event(now, &Event::Liveness, self.signals.collector())
                }
                other => {
                    if let Some(message) = messages::read(&other) {
                        self.half.handle_event(now, &Event::Message(&message), self.signals.collector());
                    }
                }
            }
        }
        self.follow(now);
        let text = "RFC 8888 feedback names packets by SSRC and RTP number: call `paceline_sender_rtp_number` for each packet \
            that leaves";
        if is_unreadable { Err(argument(text)) } else { Ok(()) }
    }

    pub fn handle_rtt(&mut self, now: Time, sample: TimeDelta) {
        let now = self.at(now);
        let rtt = RoundTrip::after(self.rtt, sample);
        self.rtt = Some(rtt);
        self.half.handle_event(now, &Event::RoundTrip(&rtt), self.signals.collector());
        self.follow(now);
    }

    pub fn handle_loss(&mut self, now: Time, fraction_lost: Fraction) {
        let now = self.at(now);
        self.half.handle_event(now, &Event::Report(&ReceiverReport { fraction_lost }), self.signals.collector());
        self.follow(now);
    }

    pub fn handle_remb(&mut self, now: Time, rate: Rate) {
        let now = self.at(now);
        self.half.handle_event(now, &Event::Message(&Message::Remb(rate)), self.signals.collector());
        self.follow(now);
    }

    /// Handles new limits. Probe clusters above the new maximum are given up.
    pub fn handle_bounds(&mut self, now: Time, bounds: &Bounds) {
        let now = self.at(now);
        self.prober.drop_above(bounds.max);
        self.half.handle_event(now, &Event::Bounds(bounds), self.signals.collector());
        self.follow(now);
    }

    /// Handles a new network route. Reports on packets that were sent before have no effect any more. Packets in the pacer and
    /// numbers stay.
    pub fn handle_route_change(&mut self, now: Time, setup: &Setup) {
        let now = self.at(now);
        self.history.restart();
        self.reader.restart();
        (self.prober, self.rtt) = (Prober::default(), None);
        self.half.handle_event(now, &Event::RouteChange(setup), self.signals.collector());
        self.half.handle_event(now, &Event::Bounds(&setup.bounds()), self.signals.collector());
        if !self.available {
            self.half.handle_event(now, &Event::Availability(false), self.signals.collector());
        }
        self.follow(now);
    }

    /// Handles the loss and the return of the network. While there is none, no packet leaves and frames are rejected.
    pub fn handle_availability(&mut self, now: Time, available: bool) {
        let now = self.at(now);
        if self.available != available {
            self.available = available;
            self.half.handle_event(now, &Event::Availability(available), self.signals.collector());
            self.follow(now);
        }
    }

    pub fn handle_timeout(&mut self, now: Time) {
        let now = self.at(now);
        if self.half.poll_timeout().is_some_and(|due| due <= now) {
            self.half.handle_event(now, &Event::Timeout, self.signals.collector());
            self.follow(now);
        }
    }

    /// Returns the time at which the controller or the next packet is due.
    pub fn next_timeout(&self) -> Option<Time> {
        let packet = match () {
            _ if !self.window_is_open() => None,
            _ if self.prober.is_active() => self.probe_due(),
            _ => [self.pacer.poll_timeout(), self.probe_due()].into_iter().flatten().min(),
        };
        [packet, self.half.poll_timeout()].into_iter().flatten().min()
    }

    pub fn half_timeout(&self) -> Option<Time> {
        self.half.poll_timeout()
    }
    pub fn decision(&self) -> &Decision {
        &self.decision
    }
    pub fn flight(&self) -> Flight {
        self.history.flight()
    }
    pub fn queued(&self) -> DataSize {
        self.pacer.queued()
    }
    pub fn rtt(&self) -> Option<RoundTrip> {
        self.rtt
    }
    pub fn now(&self) -> Time {
        self.now
    }
    pub fn packets_sent(&self) -> u64 {
        self.history.next_sequence()
    }
}
