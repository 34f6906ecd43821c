//! The order in which a report reaches the parts (`ScreamV2::OnTransportPacketsFeedback`).

use super::alpha::L4sAlpha;
use super::config::ScreamLibwebrtcConfig;
use super::flight::FlightMax;
use super::loss_level::LossLevel;
use super::queue_delay::QueueDelay;
use super::received_rate::ReceivedRate;
use super::report::ReportSummary;
use super::target_rate::TargetRate;
use super::virtual_rtt::VirtualRtt;
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
    limited: bool,
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
    /// Creates the state before the first report.
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
            self.target.start(start);
        }
    }

    /// Handles the bytes in flight after a packet left.
    pub fn handle_sent(&mut self, in_flight: DataSize) {
        self.flight.handle(in_flight);
    }

    /// Handles a report.
    pub fn handle_report(&mut self, now: Time, report: &ReportSummary, in_flight: DataSize) {
        let config = &Arc::clone(&self.config);
        self.flight.handle(in_flight);
        self.received.update(report.last_arrival, report.received_bytes, config);
        self.limited = config.alr
            && self.flight.window_cap(config) < self.window.get()
            && self.received.get() < self.target.get().scale(config.alr_threshold);
        self.rtt.handle_rtt(report.rtt, self.limited, config);
        self.delay.update(now, report.least_delay, report.greatest_delay, config);
        if !self.limited {
            self.rtt.handle_hold(report.hold, config);
        }
        if !core::mem::replace(&mut self.started, true) {
            self.window.start(self.rtt.first_window(self.target.get()), config);
        }
        self.alpha.update(report.received, report.marked, config);
        self.update_window(now, report, config);
        self.target.update(now, self.window.get(), &self.rtt, &mut self.delay, &self.bounds, config);
        self.flight.update(now, self.rtt.at_least_virtual(config));
    }

    /// A loss counts if the loss level or the delay confirms that there is congestion.
    fn update_window(&mut self, now: Time, report: &ReportSummary, config: &ScreamLibwebrtcConfig) {
        self.loss.update(now, report.lost, report.recovered, self.rtt.smoothed(), config);
        let is_confirmed = self.loss.is_congested() || self.delay.is_detected(config);
        let input = WindowInput {
            not_marked: report.not_marked,
            marked: report.marked > 0,
            lost: report.lost > 0 && is_confirmed,
            lossy: self.loss.blocks_growth(),
            alpha: self.alpha.get(),
            delay: &self.delay,
            rtt: &self.rtt,
            cap: self.flight.window_cap(config),
        };
        self.window.update(now, &input, config);
    }

    /// Returns the target, at most the present maximum.
    pub fn target(&self) -> Rate {
        self.target.get().min(self.bounds.max)
    }

    /// Returns the pacing rate.
    pub fn pacing(&self) -> Rate {
        let pacing = self.target().scale(self.config.pacing_factor);
        self.received.finite().map_or(pacing, |received| pacing.max(received.scale(self.config.pacing_received)))
    }

    /// Returns the bound on bytes in flight.
    pub fn send_window(&self) -> DataSize {
        send_window(self.window.get(), &self.delay, &self.config)
    }

    /// Returns whether the application limits the flow.
    pub fn is_limited(&self) -> bool {
        self.limited
    }

    /// Returns whether the queuing delay is too long.
    pub fn is_delayed(&self) -> bool {
        self.delay.is_detected(&self.config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
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

    /// Vector 1.
    #[test]
    fn first_report_sets_the_window() {
        let mut core = core();
        assert_eq!((core.target(), core.pacing()), (Rate::from_kbps(300), Rate::from_kbps(330)));
        assert_eq!(core.send_window(), SIZE(3000));
        core.handle_sent(SIZE(1200));
        core.handle_report(Time::from_millis(60), &report(25), SIZE(0));
        assert_eq!((core.window.get(), core.target()), (SIZE(2600), Rate::from_bps(277_333)));
        assert_eq!(core.send_window(), SIZE(7800));
    }

    #[test]
    fn start_rate_counts_before_the_first_report() {
        let bounds = Bounds::new(Rate::from_kbps(30), Rate::from_kbps(100));
        let mut core = core();
        core.set_bounds(bounds, Rate::from_kbps(90));
        assert_eq!(core.target(), Rate::from_kbps(90));
        core.set_bounds(bounds, Rate::from_kbps(400));
        assert_eq!((core.target(), core.target.get()), (Rate::from_kbps(100), Rate::from_kbps(400)));
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
            core.is_limited()
        });
        // At 160 ms the cap is that of 1200 B in flight, 2600 B: no less than the window.
        assert_eq!(limited, [false, false, true, true]);
        let (rtt, hold) = (core.rtt.smoothed(), core.rtt.hold());
        let slow = ReportSummary { rtt: MS(178), hold: MS(90), ..report(460) };
        core.handle_report(Time::from_millis(460), &slow, SIZE(0));
        assert_eq!((core.rtt.smoothed() - rtt, core.rtt.hold()), (MS(1), hold), "a 128th, and no hold time");
        let busy = ReportSummary { received_bytes: SIZE(9000), ..report(560) };
        core.handle_report(Time::from_millis(560), &busy, SIZE(0));
        assert!(!core.is_limited(), "the received rate is above the target");
        core.handle_report(Time::from_millis(660), &report(660), SIZE(1200));
        assert!(!core.is_limited(), "the window is used");
    }

    #[test]
    fn loss_needs_a_confirmation() {
        let mut core = core();
        let lossy = |ms| ReportSummary { lost: 1, ..report(ms) };
        let mut windows = Vec::new();
        for ms in [60, 120, 180] {
            core.handle_sent(SIZE(1200));
            core.handle_report(Time::from_millis(ms), &lossy(ms), SIZE(1200));
            windows.push(core.window.get().as_bytes());
        }
        // The third lossy round-trip time in a row: 0.7 of 2250 B are 1575, and 1200 B * 1280 / 1575 are 975.
        assert_eq!(windows, [2250, 2250, 2550]);
        assert_eq!(core.window.reacted(), Some(Time::from_millis(180)));
    }

    #[test]
    fn pacing_is_at_least_a_share_of_the_received_rate() {
        let mut core = core();
        core.handle_report(Time::from_millis(60), &report(25), SIZE(1200));
        assert_eq!(core.pacing(), core.target().scale(1.1), "not measured yet");
        let burst = ReportSummary { received_bytes: SIZE(100_000), ..report(125) };
        core.handle_report(Time::from_millis(160), &burst, SIZE(1200));
        assert_eq!((core.received.get(), core.pacing()), (Rate::from_kbps(8000), Rate::from_kbps(6400)));
    }
}
