//! SCReAM with its input and output (`ScreamNetworkController`): reports and packets in, a decision out.

use super::super::v2::shares::Shares;
use super::config::{ScreamLibwebrtcConfig, since};
use super::core::Core;
use super::flight::Flight;
use super::lost_packets::LostPackets;
use super::padding::Padding;
use super::pushback::{Load, drops_frames, rate_with_drops, reduction};
use super::report::ReportSummary;
use crate::blocks::units::floor_us;
use crate::{
    Bounds, Decision, Event, Feedback, Message, ProbeCluster, SentPacket, Setup, Signals, StreamState, Window,
};
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

/// What the encoder was told last, and what the pacer was.
#[derive(Clone, Copy, Debug, Default)]
struct Published {
    target: Rate,
    limited: bool,
    reduction: f64,
    padding: Rate,
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
    core: Core,
    flight: Flight,
    lost: LostPackets,
    padding: Padding,
    shares: Shares,
    published: Published,
    /// Whether the first call has begun the intervals of padding.
    initialised: bool,
    next_process: Time,
    sent: Time,
    /// The bytes in the pacer's queue at the last regular update.
    queued: DataSize,
    /// Whether one packet may leave although the window is full.
    keepalive: bool,
    decision: Decision,
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

    /// Handles an event.
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
        self.core.handle_sent(self.flight.bytes());
        self.sent = now;
        let changes_window = core::mem::take(&mut self.keepalive) || forgot;
        if self.flight.bytes() > self.core.send_window() || self.core.is_delayed() {
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
        let arrived = feedback.packets.iter().filter(|packet| packet.arrival.is_some() && packet.sent >= oldest);
        self.flight.handle_report(arrived.map(|packet| packet.sequence).max(), feedback.after_highest);
        if let Some(summary) = summary {
            self.core.handle_report(now, &summary, self.flight.bytes());
        }
        self.keepalive = false;
        self.update(now);
        if signals.is_enabled() {
            self.emit(signals);
        }
    }

    /// A lower maximum applies at once, other limits with the next report. The decision stays within the flow's limits.
    fn handle_bounds(&mut self) {
        let max = self.remb.map_or(self.bounds.max, |remb| remb.min(self.bounds.max));
        self.core.set_bounds(Bounds::new(self.bounds.min, max), self.start);
        self.decide();
    }

    fn handle_timeout(&mut self, now: Time) {
        if now < self.next_process {
            return;
        }
        self.next_process = now + PROCESS_INTERVAL;
        self.queued = self.padding.queued();
        let is_full = self.flight.bytes() >= self.core.send_window();
        self.keepalive = is_full && now - self.sent >= KEEPALIVE_INTERVAL;
        self.update(now);
    }

    /// Publishes what changed (`CreateUpdate`).
    fn update(&mut self, now: Time) {
        let load = Load {
            in_flight: self.flight.bytes(),
            send_window: self.core.send_window(),
            queued: self.queued,
            pacing: self.core.pacing(),
        };
        let reduction = reduction(&load, &self.config);
        let Published { target, limited, reduction: before, .. } = self.published;
        let is_changed = (target, limited) != (self.core.target(), self.core.is_limited());
        if is_changed || (reduction - before).abs() > REDUCTION_STEP {
            self.publish_target(reduction);
        }
        let max = self.remb.map_or(self.bounds.max, |remb| remb.min(self.bounds.max));
        let decreased = self.core.window.decreased();
        let padding = self.padding.rate(now, self.core.target(), max, decreased, &self.config);
        self.publish_pacing(now, padding);
        self.decide();
    }

    fn publish_target(&mut self, reduction: f64) {
        let (target, limited) = (self.core.target(), self.core.is_limited());
        self.published = Published { target, limited, reduction, ..self.published };
    }

    fn publish_pacing(&mut self, now: Time, padding: Rate) {
        let is_calm = since(now, self.core.window.reacted()) > self.config.calm;
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

    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Returns the rate of a stream whose encoder drops frames; `None` if none drops any.
    pub fn stream_rate(&self, stream: StreamId) -> Option<Rate> {
        let reduction = self.published.reduction;
        let (rate, least) = self.shares.with_min(stream)?;
        drops_frames(reduction).then(|| rate_with_drops(rate, least, reduction))
    }

    /// Returns the time of the next regular update.
    pub fn poll_timeout(&self) -> Time {
        self.next_process
    }

    pub fn poll_probe(&mut self) -> Option<ProbeCluster> {
        self.padding.poll_probe()
    }

    pub(super) fn core(&self) -> &Core {
        &self.core
    }

    pub(super) fn in_flight(&self) -> DataSize {
        self.flight.bytes()
    }

    pub(super) fn reduction(&self) -> f64 {
        self.published.reduction
    }

    pub(super) fn padding(&self) -> Rate {
        self.published.padding
    }
}
