// SPDX-License-Identifier: MIT OR Apache-2.0
//! CUBIC (RFC 8312): after a loss the window follows a cubic function of time. It approaches the window of the last
//! loss, stays near it, and then grows faster and faster. Windows are in segments, times in seconds.
//!
//! Three rules come from the successor RFC 9438 or fill gaps of RFC 8312. K is computed from the window at the
//! beginning of the epoch, which differs only if fast convergence lowered W_max. The target is between the window and
//! 1.5 times the window. An ACK counts once per acknowledged segment, so that delayed ACKs do not halve the growth.
//!
//! Linux (`tcp_cubic.c`) differs in fast convergence and in the time by which it looks ahead along the cubic function.

use super::hystart::HyStart;
use super::{Ack, Congestion, CongestionWindow, THRESHOLD_MIN};
use crate::flow::tcp::TcpConfig;
use paceline_units::{DataSize, Time, TimeDelta, round_to_u64};

/// C, in segments per second cubed (RFC 8312, section 5.1).
const C: f64 = 0.4;
/// beta_cubic (section 4.5).
const BETA: f64 = 0.7;
/// `beta_ecn` of CUBIC (RFC 8511, section 3).
const BETA_ECN: f64 = 0.85;
/// The target is at most this many times the window (RFC 9438, section 4.2).
const TARGET_MAX: f64 = 1.5;
/// The time after the beginning of an epoch in which round-trip times do not count as the least one (Linux: `HZ`).
const AFTER_LOSS: TimeDelta = TimeDelta::from_secs(1);
/// Growth per segment acknowledged before the first loss, in segments: 5 % per round trip (`bictcp_update`).
const GROWTH_UNTIL_LOSS: f64 = 0.05;

/// Equation 1.
#[inline]
fn w_cubic(t: f64, k: f64, w_max: f64) -> f64 {
    let d = t - k;
    C * d * d * d + w_max
}

/// Equation 2 in the form of RFC 9438: from the window at the beginning of the epoch.
fn time_to_origin(w_max: f64, start: f64) -> f64 {
    libm::cbrt((w_max - start) / C)
}

/// Equation 4: the window of standard TCP with a reduction by `1 - BETA`, from the window at the beginning of the
/// epoch.
#[inline]
fn w_est(t: f64, rtt: f64, start: f64) -> f64 {
    start + 3.0 * (1.0 - BETA) / (1.0 + BETA) * (t / rtt)
}

/// Fast convergence (section 4.6): a loss at a smaller window than the last one releases bandwidth to other flows.
fn converge_fast(cwnd: f64, last_max: f64) -> f64 {
    if cwnd < last_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd }
}

/// Section 4.5: the slow-start threshold after a loss, or after a mark with another factor.
fn threshold(cwnd: f64, beta: f64) -> f64 {
    (cwnd * beta).max(THRESHOLD_MIN as f64)
}

/// Sections 4.3 and 4.4: the increment per acknowledged segment.
#[inline]
fn increment(target: f64, cwnd: f64) -> f64 {
    (target.clamp(cwnd, TARGET_MAX * cwnd) - cwnd) / cwnd
}

/// A period of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    k: f64,
    /// W_max, or the window at the beginning if that is higher (section 4.8).
    origin: f64,
    cwnd: f64,
}

#[derive(Debug)]
struct Cubic {
    config: TcpConfig,
    /// Bytes in a full segment.
    segment: f64,
    hystart: Option<HyStart>,
    /// Window before the last loss, after fast convergence; zero before the first loss and after a timeout.
    w_max: f64,
    /// W_last_max: the window before the last loss, before fast convergence (RFC 8312) or after it (Linux).
    last_max: f64,
    /// The least round-trip time (`delay_min`).
    least_rtt: Option<TimeDelta>,
    epoch: Option<Epoch>,
    last_ack: Time,
    /// Part of the window below a byte.
    fraction: f64,
}

pub(super) fn build(config: &TcpConfig, _: u64) -> Box<dyn Congestion> {
    Box::new(Cubic {
        config: *config,
        segment: config.segment.as_bytes() as f64,
        hystart: config.profile.hystart.then(|| HyStart::new(config.segment)),
        w_max: 0.0,
        last_max: 0.0,
        least_rtt: None,
        epoch: None,
        last_ack: Time::ZERO,
        fraction: 0.0,
    })
}

impl Cubic {
    fn segments(&self, size: DataSize) -> f64 {
        size.as_bytes() as f64 / self.segment
    }

    fn begin_epoch(&self, now: Time, cwnd: f64) -> Epoch {
        let origin = self.w_max.max(cwnd);
        Epoch { start: now, k: time_to_origin(origin, cwnd), origin, cwnd }
    }

    /// Round-trip times soon after a loss are those of recovery (`cubictcp_acked`).
    fn measure(&mut self, ack: &Ack) {
        let Some(rtt) = ack.round_trip else { return };
        if self.epoch.is_none_or(|epoch| ack.now - epoch.start >= AFTER_LOSS) {
            self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
        }
    }

    fn avoid_congestion(&mut self, ack: &Ack, acked: DataSize, window: &mut CongestionWindow) {
        let cwnd = self.segments(window.cwnd) + self.fraction / self.segment;
        let epoch = *self.epoch.insert(self.epoch.unwrap_or_else(|| self.begin_epoch(ack.now, cwnd)));
        let (t, rtt) = ((ack.now - epoch.start).as_secs_f64(), ack.srtt.as_secs_f64());
        let friendly = w_est(t, rtt, epoch.cwnd);
        let grown = if w_cubic(t, epoch.k, epoch.origin) < friendly {
            cwnd.max(friendly)
        } else {
            let ahead = if self.config.profile.kernel_windows {
                self.least_rtt.map_or(rtt, TimeDelta::as_secs_f64)
            } else {
                rtt
            };
            cwnd + increment(w_cubic(t + ahead, epoch.k, epoch.origin), cwnd) * self.segments(acked)
        };
        let least = if self.config.profile.kernel_windows && self.w_max == 0.0 { GROWTH_UNTIL_LOSS } else { 0.0 };
        let grown = grown.max(cwnd + least * self.segments(acked));
        let bytes = grown * self.segment;
        let whole = bytes as u64;
        self.fraction = bytes - whole as f64;
        window.cwnd = DataSize::from_bytes(whole);
    }
}

impl Cubic {
    /// Reduces the threshold to `beta` of the window.
    fn reduce(&mut self, beta: f64, window: &mut CongestionWindow) {
        let cwnd = self.segments(window.cwnd);
        self.w_max = converge_fast(cwnd, self.last_max);
        // Linux remembers only the lowered W_max (`bictcp_recalc_ssthresh`): two falls in a row lower it once.
        self.last_max = if self.config.profile.kernel_windows { self.w_max } else { cwnd };
        self.epoch = None;
        self.fraction = 0.0;
        // Linux counts whole segments and rounds down (`bictcp_recalc_ssthresh`).
        let threshold = if self.config.profile.kernel_windows {
            threshold(cwnd.floor(), beta).floor()
        } else {
            threshold(cwnd, beta)
        };
        let bytes = threshold * self.segment;
        window.ssthresh = DataSize::from_bytes(round_to_u64(bytes));
    }
}

impl Congestion for Cubic {
    fn handle_ack(&mut self, ack: &Ack, window: &mut CongestionWindow) {
        if let Some(hystart) = &mut self.hystart
            && window.in_slow_start()
        {
            hystart.handle_ack(ack, window);
        }
        self.measure(ack);
        let since = ack.now - self.last_ack;
        self.last_ack = ack.now;
        if !ack.cwnd_limited {
            // Time in which the application limits the sender does not count (section 5.8).
            if let Some(epoch) = &mut self.epoch {
                epoch.start += since;
            }
            return;
        }
        let mut acked = ack.acked;
        if window.in_slow_start() {
            acked = window.slow_start(acked, self.config.slow_start_limit());
        }
        if acked > DataSize::ZERO {
            self.avoid_congestion(ack, acked, window);
        }
    }

    fn handle_loss(&mut self, _: DataSize, window: &mut CongestionWindow) {
        self.reduce(BETA, window);
    }

    fn handle_mark(&mut self, _: DataSize, window: &mut CongestionWindow, alternative: bool) {
        // In slow start the reduction is that of a loss (RFC 8511, section 4).
        let less = alternative && !window.in_slow_start();
        self.reduce(if less { BETA_ECN } else { BETA }, window);
    }

    /// Section 4.7. The next congestion avoidance starts from its own window with K = 0, so W_max is reset.
    fn handle_timeout(&mut self, flight: DataSize, window: &mut CongestionWindow) {
        self.handle_loss(flight, window);
        self.w_max = 0.0;
        self.last_max = 0.0;
        self.least_rtt = None;
    }

    fn target(&self) -> Option<DataSize> {
        let origin = self.epoch.map_or(self.w_max, |epoch| epoch.origin);
        let bytes = origin * self.segment;
        (origin > 0.0).then(|| DataSize::from_bytes(round_to_u64(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::config;
    use super::*;

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
    }

    #[test]
    fn follows_the_equations_of_rfc_8312() {
        let k = time_to_origin(100.0, 70.0);
        near(k, 4.217_163_327);
        near(w_cubic(0.0, k, 100.0), 70.0);
        near(w_cubic(1.0, k, 100.0), 86.680_764);
        near(w_cubic(k, k, 100.0), 100.0);
        near(w_cubic(6.0, k, 100.0), 102.266_703);
        near(w_cubic(1.1, k, 100.0), 87.884_575);
        near(increment(w_cubic(1.1, k, 100.0), 80.0), 0.098_557_188);
        near(w_est(1.0, 0.1, 70.0), 75.294_118);
        near(converge_fast(80.0, 100.0), 68.0);
        near(converge_fast(100.0, 80.0), 100.0);
        near(threshold(100.0, BETA), 70.0);
        near(threshold(2.0, BETA), 2.0);
        near(threshold(100.0, BETA_ECN), 85.0);
        near(increment(70.0, 80.0), 0.0);
        near(increment(200.0, 80.0), 0.5);
    }

    fn ack(now: Time, cwnd_limited: bool) -> Ack {
        let size = DataSize::from_bytes(1000);
        let rtt = TimeDelta::from_millis(100);
        Ack { now, acked: size, acknowledged: size, sent: size, round_trip: None, srtt: rtt, cwnd_limited }
    }

    fn cubic(kernel_windows: bool) -> (Box<dyn Congestion>, CongestionWindow) {
        let window = CongestionWindow { cwnd: DataSize::from_bytes(100_000), ssthresh: DataSize::from_bytes(1) };
        (build(&config(kernel_windows), 1), window)
    }

    #[test]
    fn window_reaches_w_max_at_k_without_counting_application_pauses() {
        for pause in [0, 10] {
            let (mut cubic, mut window) = cubic(false);
            cubic.handle_loss(window.cwnd, &mut window);
            assert_eq!(window.ssthresh, DataSize::from_bytes(70_000));
            assert_eq!(cubic.target(), Some(DataSize::from_bytes(100_000)));
            window.cwnd = window.ssthresh;
            let mut now = Time::ZERO;
            for ms in 0..=4_217 {
                cubic.handle_ack(&ack(now, true), &mut window);
                if ms == 2_000 {
                    let before = window.cwnd;
                    now += TimeDelta::from_secs(pause);
                    cubic.handle_ack(&ack(now, false), &mut window);
                    assert_eq!(window.cwnd, before);
                }
                now += TimeDelta::from_millis(1);
            }
            let cwnd = window.cwnd.as_bytes();
            assert!((99_990..100_010).contains(&cwnd), "{cwnd}");
        }
    }

    #[test]
    fn linux_window_grows_by_five_percent_per_round_trip_until_the_first_loss() {
        for (kernel, expected) in [(true, 104_999..=105_000), (false, 100_500..=100_600)] {
            let (mut cubic, mut window) = cubic(kernel);
            // A hundred segments in a round trip of 100 ms: 5 %, or the friendly half segment.
            for ms in 1..=100 {
                cubic.handle_ack(&ack(Time::from_millis(ms), true), &mut window);
            }
            assert!(expected.contains(&window.cwnd.as_bytes()), "{kernel}: {}", window.cwnd);
            // After a loss both grow alike, and take more than two seconds to reach W_max.
            cubic.handle_loss(window.cwnd, &mut window);
            window.cwnd = window.ssthresh;
            cubic.handle_ack(&ack(Time::from_secs(1), true), &mut window);
            assert!(window.cwnd < window.ssthresh + DataSize::from_bytes(150), "{kernel}: {}", window.cwnd);
        }
    }

    #[test]
    fn linux_threshold_is_in_whole_segments() {
        for (kernel, expected) in [(true, 8_000), (false, 8_890)] {
            let (mut cubic, mut window) = cubic(kernel);
            window.cwnd = DataSize::from_bytes(12_700);
            cubic.handle_loss(window.cwnd, &mut window);
            assert_eq!(window.ssthresh, DataSize::from_bytes(expected));
        }
    }

    /// Losses at windows of 100, 90 and 80 segments. RFC 8312 compares each with the window of the loss before, so both falls
    /// lower W_max: 90 · 0.85 = 76.5, 80 · 0.85 = 68. Linux compares the third with 76.5, and does not.
    #[test]
    fn fast_convergence_of_linux_compares_with_the_lowered_w_max() {
        for (kernel, expected) in [(false, [100_000, 76_500, 68_000]), (true, [100_000, 76_500, 80_000])] {
            let (mut cubic, mut window) = cubic(kernel);
            let w_max = [100_000, 90_000, 80_000].map(|cwnd| {
                window.cwnd = DataSize::from_bytes(cwnd);
                cubic.handle_loss(window.cwnd, &mut window);
                cubic.target().expect("W_max is known").as_bytes()
            });
            assert_eq!(w_max, expected);
        }
    }

    /// One second after a loss at 100 segments, with a least round-trip time of 100 ms and a smoothed one of 500 ms, the window
    /// moves towards w_cubic(1.1) = 87.88 (Linux) or w_cubic(1.5) (RFC 8312).
    #[test]
    fn linux_looks_ahead_by_the_least_round_trip_time() {
        for (kernel, ahead) in [(true, 0.1), (false, 0.5)] {
            let (mut cubic, mut window) = cubic(kernel);
            let sample = |ms, rtt| Ack {
                round_trip: Some(TimeDelta::from_millis(rtt)),
                srtt: TimeDelta::from_millis(500),
                ..ack(Time::from_millis(ms), true)
            };
            cubic.handle_ack(&Ack { cwnd_limited: false, ..sample(0, 100) }, &mut window);
            cubic.handle_loss(window.cwnd, &mut window);
            window.cwnd = window.ssthresh;
            // Samples of the first second do not count.
            cubic.handle_ack(&sample(0, 100), &mut window);
            cubic.handle_ack(&sample(999, 50), &mut window);
            let before = window.cwnd.as_bytes() as f64 / 1000.0;
            cubic.handle_ack(&sample(1000, 400), &mut window);
            let grown = window.cwnd.as_bytes() as f64 / 1000.0 - before;
            let wanted = increment(w_cubic(1.0 + ahead, time_to_origin(100.0, 70.0), 100.0), before);
            assert!((grown - wanted).abs() < 0.002, "{grown} {wanted}");
        }
    }

    #[test]
    fn a_timeout_resets_w_max() {
        let (mut cubic, mut window) = cubic(false);
        cubic.handle_loss(window.cwnd, &mut window);
        cubic.handle_timeout(window.cwnd, &mut window);
        assert_eq!(cubic.target(), None);
        window.cwnd = DataSize::from_bytes(50_000);
        window.ssthresh = window.cwnd;
        cubic.handle_ack(&ack(Time::from_secs(1), true), &mut window);
        assert_eq!(cubic.target(), Some(DataSize::from_bytes(50_000)));
    }
}
