// SPDX-License-Identifier: MIT OR Apache-2.0
//! SCReAM with its input and output (`ScreamNetworkController`): reports and packets in, a decision out.

use super::super::v2::shares::Shares;
use super::config::{ScreamLibwebrtcConfig, since};
use super::core::Core;
use super::flight::Flight;
use super::padding::Padding;
use super::pushback::{Load, drops_frames, rate_with_drops, reduction};
use super::report::{LostPackets, ReportSummary};
use crate::blocks::units::floor_us;
use crate::{Bounds, Decision, Event, Feedback, Message, SentPacket, Setup, Signals, StreamState, Window};
use alloc::sync::Arc;
use paceline_units::{DataSize, Rate, StreamId, Time, TimeDelta};

/// The interval of regular updates (`goog_cc_factory.cc`).
const PROCESS_INTERVAL: TimeDelta = TimeDelta::from_millis(25);
/// A change of the reduction by more than this is published.
const REDUCTION_STEP: f64 = 0.1;
/// Whenever nothing has left for this time although the window is full, a packet leaves (`kCongestedPacketInterval`).
const KEEPALIVE_INTERVAL: TimeDelta = TimeDelta::from_millis(500);
/// The largest burst (`kMaxBurstSize`, `pacing_controller.cc`).
const BURST_MAX: DataSize = DataSize::from_bytes(63_000);

/// The values that encoder and pacer received last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Published {
    target: Rate,
    limited: bool,
    pub reduction: f64,
    pub padding: Rate,
    pacing: Rate,
    burst: TimeDelta,
    /// `None` before the first update.
    window: Option<DataSize>,
}

/// SCReAM, without the choice of the ECN codepoint.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Arc<ScreamLibwebrtcConfig>,
    bounds: Bounds,
    start: Rate,
    remb: Option<Rate>,
    pub core: Core,
    pub flight: Flight,
    lost: LostPackets,
    pub padding: Padding,
    shares: Shares,
    pub published: Published,
    /// Whether the first call has begun the intervals of padding.
    initialised: bool,
    /// The time of the next regular update.
    pub next_process: Time,
    sent: Time,
    /// The bytes in the pacer's queue at the last regular update.
    queued: DataSize,
    /// Whether one packet may leave although the window is full.
    keepalive: bool,
    pub decision: Decision,
}

impl Sender {
    /// Creates a half without feedback. Sizes of the config are those of this flow.
    pub fn new(config: &Arc<ScreamLibwebrtcConfig>, setup: &Setup) -> Self {
        let bounds = setup.bounds();
        let mut sender = Self {
            config: Arc::clone(config),
            bounds,
            start: setup.start,
            remb: None,
            core: Core::new(config, setup.start, bounds),
            flight: Flight::default(),
            lost: LostPackets::default(),
            padding: Padding::default(),
            shares: Shares::default(),
            published: Published::default(),
            initialised: false,
            next_process: Time::ZERO,
            sent: Time::ZERO,
            queued: DataSize::ZERO,
            keepalive: false,
            decision: Decision::new(bounds.clamp(setup.start)),
        };
        sender.publish_target(0.0);
        sender.publish_pacing(Time::ZERO, Rate::ZERO);
        sender.decide();
        sender
    }

    pub fn handle_event(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        let now = floor_us(now);
        if !self.initialised {
            self.initialised = true;
            self.padding.start(now, &self.config);
            self.update(now);
        }
        match *event {
            Event::Sent(packet) => self.handle_sent(now, packet),
            Event::Feedback(feedback) => self.handle_feedback(now, feedback, signals),
            Event::Stream(stream) => self.handle_stream(stream),
            Event::StreamRemoved(stream) => {
                self.padding.remove_stream(stream);
                self.shares.remove(stream);
                self.decide();
            }
            Event::Message(&Message::Remb(rate)) => {
                self.remb = Some(rate);
                self.handle_bounds();
                self.update(now);
            }
            Event::Bounds(bounds) => {
                self.bounds = *bounds;
                self.handle_bounds();
            }
            Event::Timeout => self.handle_timeout(now),
            _ => {}
        }
    }

    /// Handles a packet that left. It causes an update while there is too much in flight or too long a queue.
    fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        let forgot = self.flight.handle_sent(now, packet.sequence, packet.size, &self.config);
        self.core.handle_sent(self.flight.bytes);
        self.sent = now;
        let changes_window = core::mem::take(&mut self.keepalive) || forgot;
        if self.flight.bytes > self.core.send_window() || self.core.is_delayed() {
            self.update(now);
        } else if changes_window {
            self.decide();
        }
    }

    fn handle_stream(&mut self, stream: &StreamState) {
        self.padding.handle_stream(stream);
        if self.shares.handle_stream(stream) {
            self.decide();
        }
    }

    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        if feedback.packets.is_empty() {
            return;
        }
        // A packet that leaves makes the sender forget those before.
        let oldest = self.sent - self.config.history;
        self.lost.forget(oldest);
        let summary = ReportSummary::new(now, feedback, oldest, self.config.clock, &mut self.lost);
        let arrived = feedback.packets.iter().filter(|packet| packet.arrival.is_some());
        self.flight.handle_report(arrived.map(|packet| packet.sequence).max(), feedback.after_highest);
        if let Some(summary) = summary {
            self.core.handle_report(now, &summary, self.flight.bytes);
        }
        self.keepalive = false;
        self.update(now);
        if signals.is_enabled() {
            self.emit(signals);
        }
    }

    /// A lower maximum applies at once, other limits with the next report. The decision stays within the flow's limits.
    fn handle_bounds(&mut self) {
        self.core.set_bounds(Bounds::new(self.bounds.min, self.max()), self.start);
        self.decide();
    }

    /// Returns the largest target: that of the bounds, or a lower REMB.
    fn max(&self) -> Rate {
        self.remb.map_or(self.bounds.max, |remb| remb.min(self.bounds.max))
    }

    fn handle_timeout(&mut self, now: Time) {
        if now < self.next_process {
            return;
        }
        self.next_process = now + PROCESS_INTERVAL;
        self.queued = self.padding.queued();
        let is_full = self.flight.bytes >= self.core.send_window();
        self.keepalive = is_full && now - self.sent >= KEEPALIVE_INTERVAL;
        self.update(now);
    }

    /// Publishes what changed (`CreateUpdate`).
    fn update(&mut self, now: Time) {
        let load = Load {
            in_flight: self.flight.bytes,
            send_window: self.core.send_window(),
            queued: self.queued,
            pacing: self.core.pacing(),
        };
        let reduction = reduction(&load, &self.config);
        let Published { target, limited, reduction: before, .. } = self.published;
        let is_changed = (target, limited) != (self.core.target(), self.core.limited);
        if is_changed || (reduction - before).abs() > REDUCTION_STEP {
            self.publish_target(reduction);
        }
        let decreased = self.core.window.decreased;
        let padding = self.padding.rate(now, self.core.target(), self.max(), decreased, &self.config);
        self.publish_pacing(now, padding);
        self.decide();
    }

    fn publish_target(&mut self, reduction: f64) {
        let (target, limited) = (self.core.target(), self.core.limited);
        self.published = Published { target, limited, reduction, ..self.published };
    }

    fn publish_pacing(&mut self, now: Time, padding: Rate) {
        let is_calm = since(now, self.core.window.reacted) > self.config.calm;
        let burst = if is_calm { self.config.burst } else { self.config.burst_after };
        let (pacing, window) = (self.core.pacing(), Some(self.core.send_window()));
        self.published = Published { padding, pacing, burst, window, ..self.published };
    }

    /// Derives the decision from what was published and from the present maximum.
    fn decide(&mut self) {
        let Published { target, padding, pacing, burst, window, .. } = self.published;
        let target = self.bounds.clamp(target.min(self.core.target()));
        self.shares.divide(target);
        let window = window.map(|window| self.flight.window_of_flow(window));
        let keepalive = self.flight.of_flow() + DataSize::from_bytes(1);
        self.decision = Decision {
            pacing: pacing.max(target),
            burst: burst.min(BURST_MAX / pacing.max(target)),
            padding: padding.min(target),
            window: window
                .map(|window| Window::AfterHighest(if self.keepalive { window.max(keepalive) } else { window })),
            ..Decision::new(target)
        };
    }

    /// Returns the rate of a stream whose encoder drops frames; `None` if none drops any.
    pub fn stream_rate(&self, stream: StreamId) -> Option<Rate> {
        let reduction = self.published.reduction;
        let (rate, least) = self.shares.with_min(stream)?;
        drops_frames(reduction).then(|| rate_with_drops(rate, least, reduction))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SETUP, at, kbps};
    use crate::{PacketReport, SentPacket};
    use paceline_units::RemoteTime;

    fn sender() -> Sender {
        Sender::new(&Arc::new(ScreamLibwebrtcConfig::LIBWEBRTC), &SETUP)
    }

    fn on(sender: &mut Sender, ms: i64, event: Event<'_>) -> Decision {
        sender.handle_event(at(ms), &event, &mut Signals::disabled());
        sender.decision
    }

    fn sent(sender: &mut Sender, ms: i64, sequence: u64, bytes: u64) -> Decision {
        on(sender, ms, Event::Sent(&SentPacket::new(sequence, DataSize::from_bytes(bytes))))
    }

    fn stream(sender: &mut Sender, ms: i64, queued: u64) -> Decision {
        let state = StreamState::new(StreamId(0), DataSize::from_bytes(queued)).with_max(kbps(2000));
        on(sender, ms, Event::Stream(&state))
    }

    /// Reports a packet of 1200 B that was sent at `ms` and took 20 ms; `after` bytes left after it.
    fn report(sender: &mut Sender, now: i64, sequence: u64, ms: i64, after: u64) -> Decision {
        let size = DataSize::from_bytes(1200);
        let packets = [PacketReport::new(sequence, at(ms), size, Some(RemoteTime::from_millis(ms + 20)))];
        let after = DataSize::from_bytes(after);
        on(sender, now, Event::Feedback(&Feedback::new(&packets, after, after)))
    }

    fn window(decision: Decision) -> u64 {
        let Some(Window::AfterHighest(window)) = decision.window else { panic!("{decision:?}") };
        window.as_bytes()
    }

    /// Three least windows, 1.1 times the start rate, large bursts; padding once there is a stream that can use more.
    #[test]
    fn first_decision_follows_from_the_start_rate() {
        let mut sender = sender();
        let decision = sender.decision;
        assert_eq!((decision.target, decision.pacing, window(decision)), (kbps(300), kbps(330), 3000));
        assert_eq!((decision.burst, decision.padding), (TimeDelta::from_millis(40), Rate::ZERO));
        assert_eq!(stream(&mut sender, 0, 0).padding, Rate::ZERO, "until the next update");
        assert_eq!(on(&mut sender, 25, Event::Timeout).padding, kbps(300));
        assert_eq!(sender.next_process, at(50));
        assert_eq!(on(&mut sender, 3000, Event::Timeout).padding, Rate::ZERO);
    }

    /// 330 kbit/s empty 20,000 B in more than 480 ms.
    #[test]
    fn removed_stream_has_neither_rate_nor_queue() {
        let mut sender = sender();
        stream(&mut sender, 1, 20_000);
        on(&mut sender, 25, Event::Timeout);
        assert_eq!((sender.stream_rate(StreamId(0)), sender.stream_rate(StreamId(1))), (Some(kbps(150)), None));
        on(&mut sender, 76, Event::StreamRemoved(StreamId(0)));
        assert_eq!(sender.stream_rate(StreamId(0)), None);
        on(&mut sender, 100, Event::Timeout);
        assert_eq!(sender.published.reduction, 0.0);
    }

    #[test]
    fn closed_window_opens_for_a_packet_each_half_second() {
        let mut sender = sender();
        sent(&mut sender, 0, 0, 2999);
        assert_eq!(window(on(&mut sender, 500, Event::Timeout)), 3000, "the window is open");
        sent(&mut sender, 501, 1, 1);
        let windows = [525, 1000, 1025].map(|ms| window(on(&mut sender, ms, Event::Timeout)));
        assert_eq!(windows, [3000, 3000, 3001]);
        assert_eq!(window(sent(&mut sender, 1030, 2, 1000)), 3000);
        assert_eq!(window(on(&mut sender, 1525, Event::Timeout)), 3000);
        assert_eq!(window(on(&mut sender, 1550, Event::Timeout)), 4001);
        assert!(window(report(&mut sender, 1560, 2, 1030, 0)) > 4001, "a report opens it");
    }

    /// Packets of more than 60 s ago do not fill the window, and reports on them do not count.
    #[test]
    fn forgotten_packets_neither_fill_the_window_nor_count() {
        let mut sender = sender();
        sent(&mut sender, 0, 0, 3000);
        assert_eq!(window(sent(&mut sender, 60_001, 1, 100)), 6000);
        let before = sender.decision;
        report(&mut sender, 60_010, 0, 0, 100);
        assert_eq!((sender.core.rtt.smoothed, sender.decision.target), (TimeDelta::ZERO, before.target));
        report(&mut sender, 60_050, 1, 60_001, 0);
        assert_eq!(sender.core.rtt.smoothed, TimeDelta::from_millis(49));
        report(&mut sender, 60_060, 1, 1, 0);
        let late = TimeDelta::from_micros((7 * 49_000 + 60_059_000) / 8);
        assert_eq!(sender.core.rtt.smoothed, late, "exactly 60 s count");
    }

    /// A lower maximum or estimate of the receiver applies at once, a higher one with the next report.
    #[test]
    fn limits_apply_to_the_target() {
        let mut sender = sender();
        assert_eq!(on(&mut sender, 0, Event::Message(&Message::Remb(kbps(200)))).target, kbps(200));
        let bounds = Bounds::new(kbps(250), kbps(2000));
        assert_eq!(on(&mut sender, 1, Event::Bounds(&bounds)).target, kbps(250), "the minimum takes precedence");
        assert_eq!(on(&mut sender, 2, Event::Message(&Message::Remb(kbps(900)))).target, kbps(300));
        assert_eq!(on(&mut sender, 3, Event::Bounds(&Bounds::new(kbps(30), kbps(100)))).target, kbps(100));
        assert_eq!(report(&mut sender, 60, 0, 10, 0).target, kbps(100));
        assert_eq!(on(&mut sender, 61, Event::Bounds(&SETUP.bounds())).target, kbps(100));
        // 0.8 of 300 kbit/s: a segment is a large part of the window.
        assert_eq!(report(&mut sender, 90, 1, 40, 0).target, kbps(240));
        assert_eq!(on(&mut sender, 91, Event::Bounds(&bounds)).target, kbps(250), "the new minimum");
    }

    #[test]
    fn bursts_are_short_after_a_reaction() {
        let mut sender = sender();
        report(&mut sender, 60, 0, 10, 0);
        for n in 1..9 {
            let (ms, size) = (60 + 50 * n, DataSize::from_bytes(1200));
            let arrival = Some(RemoteTime::from_millis(ms + 200));
            let packets = [PacketReport::new(n as u64, at(ms), size, arrival)];
            on(&mut sender, ms + 250, Event::Feedback(&Feedback::new(&packets, size, size)));
        }
        let reacted = sender.core.window.reacted.unwrap();
        assert_eq!(sender.decision.burst, TimeDelta::from_millis(10));
        let calm = (reacted - Time::ZERO).as_nanos() / 1_000_000 + 15_000;
        assert_eq!(on(&mut sender, calm, Event::Timeout).burst, TimeDelta::from_millis(10));
        // A packet that leaves during a delay causes an update.
        assert_eq!(sent(&mut sender, calm + 1, 9, 100).burst, TimeDelta::from_millis(40));
    }
}
