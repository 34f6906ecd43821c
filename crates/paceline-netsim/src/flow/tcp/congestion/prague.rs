// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP Prague: a scalable control for L4S (draft-briscoe-iccrg-prague-congestion-control; `net/ipv4/tcp_prague.c` of
//! L4STeam/linux).
//!
//! ```text
//! alpha  = (15 alpha + M) / 16                 once per round trip, from the first mark on
//! mark:    cwnd *= 1 - alpha / 2               once per round trip
//! ACK:     cwnd += acked SMSS / cwnd · scale   of what was not marked
//! scale  = (srtt / 25 ms)²                     below 25 ms, from 500 rounds after slow start on
//! loss:    cwnd /= 2
//! pacing = cwnd / srtt                         twice that in slow start; bursts of 250 us
//! ```
//!
//! The RTT independence also makes rounds of marks at least 25 ms long.

use super::dctcp::{MarkedShare, alpha_after, reduced};
use super::{Ack, Congestion, CongestionWindow, LossState, MarkSample, RateSample, THRESHOLD_MIN};
use crate::flow::tcp::TcpConfig;
use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// The round-trip time to whose growth a flow with a shorter one is slowed (`prague_rtt_target`).
const RTT_TARGET: TimeDelta = TimeDelta::from_millis(25);
/// The rounds after slow start until this applies (`prague_rtt_transition`).
const TRANSITION_ROUNDS: u32 = 500;
/// The length of a burst: the rate over 2^12 (`prague_burst_shift`).
const BURST: f64 = 1.0 / 4096.0;
/// The pacing rate in slow start over `cwnd / srtt` (`tcp_pacing_ss_ratio`).
const SLOW_START_PACING: f64 = 2.0;
/// The shortest round-trip time in the pacing rate.
const RTT_MIN: TimeDelta = TimeDelta::from_micros(100);

/// The growth of a flow with this round-trip time over that at the target.
fn growth_scale(srtt: TimeDelta) -> f64 {
    let ratio = srtt.as_secs_f64() / RTT_TARGET.as_secs_f64();
    if ratio < 1.0 { ratio * ratio } else { 1.0 }
}

#[derive(Debug)]
struct Prague {
    segment: DataSize,
    share: MarkedShare,
    /// The time of the last update of alpha, and whether a packet was marked before.
    updated: Time,
    saw_mark: bool,
    /// The rounds since slow start.
    rounds: u32,
    /// After a reduction by marks: the bytes to acknowledge and the time until the next one.
    reduced: (DataSize, Time),
    marked: DataSize,
    /// A loss lowers the window to the threshold.
    lost: bool,
    /// The part of the window below a byte.
    fraction: f64,
    pacing: Rate,
}

pub(super) fn build(config: &TcpConfig, _: u64) -> Box<dyn Congestion> {
    Box::new(Prague {
        segment: config.segment,
        share: MarkedShare::new(),
        updated: Time::ZERO,
        saw_mark: false,
        rounds: 0,
        reduced: (DataSize::ZERO, Time::ZERO),
        marked: DataSize::ZERO,
        lost: false,
        fraction: 0.0,
        pacing: Rate::from_kbps(1_000_000),
    })
}

impl Prague {
    /// The shortest time between two updates of alpha and between two reductions.
    fn round_min(&self) -> TimeDelta {
        if self.is_independent() { RTT_TARGET } else { TimeDelta::ZERO }
    }

    fn is_independent(&self) -> bool {
        self.rounds >= TRANSITION_ROUNDS
    }

    /// Congestion avoidance.
    fn grow(&mut self, acked: DataSize, srtt: TimeDelta, window: &mut CongestionWindow) {
        let scale = if self.is_independent() { growth_scale(srtt) } else { 1.0 };
        let cwnd = window.cwnd.as_bytes() as f64 + self.fraction;
        let bytes = cwnd + acked.as_bytes() as f64 * self.segment.as_bytes() as f64 / cwnd * scale;
        self.fraction = bytes - (bytes as u64) as f64;
        window.cwnd = DataSize::from_bytes(bytes as u64);
    }

    fn pace(&mut self, srtt: TimeDelta, window: &CongestionWindow) {
        let rate = Rate::from_size_and_time(window.cwnd, srtt.max(RTT_MIN));
        let below = window.cwnd + window.cwnd < window.ssthresh;
        self.pacing = if below { rate.scale(SLOW_START_PACING) } else { rate };
    }
}

impl Congestion for Prague {
    fn handle_ack(&mut self, _: &Ack, _: &mut CongestionWindow) {}

    fn handle_loss(&mut self, _: DataSize, window: &mut CongestionWindow) {
        let least = DataSize::from_bytes(THRESHOLD_MIN * self.segment.as_bytes());
        window.ssthresh = DataSize::from_bytes(window.cwnd.as_bytes() / 2).max(least);
        (self.lost, self.fraction) = (true, 0.0);
    }

    fn handle_timeout(&mut self, flight: DataSize, window: &mut CongestionWindow) {
        self.handle_loss(flight, window);
        self.lost = false;
    }

    fn handle_marks(&mut self, sample: &MarkSample, window: &mut CongestionWindow) -> bool {
        self.marked = sample.marked;
        let is_marked = sample.marked > DataSize::ZERO;
        self.saw_mark |= is_marked;
        let may_end = sample.now - self.updated >= self.round_min();
        if let Some(marked) = self.share.handle(sample, may_end) {
            self.updated = sample.now;
            if self.saw_mark {
                self.share.alpha = alpha_after(self.share.alpha, marked);
            }
            self.rounds = if window.in_slow_start() { 0 } else { self.rounds.saturating_add(1) };
        }
        let (end, until) = self.reduced;
        if !is_marked || !sample.open || sample.acknowledged <= end || sample.now < until {
            return false;
        }
        self.reduced = (sample.sent, sample.now + self.round_min());
        window.cwnd = reduced(window.cwnd, self.share.alpha, self.segment);
        window.ssthresh = window.cwnd;
        self.fraction = 0.0;
        true
    }

    fn pacing(&self) -> Option<Rate> {
        Some(self.pacing)
    }

    fn burst(&self) -> u64 {
        let bytes = self.pacing.as_bps_f64() / 8.0 * BURST;
        (bytes as u64 / self.segment.as_bytes()).max(1)
    }

    fn handle_open(&mut self, now: Time, round_trip: Option<TimeDelta>, window: &CongestionWindow) {
        self.updated = now;
        if let Some(rtt) = round_trip {
            self.pace(rtt, window);
        }
    }

    fn handle_sample(&mut self, sample: &RateSample, window: &mut CongestionWindow) {
        let Some(srtt) = sample.srtt else { return };
        let acked = sample.acked.saturating_sub(core::mem::take(&mut self.marked));
        if core::mem::take(&mut self.lost) {
            window.cwnd = window.ssthresh;
        } else if sample.loss_state != LossState::Recovery && !sample.app_limited {
            let left = if window.in_slow_start() { window.slow_start(acked, None) } else { acked };
            if left > DataSize::ZERO {
                self.grow(left, srtt, window);
            }
        }
        self.pace(srtt, window);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::config;
    use super::*;

    const BYTES: fn(u64) -> DataSize = DataSize::from_bytes;

    #[test]
    fn growth_is_scaled_below_25_ms() {
        for (ms, scale) in [(5, 0.04), (10, 0.16), (20, 0.64), (25, 1.0), (80, 1.0)] {
            assert!((growth_scale(TimeDelta::from_millis(ms)) - scale).abs() < 1e-12, "{ms}");
        }
    }

    /// Windows of ten segments on a path of 10 ms: without marks alpha keeps its start, 1, and the first mark halves the
    /// window.
    #[test]
    fn alpha_begins_to_move_with_the_first_mark() {
        let mut prague = build(&config(true), 1);
        let mut window = CongestionWindow { cwnd: BYTES(20_000), ssthresh: BYTES(20_000) };
        let mut ack = |n: u64, marked: u64| {
            let sample = MarkSample {
                now: Time::from_millis(10 * n as i64),
                acked: BYTES(1000),
                marked: BYTES(marked),
                acknowledged: BYTES(20_000 * n),
                sent: BYTES(20_000 * n + 19_000),
                open: true,
            };
            (prague.handle_marks(&sample, &mut window), window.cwnd.as_bytes())
        };
        for n in 1..20 {
            assert_eq!(ack(n, 0), (false, 20_000));
        }
        assert_eq!(ack(20, 1000), (true, 10_000));
        assert_eq!(ack(21, 0), (false, 10_000));
        // alpha is 15/16 now.
        assert_eq!(ack(22, 1000), (true, (10_000.0 * (1.0 - (1.0 - 1.0 / 16.0 + 1.0 / 256.0) / 2.0)) as u64));
    }
}
