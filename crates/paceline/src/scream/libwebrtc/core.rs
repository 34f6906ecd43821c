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

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::{RemoteTime, TimeDelta};

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;
    const SIZE: fn(u64) -> DataSize = DataSize::from_bytes;

    fn core() -> Core {
        let bounds = Bounds::new(Rate::from_kbps(30), Rate::from_kbps(20_000));
        Core::new(&Arc::new(ScreamLibwebrtcConfig::LIBWEBRTC), Rate::from_kbps(300), bounds)
    }

    /// A packet of 1200 B that arrives at `ms`, with the round-trip and hold times of vector 1.
    fn report(ms: i64) -> ReportSummary {
        ReportSummary {
            received: 1,
            marked: 0,
            lost: 0,
            recovered: 0,
            received_bytes: SIZE(1200),
            not_marked: SIZE(1200),
            least_delay: MS(25),
            greatest_delay: MS(25),
            hold: MS(10),
            rtt: MS(50),
            last_arrival: RemoteTime::from_millis(ms),
        }
    }

    #[test]
    fn start_rate_counts_before_the_first_report() {
        let bounds = Bounds::new(Rate::from_kbps(30), Rate::from_kbps(100));
        let mut core = core();
        core.set_bounds(bounds, Rate::from_kbps(90));
        assert_eq!(core.target(), Rate::from_kbps(90));
        core.set_bounds(bounds, Rate::from_kbps(400));
        assert_eq!((core.target(), core.target.rate), (Rate::from_kbps(100), Rate::from_kbps(400)));
        core.handle_report(Time::from_millis(60), &report(25), SIZE(0));
        core.set_bounds(bounds, Rate::from_kbps(50));
        assert_eq!(core.target(), Rate::from_kbps(100));
    }

    /// Reports each 100 ms with 1200 B: 96 kbit/s arrive, and 0.8 of 277 kbit/s are more.
    #[test]
    fn application_limits_a_flow_that_uses_neither_window_nor_target() {
        let mut core = core();
        core.handle_sent(SIZE(1200));
        let limited = [60, 160, 260, 360].map(|ms| {
            core.handle_report(Time::from_millis(ms), &report(ms), SIZE(0));
            core.limited
        });
        // At 160 ms the cap is that of 1200 B in flight, 2600 B: no less than the window.
        assert_eq!(limited, [false, false, true, true]);
        let (rtt, hold) = (core.rtt.smoothed, core.rtt.hold);
        let slow = ReportSummary { rtt: MS(178), hold: MS(90), ..report(460) };
        core.handle_report(Time::from_millis(460), &slow, SIZE(0));
        assert_eq!((core.rtt.smoothed - rtt, core.rtt.hold), (MS(1), hold), "a 128th, and no hold time");
        let busy = ReportSummary { received_bytes: SIZE(9000), ..report(560) };
        core.handle_report(Time::from_millis(560), &busy, SIZE(0));
        assert!(!core.limited, "the received rate is above the target");
        core.handle_report(Time::from_millis(660), &report(660), SIZE(1200));
        assert!(!core.limited, "the window is used");
    }
}
