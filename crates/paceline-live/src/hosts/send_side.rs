// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flows that an end sends, without socket and clock.

use crate::hosts::arrivals::{RenderedFrame, Report};
use crate::hosts::drift::{Drift, Minima, drift};
use crate::hosts::flow_number::Ssrcs;
use crate::hosts::path_log::PathLog;
use crate::hosts::report::{FlowReport, Measured};
use crate::hosts::session_flow::SessionFlow;
use crate::hosts::statistics::Sample;
use crate::hosts::summary::Summary;
use crate::hosts::targets::Targets;
use crate::hosts::timers::Timers;
use crate::testbed::lateness::{self, Lateness};
use crate::testbed::media_endpoint;
use paceline_netsim::ControllerFailure;
use paceline_netsim::flow::{Datagram, DatagramKind, IP_UDP_HEADERS, ReceiverEvent};
use paceline_netsim::media_flow::{MediaFlow, packet_class};
use paceline_netsim::network::FlowEnd;
use paceline_netsim::records::{Content, EventRecord, PacketClass, PacketRecord, TapPoint, TappedPacket};
use paceline_units::{DataSize, Dscp, Ecn, FlowId, Rate, Time, TimeDelta};

/// Sends a datagram.
pub type Transmit<'a> = dyn FnMut(&[u8], Ecn) + 'a;

/// A flow and what its sender measured.
struct SendFlow {
    id: String,
    flow: MediaFlow,
    start: Time,
    /// Nothing is sent from then on.
    end: Time,
    rtt: Sample,
    latest_rtt: Option<TimeDelta>,
    loss: f64,
    targets: Targets,
    /// Frames that the pacer refused, and frames that the receiver reported as rendered or given up.
    refused_frames: u64,
    reported_frames: u64,
}

/// The flows that an end sends.
pub struct SendSide {
    flows: Vec<SendFlow>,
    timers: Timers,
    /// Number of the first flow in the session.
    first: usize,
    ssrcs: Ssrcs,
    /// What reports of arrivals say.
    pub log: PathLog,
    /// The time at which the peer last reported an arrival.
    pub heard: Time,
    /// Lateness of timers.
    pub lateness: Lateness,
    /// Round-trip times of receiver reports, of all flows.
    pub rtt: Sample,
    /// The smallest of them in each interval.
    round_trips: Minima,
    /// Malformed datagrams.
    pub malformed: u64,
    /// Packets that were sent, and RTCP that was received, since they were taken; `None` if taps are not enabled.
    taps: Option<Vec<Tapped>>,
    /// The first failure of a controller, which ends the session.
    pub failure: Option<ControllerFailure>,
    /// The time of the last call of a flow.
    last: Time,
    start: Time,
    /// The end of the media: nothing is sent from then on, however late a call is.
    end: Time,
}

/// A packet that a sender sent or received.
pub struct Tapped {
    at: Time,
    packet: PacketRecord,
    datagram: Datagram,
}

impl Tapped {
    /// Returns the packet as observers receive it.
    pub fn packet(&self) -> TappedPacket<'_> {
        TappedPacket {
            at: self.at,
            point: TapPoint::Sender,
            packet: self.packet,
            sent: self.at,
            ecn: self.datagram.ecn,
            dscp: Dscp::default(),
            content: Content::Datagram(&self.datagram),
        }
    }
}

impl SendSide {
    /// Creates the side of flows of the session with these SSRCs that start at `start` and last for `duration`. `first` is the number of the first one in
    /// the session, and `rtt` the round-trip time of the handshake, or zero.
    pub fn new(
        ssrcs: Ssrcs,
        flows: Vec<SessionFlow>,
        first: usize,
        start: Time,
        duration: TimeDelta,
        rtt: TimeDelta,
    ) -> Self {
        let (count, end) = (flows.len(), start + duration);
        let flow = |SessionFlow { id, flow, start: begins, stop }| SendFlow {
            id,
            flow,
            start: start + begins,
            end: end.min(start + stop),
            rtt: Sample::coarse(),
            latest_rtt: None,
            loss: 0.0,
            refused_frames: 0,
            reported_frames: 0,
            targets: Targets::new(start, duration),
        };
        let flows: Vec<SendFlow> = flows.into_iter().map(flow).collect();
        Self {
            timers: Timers::new(flows.iter().map(|flow| Some(flow.poll_timeout(start)?.max(flow.start)))),
            flows,
            first,
            ssrcs,
            log: PathLog::new(rtt, count),
            heard: start,
            lateness: lateness::empty(),
            rtt: Sample::default(),
            round_trips: Minima::default(),
            malformed: 0,
            taps: None,
            failure: None,
            last: start,
            start,
            end,
        }
    }

    /// Returns whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Lets [`take_taps`](Self::take_taps) return packets.
    pub fn enable_taps(&mut self) {
        self.taps = Some(Vec::new());
    }

    /// Returns the packets since the last call, in order of time.
    pub fn take_taps(&mut self) -> Vec<Tapped> {
        self.taps.as_mut().map_or(Vec::new(), std::mem::take)
    }

    fn tap(&mut self, at: Time, flow: usize, class: PacketClass, datagram: &Datagram) {
        if let Some(taps) = &mut self.taps {
            // RTCP is not among the events, so it has the number of the packet before it.
            let packet = self.log.sent.packets.saturating_sub(1);
            let packet = PacketRecord { packet, flow: FlowId(flow as u16), class, size: datagram.size() };
            taps.push(Tapped { at, packet, datagram: datagram.clone() });
        }
    }

    /// Returns this time, or that of the last call if it is later: calls of a flow never go back in time, although timestamps may.
    pub fn advance(&mut self, at: Time) -> Time {
        self.last = self.last.max(at);
        self.last
    }

    /// Returns whether bytes are RTCP of the receiver of one of the flows.
    pub fn is_feedback(&self, bytes: &[u8]) -> bool {
        self.ssrcs.of_feedback(bytes).is_some_and(|number| number >= self.first)
    }

    /// Handles RTCP of a receiver, before the end of the media.
    pub fn handle_rtcp(&mut self, at: Time, bytes: &[u8], ecn: Ecn, transmit: &mut Transmit<'_>) {
        let index = self.ssrcs.of_feedback(bytes).and_then(|number| number.checked_sub(self.first));
        let Some(index) = index.filter(|index| *index < self.flows.len()) else {
            self.malformed += 1;
            return;
        };
        let at = self.advance(at);
        let flow = &mut self.flows[index];
        if !(flow.start..flow.end).contains(&at) {
            return;
        }
        let size = DataSize::from_bytes(bytes.len() as u64) + IP_UDP_HEADERS;
        flow.flow.handle_packet(at, FlowEnd::Sender, at, bytes, size, ecn);
        if self.taps.is_some() {
            self.tap(at, index, PacketClass::ReceiverControl, &Datagram::from_bytes(bytes, ecn));
        }
        self.drain(at, index, transmit);
    }

    /// Handles the body of a report of arrivals.
    pub fn handle_report(&mut self, now: Time, body: &[u8]) {
        let Some(report) = Report::read(body) else {
            self.malformed += 1;
            return;
        };
        if !self.log.is_new(&report) {
            return;
        }
        if self.log.handle_report(&report) {
            self.heard = self.heard.max(now);
        }
        let possible = report.frames.iter().filter(|frame| self.handle_frame(now, frame)).count();
        self.malformed += u64::from(possible < report.frames.len());
    }

    /// Handles a frame that the receiver rendered. Returns whether it is possible: of one of the flows, at a possible time, and with those that
    /// were given up no more than the packets of the flow and the frames that its pacer refused.
    fn handle_frame(&mut self, now: Time, frame: &RenderedFrame) -> bool {
        let place = self.ssrcs.stream_of(frame.stream);
        let place = place.and_then(|(number, stream)| Some((number.checked_sub(self.first)?, stream)));
        let place = place.filter(|(index, _)| *index < self.flows.len());
        let (Some((index, stream)), Some(at)) = (place, self.log.time_of(frame.at, now)) else { return false };
        let RenderedFrame { timestamp, size, dropped, .. } = *frame;
        let flow = &mut self.flows[index];
        let reported = flow.reported_frames + 1 + u64::from(dropped);
        if reported > self.log.flows[index].sent.packets + flow.refused_frames {
            return false;
        }
        flow.reported_frames = reported;
        self.log.push(flow.flow.receiver_event(at, ReceiverEvent::Frame { stream, timestamp, size, dropped }));
        true
    }

    /// Returns the time of the next timer of a flow.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Handles timers that are due, and sends what is due, before the end of the media.
    pub fn handle_timeout(&mut self, now: Time, transmit: &mut Transmit<'_>) {
        let now = self.advance(now);
        if now >= self.end {
            return;
        }
        for index in 0..self.flows.len() {
            if let Some(due) = self.timers.due(index, now) {
                self.lateness.saturating_record((now - due).as_nanos().max(0) as u64);
                let flow = &mut self.flows[index];
                if now >= flow.end {
                    flow.targets.push(flow.end, Rate::ZERO);
                    self.timers.set(index, None);
                    continue;
                }
                flow.flow.handle_timeout(now, FlowEnd::Sender);
                self.drain(now, index, transmit);
            }
        }
    }

    /// Sends what a flow has due, and records its events.
    fn drain(&mut self, now: Time, index: usize, transmit: &mut Transmit<'_>) {
        let mut datagram = Datagram::new();
        while let Some(kind) = self.flows[index].flow.sender.poll_transmit(now, &mut datagram) {
            let key = self.ssrcs.key(datagram.bytes()).filter(|_| matches!(kind, DatagramKind::Rtp { .. }));
            if let Some(key) = key {
                self.log.handle_sent(now, key, FlowId(index as u16), packet_class(&kind), datagram.size());
            }
            media_endpoint::with_bytes(&datagram, |bytes| transmit(bytes, datagram.ecn));
            self.tap(now, index, packet_class(&kind), &datagram);
        }
        let flow = &mut self.flows[index];
        while let Some(event) = flow.flow.sender.poll_event() {
            let Some(event) = flow.flow.sender_event(now, event) else { continue };
            match event {
                EventRecord::RoundTrip { rtt, .. } => {
                    flow.rtt.push(rtt);
                    self.rtt.push(rtt);
                    self.round_trips.push(now, rtt);
                    flow.latest_rtt = Some(rtt);
                }
                EventRecord::Decision { at, target, .. } => flow.targets.push(at, target),
                EventRecord::FractionLost { fraction, .. } => flow.loss = fraction,
                EventRecord::FrameDropped { .. } => flow.refused_frames += 1,
                _ => {}
            }
            self.log.push(event);
        }
        if let Err(failure) = flow.flow.check_controller(now, FlowEnd::Sender) {
            self.failure.get_or_insert(failure);
        }
        self.timers.set(index, flow.poll_timeout(now));
    }

    /// Returns the drift between the clocks of the two hosts; `None` if none is seen.
    pub fn drift(&self) -> Option<Drift> {
        drift(&self.log.minima, &self.round_trips)
    }

    /// Returns the sum of the targets.
    pub fn target(&self) -> Rate {
        Rate::from_bps(self.flows.iter().map(|flow| flow.targets.current.as_bps()).sum())
    }

    /// Returns the latest round-trip time of any flow.
    pub fn latest_rtt(&self) -> Option<TimeDelta> {
        self.flows.iter().filter_map(|flow| flow.latest_rtt).max()
    }

    /// Returns the highest fraction lost of the last receiver reports.
    pub fn loss(&self) -> f64 {
        self.flows.iter().map(|flow| flow.loss).fold(0.0, f64::max)
    }

    /// Returns the measures of all flows together, up to the end of the media.
    pub fn summary(&mut self, end: Time) -> Summary {
        let targets = self.flows.iter_mut().map(|flow| flow.targets.means(end).0.as_bps()).sum();
        let (log, known) = (&self.log, self.log.up_to_latest);
        Summary::new(&log.sent, &log.received, known, targets, [&log.variation(), &self.rtt.above(TimeDelta::ZERO)])
    }

    /// Returns the sum of the mean targets in the second half of the planned duration. That of a flow which is not active is zero.
    pub fn late_target(&mut self, end: Time) -> Rate {
        Rate::from_bps(self.flows.iter_mut().map(|flow| flow.targets.means(end).1.as_bps()).sum())
    }

    /// Returns the result of each flow at the end of the media.
    pub fn finish(&mut self, end: Time) -> Vec<FlowReport> {
        let (log, start) = (&self.log, self.start);
        let report = |(index, flow): (usize, &mut SendFlow)| {
            let lasted = (end.min(flow.end) - flow.start).max(TimeDelta::ZERO);
            let life = (end - start).as_secs_f64() / lasted.as_secs_f64().max(1e-9);
            let (target, seen) = (flow.targets.means(end).0.scale(life), &log.flows[index]);
            let times = [&log.variation_of(index), &flow.rtt.above(TimeDelta::ZERO)];
            let summary = Summary::new(&seen.sent, &seen.received, seen.up_to_latest, target.as_bps(), times);
            FlowReport { id: flow.id.clone(), measured: Measured::new(&summary, lasted) }
        };
        self.flows.iter_mut().enumerate().map(report).collect()
    }
}

impl SendFlow {
    /// Returns the time of its next timer, at the latest its end.
    fn poll_timeout(&self, now: Time) -> Option<Time> {
        Some(self.flow.poll_timeout(now, FlowEnd::Sender).map_or(self.end, |due| due.min(self.end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::message::{self, Message, SessionId};
    use crate::hosts::receive_side::ReceiveSide;
    use crate::hosts::testing;
    use paceline_units::StreamId;
    use paceline_wire::is_rtcp;

    const ID: SessionId = SessionId([4; 8]);

    /// Both ends of a flow under `googcc`, and what is under way between them.
    struct Ends {
        side: SendSide,
        receiver: ReceiveSide,
        media: Vec<(Time, Vec<u8>)>,
        answers: Vec<Vec<u8>>,
    }

    impl Ends {
        /// The receiver's clock is ahead by `offset`.
        fn new(duration: TimeDelta, rtt: TimeDelta, offset: TimeDelta) -> Self {
            let flow = || testing::flow(ID, "googcc");
            Self {
                side: testing::send_side(ID, flow(), Time::ZERO, duration, rtt),
                receiver: ReceiveSide::new(testing::ssrcs(ID), vec![flow()], 0, Time::ZERO + offset),
                media: Vec::new(),
                answers: Vec::new(),
            }
        }

        /// Delivers packets that were sent `delay` before, at `there` on the receiver's clock, and what the receiver sent in the last step.
        fn step(&mut self, now: Time, there: Time, delay: TimeDelta) {
            let Self { side, receiver, media, answers } = self;
            for datagram in answers.drain(..) {
                match message::read(&datagram) {
                    Ok((ID, Message::Arrivals(body))) => side.handle_report(now, body),
                    _ => side.handle_rtcp(now, &datagram, Ecn::NotEct, &mut |_, _| ()),
                }
            }
            side.handle_timeout(now, &mut |bytes, _| media.push((now, bytes.to_vec())));
            let answer = &mut |bytes: &[u8], _| answers.push(bytes.to_vec());
            let arrived = media.iter().take_while(|(sent, _)| *sent + delay <= now).count();
            for (_, packet) in media.drain(..arrived) {
                assert!(receiver.handle_packet(there, there, &packet, Ecn::NotEct, answer));
            }
            receiver.handle_timeout(there, answer);
        }
    }

    #[test]
    fn nothing_is_sent_or_decided_after_the_end_however_late_the_wake_up_is() {
        let ms = Time::from_millis;
        let mut ends = Ends::new(TimeDelta::from_millis(1999), TimeDelta::ZERO, TimeDelta::ZERO);
        let mut feedback = Vec::new();
        for now in (0..1990).step_by(10).map(ms) {
            ends.step(now, now, TimeDelta::ZERO);
            // The last feedback arrives after the end.
            if now >= ms(1900) {
                feedback.extend(ends.answers.drain(..).filter(|bytes| is_rtcp(bytes)));
            }
        }
        let mut side = ends.side;
        assert!(side.log.sent.packets > 100 && !feedback.is_empty());
        assert!(side.poll_timeout().is_some_and(|due| due < ms(2000)), "a timer is due before the wake-up");
        let late = |_: &[u8], _| panic!("a packet after the end");
        for rtcp in &feedback {
            side.handle_rtcp(ms(2000), rtcp, Ecn::NotEct, &mut { late });
        }
        side.handle_timeout(ms(2000), &mut { late });
        side.handle_timeout(ms(22_000), &mut { late });
        let events = side.log.finish();
        assert!(events.iter().all(|event| event.at() < ms(1999)), "{:?}", events.last());
    }

    #[test]
    fn the_drift_of_the_receivers_clock_is_seen() {
        for ppm in [100, 0, -100] {
            let mut ends = Ends::new(TimeDelta::from_secs(30), TimeDelta::ZERO, TimeDelta::ZERO);
            for now in (0..29_000).step_by(5).map(Time::from_millis) {
                let there = now + TimeDelta::from_nanos((now - Time::ZERO).as_nanos() / 1_000_000 * ppm);
                ends.step(now, there, TimeDelta::from_millis(5));
            }
            let seen = ends.side.drift().map_or(0.0, |drift| drift.ppm);
            assert!((seen - ppm as f64).abs() < 2.0, "{ppm}: {seen}");
        }
    }

    #[test]
    fn rendered_frames_become_events_in_order_of_time() {
        let (length, offset) = (TimeDelta::from_secs(3), TimeDelta::from_secs(1000));
        let mut ends = Ends::new(length, TimeDelta::from_millis(40), offset);
        let mut frames = Vec::new();
        let mut latest = Time::ZERO;
        let mut collect = |event: &EventRecord| {
            assert!(event.at() >= latest, "{event:?} follows one at {latest}");
            latest = event.at();
            if let EventRecord::Frame { at, captured, flow: FlowId(0), stream: StreamId(0), size, .. } = *event {
                frames.push((at, captured, size));
            }
        };
        for now in (0..3000).map(Time::from_millis) {
            ends.step(now, now + offset, TimeDelta::from_millis(20));
            while let Some(event) = ends.side.log.poll_event(now) {
                collect(&event);
            }
        }
        let Ends { mut side, receiver, .. } = ends;
        side.log.finish().iter().for_each(&mut collect);
        let rendered = receiver.totals().frames as usize;
        assert!(rendered > 80 && frames.len() + 5 > rendered, "{} of {rendered}", frames.len());
        let mut delays: Vec<f64> = frames.iter().map(|(at, captured, _)| (*at - *captured).as_millis_f64()).collect();
        delays.sort_by(f64::total_cmp);
        // Packets of large frames wait in the pacer.
        let (smallest, median) = (delays[0], delays[delays.len() / 2]);
        assert!((19.0..22.0).contains(&smallest) && median < 50.0, "{smallest} ms, {median} ms");
        assert!(frames.iter().all(|(_, _, size)| size.as_bytes() > 100));
        assert_eq!(side.malformed, 0);
        // Those of other streams, of impossible times, and more than were sent do not count.
        let at = Time::ZERO + offset + TimeDelta::from_secs(1);
        let frame = RenderedFrame { stream: 0, timestamp: 7, size: DataSize::from_bytes(9), dropped: 9, at };
        let stream = |stream| RenderedFrame { stream, ..frame };
        let time = |at| RenderedFrame { at, ..frame };
        let most = RenderedFrame { dropped: u16::MAX, ..frame };
        assert!(side.handle_frame(Time::ZERO + length, &frame));
        for wrong in [stream(1), stream(2), stream(u16::MAX), time(Time::ZERO), time(at + offset), most] {
            assert!(!side.handle_frame(Time::ZERO + length, &wrong), "{wrong:?}");
        }
        let sent = side.log.sent.packets;
        let more = (0..sent).filter(|_| side.handle_frame(Time::ZERO + length, &frame)).count() as u64;
        assert!(more > 0 && frames.len() as u64 + 10 * (1 + more) <= sent, "{more}");
    }

    #[test]
    fn a_flow_sends_from_its_start_to_its_end() {
        let ms = TimeDelta::from_millis;
        let flow = SessionFlow { start: ms(500), stop: ms(1000), ..testing::flow(ID, "fixed") };
        let mut side = testing::send_side(ID, flow, Time::from_secs(7), ms(2000), TimeDelta::ZERO);
        let mut sent = Vec::new();
        while let Some(due) = side.poll_timeout().filter(|due| *due < Time::from_secs(9)) {
            side.handle_timeout(due, &mut |_, _| sent.push(due));
        }
        let (first, last) = (sent[0], sent[sent.len() - 1]);
        let from = |from: i64| Time::from_secs(7) + ms(from);
        assert!((from(500)..from(600)).contains(&first), "{first}");
        assert!((from(900)..from(1000)).contains(&last), "{last}");
        assert_eq!(side.target(), Rate::ZERO, "it has ended");
        let report = &side.finish(from(2000))[0];
        // It sent 1 Mbit/s for half a second.
        assert!((900e3..=1.1e6).contains(&report.measured.target_bps), "{:?}", report.measured);
        assert!((500e3..=1.5e6).contains(&report.measured.sent_bps), "{:?}", report.measured);
        assert!(side.late_target(from(2000)).as_bps() < 1000);
    }

    #[test]
    fn packets_and_feedback_of_another_session_do_not_count() {
        let now = Time::from_millis(1);
        for (id, is_ours) in [(ID, true), (SessionId([5; 8]), false)] {
            let flow = testing::flow(ID, "googcc");
            let mut side = testing::send_side(ID, flow, now, TimeDelta::from_secs(9), TimeDelta::ZERO);
            let mut receiver = ReceiveSide::new(testing::ssrcs(id), vec![testing::flow(id, "googcc")], 0, now);
            let mut media = Vec::new();
            for ms in 1..100 {
                side.handle_timeout(Time::from_millis(ms), &mut |bytes, _| media.push(bytes.to_vec()));
            }
            assert!(!media.is_empty());
            for packet in &media {
                assert_eq!(receiver.handle_packet(now, now, packet, Ecn::NotEct, &mut |_, _| ()), is_ours);
            }
            assert_eq!((receiver.totals().packets > 0, receiver.heard), (is_ours, now));
            let (later, before) = (now + TimeDelta::from_secs(1), now - TimeDelta::from_secs(1));
            for at in [later, before] {
                // The last packet is not as old as one that arrived late.
                let [last, ..] = &media[..] else { panic!("there is one") };
                let mut next = last.clone();
                next[3] ^= if at == later { 0x40 } else { 0x80 };
                receiver.handle_packet(later, at, &next, Ecn::NotEct, &mut |_, _| ());
                assert_eq!(receiver.heard, if is_ours { later } else { now });
            }
            let ssrc = testing::ssrcs(id).of(0).receiver;
            let report = [vec![0x80, 201, 0, 1], ssrc.to_be_bytes().to_vec()].concat();
            side.handle_rtcp(now, &report, Ecn::NotEct, &mut |_, _| ());
            assert_eq!(side.malformed == 0, is_ours);
        }
    }
}
