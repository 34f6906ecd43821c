// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the calls of quinn mean to a [`Sender`]: packets that leave, and reports on packets.
//!
//! ```text
//! on_sent ───▶ Bursts ──▶ Sender::handle_sent
//! on_ack, on_congestion_event ──▶ Bursts ──▶ report ──▶ Sender::handle_report, each interval
//! Decision ──▶ window: target · (srtt + slack), at most that of the controller
//!          └─▶ Encoder
//! ```
//!
//! quinn has one window for the bytes in flight and for its pacer, whose rate is 1.25 times the window per round-trip time. The slack is
//! large, so that frames and delayed ACKs fit in. A source that always has data would use all of it and send more than the target: the slack
//! falls while more than the target is sent, and rises while less is sent although the window is full.
//!
//! A report is passed on with the next packet or ACK, not within an ACK: losses and marks follow the packets of the same ACK.

use crate::bursts::Bursts;
use crate::config::INITIAL_RTT;
use crate::{Encoder, Target};
use paceline::{
    Controller, IP_UDP_HEADERS, Outgoing, PacketArrival, PacketKind, Report, Sender, SenderConfig, Setup, Signals,
    StreamState, Window,
};
use paceline_units::{Clock, DataSize, Ecn, Fraction, Rate, RemoteTime, StreamId, Time, TimeDelta};
use std::time::{Duration, Instant};

/// The share of the round-trip time by which the window may exceed the target, and the largest share by which it may fall below it.
const SLACK_MAX: f64 = 0.25;
const SLACK_MIN: f64 = 0.2;
/// The change of the slack for each time of twice the target. Smaller than the shortest round-trip time over [`RATE_TIME`], so that it
/// does not swing.
const SLACK_GAIN: f64 = 0.1;
/// The memory of the rate of what is sent.
const RATE_TIME: TimeDelta = TimeDelta::from_millis(200);
/// The time for which a receiver may hold an ACK (RFC 9000, section 18.2, `max_ack_delay`). quinn's round-trip time excludes it.
const ACK_DELAY: TimeDelta = TimeDelta::from_millis(25);
/// The interval of reports, if the controller has no requirement.
const INTERVAL: TimeDelta = TimeDelta::from_millis(25);
/// The largest initial window (RFC 9002, section 7.2).
const INITIAL_WINDOW_MAX: u64 = 14_720;
/// Packets with ACKs alone get no ACK, and quinn does not say which ones they are. Packets of at most this size, header and tag included, have
/// room for little more than an ACK.
const ACK_PACKET_MIN: u64 = 64;
/// An ACK of many ranges is longer. quinn reads no window before such a packet, nor before a loss probe, which is longer in most cases.
const ACK_PACKET_MAX: u64 = 300;
/// Packets are counted from the first number on that is not below this. Those of the handshake have numbers of their own, and quinn
/// discards some of them without a report.
const HANDSHAKE_PACKETS: u64 = 10;
/// Losses and the round-trip time are passed on at this interval, as RTCP does, and if they cover this many packets.
const LOSS_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
const LOSS_PACKETS_MIN: u64 = 20;
/// The only stream.
const STREAM: StreamId = StreamId(0);

/// The state of the controller of one path.
#[derive(Clone, Debug)]
pub(crate) struct State {
    clock: Clock,
    sender: Sender<()>,
    encoder: Encoder,
    bursts: Bursts,
    /// Whether the handshake is over, as far as packet numbers show.
    is_counting: bool,
    /// The packets that were acknowledged or lost since the last report.
    report: Report,
    is_unordered: bool,
    interval: TimeDelta,
    reported: Time,
    /// The time of the last ACK, and the newest packet that was acknowledged.
    acked: Time,
    newest: Time,
    /// quinn's smoothed round-trip time, before the last ACK.
    srtt: TimeDelta,
    has_rtt: bool,
    mtu: u16,
    /// The time of persistent congestion, until a report covers an ACK of a packet that was sent later.
    congested: Option<Time>,
    window: u64,
    /// What the window allows in addition to the round-trip time at the target; less if it is negative.
    slack: TimeDelta,
    /// The bytes that were sent since the last report, and their rate over the target, smoothed.
    sent: DataSize,
    usage: f64,
    /// Whether the window or the pacer has held packets back since the last report.
    is_blocked: bool,
    /// Packets that arrived and that were lost since `losses_since`.
    arrived: u64,
    lost: u64,
    losses_since: Time,
}

impl State {
    pub fn new(mut controller: Controller, setup: &Setup, encoder: Encoder, now: Instant, mtu: u16) -> Self {
        let interval = controller.feedback.map_or(INTERVAL, |feedback| feedback.interval);
        let mut config = SenderConfig::new(setup);
        // Also for controllers that need none, so that bytes in flight are known.
        config.per_packet = Some(true);
        let mut sender = Sender::new(&config, &mut controller, Signals::disabled());
        sender.set_paces(false);
        let mut state = Self {
            clock: Clock::new(now),
            sender,
            encoder,
            bursts: Bursts::default(),
            is_counting: false,
            report: Report::default(),
            is_unordered: false,
            interval,
            reported: Time::ZERO - interval,
            acked: Time::ZERO,
            newest: Time::ZERO,
            srtt: INITIAL_RTT,
            has_rtt: false,
            mtu,
            congested: None,
            window: 0,
            slack: slack_max(INITIAL_RTT),
            sent: DataSize::ZERO,
            usage: 0.0,
            is_blocked: false,
            arrived: 0,
            lost: 0,
            losses_since: Time::ZERO,
        };
        state.update();
        state
    }

    #[inline]
    pub fn window(&self) -> u64 {
        self.window
    }

    pub fn packets_reported(&self) -> (u64, u64) {
        self.sender.packets_reported()
    }

    /// Handles the packets of one or more datagrams. Mostly they have one size. `has_data`: quinn has read the window.
    pub fn handle_sent(&mut self, now: Instant, bytes: u64, number: u64, has_data: bool) {
        let now = self.clock.time(now);
        self.advance(now);
        self.is_counting |= number >= HANDSHAKE_PACKETS;
        let ack_max = if has_data { ACK_PACKET_MIN } else { ACK_PACKET_MAX };
        if bytes <= ack_max || !self.is_counting {
            self.bursts.skip(number);
            return;
        }
        let count = self.bursts.handle_sent(now, self.sender.packets_sent(), bytes, number, self.mtu);
        let size = bytes / count;
        for n in 0..count {
            let payload = if n == 0 { bytes - size * (count - 1) } else { size };
            let size = DataSize::from_bytes(payload) + IP_UDP_HEADERS;
            self.sent += size;
            self.sender.handle_sent(now, &Outgoing::new(size, STREAM, PacketKind::Media));
        }
    }

    /// Handles the ACK of a packet. Its arrival on the clock of the receiver is unknown: the time of the ACK stands for it.
    pub fn handle_ack(&mut self, now: Instant, sent: Instant, bytes: u64, is_blocked: bool, srtt: Duration) {
        let (now, sent) = (self.clock.time(now), self.clock.time(sent));
        if now != self.acked {
            self.advance(now);
            (self.acked, self.srtt, self.has_rtt) = (now, srtt.into(), true);
        }
        self.is_blocked |= is_blocked;
        self.newest = self.newest.max(sent);
        let arrival = Some(remote(now));
        for number in self.bursts.handle_ack(sent, bytes) {
            // An ACK names packets in ascending order, but packets of an earlier ACK may be newer.
            self.is_unordered |= self.report.packets.last().is_some_and(|last| number < last.number);
            self.report.packets.push(PacketArrival::new(number, arrival));
            self.arrived += 1;
        }
    }

    /// Handles the end of the packets of an ACK. If nothing is in flight, the packets without a report have only ACKs: no report on them will
    /// come.
    #[inline]
    pub fn handle_ack_end(&mut self, in_flight: u64) {
        if in_flight == 0 {
            self.forget(Time::MAX);
        }
    }

    fn forget(&mut self, limit: Time) {
        while let Some(packets) = self.bursts.forget_before(limit) {
            packets.for_each(|number| self.sender.handle_arrival_without_time(number));
        }
    }

    /// Handles a mark of the packets in the last ACK. How many have one is unknown, so the newest one gets it.
    pub fn handle_ecn_mark(&mut self) {
        if let Some(newest) = self.report.packets.iter_mut().rev().find(|packet| packet.arrival.is_some()) {
            newest.ecn = Some(Ecn::Ce);
        }
    }

    /// Handles lost packets. After persistent congestion the window is the least one (RFC 9002, section 7.6.2), until a report shows that the
    /// path carries packets again.
    pub fn handle_loss(&mut self, now: Instant, sent: Instant, bytes: u64, is_persistent: bool) {
        let (now, sent) = (self.clock.time(now), self.clock.time(sent));
        let (report, lost) = (&mut self.report.packets, &mut self.lost);
        self.bursts.handle_loss(sent, bytes, |range| {
            *lost += range.end - range.start;
            report.extend(range.map(|number| PacketArrival::new(number, None)));
        });
        self.is_unordered = true;
        // A loss that a timer finds belongs to no ACK.
        if now != self.acked {
            self.advance(now);
        }
        if is_persistent {
            self.congested = Some(now);
            self.update_window();
        }
    }

    pub fn handle_mtu(&mut self, mtu: u16) {
        self.mtu = mtu;
        self.update_window();
    }

    /// Passes on what is due.
    #[inline]
    fn advance(&mut self, now: Time) {
        let is_report_due = !self.report.packets.is_empty() && now - self.reported >= self.interval;
        if is_report_due || self.sender.poll_timeout().is_some_and(|due| due <= now) {
            self.pass(now, is_report_due);
        }
    }

    #[cold]
    fn pass(&mut self, now: Time, is_report_due: bool) {
        if is_report_due {
            self.update_slack(now - self.reported);
            self.reported = now;
            // ACKs came at the time of the last one, perhaps long ago. The timeout may be one of waiting for them. Losses alone were found by
            // quinn's timer, so the last ACK was before them.
            let has_arrivals = self.report.packets.iter().any(|packet| packet.arrival.is_some());
            self.pass_report(if has_arrivals { self.acked } else { now });
        }
        self.sender.handle_timeout(now);
        // Detects the application limit. What waits in quinn is unknown.
        self.sender.handle_stream(now, &StreamState::new(STREAM, DataSize::ZERO));
        self.update();
    }

    fn pass_report(&mut self, now: Time) {
        self.sort_packets();
        self.report.number += 1;
        // The receiver has held no report, on the clock of arrivals.
        self.report.written = remote(now);
        self.sender.handle_report(now, &self.report);
        self.report.packets.clear();
        self.congested = self.congested.filter(|since| self.newest < *since);
        self.pass_losses(now);
        // quinn declares a packet lost 9/8 of a round-trip time after a newer one was acknowledged.
        let patience = self.srtt * 10 + TimeDelta::from_secs(1);
        self.forget(self.newest.min(now - patience));
    }

    fn sort_packets(&mut self) {
        if std::mem::take(&mut self.is_unordered) {
            self.report.packets.sort_unstable_by_key(|packet| packet.number);
        }
        debug_assert!(self.report.packets.is_sorted_by_key(|packet| packet.number));
    }

    fn pass_losses(&mut self, now: Time) {
        let packets = self.arrived + self.lost;
        if now - self.losses_since < LOSS_INTERVAL || packets < LOSS_PACKETS_MIN {
            return;
        }
        if let Some(fraction) = Fraction::new(self.lost as f64 / packets as f64) {
            self.sender.handle_loss(now, fraction);
        }
        self.sender.handle_rtt(now, self.srtt);
        (self.arrived, self.lost, self.losses_since) = (0, 0, now);
    }

    /// Follows the decision.
    fn update(&mut self) {
        while self.sender.poll_event().is_some() {}
        while self.sender.poll_probe().is_some() {}
        self.update_window();
        let decision = self.sender.decision();
        self.encoder.publish(Target {
            rate: decision.target,
            stable_rate: decision.stable_target,
            pacing: decision.pacing,
            application_limited: self.sender.is_application_limited(),
            rtt: self.srtt,
            updated: self.clock.instant(self.acked),
        });
    }

    /// Room for two packets: quinn sends nothing if the packet would fill the window (RFC 9002, section 7.2: the least window).
    fn window_min(&self) -> u64 {
        2 * u64::from(self.mtu) + 1
    }

    /// Compares what was sent in the last `span` with the target.
    fn update_slack(&mut self, span: TimeDelta) {
        let target = self.sender.target();
        let rate = Rate::from_size_and_time(std::mem::take(&mut self.sent), span);
        let weight = (span.as_secs_f64() / RATE_TIME.as_secs_f64()).min(1.0);
        self.usage += (rate.as_bps_f64() / target.as_bps_f64().max(1.0) - self.usage) * weight;
        let excess = self.usage - 1.0;
        if excess > 0.0 || self.is_blocked {
            self.slack -= span.min(RATE_TIME).scale(SLACK_GAIN * excess.min(1.0));
        }
        self.is_blocked = false;
        self.slack = self.slack.clamp(self.srtt.scale(-SLACK_MIN), slack_max(self.srtt));
    }

    fn update_window(&mut self) {
        if self.congested.is_some() {
            self.window = self.window_min();
            return;
        }
        let decision = self.sender.decision();
        let by_rate = decision.target * (self.srtt + self.slack);
        let flight = self.sender.flight();
        let limit = match decision.window {
            None => by_rate,
            Some(Window::Outstanding(window)) => window,
            // quinn counts what is before the highest acknowledged packet as well.
            Some(Window::AfterHighest(window)) => window + flight.outstanding.saturating_sub(flight.after_highest),
        };
        // quinn counts without IP and UDP headers.
        let mtu = u64::from(self.mtu);
        let bytes = limit.min(by_rate).as_bytes().min(u64::MAX / (mtu + 1)) * mtu / (mtu + IP_UDP_HEADERS.as_bytes());
        let most = if self.has_rtt { u64::MAX } else { INITIAL_WINDOW_MAX };
        self.window = bytes.min(most).max(self.window_min());
    }
}

/// Returns the largest slack: the delay of ACKs, and a share of it and of the round-trip time.
fn slack_max(srtt: TimeDelta) -> TimeDelta {
    ACK_DELAY + (srtt + ACK_DELAY).scale(SLACK_MAX)
}

/// Returns the time of arrival that stands for this one.
#[inline]
fn remote(now: Time) -> RemoteTime {
    RemoteTime::from_nanos(now.as_nanos())
}

#[cfg(test)]
mod tests;
