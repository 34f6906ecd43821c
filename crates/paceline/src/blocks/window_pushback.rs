// SPDX-License-Identifier: MIT OR Apache-2.0
//! The congestion window push-back (libwebrtc's `CongestionWindowPushbackController`): a window in bytes, and the share of
//! the estimate that the encoder may use while more is in flight.
//!
//! ```text
//! window = (smallest of the last 32 round-trip times + 350 ms) · A, averaged with the last one, at least 2 packets
//! fill   = bytes in flight / window
//! share *= 0.9 if fill > 1.5;  0.95 if fill > 1;  1 if fill < 0.1;  1.05 otherwise, up to 1
//! ```
//!
//! By default the target keeps the estimate, and only padding obeys the share: in libwebrtc the encoder drops frames
//! by it.

use super::units::rounded_to_ms;
use crate::params;
use paceline_units::{DataSize, Rate, TimeDelta};

params! {
    /// The parameters of the push-back.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct PushbackConfig {
        /// libwebrtc (`kCongestionWindowDefaultFieldTrialString`, `rate_control_settings.cc`).
        const LIBWEBRTC;

        /// Queue that the congestion window allows; 0: no window.
        queue as "window_ms": TimeDelta = TimeDelta::from_millis(350), in 0.0..=1e5, from "QueueSize";
        /// Rate below which there is no push-back; 0: the window bounds the bytes in flight instead.
        min as "window_min_bps": Rate = Rate::from_kbps(30), in 0.0..=1e9, from "MinBitrate";
        /// Whether the target keeps the estimate in spite of the push-back.
        drop_frames_only as "window_drop_frames": bool = true, from "DropFrame";
        /// Whether the pacer's queue counts as in flight.
        counts_queue as "window_queue": bool = false, from "WebRTC-AddPacingToCongestionWindowPushback";
    }
}

impl PushbackConfig {
    /// Returns whether the window bounds the bytes in flight.
    pub fn bounds_flight(&self) -> bool {
        self.queue.is_positive() && self.min.is_zero()
    }
}

/// The number of round-trip times of which the smallest counts (`kMaxFeedbackRttWindow`, `goog_cc_network_control.cc`).
const RTTS: usize = 32;
/// The smallest window (`kMinCwnd`, `goog_cc_network_control.cc`).
const WINDOW_MIN: DataSize = DataSize::from_bytes(2 * 1500);
/// The fill above which the share decreases fast, and slowly, and below which it is reset; with the factors
/// (`congestion_window_pushback_controller.cc`).
const FAST: (f64, f64) = (1.5, 0.9);
const SLOW: (f64, f64) = (1.0, 0.95);
const RESET: f64 = 0.1;
const RECOVERY: f64 = 1.05;

/// Window and push-back. The fields are in order of use.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct WindowPushback {
    share: f64,
    window: Option<DataSize>,
    in_flight: DataSize,
    config: PushbackConfig,
    queued: DataSize,
    /// The smallest of the last round-trip times, whole ms.
    smallest: i32,
    /// The place of the next one, and their number.
    next: u8,
    count: u8,
    rtts: [i32; RTTS],
}

impl WindowPushback {
    /// Creates a push-back without a window.
    pub fn new(config: PushbackConfig) -> Self {
        let (in_flight, queued) = (DataSize::ZERO, DataSize::ZERO);
        Self { config, rtts: [0; RTTS], next: 0, count: 0, smallest: 0, window: None, in_flight, queued, share: 1.0 }
    }

    /// Returns whether the share limits the encoder; otherwise the window limits the bytes in flight.
    pub fn pushes_back(&self) -> bool {
        self.config.queue.is_positive() && !self.config.min.is_zero()
    }

    /// Sets the bytes in flight.
    #[inline]
    pub fn set_in_flight(&mut self, in_flight: DataSize) {
        self.in_flight = in_flight;
    }

    /// Sets the size of the pacer's queue.
    pub fn set_queued(&mut self, queued: DataSize) {
        self.queued = queued;
    }

    /// Handles the largest round-trip time of a feedback message.
    pub fn handle_rtt(&mut self, rtt: TimeDelta) {
        let ms = rounded_to_ms(rtt).as_nanos() / 1_000_000;
        self.rtts[usize::from(self.next)] = ms.clamp(0, i32::MAX.into()) as i32;
        self.next = (self.next + 1) % RTTS as u8;
        self.count = (self.count + 1).min(RTTS as u8);
        self.smallest = self.rtts[..usize::from(self.count)].iter().copied().min().unwrap_or(0);
    }

    /// Updates the window for an estimate; there is none before the first round-trip time
    /// (`UpdateCongestionWindowSize`).
    pub fn update_window(&mut self, estimate: Rate) {
        if self.count == 0 || !self.config.queue.is_positive() {
            return;
        }
        let span = TimeDelta::from_millis(self.smallest.into()) + self.config.queue;
        let mut window = estimate * span;
        if let Some(before) = self.window {
            window = DataSize::from_bytes((window + before).as_bytes() / 2);
        }
        self.window = Some(window.max(WINDOW_MIN));
    }

    /// Returns the window.
    pub fn window(&self) -> Option<DataSize> {
        self.window
    }

    /// Steps the share and returns the rate that it leaves of an estimate (`UpdateTargetBitrate`).
    #[inline]
    pub fn pushed_back(&mut self, estimate: Rate) -> Rate {
        self.step();
        self.limited(estimate)
    }

    /// Steps the share by the fill of the window, if there is one.
    #[inline]
    pub fn step(&mut self) {
        let Some(window) = self.window.filter(|_| self.pushes_back()) else { return };
        let queued = if self.config.counts_queue { self.queued } else { DataSize::ZERO };
        let fill = (self.in_flight + queued).as_bytes() as f64 / window.as_bytes() as f64;
        self.share = stepped(self.share, fill);
    }

    /// Returns the rate that the share leaves of an estimate.
    #[inline]
    pub fn limited(&self, estimate: Rate) -> Rate {
        if self.share == 1.0 {
            return estimate;
        }
        let rate = Rate::from_bps((estimate.as_bps_f64() * self.share) as u64);
        if rate < self.config.min { estimate.min(self.config.min) } else { rate }
    }
}

#[inline]
fn stepped(share: f64, fill: f64) -> f64 {
    if fill > FAST.0 {
        share * FAST.1
    } else if fill > SLOW.0 {
        share * SLOW.1
    } else if fill < RESET {
        1.0
    } else {
        (share * RECOVERY).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_window() -> WindowPushback {
        let mut pushback = WindowPushback::new(PushbackConfig::LIBWEBRTC);
        assert_eq!(pushback.pushed_back(Rate::from_kbps(500)), Rate::from_kbps(500), "no window");
        pushback.handle_rtt(TimeDelta::from_millis(100));
        pushback.update_window(Rate::from_kbps(1000));
        pushback
    }

    /// By hand: 450 ms at 1 Mbit/s are 56,250 bytes. At 200 kbit/s they are 11,250 bytes, averaged 33,750.
    #[test]
    fn window_is_the_queue_and_the_smallest_round_trip() {
        let mut pushback = with_window();
        assert_eq!(pushback.window(), Some(DataSize::from_bytes(56_250)));
        pushback.handle_rtt(TimeDelta::from_millis(900));
        pushback.update_window(Rate::from_kbps(200));
        assert_eq!(pushback.window(), Some(DataSize::from_bytes(33_750)));
        (0..20).for_each(|_| pushback.update_window(Rate::from_kbps(1)));
        assert_eq!(pushback.window(), Some(WINDOW_MIN));
        // After 31 more the 100 ms are forgotten: 1250 ms.
        (0..31).for_each(|_| pushback.handle_rtt(TimeDelta::from_millis(900)));
        (0..40).for_each(|_| pushback.update_window(Rate::from_kbps(1000)));
        assert_eq!(pushback.window().map(|w| w.as_bytes() / 10), Some(15_624));
    }

    /// By hand, with a window of 56,250 bytes: fills of 1.6, 1.2, 0.5 and 0.05.
    #[test]
    fn share_follows_the_fill() {
        let mut pushback = with_window();
        let mut after = |bytes| {
            pushback.set_in_flight(DataSize::from_bytes(bytes));
            pushback.pushed_back(Rate::from_kbps(1000)).as_bps()
        };
        assert_eq!([after(90_000), after(67_500)], [900_000, 855_000]);
        assert_eq!(after(28_125), 897_750);
        assert_eq!([after(28_125), after(28_125), after(28_125)], [942_637, 989_769, 1_000_000]);
        assert_eq!([after(56_250), after(56_251), after(2_812)], [1_000_000, 950_000, 1_000_000]);
        (0..100).for_each(|_| {
            after(90_000);
        });
        assert_eq!(after(90_000), 30_000, "the lowest rate");
        pushback.set_in_flight(DataSize::from_bytes(90_000));
        assert_eq!(pushback.pushed_back(Rate::from_kbps(20)), Rate::from_kbps(20), "an estimate below it");
    }

    #[test]
    fn queue_counts_only_if_configured() {
        for (counts_queue, bps) in [(false, 1_000_000), (true, 950_000)] {
            let config = PushbackConfig { counts_queue, ..PushbackConfig::LIBWEBRTC };
            let mut pushback = WindowPushback { config, ..with_window() };
            pushback.set_in_flight(DataSize::from_bytes(40_000));
            pushback.set_queued(DataSize::from_bytes(20_000));
            assert_eq!(pushback.pushed_back(Rate::from_kbps(1000)).as_bps(), bps);
        }
    }
}
