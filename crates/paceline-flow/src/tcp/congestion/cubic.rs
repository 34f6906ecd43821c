//! CUBIC (RFC 8312): after a loss the window climbs back to where it was lost along a cubic function of time, rests there,
//! and then probes ever faster. Windows in segments, times in seconds.
//!
//! Three things are taken from its successor, RFC 9438, or made plain where RFC 8312 is silent. K starts from the window
//! at the beginning of the epoch, which is the same unless fast convergence lowered W_max. The target lies from the window
//! to 1.5 times the window. And an ACK counts for as many increments as it acknowledges segments, so that delayed ACKs do
//! not halve the growth.

use super::hystart::HyStart;
use super::{Ack, Congestion, Settings, THRESHOLD_MIN, Window};
use paceline_units::{DataSize, Time, round_to_u64};

/// C, in segments per second cubed (RFC 8312, section 5.1).
const C: f64 = 0.4;
/// beta_cubic (section 4.5).
const BETA: f64 = 0.7;
/// The target is at most this many times the window (RFC 9438, section 4.2).
const TARGET_MAX: f64 = 1.5;
/// For each segment acknowledged before there was a loss, in segments: 5 % a round trip (`bictcp_update`).
const GROWTH_UNTIL_LOSS: f64 = 0.05;

/// Equation 1.
#[inline]
fn w_cubic(t: f64, k: f64, w_max: f64) -> f64 {
    let d = t - k;
    C * d * d * d + w_max
}

/// Equation 2, as RFC 9438 writes it: from the window at the beginning of the epoch.
fn time_to_origin(w_max: f64, start: f64) -> f64 {
    libm::cbrt((w_max - start) / C)
}

/// Equation 4: a window that grows like standard TCP's and loses `1 - BETA`, from the window at the epoch's beginning.
#[inline]
fn w_est(t: f64, rtt: f64, start: f64) -> f64 {
    start + 3.0 * (1.0 - BETA) / (1.0 + BETA) * (t / rtt)
}

/// Section 4.6: when the window was lost earlier than last time, others need room.
fn converge_fast(cwnd: f64, last_max: f64) -> f64 {
    if cwnd < last_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd }
}

/// Section 4.5.
fn threshold(cwnd: f64) -> f64 {
    (cwnd * BETA).max(THRESHOLD_MIN as f64)
}

/// Sections 4.3 and 4.4: the increment for one segment acknowledged.
#[inline]
fn increment(target: f64, cwnd: f64) -> f64 {
    (target.clamp(cwnd, TARGET_MAX * cwnd) - cwnd) / cwnd
}

/// A stay in congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    k: f64,
    /// W_max, or the window at the beginning where that was above (section 4.8).
    origin: f64,
    cwnd: f64,
}

#[derive(Debug)]
struct Cubic {
    settings: Settings,
    hystart: Option<HyStart>,
    /// Window before the last loss, after fast convergence; zero: no loss yet, or a timeout since.
    w_max: f64,
    /// W_last_max: the same before fast convergence.
    last_max: f64,
    epoch: Option<Epoch>,
    last_ack: Time,
    /// Part of the window below a byte.
    fraction: f64,
}

pub(super) fn build(settings: Settings) -> Box<dyn Congestion> {
    Box::new(Cubic {
        settings,
        hystart: settings.hystart.then(|| HyStart::new(settings.segment)),
        w_max: 0.0,
        last_max: 0.0,
        epoch: None,
        last_ack: Time::ZERO,
        fraction: 0.0,
    })
}

impl Cubic {
    fn segments(&self, size: DataSize) -> f64 {
        size.as_bytes() as f64 / self.settings.segment.as_bytes() as f64
    }

    fn begin_epoch(&self, now: Time, cwnd: f64) -> Epoch {
        let origin = self.w_max.max(cwnd);
        Epoch { start: now, k: time_to_origin(origin, cwnd), origin, cwnd }
    }

    fn avoid(&mut self, ack: &Ack, acked: DataSize, window: &mut Window) {
        let cwnd = self.segments(window.cwnd) + self.fraction / self.settings.segment.as_bytes() as f64;
        let epoch = *self.epoch.insert(self.epoch.unwrap_or_else(|| self.begin_epoch(ack.now, cwnd)));
        let (t, rtt) = ((ack.now - epoch.start).as_secs_f64(), ack.srtt.as_secs_f64());
        let friendly = w_est(t, rtt, epoch.cwnd);
        let grown = if w_cubic(t, epoch.k, epoch.origin) < friendly {
            cwnd.max(friendly)
        } else {
            cwnd + increment(w_cubic(t + rtt, epoch.k, epoch.origin), cwnd) * self.segments(acked)
        };
        let least = if self.settings.kernel_windows && self.w_max == 0.0 { GROWTH_UNTIL_LOSS } else { 0.0 };
        let grown = grown.max(cwnd + least * self.segments(acked));
        let bytes = grown * self.settings.segment.as_bytes() as f64;
        let whole = bytes as u64;
        self.fraction = bytes - whole as f64;
        window.cwnd = DataSize::from_bytes(whole);
    }
}

impl Congestion for Cubic {
    fn handle_ack(&mut self, ack: &Ack, window: &mut Window) {
        if let Some(hystart) = &mut self.hystart
            && window.in_slow_start()
        {
            hystart.handle_ack(ack, window);
        }
        let since = ack.now - self.last_ack;
        self.last_ack = ack.now;
        if !ack.limited {
            // Time in which the application held back does not count (section 5.8).
            if let Some(epoch) = &mut self.epoch {
                epoch.start += since;
            }
            return;
        }
        let mut acked = ack.acked;
        if window.in_slow_start() {
            acked = window.slow_start(acked, self.settings.slow_start_limit);
        }
        if acked > DataSize::ZERO {
            self.avoid(ack, acked, window);
        }
    }

    fn handle_loss(&mut self, _: DataSize, window: &mut Window) {
        let cwnd = self.segments(window.cwnd);
        self.w_max = converge_fast(cwnd, self.last_max);
        self.last_max = cwnd;
        self.epoch = None;
        self.fraction = 0.0;
        // The kernel counts whole segments, and rounds down (`bictcp_recalc_ssthresh`).
        let threshold = if self.settings.kernel_windows { threshold(cwnd.floor()).floor() } else { threshold(cwnd) };
        let bytes = threshold * self.settings.segment.as_bytes() as f64;
        window.ssthresh = DataSize::from_bytes(round_to_u64(bytes));
    }

    /// Section 4.7. The first avoidance after it starts from its own window with K = 0, hence no W_max is kept.
    fn handle_timeout(&mut self, flight: DataSize, window: &mut Window) {
        self.handle_loss(flight, window);
        self.w_max = 0.0;
        self.last_max = 0.0;
    }

    fn target(&self) -> Option<DataSize> {
        let origin = self.epoch.map_or(self.w_max, |epoch| epoch.origin);
        let bytes = origin * self.settings.segment.as_bytes() as f64;
        (origin > 0.0).then(|| DataSize::from_bytes(round_to_u64(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::TimeDelta;

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
    }

    #[test]
    fn the_equations_of_rfc_8312() {
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
        near(threshold(100.0), 70.0);
        near(threshold(2.0), 2.0);
        near(increment(70.0, 80.0), 0.0);
        near(increment(200.0, 80.0), 0.5);
    }

    fn ack(now: Time, limited: bool) -> Ack {
        let size = DataSize::from_bytes(1000);
        let rtt = TimeDelta::from_millis(100);
        Ack { now, acked: size, acknowledged: size, sent: size, round_trip: None, srtt: rtt, limited }
    }

    fn made() -> (Box<dyn Congestion>, Window) {
        made_with(false)
    }

    fn made_with(kernel_windows: bool) -> (Box<dyn Congestion>, Window) {
        let segment = DataSize::from_bytes(1000);
        let settings = Settings { segment, slow_start_limit: None, hystart: false, kernel_windows, seed: 1 };
        (build(settings), Window { cwnd: DataSize::from_bytes(100_000), ssthresh: DataSize::from_bytes(1) })
    }

    #[test]
    fn the_window_rises_to_w_max_at_k_and_waits_while_the_application_does() {
        for pause in [0, 10] {
            let (mut cubic, mut window) = made();
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
    fn the_kernels_grows_by_a_twentieth_until_the_first_loss() {
        for (kernel, expected) in [(true, 104_999..=105_000), (false, 100_500..=100_600)] {
            let (mut cubic, mut window) = made_with(kernel);
            // A hundred segments in a round trip of 100 ms: 5 %, or the friendly half segment.
            for ms in 1..=100 {
                cubic.handle_ack(&ack(Time::from_millis(ms), true), &mut window);
            }
            assert!(expected.contains(&window.cwnd.as_bytes()), "{kernel}: {}", window.cwnd);
            // After a loss both climb alike: back to where it was in more than two seconds.
            cubic.handle_loss(window.cwnd, &mut window);
            window.cwnd = window.ssthresh;
            cubic.handle_ack(&ack(Time::from_secs(1), true), &mut window);
            assert!(window.cwnd < window.ssthresh + DataSize::from_bytes(150), "{kernel}: {}", window.cwnd);
        }
    }

    #[test]
    fn the_kernels_comes_down_to_whole_segments() {
        for (kernel, expected) in [(true, 8_000), (false, 8_890)] {
            let (mut cubic, mut window) = made_with(kernel);
            window.cwnd = DataSize::from_bytes(12_700);
            cubic.handle_loss(window.cwnd, &mut window);
            assert_eq!(window.ssthresh, DataSize::from_bytes(expected));
        }
    }

    #[test]
    fn a_timeout_forgets_where_the_loss_was() {
        let (mut cubic, mut window) = made();
        cubic.handle_loss(window.cwnd, &mut window);
        cubic.handle_timeout(window.cwnd, &mut window);
        assert_eq!(cubic.target(), None);
        window.cwnd = DataSize::from_bytes(50_000);
        window.ssthresh = window.cwnd;
        cubic.handle_ack(&ack(Time::from_secs(1), true), &mut window);
        assert_eq!(cubic.target(), Some(DataSize::from_bytes(50_000)));
    }
}
