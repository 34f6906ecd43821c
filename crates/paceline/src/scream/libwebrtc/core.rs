// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order in which a report reaches the parts (`ScreamV2::OnTransportPacketsFeedback`).

use super::averages::{L4sAlpha, ReceivedRate, VirtualRtt};
use super::config::ScreamLibwebrtcConfig;
use super::flight::FlightMax;
use super::loss_level::LossLevel;
use super::queue_delay::QueueDelay;
use super::report::ReportSummary;
use super::target_rate::TargetRate;
use super::window::{ReferenceWindow, WindowInput, send_window};
use crate::Bounds;
use alloc::sync::Arc;
use paceline_units::{DataSize, Rate, Time};

/// SCReAM without its input and output.
#[derive(Clone, Debug)]
pub struct Core {
    config: Arc<ScreamLibwebrtcConfig>,
    bounds: Bounds,
    /// Whether a report was handled.
    started: bool,
    /// Whether the application limits the flow.
    pub limited: bool,
    pub delay: QueueDelay,
    pub rtt: VirtualRtt,
    pub alpha: L4sAlpha,
    pub loss: LossLevel,
    pub window: ReferenceWindow,
    pub received: ReceivedRate,
    flight: FlightMax,
    target: TargetRate,
}

impl Core {
    pub fn new(config: &Arc<ScreamLibwebrtcConfig>, start: Rate, bounds: Bounds) -> Self {
        Self {
            config: Arc::clone(config),
            bounds,
            started: false,
            limited: false,
            delay: QueueDelay::new(config),
            rtt: VirtualRtt::default(),
            alpha: L4sAlpha::default(),
            loss: LossLevel::default(),
            window: ReferenceWindow::new(config),
            received: ReceivedRate::default(),
            flight: FlightMax::default(),
            target: TargetRate::new(start),
        }
    }

    /// Sets new bounds. A start rate counts before the first report only.
    pub fn set_bounds(&mut self, bounds: Bounds, start: Rate) {
        self.bounds = bounds;
        if !self.started {
            self.target.rate = start;
        }
    }

    /// Handles the bytes in flight after a packet left.
    pub fn handle_sent(&mut self, in_flight: DataSize) {
        self.flight.handle(in_flight);
    }

    pub fn handle_report(&mut self, now: Time, report: &ReportSummary, in_flight: DataSize) {
        let config = &Arc::clone(&self.config);
        self.flight.handle(in_flight);
        self.received.update(report.last_arrival, report.received_bytes, config);
        self.limited = config.alr
            && self.flight.window_cap(config) < self.window.size
            && self.received.rate < self.target.rate.scale(config.alr_threshold);
        self.rtt.handle_rtt(report.rtt, self.limited, config);
        self.delay.update(now, report.least_delay, report.greatest_delay, config);
        if !self.limited {
            self.rtt.handle_hold(report.hold, config);
        }
        if !core::mem::replace(&mut self.started, true) {
            self.window.start(self.rtt.first_window(self.target.rate), config);
        }
        self.alpha.update(report.received, report.marked, config);
        self.update_window(now, report, config);
        self.target.update(now, self.window.size, &self.rtt, &mut self.delay, &self.bounds, config);
        self.flight.update(now, self.rtt.at_least_virtual(config));
    }

    /// A loss counts if the loss level or the delay confirms that there is congestion.
    fn update_window(&mut self, now: Time, report: &ReportSummary, config: &ScreamLibwebrtcConfig) {
        self.loss.update(now, report.lost, report.recovered, self.rtt.smoothed, config);
        let is_confirmed = self.loss.is_congested() || self.delay.is_detected(config);
        let input = WindowInput {
            not_marked: report.not_marked,
            marked: report.marked > 0,
            lost: report.lost > 0 && is_confirmed,
            lossy: self.loss.blocks_growth(),
            alpha: self.alpha.0,
            delay: &self.delay,
            rtt: &self.rtt,
            cap: self.flight.window_cap(config),
        };
        self.window.update(now, &input, config);
    }

    /// Returns the target, at most the present maximum.
    pub fn target(&self) -> Rate {
        self.target.rate.min(self.bounds.max)
    }

    /// Returns the pacing rate.
    pub fn pacing(&self) -> Rate {
        let pacing = self.target().scale(self.config.pacing_factor);
        self.received.finite().map_or(pacing, |received| pacing.max(received.scale(self.config.pacing_received)))
    }

    /// Returns the bound on bytes in flight.
    pub fn send_window(&self) -> DataSize {
        send_window(self.window.size, &self.delay, &self.config)
    }

    /// Returns whether the queuing delay is too long.
    pub fn is_delayed(&self) -> bool {
        self.delay.is_detected(&self.config)
    }
}
