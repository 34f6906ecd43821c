// SPDX-License-Identifier: MIT OR Apache-2.0
//! The test cases of the draft's appendix A, over a path of one queue. Each packet is acknowledged.

use super::*;
use crate::flow::tcp::congestion::NO_THRESHOLD;
use crate::flow::tcp::delivery_rate::DeliveryRateEstimator;
use crate::flow::tcp::scoreboard::Scoreboard;
use std::collections::VecDeque;

const SEGMENT: u64 = 1000;
const MBPS: fn(f64) -> Rate = |mbps| Rate::from_bps_f64(1e6 * mbps);
const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;
const S: fn(f64) -> Time = Time::from_secs_f64;

/// A sender of endless data, or of data at a rate, and its path. Lost segments are not sent again.
struct Flow {
    bbr: Bbr3,
    window: CongestionWindow,
    scoreboard: Scoreboard,
    delivery: DeliveryRateEstimator,
    now: Time,
    next_sent: Time,
    capacity: Rate,
    rtt: TimeDelta,
    buffer: DataSize,
    /// Tokens of a policer of this rate, with a bucket of 20 segments.
    policer: Option<(Rate, f64, Time)>,
    /// Of every so many segments one is lost.
    loses_each: Option<u64>,
    /// The application's rate, and the time at which its next segment is ready.
    application: Option<(Rate, Time)>,
    free: Time,
    /// Arrival of its ACK, number and send time of each segment in the network.
    network: VecDeque<(Time, u64, Time)>,
    received: Vec<bool>,
    recovers_until: u64,
    lost: u64,
    /// The time at which each state began.
    states: Vec<(Time, State)>,
}

impl Flow {
    fn new(capacity: Rate, rtt: TimeDelta) -> Self {
        let segment = DataSize::from_bytes(SEGMENT);
        let window = CongestionWindow { cwnd: DataSize::from_bytes(10 * SEGMENT), ssthresh: NO_THRESHOLD };
        let (mut bbr, mut delivery) = (Bbr3::new(segment, 1), DeliveryRateEstimator::new());
        bbr.handle_open(Time::ZERO, Some(rtt), &window);
        delivery.handle_round_trip(rtt);
        Self {
            bbr,
            window,
            scoreboard: Scoreboard::new(SEGMENT, u64::MAX, false),
            delivery,
            now: Time::ZERO,
            next_sent: Time::ZERO,
            capacity,
            rtt,
            buffer: (capacity * (rtt * 10)).max(DataSize::from_bytes(50 * SEGMENT)),
            policer: None,
            loses_each: None,
            application: None,
            free: Time::ZERO,
            network: VecDeque::new(),
            received: Vec::new(),
            recovers_until: 0,
            lost: 0,
            states: vec![(Time::ZERO, State::Startup)],
        }
    }

    fn state(&self) -> State {
        self.bbr.state
    }

    fn run_until(&mut self, end: Time) {
        self.run_while(end, |_| true);
    }

    /// Runs until a state begins, at most for a minute.
    fn run_into(&mut self, state: State) {
        self.run_while(self.now + TimeDelta::from_secs(60), |flow| flow.state() != state);
        assert_eq!(self.state(), state, "{:?}", &self.states[self.states.len().saturating_sub(5)..]);
    }

    fn run_while(&mut self, end: Time, goes_on: impl Fn(&Self) -> bool) {
        while goes_on(self) {
            let room = self.scoreboard.pipe() + SEGMENT <= self.window.cwnd.as_bytes();
            let ready = self.application.map_or(Time::ZERO, |(_, ready)| ready);
            let (ack, sent) = (self.network.front().map(|(at, ..)| *at), self.next_sent.max(ready).max(self.now));
            if room && ready > self.now {
                self.delivery.mark_app_limited(self.scoreboard.pipe());
            }
            let next = if room { ack.unwrap_or(Time::MAX).min(sent) } else { ack.unwrap_or(Time::MAX) };
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            if ack == Some(next) { self.acknowledge() } else { self.send() }
        }
    }

    fn send(&mut self) {
        let (now, number, size) = (self.now, self.scoreboard.end(), DataSize::from_bytes(SEGMENT));
        self.delivery.handle_sent(now, number, self.scoreboard.pipe() + SEGMENT, self.scoreboard.pipe() == 0);
        self.scoreboard.handle_sent(now);
        self.received.push(false);
        self.next_sent = self.next_sent.max(now) + size / self.bbr.pacing;
        if let Some((rate, ready)) = &mut self.application {
            *ready += size / *rate;
        }
        let mut is_lost = self.loses_each.is_some_and(|each| number.is_multiple_of(each));
        if let Some((rate, tokens, last)) = &mut self.policer {
            *tokens = (*tokens + (*rate * (now - *last)).as_bytes() as f64).min(20_000.0);
            *last = now;
            is_lost |= *tokens < SEGMENT as f64;
            *tokens -= if is_lost { 0.0 } else { SEGMENT as f64 };
        }
        let wait = (self.free - now).max(TimeDelta::ZERO);
        if is_lost || self.capacity * wait > self.buffer {
            return;
        }
        self.free = now + wait + size / self.capacity;
        self.network.push_back((self.free + self.rtt, number, now));
    }

    fn acknowledge(&mut self) {
        let Some((now, number, sent)) = self.network.pop_front() else { return };
        let pipe_before = self.scoreboard.pipe();
        let cwnd_limited = pipe_before + SEGMENT > self.window.cwnd.as_bytes();
        self.received[number as usize] = true;
        let mut up_to = self.scoreboard.base();
        while self.received.get(up_to as usize) == Some(&true) {
            up_to += 1;
        }
        let sack = (number * SEGMENT, (number + 1) * SEGMENT);
        let summary = self.scoreboard.handle_ack(up_to * SEGMENT, [sack].into_iter().filter(|_| number >= up_to));
        self.lost += summary.lost / SEGMENT;
        if summary.lost > 0 && number >= self.recovers_until {
            self.recovers_until = self.scoreboard.end();
            self.bbr.handle_loss(DataSize::ZERO, &mut self.window);
        }
        let measured = self.delivery.handle_ack(now, &summary, self.scoreboard.base());
        let bytes = DataSize::from_bytes;
        self.bbr.handle_sample(
            &RateSample {
                now,
                acked: bytes(measured.acked),
                lost: bytes(summary.lost),
                delivered: bytes(self.delivery.delivered()),
                rate: measured.rate.map(|(before, rate)| (bytes(before), rate)),
                app_limited: measured.app_limited,
                pipe_sent: bytes(measured.pipe_sent),
                lost_since: bytes(measured.lost_since),
                cwnd_limited,
                round_trip: Some(now - sent),
                srtt: Some(now - sent),
                pipe_before: bytes(pipe_before),
                pipe: bytes(self.scoreboard.pipe()),
                loss_state: if number < self.recovers_until { LossState::Recovery } else { LossState::Open },
            },
            &mut self.window,
        );
        if self.bbr.is_self_limited() {
            self.delivery.mark_app_limited(self.scoreboard.pipe());
        }
        if self.states.last().is_none_or(|(_, state)| *state != self.state()) {
            self.states.push((now, self.state()));
        }
    }

    /// Returns the rate delivered until this time.
    fn rate_until(&mut self, end: Time) -> Rate {
        let (from, before) = (self.now, self.delivery.delivered());
        self.run_until(end);
        Rate::from_size_and_time(DataSize::from_bytes(self.delivery.delivered() - before), end - from)
    }

    fn path(&self) -> DataSize {
        self.capacity * self.rtt
    }
}

#[track_caller]
fn near(found: Rate, expected: Rate, share: f64) {
    let ratio = found.as_bps_f64() / expected.as_bps_f64();
    assert!((ratio - 1.0).abs() <= share, "{found} for {expected}");
}

/// Paths of 64 kbit/s to 1 Gbit/s, 1 ms to 1 s.
const PATHS: [(f64, i64); 5] = [(0.064, 40), (2.0, 1000), (10.0, 40), (100.0, 10), (1000.0, 1)];

/// A.1 and A.3: three rounds without growth end STARTUP, and DRAIN ends when the queue is drained.
#[test]
fn startup_ends_on_a_plateau_and_drain_when_the_queue_is_empty() {
    for (mbps, ms) in PATHS {
        let mut flow = Flow::new(MBPS(mbps), MS(ms));
        flow.run_into(State::Drain);
        near(flow.bbr.max_bandwidth(), flow.capacity, 0.02);
        assert!(flow.bbr.full.is_full && flow.bbr.full.rounds == FULL_ROUNDS, "{mbps}");
        assert_eq!(flow.lost, 0);
        flow.run_while(flow.now + TimeDelta::from_secs(60), |flow| flow.state() == State::Drain);
        let drained = flow.path().max(DataSize::from_bytes(4 * SEGMENT)).as_bytes() + 2 * SEGMENT;
        let is_late = flow.bbr.rounds.count > flow.bbr.drain_began + DRAIN_ROUNDS;
        // With a round trip of 1 s, PROBE_RTT comes first.
        assert!(
            is_late || flow.state() == State::ProbeRtt || flow.scoreboard.pipe() <= drained,
            "{mbps}: {} of {drained}",
            flow.scoreboard.pipe()
        );
    }
}

/// A.2: losses end STARTUP although the application limits the flow, and bound the bytes in flight.
#[test]
fn startup_ends_on_losses_of_a_limited_flow() {
    let mut flow = Flow::new(MBPS(10.0), MS(40));
    flow.application = Some((MBPS(5.0), Time::ZERO));
    flow.run_until(S(1.0));
    assert_eq!((flow.state(), flow.bbr.bounds.hi), (State::Startup, DataSize::from_bytes(u64::MAX)));
    flow.loses_each = Some(3);
    // Nothing waits in the queue, so that DRAIN and DOWN end at once.
    flow.run_into(State::Cruise);
    assert!(flow.now < S(1.3) && flow.bbr.full.was_full && flow.bbr.bounds.hi < flow.capacity * MS(80));
}

/// A.4: the bandwidth falls by 10 % as DRAIN begins, so that the queue outlasts it.
#[test]
fn drain_ends_after_three_rounds() {
    let mut flow = Flow::new(MBPS(10.0), MS(40));
    flow.run_into(State::Drain);
    let began = flow.bbr.rounds.count;
    flow.capacity = MBPS(4.0);
    flow.run_into(State::Down);
    assert_eq!(flow.bbr.rounds.count, began + DRAIN_ROUNDS + 1);
    assert!(flow.scoreboard.pipe() > flow.path().as_bytes());
}

/// A.5 and A.8: a probe that finds no more bandwidth ends, its queue is drained, and the flow cruises.
#[test]
fn a_probe_ends_on_a_plateau() {
    let mut flow = Flow::new(MBPS(10.0), MS(40));
    flow.run_into(State::Up);
    flow.run_into(State::Down);
    assert!(flow.bbr.full.is_full && flow.lost == 0 && !flow.bbr.was_too_high);
    flow.run_into(State::Cruise);
    assert!(flow.scoreboard.pipe() <= flow.path().as_bytes());
    let times: Vec<Time> = flow.states.iter().filter(|(_, state)| *state == State::Refill).map(|(at, _)| *at).collect();
    assert_eq!(times.len(), 1);
    flow.run_into(State::Refill);
    let wait = flow.now - flow.bbr.probed;
    // 50 segments are in flight, so that the probes follow each other after 50 rounds at the latest: 2 s.
    assert!((MS(1900)..=MS(3100)).contains(&wait), "{wait}");
}

/// A.6 and A.21: losses end a probe, and `hi` falls to what was in flight.
#[test]
fn losses_end_a_probe_and_lower_the_bound() {
    let mut flow = Flow::new(MBPS(10.0), MS(40));
    flow.buffer = flow.capacity * MS(8);
    flow.run_until(S(20.0));
    let path = flow.path().as_bytes() as f64;
    let hi = flow.bbr.bounds.hi.as_bytes() as f64 / path;
    assert!((1.0..1.4).contains(&hi), "{hi} paths");
    assert!(flow.lost > 0);
    let lost = flow.lost as f64 / flow.received.len() as f64;
    assert!(lost < 0.02, "{lost}");
    near(flow.rate_until(S(40.0)), MBPS(10.0), 0.12);
}

/// A.7: without losses a limited flow stays in STARTUP, and in UP.
#[test]
fn a_limited_flow_without_losses_goes_on_probing() {
    let mut flow = Flow::new(MBPS(10.0), MS(40));
    flow.application = Some((MBPS(2.0), Time::ZERO));
    flow.run_until(S(4.0));
    assert_eq!(flow.states.len(), 1);
    let mut flow = Flow::new(MBPS(10.0), MS(40));
    flow.run_into(State::Up);
    flow.application = Some((MBPS(2.0), flow.now));
    let until = S(4.9);
    assert!(flow.now < S(4.0));
    flow.run_until(until);
    assert_eq!(flow.state(), State::Up);
}

/// A.9: the queue of another flow keeps DOWN from ending by the bytes in flight; the timer leads to REFILL.
#[test]
fn the_timer_ends_down() {
    let mut flow = Flow::new(MBPS(2.0), MS(40));
    flow.run_into(State::Up);
    flow.rtt = MS(120);
    flow.run_into(State::Down);
    flow.run_into(State::Refill);
    assert!(flow.states.iter().rev().take(2).map(|(_, state)| *state).eq([State::Refill, State::Down]));
}

/// A.10 and A.20: each 5 s the window is halved for 200 ms, also in STARTUP, to which the flow returns.
#[test]
fn round_trip_times_are_probed_each_five_seconds() {
    let mut flow = Flow::new(MBPS(10.0), MS(40));
    flow.run_into(State::ProbeRtt);
    assert!((S(5.0)..=S(5.2)).contains(&flow.now), "{}", flow.now);
    let began = flow.now;
    flow.run_until(began + MS(150));
    assert!(flow.scoreboard.pipe() <= flow.path().as_bytes() / 2 + 2 * SEGMENT);
    flow.run_into(State::Cruise);
    assert!((MS(200)..=MS(320)).contains(&(flow.now - began)), "{}", flow.now - began);
    let mut flow = Flow::new(MBPS(10.0), MS(40));
    flow.application = Some((MBPS(8.0), Time::ZERO));
    // A standing queue, so that the minimum is not seen again.
    flow.run_until(S(1.0));
    flow.rtt = MS(45);
    flow.run_into(State::ProbeRtt);
    flow.run_into(State::Startup);
}

/// A.11: a flow that was idle has measured the path.
#[test]
fn no_round_trip_probe_follows_a_pause() {
    let mut flow = Flow::new(MBPS(10.0), MS(40));
    flow.run_until(S(3.0));
    flow.application = Some((MBPS(5.0), S(9.0)));
    flow.run_until(S(10.0));
    assert!(flow.states.iter().all(|(_, state)| *state != State::ProbeRtt));
}

/// A.14: less than a packet is in flight on an empty path.
#[test]
fn a_path_of_less_than_a_packet_is_used() {
    let mut flow = Flow::new(MBPS(0.2), MS(20));
    flow.buffer = DataSize::from_bytes(20 * SEGMENT);
    flow.run_until(S(20.0));
    near(flow.rate_until(S(60.0)), MBPS(0.2), 0.05);
    assert!(flow.scoreboard.pipe() <= 12 * SEGMENT);
}

/// A.15: ten times the bandwidth is found by the doubling growth of probes.
#[test]
fn more_bandwidth_is_found() {
    let mut flow = Flow::new(MBPS(2.0), MS(40));
    flow.run_until(S(10.0));
    flow.capacity = MBPS(20.0);
    flow.run_until(S(25.0));
    near(flow.bbr.bandwidth(), MBPS(20.0), 0.05);
}

/// A.16: a tenth of the bandwidth is known after two probes.
#[test]
fn less_bandwidth_is_found_within_two_cycles() {
    let mut flow = Flow::new(MBPS(20.0), MS(40));
    flow.run_until(S(10.0));
    flow.capacity = MBPS(2.0);
    flow.buffer = MBPS(20.0) * MS(40);
    for _ in 0..2 {
        flow.run_into(State::Up);
        flow.run_into(State::Down);
    }
    flow.run_into(State::Cruise);
    near(flow.bbr.bandwidth(), MBPS(2.0), 0.1);
}

/// A.17: a policer of 2 Mbit/s on a path of 10 costs losses in probes alone.
#[test]
fn a_policer_bounds_the_rate() {
    let mut flow = Flow::new(MBPS(10.0), MS(40));
    flow.policer = Some((MBPS(2.0), 20_000.0, Time::ZERO));
    flow.run_until(S(10.0));
    let (lost, sent) = (flow.lost, flow.received.len());
    near(flow.rate_until(S(60.0)), MBPS(2.0), 0.2);
    let share = (flow.lost - lost) as f64 / (flow.received.len() - sent) as f64;
    assert!(share < 0.08, "{share}");
}

/// A.22: a flow that becomes limited in REFILL probes, and keeps its bandwidth.
#[test]
fn a_flow_that_becomes_limited_keeps_its_bandwidth() {
    let mut flow = Flow::new(MBPS(10.0), MS(40));
    flow.run_into(State::Refill);
    flow.application = Some((MBPS(1.0), flow.now));
    flow.run_into(State::Up);
    near(flow.bbr.max_bandwidth(), MBPS(10.0), 0.03);
}
