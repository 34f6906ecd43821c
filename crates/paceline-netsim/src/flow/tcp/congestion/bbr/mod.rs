// SPDX-License-Identifier: MIT OR Apache-2.0
//! BBR, version 1 (Cardwell et al., "BBR: Congestion-Based Congestion Control", 2016; as in Linux,
//! `net/ipv4/tcp_bbr.c`).
//!
//! BBR measures two properties of the path: the bottleneck bandwidth (BtlBw, the maximum delivery rate of ten round
//! trips) and the round-trip time without queues (RTprop, the minimum round-trip time of ten seconds). It paces at the
//! bandwidth times a gain and limits the bytes in flight to twice the product of both. The two cannot be measured at
//! the same time: more bandwidth shows only if more is sent, the round-trip time only if less is sent. BBR therefore
//! probes for each in turn. It does not take a loss as a sign of congestion, but conserves packets for a round trip.
//!
//! ```text
//! STARTUP ── the pipe is full ──▶ DRAIN ── the queue is drained ──▶ PROBE_BW ◀── 200 ms ──▶ PROBE_RTT
//! ```
//!
//! `docs/explanation/tcp.md` lists the omissions.

mod ack_aggregation;
mod bandwidth;
mod gain_cycle;
mod packet_conservation;
mod probe_rtt;
mod v3;

use super::{Ack, Congestion, CongestionWindow, RateSample};
use crate::flow::tcp::TcpConfig;
use ack_aggregation::{AckAggregation, AckInput};
use bandwidth::{BandwidthFilter, FullPipe, RoundCounter};
use gain_cycle::{CycleInput, GainCycle};
use paceline_units::{DataSize, RandomStream, RandomStreams, Rate, Time, TimeDelta, round_to_u64};
use packet_conservation::{PacketConservation, WindowUpdate};
use probe_rtt::{MinRttFilter, ProbeRtt, ProbeRttStep};

pub(super) use v3::build as build_v3;

/// 2 / ln 2, the minimum gain with which the rate doubles each round trip (`bbr_high_gain`), and the gain that drains
/// the resulting queue (`bbr_drain_gain`).
const HIGH_GAIN: f64 = 2.885;
const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;
/// Windows are twice the bandwidth-delay product, to allow for delayed and aggregated ACKs (`bbr_cwnd_gain`).
const WINDOW_GAIN: f64 = 2.0;
/// The pacing rate is slightly below the bandwidth, so that queues drain (`bbr_pacing_margin_percent`).
const MARGIN: f64 = 0.99;
/// The minimum window, in segments (`bbr_cwnd_min_target`).
const WINDOW_MIN: u64 = 4;
/// The initial window, in segments (`TCP_INIT_CWND`).
const WINDOW_INITIAL: u64 = 10;
/// The assumed round-trip time before the first measurement (`bbr_init_pacing_rate_from_rtt`).
const ROUND_TRIP_ASSUMED: TimeDelta = TimeDelta::from_millis(1);
/// A burst is a millisecond's worth of data (`sk_pacing_shift`), at least one segment below `BURST_RATE` and two above
/// (`bbr_min_tso_rate`), and at most an IP packet. Windows have room for three bursts.
const BURST: TimeDelta = TimeDelta::from_millis(1);
const BURST_RATE: Rate = Rate::from_kbps(1_200);
const BURST_MAX: u64 = 65_535;
const BURSTS: u64 = 3;

#[derive(Debug)]
enum BbrMode {
    Startup,
    Drain,
    ProbeBw(GainCycle),
    ProbeRtt(ProbeRtt),
}

#[derive(Debug)]
struct Bbr {
    segment: DataSize,
    random: RandomStream,
    mode: BbrMode,
    rounds: RoundCounter,
    bandwidth: BandwidthFilter,
    min_rtt: MinRttFilter,
    full: FullPipe,
    aggregation: AckAggregation,
    conservation: PacketConservation,
    pacing: Rate,
    /// The initial pacing rate was computed from a measured round-trip time.
    paces_by_measured_rtt: bool,
}

pub(super) fn build(config: &TcpConfig, seed: u64) -> Box<dyn Congestion> {
    Box::new(Bbr {
        segment: config.segment,
        random: RandomStreams::new(seed).stream("bbr"),
        mode: BbrMode::Startup,
        rounds: RoundCounter::default(),
        bandwidth: BandwidthFilter::default(),
        min_rtt: MinRttFilter::new(Time::ZERO, None),
        full: FullPipe::default(),
        aggregation: AckAggregation::new(Time::ZERO),
        conservation: PacketConservation::new(),
        pacing: Rate::ZERO,
        paces_by_measured_rtt: false,
    })
}

/// Returns the segments of a burst (`bbr_tso_segs_goal`).
fn burst_segments(pacing: Rate, segment: DataSize) -> u64 {
    let least = if pacing < BURST_RATE { 1 } else { 2 };
    ((pacing * BURST).as_bytes().min(BURST_MAX) / segment.as_bytes()).max(least)
}

/// Returns the pacing rate for a bandwidth and a gain.
fn pacing_rate(bandwidth: Rate, gain: f64) -> Rate {
    bandwidth.scale(gain * MARGIN)
}

/// Returns the bandwidth-delay product times a gain in whole segments, rounded up so that small windows do not shrink.
fn bdp_segments(bandwidth: Rate, round_trip: TimeDelta, gain: f64, segment: DataSize) -> u64 {
    let bytes = (bandwidth * round_trip).as_bytes() as f64 * gain;
    round_to_u64(bytes).div_ceil(segment.as_bytes())
}

impl Bbr {
    fn gains(&self) -> (f64, f64) {
        match &self.mode {
            BbrMode::Startup => (HIGH_GAIN, HIGH_GAIN),
            BbrMode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            BbrMode::ProbeBw(cycle) => (cycle.gain(), WINDOW_GAIN),
            BbrMode::ProbeRtt(_) => (1.0, 1.0),
        }
    }

    fn segments(&self, count: u64) -> DataSize {
        DataSize::from_bytes(count * self.segment.as_bytes())
    }

    /// Returns the target bytes in flight (`bbr_inflight`), and with `extra` the window: the bandwidth-delay product
    /// times the gain, room for three bursts, rounded up to an even number of segments because of delayed ACKs, and two
    /// more segments in the probing phase.
    fn in_flight(&self, gain: f64, extra: DataSize) -> DataSize {
        let path = self
            .min_rtt
            .minimum
            .map_or(WINDOW_INITIAL, |min_rtt| bdp_segments(self.bandwidth.rate(), min_rtt, gain, self.segment));
        let segments = path + extra.as_bytes() / self.segment.as_bytes() + BURSTS * self.burst();
        let probing = matches!(&self.mode, BbrMode::ProbeBw(cycle) if cycle.probes());
        self.segments(segments.next_multiple_of(2) + if probing { 2 } else { 0 })
    }

    fn update_model(&mut self, sample: &RateSample, window: &CongestionWindow) {
        self.rounds.begins = false;
        let Some((before, rate)) = sample.rate else { return };
        self.rounds.handle_ack(before, sample.delivered);
        if self.rounds.begins {
            self.conservation.handle_round();
        }
        self.bandwidth.handle_sample(rate, sample.app_limited, self.rounds.count);
        self.aggregation.handle_ack(AckInput {
            now: sample.now,
            acked: sample.acked,
            bandwidth: self.bandwidth.rate(),
            round_begins: self.rounds.begins,
            cwnd: window.cwnd,
            segment: self.segment,
        });
    }

    fn begin_cycle(&mut self, now: Time) {
        self.mode = BbrMode::ProbeBw(GainCycle::begin(now, &mut self.random));
    }

    /// Moves from STARTUP to DRAIN to PROBE_BW, and through the phases of PROBE_BW.
    fn update_mode(&mut self, sample: &RateSample) {
        let drained = self.in_flight(1.0, DataSize::ZERO);
        let conditions = CycleInput {
            now: sample.now,
            min_rtt: self.min_rtt.minimum.unwrap_or(TimeDelta::MAX),
            losses: sample.lost > DataSize::ZERO,
            pipe: sample.pipe_before,
            pipe_next: sample.pipe_before + self.segments(self.burst()),
            probing: self.in_flight(self.gains().0, DataSize::ZERO),
            drained,
        };
        if let BbrMode::ProbeBw(cycle) = &mut self.mode {
            cycle.handle_ack(conditions);
        }
        if self.rounds.begins && !sample.app_limited {
            self.full.handle_round(self.bandwidth.rate());
        }
        if matches!(self.mode, BbrMode::Startup) && self.full.is_reached() {
            self.mode = BbrMode::Drain;
        }
        if matches!(self.mode, BbrMode::Drain) && sample.pipe <= self.in_flight(1.0, DataSize::ZERO) {
            self.begin_cycle(sample.now);
        }
    }

    /// Updates RTprop, and enters and leaves PROBE_RTT.
    fn update_min_rtt(&mut self, sample: &RateSample, window: &mut CongestionWindow) {
        let old = self.min_rtt.handle_ack(sample.now, sample.round_trip);
        if old && !matches!(self.mode, BbrMode::ProbeRtt(_)) {
            self.conservation.save(window.cwnd, false);
            self.mode = BbrMode::ProbeRtt(ProbeRtt::default());
        }
        let minimum_window = self.segments(WINDOW_MIN);
        let BbrMode::ProbeRtt(probe) = &mut self.mode else { return };
        match probe.handle_ack(sample.now, sample.pipe <= minimum_window, self.rounds.begins) {
            ProbeRttStep::Wait => {}
            ProbeRttStep::Drained => self.rounds.restart(sample.delivered),
            ProbeRttStep::Over => {
                self.min_rtt.extend(sample.now);
                window.cwnd = window.cwnd.max(self.conservation.prior());
                if self.full.is_reached() {
                    self.begin_cycle(sample.now);
                } else {
                    self.mode = BbrMode::Startup;
                }
            }
        }
    }

    /// Sets the initial pacing rate: the high gain times a window per round trip.
    fn start_pacing(&mut self, round_trip: Option<TimeDelta>, window: &CongestionWindow) {
        self.paces_by_measured_rtt = round_trip.is_some();
        self.pacing =
            pacing_rate(Rate::from_size_and_time(window.cwnd, round_trip.unwrap_or(ROUND_TRIP_ASSUMED)), HIGH_GAIN);
    }

    /// `bbr_set_pacing_rate`: the rate does not fall until the pipe is full.
    fn set_pacing(&mut self, gain: f64, sample: &RateSample, window: &CongestionWindow) {
        if !self.paces_by_measured_rtt && sample.srtt.is_some() {
            self.start_pacing(sample.srtt, window);
        }
        let pacing = pacing_rate(self.bandwidth.rate(), gain);
        if self.full.is_reached() || pacing > self.pacing {
            self.pacing = pacing;
        }
    }

    /// `bbr_set_cwnd`: the window grows by the delivered data up to its target. Once the pipe is full, it is also
    /// limited to the target.
    fn set_window(&mut self, gain: f64, sample: &RateSample, window: &mut CongestionWindow) {
        if sample.acked > DataSize::ZERO {
            if self.conservation.begins(sample) {
                self.rounds.restart(sample.delivered);
            }
            window.cwnd = match self.conservation.handle_ack(sample, window.cwnd, self.segment) {
                WindowUpdate::Conserve(cwnd) => cwnd,
                WindowUpdate::Model(cwnd) => self.grown(gain, sample, cwnd).max(self.segments(WINDOW_MIN)),
            };
        }
        if matches!(self.mode, BbrMode::ProbeRtt(_)) {
            window.cwnd = window.cwnd.min(self.segments(WINDOW_MIN));
        }
    }

    fn grown(&self, gain: f64, sample: &RateSample, cwnd: DataSize) -> DataSize {
        if self.full.is_reached() {
            let extra = self.aggregation.allowance(self.bandwidth.rate());
            return (cwnd + sample.acked).min(self.in_flight(gain, extra));
        }
        let grows = cwnd < self.in_flight(gain, DataSize::ZERO) || sample.delivered < self.segments(WINDOW_INITIAL);
        if grows { cwnd + sample.acked } else { cwnd }
    }

    fn save(&mut self, window: &CongestionWindow) {
        let lowered = matches!(self.mode, BbrMode::ProbeRtt(_));
        self.conservation.save(window.cwnd, lowered);
    }
}

impl Congestion for Bbr {
    /// Has no effect: BBR uses rate samples.
    fn handle_ack(&mut self, _: &Ack, _: &mut CongestionWindow) {}

    /// Saves the window. The threshold is unused, and the window changes with the samples.
    fn handle_loss(&mut self, _: DataSize, window: &mut CongestionWindow) {
        self.save(window);
    }

    fn handle_timeout(&mut self, _: DataSize, window: &mut CongestionWindow) {
        self.save(window);
        self.conservation.handle_timeout();
        self.full.handle_timeout();
    }

    fn pacing(&self) -> Option<Rate> {
        Some(self.pacing)
    }

    fn burst(&self) -> u64 {
        burst_segments(self.pacing, self.segment)
    }

    fn handle_open(&mut self, now: Time, round_trip: Option<TimeDelta>, window: &CongestionWindow) {
        self.min_rtt = MinRttFilter::new(now, round_trip);
        self.aggregation = AckAggregation::new(now);
        self.start_pacing(round_trip, window);
    }

    fn handle_sample(&mut self, sample: &RateSample, window: &mut CongestionWindow) {
        self.update_model(sample, window);
        self.update_mode(sample);
        self.update_min_rtt(sample, window);
        let (pacing_gain, window_gain) = self.gains();
        self.set_pacing(pacing_gain, sample, window);
        self.set_window(window_gain, sample, window);
    }

    fn is_self_limited(&self) -> bool {
        matches!(self.mode, BbrMode::ProbeRtt(_))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::config;
    use super::super::{LossState, NO_THRESHOLD};
    use super::*;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;
    const BYTES: fn(u64) -> DataSize = DataSize::from_bytes;
    const SEGMENT: u64 = 1000;
    const LINK: Rate = Rate::from_kbps(10_000);

    fn opened() -> (Box<dyn Congestion>, CongestionWindow) {
        let window = CongestionWindow { cwnd: BYTES(10 * SEGMENT), ssthresh: NO_THRESHOLD };
        let mut bbr = build(&config(false), 1);
        bbr.handle_open(Time::ZERO, Some(MS(40)), &window);
        (bbr, window)
    }

    /// An ACK of two segments at this rate, 40 ms after they were sent, with a full pipe.
    fn sample(now: Time, delivered: u64, rate: Rate, app_limited: bool) -> RateSample {
        let in_round = (LINK * MS(40)).as_bytes();
        RateSample {
            now,
            acked: BYTES(2 * SEGMENT),
            lost: BYTES(0),
            delivered: BYTES(delivered),
            rate: Some((BYTES(delivered.saturating_sub(in_round)), rate)),
            app_limited,
            pipe_sent: BYTES(in_round),
            lost_since: BYTES(0),
            cwnd_limited: false,
            round_trip: Some(MS(40)),
            srtt: Some(MS(40)),
            pipe_before: BYTES(in_round),
            pipe: BYTES(in_round - 2 * SEGMENT),
            loss_state: LossState::Open,
        }
    }

    #[test]
    fn bandwidth_delay_product_is_in_whole_segments() {
        assert_eq!(bdp_segments(LINK, MS(40), 1.0, BYTES(SEGMENT)), 50);
        assert_eq!(bdp_segments(LINK, MS(40), 2.0, BYTES(SEGMENT)), 100);
        assert_eq!(bdp_segments(LINK, MS(40), 0.75, BYTES(SEGMENT)), 38, "rounded up from 37.5");
        assert_eq!(pacing_rate(LINK, 1.25), Rate::from_kbps(12_375));
    }

    #[test]
    fn initial_pacing_rate_is_a_window_per_round_trip_times_the_high_gain() {
        let (bbr, _) = opened();
        // 10 000 B in 40 ms are 2 Mbit/s; times 2.885, less 1 %.
        assert_eq!(bbr.pacing(), Some(Rate::from_bps(5_712_300)));
    }

    #[test]
    fn a_steady_rate_ends_startup_and_the_window_settles_at_twice_the_path() {
        let (mut bbr, mut window) = opened();
        let (mut now, mut paces, mut windows) = (Time::ZERO + MS(40), Vec::new(), Vec::new());
        // Two segments every 1.6 ms are 10 Mbit/s; 2 s of that.
        for n in 1..=1250 {
            // 22 segments are in the queue, except for a short time.
            let pipe = BYTES(if (301..=310).contains(&n) { 50 } else { 72 } * SEGMENT);
            let sample = RateSample { pipe_before: pipe, pipe, ..sample(now, 2 * SEGMENT * n, LINK, false) };
            bbr.handle_sample(&sample, &mut window);
            now += TimeDelta::from_micros(1600);
            paces.push(bbr.pacing().unwrap_or_default());
            windows.push(window.cwnd.as_bytes() / SEGMENT);
        }
        // The first round measures 10 Mbit/s, and the next three no more. DRAIN lasts until the queue is drained.
        let of = |gain| paces.iter().filter(|at| **at == pacing_rate(LINK, gain)).count();
        assert_eq!((of(HIGH_GAIN), of(DRAIN_GAIN)), (75, 225));
        // Then 1.52 s of cycles: eight phases of 41.6 ms each, 26 ACKs.
        assert_eq!(of(0.75) + of(1.0) + of(1.25), 950);
        assert!((75..=150).contains(&of(0.75)) && (75..=150).contains(&of(1.25)), "{} {}", of(0.75), of(1.25));
        // 100 segments and 3 bursts of 2; two more in the probing phase, and two for ACKs of two segments.
        let late = &windows[windows.len() - 500..];
        assert_eq!((late.iter().min(), late.iter().max()), (Some(&108), Some(&110)));
        assert_eq!(window.ssthresh, NO_THRESHOLD);
    }

    #[test]
    fn app_limited_samples_neither_lower_the_pacing_rate_nor_end_startup() {
        let (mut bbr, mut window) = opened();
        let mut now = Time::ZERO + MS(40);
        for n in 1..=1250 {
            bbr.handle_sample(&sample(now, 2 * SEGMENT * n, Rate::from_kbps(3_000), n > 1), &mut window);
            now += TimeDelta::from_micros(1600);
        }
        assert_eq!(bbr.pacing(), Some(pacing_rate(Rate::from_kbps(3_000), HIGH_GAIN)));
        let (mut bbr, mut window) = opened();
        let mut now = Time::ZERO + MS(40);
        for n in 1..=1250 {
            let limited = n > 500;
            let rate = if limited { Rate::from_kbps(1_000) } else { LINK };
            bbr.handle_sample(&sample(now, 2 * SEGMENT * n, rate, limited), &mut window);
            now += TimeDelta::from_micros(1600);
        }
        let pacing = bbr.pacing().unwrap_or_default();
        assert!((pacing_rate(LINK, 0.75)..=pacing_rate(LINK, 1.25)).contains(&pacing), "{pacing}");
    }
}
