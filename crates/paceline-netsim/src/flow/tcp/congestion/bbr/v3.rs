// SPDX-License-Identifier: MIT OR Apache-2.0
//! BBR, version 3 (draft-ietf-ccwg-bbr-06; Linux, branch v3 of google/bbr).
//!
//! As version 1, it paces at the bandwidth that it measures. It differs in what bounds the bytes in flight:
//!
//! ```text
//! hi    the most bytes in flight whose round lost at most 2 %; raised and lowered by probes alone
//! lo    the bytes in flight, and the bandwidth, that the last lossy round delivered; forgotten before each probe
//!
//! STARTUP ── full, or too lossy ──▶ DRAIN ──▶ DOWN ──▶ CRUISE ── 2 to 3 s, or 63 rounds ──▶ REFILL ──▶ UP ─┐
//!                                              ▲         ▲                                                 │
//!                                              └─────────┼────────── full, or too lossy ◀──────────────────┘
//!                              PROBE_RTT ── 200 ms ──────┘   each 5 s
//! ```
//!
//! DOWN leads to REFILL at once if the wait for the next probe is over before the queue is drained.
//!
//! Choices where the draft has gaps, or which simplify it: losses are compared with the bytes in flight of the newest acknowledged
//! segment alone, where draft and Linux also examine each lost segment and lower `hi` to where the losses crossed 2 %; segments that a
//! timeout marks as lost are not counted; six ACKs with losses count in STARTUP (Linux), not six ranges; every sample may show growth in the test for a
//! full pipe (Linux), not only the one that ends a round; DRAIN ends after three rounds (draft); the expired minimum is replaced by any sample,
//! also of a delayed ACK, and only a lower sample refreshes it (draft); the first pacing rate is computed again from the first round-trip time
//! (Linux); the maximum of aggregated ACKs has version 1's filter in STARTUP, too; a restart from idle changes no gain. ECN and spurious
//! recoveries have no effect.

mod bounds;
mod round_trips;
#[cfg(test)]
mod tests;

use super::ack_aggregation::{AckAggregation, AckInput};
use super::bandwidth::RoundCounter;
use super::probe_rtt::{ProbeRtt, ProbeRttStep};
use super::{ROUND_TRIP_ASSUMED, WINDOW_INITIAL, WINDOW_MIN, bdp_segments, burst_segments, pacing_rate};
use crate::flow::tcp::TcpConfig;
use crate::flow::tcp::congestion::{Ack, Congestion, CongestionWindow, LossState, RateSample};
use bounds::{Bounds, Latest};
use paceline_units::{DataSize, RandomStream, RandomStreams, Rate, Time, TimeDelta};
use round_trips::RoundTrips;

/// Losses above this share of the bytes in flight are too many (LossThresh).
const LOSS_MAX: f64 = 0.02;
/// ACKs with losses in a round that may end STARTUP (`full_loss_cnt`).
const STARTUP_LOSSES: u32 = 6;
/// A bandwidth that grows by less than this factor in three rounds fills the pipe (StartupFullBwThreshold, StartupFullBwRounds).
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// DRAIN lasts for at most this many rounds.
const DRAIN_ROUNDS: u64 = 3;
/// The wait from probe to probe: this time and up to a second more, or a window of round trips, at most this number, so that NewReno
/// on the same path has a chance (BBRPickProbeWait, IsRenoCoexistenceProbeTime).
const PROBE_WAIT: TimeDelta = TimeDelta::from_secs(2);
const PROBE_WAIT_SPREAD: TimeDelta = TimeDelta::from_secs(1);
const PROBE_ROUNDS_MAX: u64 = 63;
/// The window in PROBE_RTT, as a share of the path (ProbeRTTCwndGain).
const PROBE_RTT_GAIN: f64 = 0.5;
/// Bursts for which the window has room.
const BURSTS: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    /// Returns the gains of pacing rate and window (draft, section 5.4, summary table).
    fn gains(self) -> (f64, f64) {
        match self {
            Self::Startup => (2.77, 2.0),
            Self::Drain => (0.5, 2.0),
            Self::Down => (0.9, 2.0),
            Self::Cruise | Self::Refill => (1.0, 2.0),
            Self::Up => (1.25, 2.25),
            Self::ProbeRtt => (1.0, PROBE_RTT_GAIN),
        }
    }

    /// Returns whether it sends more than the path is known to take, so that losses are no sign of another flow.
    fn probes(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    fn cycles(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }
}

/// Which ACKs arrive (`ack_phase`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    /// Of neither a probe nor its end.
    Other,
    /// Of segments from before UP, and from the first round of it.
    Starting,
    /// Of segments of UP.
    Feedback,
    /// Of segments of UP, after it.
    Stopping,
}

/// The test for a full pipe.
#[derive(Debug, Default)]
struct FullTest {
    bandwidth: Rate,
    rounds: u32,
    /// Since the last reset.
    is_full: bool,
    /// Ever.
    was_full: bool,
}

impl FullTest {
    fn reset(&mut self, bandwidth: Rate) {
        (self.bandwidth, self.rounds, self.is_full) = (bandwidth, 0, false);
    }

    fn handle_sample(&mut self, rate: Rate, round_begins: bool) {
        if rate >= self.bandwidth.scale(FULL_GROWTH) {
            return self.reset(rate);
        }
        if round_begins {
            self.rounds += 1;
            if self.rounds >= FULL_ROUNDS {
                self.fill();
            }
        }
    }

    fn fill(&mut self) {
        (self.is_full, self.was_full) = (true, true);
    }
}

#[derive(Debug)]
struct Bbr3 {
    segment: DataSize,
    random: RandomStream,
    state: State,
    /// The round in which DRAIN began.
    drain_began: u64,
    rounds: RoundCounter,
    /// The maximum of the current cycle, and of the one before.
    max_bandwidth: [Rate; 2],
    full: FullTest,
    round_trips: RoundTrips,
    probe_rtt: ProbeRtt,
    bounds: Bounds,
    aggregation: AckAggregation,
    phase: AckPhase,
    /// Whether ACKs show the effect of a probe, and this has not been found too lossy.
    samples_probe: bool,
    /// Whether the last probe was too lossy, and whether UP therefore ended as soon as `hi` was reached.
    was_too_high: bool,
    is_cautious: bool,
    /// The last probe ended at this time; the next one follows after this wait, or this many rounds.
    probed: Time,
    wait: TimeDelta,
    rounds_since_probe: u64,
    /// ACKs with losses in this round.
    losses: u32,
    pacing: Rate,
    /// The initial pacing rate was computed from a measured round-trip time.
    paces_by_measured_rtt: bool,
    /// The window before a recovery, or before PROBE_RTT.
    prior: DataSize,
    is_recovering: bool,
}

pub(in crate::flow::tcp::congestion) fn build(config: &TcpConfig, seed: u64) -> Box<dyn Congestion> {
    Box::new(Bbr3::new(config.segment, seed))
}

impl Bbr3 {
    fn new(segment: DataSize, seed: u64) -> Self {
        Self {
            segment,
            random: RandomStreams::new(seed).stream("bbr"),
            state: State::Startup,
            drain_began: 0,
            rounds: RoundCounter::default(),
            max_bandwidth: [Rate::ZERO; 2],
            full: FullTest::default(),
            round_trips: RoundTrips::new(Time::ZERO, None),
            probe_rtt: ProbeRtt::default(),
            bounds: Bounds::new(segment),
            aggregation: AckAggregation::new(Time::ZERO),
            phase: AckPhase::Other,
            samples_probe: false,
            was_too_high: false,
            is_cautious: false,
            probed: Time::ZERO,
            wait: TimeDelta::ZERO,
            rounds_since_probe: 0,
            losses: 0,
            pacing: Rate::ZERO,
            paces_by_measured_rtt: false,
            prior: DataSize::ZERO,
            is_recovering: false,
        }
    }

    fn segments(&self, count: u64) -> DataSize {
        DataSize::from_bytes(count * self.segment.as_bytes())
    }

    fn max_bandwidth(&self) -> Rate {
        self.max_bandwidth[0].max(self.max_bandwidth[1])
    }

    /// Returns the bandwidth of the model (BBRBoundBWForModel).
    fn bandwidth(&self) -> Rate {
        self.max_bandwidth().min(self.bounds.bandwidth_lo)
    }

    /// Returns the bytes that a bandwidth has in flight without a queue, times a gain (BBRBDPMultiple).
    fn path(&self, bandwidth: Rate, gain: f64) -> DataSize {
        let segments = |min_rtt| bdp_segments(bandwidth, min_rtt, gain, self.segment);
        self.segments(self.round_trips.min().map_or(WINDOW_INITIAL, segments))
    }

    /// Returns the bytes in flight of a flow that neither fills a queue nor starves (BBRTargetInflight).
    fn target(&self, window: &CongestionWindow) -> DataSize {
        self.path(self.bandwidth(), 1.0).min(window.cwnd)
    }

    fn probe_rtt_window(&self) -> DataSize {
        self.path(self.bandwidth(), PROBE_RTT_GAIN).max(self.segments(WINDOW_MIN))
    }

    /// Returns whether the round of the newest acknowledged segment lost too much (IsInflightTooHigh).
    fn is_too_lossy(sample: &RateSample) -> bool {
        sample.lost_since.as_bytes() as f64 > sample.pipe_sent.as_bytes() as f64 * LOSS_MAX
    }

    fn handle_round(&mut self, sample: &RateSample, (before, rate): (DataSize, Rate), window: &CongestionWindow) {
        let latest = Latest { bandwidth: rate, delivered: sample.delivered - before };
        if sample.lost > DataSize::ZERO {
            self.losses += 1;
            self.bounds.note_loss(sample.delivered);
        }
        self.rounds.handle_ack(before, sample.delivered);
        self.rounds_since_probe += u64::from(self.rounds.begins);
        if !sample.app_limited || rate >= self.max_bandwidth() {
            self.max_bandwidth[0] = self.max_bandwidth[0].max(rate);
        }
        let (loss_round_begins, loss_in_round) = self.bounds.handle_sample(before, sample.delivered, latest);
        if loss_round_begins && loss_in_round && !self.state.probes() {
            self.bounds.lower(self.max_bandwidth(), window.cwnd);
        }
        self.aggregation.handle_ack(AckInput {
            now: sample.now,
            acked: sample.acked,
            bandwidth: self.max_bandwidth(),
            round_begins: self.rounds.begins,
            cwnd: window.cwnd,
            segment: self.segment,
        });
        if !self.full.is_full && !sample.app_limited {
            self.full.handle_sample(rate, self.rounds.begins);
        }
        if loss_round_begins {
            self.check_startup_losses(sample);
            self.losses = 0;
        }
        self.update_state(sample, window, rate);
        if loss_round_begins {
            self.bounds.latest = latest;
        }
    }

    /// Ends STARTUP if a round in recovery lost too much (CheckStartupHighLoss).
    fn check_startup_losses(&mut self, sample: &RateSample) {
        let is_lossy = self.losses >= STARTUP_LOSSES && Self::is_too_lossy(sample);
        if self.state == State::Startup && sample.loss_state == LossState::Recovery && is_lossy {
            self.full.fill();
            let path = self.path(self.max_bandwidth(), 1.0);
            self.bounds.hi = path.max(self.bounds.latest.delivered);
        }
    }

    fn update_state(&mut self, sample: &RateSample, window: &CongestionWindow, rate: Rate) {
        if self.state == State::Startup && self.full.was_full {
            (self.state, self.drain_began) = (State::Drain, self.rounds.count);
        }
        let is_drained = || sample.pipe <= self.path(self.bandwidth(), 1.0);
        if self.state == State::Drain && (is_drained() || self.rounds.count > self.drain_began + DRAIN_ROUNDS) {
            self.go_down(sample);
        }
        if !self.full.was_full || self.adapt_hi(sample, window) {
            return;
        }
        match self.state {
            State::Down if self.is_time_to_probe(sample, window) => self.refill(sample.delivered),
            State::Down => {
                let is_low = sample.pipe <= self.bounds.with_headroom(self.segments(WINDOW_MIN));
                if is_low && sample.pipe <= self.path(self.max_bandwidth(), 1.0) {
                    self.state = State::Cruise;
                }
            }
            State::Cruise if self.is_time_to_probe(sample, window) => self.refill(sample.delivered),
            State::Refill if self.rounds.begins => self.go_up(sample, window, rate),
            State::Up => {
                if self.has_probed(sample, window, rate) {
                    self.was_too_high = false;
                    self.go_down(sample);
                }
            }
            State::Startup | State::Drain | State::Cruise | State::Refill | State::ProbeRtt => {}
        }
    }

    /// Returns whether UP ends (IsTimeToGoDown).
    fn has_probed(&mut self, sample: &RateSample, window: &CongestionWindow, rate: Rate) -> bool {
        if self.was_too_high && sample.pipe >= self.bounds.hi {
            self.is_cautious = true;
            return true;
        }
        if sample.cwnd_limited && window.cwnd >= self.bounds.hi {
            // `hi` may be what limits the bandwidth.
            self.full.reset(rate);
            return false;
        }
        self.full.is_full
    }

    /// Returns whether the wait for the next probe is over.
    fn is_time_to_probe(&self, sample: &RateSample, window: &CongestionWindow) -> bool {
        let rounds = self.target(window).as_bytes() / self.segment.as_bytes();
        sample.now > self.probed + self.wait || self.rounds_since_probe >= rounds.min(PROBE_ROUNDS_MAX)
    }

    /// BBRStartProbeBW_DOWN.
    fn go_down(&mut self, sample: &RateSample) {
        self.bounds.forget_latest();
        self.rounds_since_probe = u64::from(self.random.unit() < 0.5);
        self.wait = PROBE_WAIT + PROBE_WAIT_SPREAD.scale(self.random.unit());
        self.probed = sample.now;
        self.phase = AckPhase::Stopping;
        self.rounds.restart(sample.delivered);
        self.state = State::Down;
    }

    /// BBRStartProbeBW_REFILL.
    fn refill(&mut self, delivered: DataSize) {
        self.bounds.forget_lower();
        self.is_cautious = false;
        self.phase = AckPhase::Other;
        self.rounds.restart(delivered);
        self.state = State::Refill;
    }

    /// BBRStartProbeBW_UP.
    fn go_up(&mut self, sample: &RateSample, window: &CongestionWindow, rate: Rate) {
        self.samples_probe = true;
        self.phase = AckPhase::Starting;
        self.rounds.restart(sample.delivered);
        self.full.reset(rate);
        self.bounds.begin_probe(window.cwnd);
        self.state = State::Up;
    }

    /// Adapts `hi` to the samples of a probe (BBRAdaptLongTermModel). Returns whether this changed the state.
    fn adapt_hi(&mut self, sample: &RateSample, window: &CongestionWindow) -> bool {
        if self.rounds.begins && self.phase == AckPhase::Starting {
            self.phase = AckPhase::Feedback;
        } else if self.rounds.begins && self.phase == AckPhase::Stopping {
            (self.samples_probe, self.phase) = (false, AckPhase::Other);
            if self.state.cycles() && !sample.app_limited {
                self.max_bandwidth = [Rate::ZERO, self.max_bandwidth[0]];
            }
            if self.state.cycles() && self.is_cautious && !self.was_too_high {
                // Nothing was lost up to `hi`: probe beyond it.
                self.refill(sample.delivered);
                return true;
            }
        }
        if Self::is_too_lossy(sample) {
            if !core::mem::take(&mut self.samples_probe) {
                return false;
            }
            self.was_too_high = true;
            if !sample.app_limited {
                self.bounds.lower_hi(sample.pipe_sent, self.target(window));
            }
            if self.state == State::Up {
                self.go_down(sample);
                return true;
            }
            return false;
        }
        self.bounds.raise_hi(sample.pipe_sent);
        if self.state == State::Up && sample.cwnd_limited && window.cwnd >= self.bounds.hi {
            self.bounds.grow_hi(sample.acked, window.cwnd, self.rounds.begins);
        }
        false
    }

    /// Updates the round-trip times, and enters and leaves PROBE_RTT.
    fn update_round_trips(&mut self, sample: &RateSample, window: &mut CongestionWindow) {
        let is_old = self.round_trips.handle_ack(sample.now, sample.round_trip);
        // A segment that was sent alone after a pause measures the path without a probe.
        let restarts = sample.app_limited && sample.pipe_sent <= self.segment;
        if is_old && self.state != State::ProbeRtt && !restarts {
            self.save(window);
            (self.state, self.probe_rtt) = (State::ProbeRtt, ProbeRtt::default());
            self.phase = AckPhase::Stopping;
            self.rounds.restart(sample.delivered);
        }
        if self.state != State::ProbeRtt {
            return;
        }
        let is_drained = sample.pipe <= self.probe_rtt_window();
        match self.probe_rtt.handle_ack(sample.now, is_drained, self.rounds.begins) {
            ProbeRttStep::Wait => {}
            ProbeRttStep::Drained => self.rounds.restart(sample.delivered),
            ProbeRttStep::Over => {
                self.round_trips.extend(sample.now);
                window.cwnd = window.cwnd.max(self.prior);
                self.bounds.forget_lower();
                if self.full.was_full {
                    self.go_down(sample);
                    self.state = State::Cruise;
                } else {
                    self.state = State::Startup;
                }
            }
        }
    }

    /// Sets the initial pacing rate: the gain of STARTUP times a window per round trip.
    fn start_pacing(&mut self, round_trip: Option<TimeDelta>, window: &CongestionWindow) {
        self.paces_by_measured_rtt = round_trip.is_some();
        let rate = Rate::from_size_and_time(window.cwnd, round_trip.unwrap_or(ROUND_TRIP_ASSUMED));
        self.pacing = pacing_rate(rate, State::Startup.gains().0);
    }

    /// Sets the pacing rate, which does not fall until the pipe is full.
    fn set_pacing(&mut self, sample: &RateSample, window: &CongestionWindow) {
        if !self.paces_by_measured_rtt && sample.srtt.is_some() {
            self.start_pacing(sample.srtt, window);
        }
        let pacing = pacing_rate(self.bandwidth(), self.state.gains().0);
        if self.full.was_full || pacing > self.pacing {
            self.pacing = pacing;
        }
    }

    /// Returns the most bytes in flight (BBRUpdateMaxInflight).
    fn max_in_flight(&self) -> DataSize {
        let extra = self.aggregation.allowance(self.bandwidth());
        let path = self.path(self.bandwidth(), self.state.gains().1) + extra;
        let bursts = BURSTS * burst_segments(self.pacing, self.segment);
        let least = self.segments(bursts.max(WINDOW_MIN));
        path.max(least) + self.segments(if self.state == State::Up { 2 } else { 0 })
    }

    /// Sets the window (BBRSetCwnd).
    fn set_window(&self, sample: &RateSample, window: &mut CongestionWindow) {
        let most = self.max_in_flight();
        if self.full.was_full {
            window.cwnd = (window.cwnd + sample.acked).min(most);
        } else if window.cwnd < most || sample.delivered < self.segments(WINDOW_INITIAL) {
            window.cwnd += sample.acked;
        }
        let least = self.segments(WINDOW_MIN);
        let cap = match self.state {
            State::Startup => DataSize::from_bytes(u64::MAX),
            State::Drain | State::Down | State::Refill | State::Up => self.bounds.hi,
            State::Cruise => self.bounds.with_headroom(least),
            State::ProbeRtt => self.bounds.with_headroom(least).min(self.probe_rtt_window()),
        };
        window.cwnd = window.cwnd.max(least).min(cap.min(self.bounds.lo).max(least));
    }

    /// Saves the window before it falls for a reason that passes.
    fn save(&mut self, window: &CongestionWindow) {
        let falls = self.is_recovering || self.state == State::ProbeRtt;
        self.prior = if falls { self.prior.max(window.cwnd) } else { window.cwnd };
    }
}

impl Congestion for Bbr3 {
    /// Has no effect: BBR uses rate samples.
    fn handle_ack(&mut self, _: &Ack, _: &mut CongestionWindow) {}

    /// Saves the window. The threshold is unused, and the window changes with the samples.
    fn handle_loss(&mut self, _: DataSize, window: &mut CongestionWindow) {
        self.save(window);
        self.is_recovering = true;
    }

    fn handle_timeout(&mut self, flight: DataSize, window: &mut CongestionWindow) {
        self.handle_loss(flight, window);
    }

    fn pacing(&self) -> Option<Rate> {
        Some(self.pacing)
    }

    fn burst(&self) -> u64 {
        burst_segments(self.pacing, self.segment)
    }

    fn handle_open(&mut self, now: Time, round_trip: Option<TimeDelta>, window: &CongestionWindow) {
        self.round_trips = RoundTrips::new(now, round_trip);
        self.aggregation = AckAggregation::new(now);
        self.start_pacing(round_trip, window);
    }

    fn handle_sample(&mut self, sample: &RateSample, window: &mut CongestionWindow) {
        if self.is_recovering && sample.loss_state == LossState::Open {
            self.is_recovering = false;
            window.cwnd = window.cwnd.max(self.prior);
        }
        self.rounds.begins = false;
        if let Some(rate) = sample.rate {
            self.handle_round(sample, rate, window);
        }
        self.update_round_trips(sample, window);
        self.set_pacing(sample, window);
        self.set_window(sample, window);
    }

    fn is_self_limited(&self) -> bool {
        self.state == State::ProbeRtt
    }
}
