// SPDX-License-Identifier: MIT OR Apache-2.0
//! The congestion window: the bound on bytes in flight (RFC 8298, sections 4.1.2.1, 4.1.2.2, 4.1.2.5 to 4.1.2.7).
//!
//! ```text
//! fast increase:  cwnd += acked                                          while trend < 0.2
//! else:           cwnd += GAIN (1 - qdelay / target) acked MSS / cwnd    LEDBAT's law; grows only if the window is
//! used                 cwnd <= 1.1 max_bytes_in_flight
//! loss:           cwnd *= BETA_LOSS        mark: cwnd *= BETA_ECN        cwnd >= MIN_CWND, always
//! ```

use crate::{Setup, params};
use paceline_units::{DataSize, Rate, Time, TimeDelta, round_to_u64};

params! {
    /// The parameters of the window.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct WindowConfig {
        /// Section 4.1.1.1.
        const RFC_8298;

        /// Lowest and initial window, with packets of 1200 B, otherwise in proportion.
        min as "min_cwnd": DataSize = DataSize::from_bytes(3000), in 1000.0..=1e6, from "MIN_CWND; C++: 2 packets";
        /// Size of a full packet, with packets of 1200 B, otherwise in proportion.
        mss: DataSize = DataSize::from_bytes(1000), in 100.0..=65_535.0, from "MSS; C++: the largest packet sent";
        /// Gain of the window below the target of the queuing delay.
        gain: f64 = 1.0, in 0.0..=10.0, from "GAIN; C++: kGainUp";
        /// Gain of the window above the target of the queuing delay.
        gain_down: f64 = 1.0, in 0.0..=10.0, from "GAIN; C++: kGainDown, 2";
        /// Largest decrease for one report above the target, as a share of the window.
        fall_max: f64 = 1.0, in 0.0..=1.0, from "RFC: no bound; C++: a quarter";
        /// Outside fast increase the window grows only below this multiple of the bytes in flight.
        used: f64 = 1.25, in 1.0..=10.0, from "section 4.1.2.2; C++: 1.2";
        /// Window over the most bytes in flight of 5 s.
        head_room: f64 = 1.1, in 1.0..=10.0, from "MAX_BYTES_IN_FLIGHT_HEAD_ROOM";
        /// Share of the window that remains after a loss event.
        beta_loss: f64 = 0.8, in 0.1..=1.0, from "BETA_LOSS";
        /// Share of the window that remains after a mark.
        beta_ecn: f64 = 0.9, in 0.1..=1.0, from "BETA_ECN";
        /// Trend from which on there is congestion, which ends fast increase.
        trend_th: f64 = 0.2, in 0.0..=1.0, from "QDELAY_TREND_TH";
        /// Trend below which there is no congestion, so that fast increase resumes.
        trend_lo: f64 = 0.2, in 0.0..=1.0, from "QDELAY_TREND_LO";
        /// Time without congestion before fast increase.
        resume as "resume_ms": TimeDelta = TimeDelta::from_secs(5), in 0.0..=1e6, from "T_RESUME_FAST_INCREASE";
        /// Event from which that time counts; 0: a loss, mark or trend, 1: a trend alone.
        resume_after as "resume_by_trend": ResumeAfter = ResumeAfter::Congestion,
            of [ResumeAfter::Congestion, ResumeAfter::Trend], from "1 as section 4.1.2.7 prints";
        /// Lowest pacing rate.
        pace_min as "pace_min_bps": Rate = Rate::from_kbps(50), in 1000.0..=1e9,
            from "RATE_PACE_MIN; C++: 5 kbit/s, times its head room";
        /// Pacing rate over cwnd / s_rtt.
        pacing as "pacing_factor": f64 = 1.0, in 0.5..=10.0,
            from "section 4.1.2.6; C++: kPacketPacingHeadRoom, 1.5";
    }
}

/// What `T_RESUME_FAST_INCREASE` counts from (section 4.1.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeAfter {
    /// The last loss, mark or trend.
    Congestion,
    /// The last trend, as printed.
    Trend,
}

impl WindowConfig {
    /// The authors' code of 2018.
    pub const CPP: Self = Self {
        min: DataSize::from_bytes(2400),
        mss: DataSize::from_bytes(1200),
        gain_down: 2.0,
        fall_max: 0.25,
        used: 1.2,
        pace_min: Rate::from_bps(7500),
        pacing: 1.5,
        ..Self::RFC_8298
    };

    /// Returns the numbers for the packet size of a flow: `MSS` is the size of its largest packets, and `MIN_CWND` is about
    /// three of them (C++: two).
    pub fn for_packets(self, setup: &Setup) -> Self {
        Self { min: setup.scaled(self.min), mss: setup.scaled(self.mss), ..self }
    }
}

/// In fast increase the window grows only below this multiple of the bytes in flight (section 4.1.2.2).
const USED_FAST: f64 = 1.5;
/// The shortest round-trip time in the pacing rate.
const RTT_MIN: TimeDelta = TimeDelta::from_millis(1);

/// The content of a feedback message, for the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckSummary {
    /// `bytes_newly_acked`: by how much the highest acknowledged packet moved since the last update, losses included.
    pub newly: DataSize,
    /// The bound of the acknowledged bytes that count for growth.
    pub counted_max: DataSize,
    /// `bytes_in_flight`, after the message.
    pub in_flight: DataSize,
    /// `max_bytes_in_flight`.
    pub max_in_flight: DataSize,
    /// `qdelay`.
    pub qdelay: TimeDelta,
    /// `qdelay_target`.
    pub target: TimeDelta,
    /// `qdelay_trend`.
    pub trend: f64,
}

/// A sign of congestion, other than delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// Packets were lost.
    Loss,
    /// Packets were marked, and none lost.
    Mark,
}

/// The growth mode of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowGrowth {
    /// `in_fast_increase`.
    Fast,
    /// By the queuing delay.
    Delay,
}

impl WindowGrowth {
    /// Names, in order of [`index`](Self::index).
    pub const NAMES: &'static [&'static str] = &["fast increase", "by delay"];
    /// Returns the mode as a signal value.
    pub fn index(self) -> f64 {
        self as u8 as f64
    }
}

/// `cwnd`.
#[derive(Clone, Debug)]
pub struct CongestionWindow {
    /// The numbers.
    pub config: WindowConfig,
    bytes: f64,
    /// The growth mode.
    pub growth: WindowGrowth,
    /// The time at which congestion was last detected.
    congested: Option<Time>,
}

impl CongestionWindow {
    /// Creates a window of `MIN_CWND` in fast increase.
    pub fn new(config: WindowConfig) -> Self {
        Self::starting_at(config, config.min, WindowGrowth::Fast)
    }

    /// Creates a window with this size and growth mode.
    pub fn starting_at(config: WindowConfig, cwnd: DataSize, growth: WindowGrowth) -> Self {
        Self { config, bytes: bytes(cwnd), growth, congested: None }
    }

    /// Returns `cwnd`.
    pub fn get(&self) -> DataSize {
        DataSize::from_bytes(round_to_u64(self.bytes))
    }

    /// Handles feedback without a congestion event (`update_cwnd`).
    pub fn handle_acknowledged(&mut self, ack: &AckSummary) {
        let (newly, in_flight) = (bytes(ack.newly), bytes(ack.in_flight));
        let counted = bytes(ack.newly.min(ack.counted_max));
        if self.growth == WindowGrowth::Fast {
            if ack.trend < self.config.trend_th {
                if USED_FAST * in_flight + newly > self.bytes {
                    self.bytes += counted;
                }
                return;
            }
            self.growth = WindowGrowth::Delay;
        }
        let off_target = off_target(ack.qdelay, ack.target);
        let per_byte = bytes(self.config.mss) / self.bytes;
        if off_target <= 0.0 {
            let fall = self.config.gain_down * -off_target * newly * per_byte;
            self.bytes -= fall.min(self.config.fall_max * self.bytes);
        } else if self.config.used * in_flight + newly > self.bytes {
            self.bytes += self.config.gain * off_target * counted * per_byte;
        }
        self.bytes = self.bytes.min(self.config.head_room * bytes(ack.max_in_flight)).max(bytes(self.config.min));
    }

    /// Handles a congestion event.
    pub fn handle_congestion(&mut self, now: Time, congestion: Congestion) {
        let beta = match congestion {
            Congestion::Loss => self.config.beta_loss,
            Congestion::Mark => self.config.beta_ecn,
        };
        self.bytes = (beta * self.bytes).max(bytes(self.config.min));
        self.growth = WindowGrowth::Delay;
        if self.config.resume_after == ResumeAfter::Congestion {
            self.congested = Some(now);
        }
    }

    /// Resumes fast increase after a time without congestion (`check_to_resume_fast_increase`, section 4.1.2.7).
    pub fn check_to_resume(&mut self, now: Time, trend: f64) {
        if trend >= self.config.trend_lo {
            self.congested = Some(now);
        } else if self.congested.is_none_or(|at| now - at >= self.config.resume) {
            self.growth = WindowGrowth::Fast;
        }
    }

    /// Returns the bound on bytes in flight (section 4.1.2.5): the window, and one more packet while the queuing delay
    /// is at most its target.
    pub fn allowed(&self, qdelay: TimeDelta, target: TimeDelta) -> DataSize {
        if qdelay <= target { self.get() + self.config.mss } else { self.get() }
    }

    /// Returns `pace_bitrate` (section 4.1.2.6); `t_pace` is the transmission time of a packet at this rate.
    pub fn pacing(&self, s_rtt: TimeDelta) -> Rate {
        Rate::from_size_and_time(self.get(), s_rtt.max(RTT_MIN)).scale(self.config.pacing).max(self.config.pace_min)
    }
}

/// Returns `off_target`, as in LEDBAT (RFC 6817, section 2.4.2).
fn off_target(qdelay: TimeDelta, target: TimeDelta) -> f64 {
    (target - qdelay).as_secs_f64() / target.as_secs_f64()
}

fn bytes(size: DataSize) -> f64 {
    size.as_bytes() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }
    fn size(bytes: u64) -> DataSize {
        DataSize::from_bytes(bytes)
    }
    fn ack(newly: u64, qdelay: i64, trend: f64) -> AckSummary {
        AckSummary {
            newly: size(newly),
            counted_max: size(newly),
            in_flight: size(20_000),
            max_in_flight: size(20_000),
            qdelay: ms(qdelay),
            target: ms(100),
            trend,
        }
    }

    #[test]
    fn fast_increase_resumes_five_seconds_after_congestion() {
        let mut window = CongestionWindow::new(WindowConfig::RFC_8298);
        let at = Time::from_millis;
        window.handle_congestion(at(0), Congestion::Loss);
        let grows = |window: &mut CongestionWindow, ms, trend| {
            window.check_to_resume(at(ms), trend);
            window.growth
        };
        assert_eq!(grows(&mut window, 4000, 0.0), WindowGrowth::Delay);
        assert_eq!(grows(&mut window, 4500, 0.2), WindowGrowth::Delay);
        assert_eq!(grows(&mut window, 9400, 0.19), WindowGrowth::Delay);
        assert_eq!(grows(&mut window, 9500, 0.19), WindowGrowth::Fast);
        // As printed, a loss delays nothing: only the trend at 4500 ms counts.
        let printed = WindowConfig { resume_after: ResumeAfter::Trend, ..WindowConfig::RFC_8298 };
        let mut window = CongestionWindow::new(printed);
        assert_eq!(grows(&mut window, 4500, 0.2), WindowGrowth::Fast);
        window.handle_congestion(at(9400), Congestion::Loss);
        assert_eq!(grows(&mut window, 9499, 0.0), WindowGrowth::Delay);
        assert_eq!(grows(&mut window, 9500, 0.0), WindowGrowth::Fast);
    }

    /// By hand: at twice the target the window decreases by MSS bytes per acknowledged window. The C++ code decreases
    /// it by twice that, and by at most a quarter.
    #[test]
    fn window_decreases_above_the_delay_target() {
        let decrease = |config: WindowConfig, newly, qdelay| {
            let mut window = CongestionWindow::starting_at(config, size(20_000), WindowGrowth::Delay);
            window.handle_acknowledged(&ack(newly, qdelay, 0.0));
            20_000 - window.get().as_bytes()
        };
        let (rfc, cpp) = (WindowConfig::RFC_8298, WindowConfig::CPP);
        assert_eq!([decrease(rfc, 20_000, 200), decrease(rfc, 20_000, 1100)], [1000, 10_000]);
        assert_eq!([decrease(cpp, 20_000, 200), decrease(cpp, 20_000, 1100)], [2400, 5000]);
        assert_eq!(decrease(rfc, 20_000, 5000), 17_000, "MIN_CWND");
    }

    /// By hand, with packets of 600 bytes: the RFC's window of 3000 bytes and MSS of 1000 become 1500 and 500, and the C++
    /// code's are two packets and one. At twice the target a window decreases by MSS, or by twice that.
    #[test]
    fn window_counts_in_packets_of_the_flow() {
        let setup = Setup { packet_size: size(600), ..crate::testing::SETUP };
        let cases = [(WindowConfig::RFC_8298, 1500, 500, 500), (WindowConfig::CPP, 1200, 600, 1200)];
        for (config, min, mss, decrease) in cases {
            let config = config.for_packets(&setup);
            let window = CongestionWindow::new(config);
            assert_eq!((window.get(), window.allowed(ms(100), ms(100))), (size(min), size(min + mss)));
            let mut window = CongestionWindow::starting_at(config, size(20_000), WindowGrowth::Delay);
            window.handle_acknowledged(&ack(20_000, 200, 0.0));
            assert_eq!(window.get(), size(20_000 - decrease));
        }
        let unchanged = WindowConfig::CPP.for_packets(&crate::testing::SETUP);
        assert_eq!(unchanged, WindowConfig::CPP);
    }

    #[test]
    fn one_more_packet_is_allowed_below_the_target_and_pacing_has_a_minimum() {
        let window = CongestionWindow::new(WindowConfig::RFC_8298);
        assert_eq!(window.allowed(ms(100), ms(100)), size(4000));
        assert_eq!(window.allowed(ms(101), ms(100)), size(3000));
        assert_eq!(window.pacing(ms(100)), Rate::from_kbps(240));
        assert_eq!(window.pacing(ms(1000)), Rate::from_kbps(50));
        assert_eq!(window.pacing(TimeDelta::ZERO), Rate::from_kbps(24_000));
    }
}
