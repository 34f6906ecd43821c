//! BBR, version 1 (Cardwell et al., "BBR: Congestion-Based Congestion Control", 2016; as in Linux, `net/ipv4/tcp_bbr.c`).
//!
//! Two things about the path are measured: how fast its bottleneck delivers (BtlBw, the greatest delivery rate of ten round
//! trips) and how long it takes without queues (RTprop, the least round-trip time of ten seconds). The sender paces at
//! the first, times a gain, and keeps no more in flight than twice their product. It cannot see both at a time: more
//! bandwidth shows only when it sends more, the round-trip time only when it sends less. So it does each now and then.
//! A loss is no sign of anything; it only makes the sender careful for a round trip.
//!
//! ```text
//! STARTUP ── the pipe is full ──▶ DRAIN ── so is the flight, and no more ──▶ PROBE_BW ◀── 200 ms ──▶ PROBE_RTT
//! ```
//!
//! What of the kernel's is left out: `docs/tcp.md`.

mod aggregation;
mod bandwidth;
mod conservation;
mod cycle;
mod probe_rtt;
mod rounds;
mod startup;

use super::{Ack, Congestion, Sample, Settings, Window};
use aggregation::{Aggregation, Told};
use bandwidth::Bandwidth;
use conservation::{Advice, Conservation};
use cycle::{Conditions, Cycle};
use paceline_units::{DataSize, RandomStream, Rate, Streams, Time, TimeDelta, round_to_u64};
use probe_rtt::{Clearing, LeastRoundTrip, Step};
use rounds::Rounds;
use startup::FullPipe;

/// 2 / ln 2, the least gain with which the rate doubles each round trip (`bbr_high_gain`); and the gain that makes good
/// for it (`bbr_drain_gain`).
const HIGH_GAIN: f64 = 2.885;
const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;
/// Windows are twice what the path holds, for ACKs that are delayed and bunch (`bbr_cwnd_gain`).
const WINDOW_GAIN: f64 = 2.0;
/// It paces a little below the bandwidth, so that a queue may drain (`bbr_pacing_margin_percent`).
const MARGIN: f64 = 0.99;
/// The least window, in segments (`bbr_cwnd_min_target`).
const WINDOW_MIN: u64 = 4;
/// `TCP_INIT_CWND`, segments.
const WINDOW_INITIAL: u64 = 10;
/// The round-trip time that the first pace assumes where none is known (`bbr_init_pacing_rate_from_rtt`).
const ROUND_TRIP_ASSUMED: TimeDelta = TimeDelta::from_millis(1);
/// What leaves in one burst: a millisecond's worth (`sk_pacing_shift`), but one segment below this rate and two
/// above (`bbr_min_tso_rate`), and no more than an IP packet may have. Windows have room for three of them.
const BURST: TimeDelta = TimeDelta::from_millis(1);
const BURST_RATE: Rate = Rate::from_kbps(1_200);
const BURST_MAX: u64 = 65_535;
const BURSTS: u64 = 3;

#[derive(Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw(Cycle),
    ProbeRtt(Clearing),
}

#[derive(Debug)]
struct Bbr {
    segment: DataSize,
    random: RandomStream,
    mode: Mode,
    rounds: Rounds,
    bandwidth: Bandwidth,
    round_trip: LeastRoundTrip,
    full: FullPipe,
    aggregation: Aggregation,
    conservation: Conservation,
    pacing: Rate,
    /// The pace began from a round-trip time that was measured.
    paces_by_round_trip: bool,
}

pub(super) fn build(settings: Settings) -> Box<dyn Congestion> {
    Box::new(Bbr {
        segment: settings.segment,
        random: Streams::new(settings.seed).stream("bbr"),
        mode: Mode::Startup,
        rounds: Rounds::default(),
        bandwidth: Bandwidth::default(),
        round_trip: LeastRoundTrip::new(Time::ZERO, None),
        full: FullPipe::default(),
        aggregation: Aggregation::new(Time::ZERO),
        conservation: Conservation::new(),
        pacing: Rate::ZERO,
        paces_by_round_trip: false,
    })
}

/// The pace for a bandwidth.
fn pace(bandwidth: Rate, gain: f64) -> Rate {
    bandwidth.scale(gain * MARGIN)
}

/// What the path holds, times a gain, in whole segments: upwards, or small windows would shrink by themselves.
fn product(bandwidth: Rate, round_trip: TimeDelta, gain: f64, segment: DataSize) -> u64 {
    let bytes = (bandwidth * round_trip).as_bytes() as f64 * gain;
    round_to_u64(bytes).div_ceil(segment.as_bytes())
}

impl Bbr {
    fn gains(&self) -> (f64, f64) {
        match &self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw(cycle) => (cycle.gain(), WINDOW_GAIN),
            Mode::ProbeRtt(_) => (1.0, 1.0),
        }
    }

    fn segments(&self, count: u64) -> DataSize {
        DataSize::from_bytes(count * self.segment.as_bytes())
    }

    /// `bbr_inflight`, and with `extra` the window: product of bandwidth and round-trip time, times the gain; room for three
    /// bursts; an even number, so that no ACK waits; and two segments more in the phase that looks for more.
    fn in_flight(&self, gain: f64, extra: DataSize) -> DataSize {
        let path = self
            .round_trip
            .least
            .map_or(WINDOW_INITIAL, |least| product(self.bandwidth.rate(), least, gain, self.segment));
        let segments = path + extra.as_bytes() / self.segment.as_bytes() + BURSTS * self.burst();
        let probing = matches!(&self.mode, Mode::ProbeBw(cycle) if cycle.probes());
        self.segments(segments.next_multiple_of(2) + if probing { 2 } else { 0 })
    }

    fn measure(&mut self, sample: &Sample, window: &Window) {
        self.rounds.begins = false;
        let Some((before, rate)) = sample.rate else { return };
        self.rounds.handle_ack(before, sample.delivered);
        if self.rounds.begins {
            self.conservation.handle_round();
        }
        self.bandwidth.handle_sample(rate, sample.limited, self.rounds.count);
        self.aggregation.handle_ack(Told {
            now: sample.now,
            acked: sample.acked,
            bandwidth: self.bandwidth.rate(),
            round_begins: self.rounds.begins,
            cwnd: window.cwnd,
            segment: self.segment,
        });
    }

    fn begin_cycle(&mut self, now: Time) {
        self.mode = Mode::ProbeBw(Cycle::begin(now, &mut self.random));
    }

    /// STARTUP to DRAIN to PROBE_BW, and within it.
    fn go_on(&mut self, sample: &Sample) {
        let drained = self.in_flight(1.0, DataSize::ZERO);
        let conditions = Conditions {
            now: sample.now,
            least: self.round_trip.least.unwrap_or(TimeDelta::MAX),
            losses: sample.lost > DataSize::ZERO,
            pipe: sample.pipe_before,
            pipe_next: sample.pipe_before + self.segments(self.burst()),
            probing: self.in_flight(self.gains().0, DataSize::ZERO),
            drained,
        };
        if let Mode::ProbeBw(cycle) = &mut self.mode {
            cycle.handle_ack(conditions);
        }
        if self.rounds.begins && !sample.limited {
            self.full.handle_round(self.bandwidth.rate());
        }
        if matches!(self.mode, Mode::Startup) && self.full.is_reached() {
            self.mode = Mode::Drain;
        }
        if matches!(self.mode, Mode::Drain) && sample.pipe <= self.in_flight(1.0, DataSize::ZERO) {
            self.begin_cycle(sample.now);
        }
    }

    /// RTprop, and PROBE_RTT when it has become old.
    fn look_for_round_trip(&mut self, sample: &Sample, window: &mut Window) {
        let old = self.round_trip.handle_ack(sample.now, sample.round_trip);
        if old && !matches!(self.mode, Mode::ProbeRtt(_)) {
            self.conservation.save(window.cwnd, false);
            self.mode = Mode::ProbeRtt(Clearing::default());
        }
        let least_window = self.segments(WINDOW_MIN);
        let Mode::ProbeRtt(clearing) = &mut self.mode else { return };
        match clearing.handle_ack(sample.now, sample.pipe <= least_window, self.rounds.begins) {
            Step::Wait => {}
            Step::Cleared => self.rounds.restart(sample.delivered),
            Step::Over => {
                self.round_trip.renew(sample.now);
                window.cwnd = window.cwnd.max(self.conservation.prior());
                if self.full.is_reached() {
                    self.begin_cycle(sample.now);
                } else {
                    self.mode = Mode::Startup;
                }
            }
        }
    }

    /// The pace of the first window, `gain` times a window each round trip.
    fn begin_pacing(&mut self, round_trip: Option<TimeDelta>, window: &Window) {
        self.paces_by_round_trip = round_trip.is_some();
        self.pacing = pace(Rate::of(window.cwnd, round_trip.unwrap_or(ROUND_TRIP_ASSUMED)), HIGH_GAIN);
    }

    /// `bbr_set_pacing_rate`: until the pipe is full the pace does not fall.
    fn set_pacing(&mut self, gain: f64, sample: &Sample, window: &Window) {
        if !self.paces_by_round_trip && sample.srtt.is_some() {
            self.begin_pacing(sample.srtt, window);
        }
        let pacing = pace(self.bandwidth.rate(), gain);
        if self.full.is_reached() || pacing > self.pacing {
            self.pacing = pacing;
        }
    }

    /// `bbr_set_cwnd`: it grows by what is delivered up to its target, and falls to it at once where the pipe is full.
    fn set_window(&mut self, gain: f64, sample: &Sample, window: &mut Window) {
        if sample.acked > DataSize::ZERO {
            if self.conservation.begins(sample) {
                self.rounds.restart(sample.delivered);
            }
            window.cwnd = match self.conservation.handle_ack(sample, window.cwnd, self.segment) {
                Advice::Conserve(cwnd) => cwnd,
                Advice::Go(cwnd) => self.grown(gain, sample, cwnd).max(self.segments(WINDOW_MIN)),
            };
        }
        if matches!(self.mode, Mode::ProbeRtt(_)) {
            window.cwnd = window.cwnd.min(self.segments(WINDOW_MIN));
        }
    }

    fn grown(&self, gain: f64, sample: &Sample, cwnd: DataSize) -> DataSize {
        if self.full.is_reached() {
            let extra = self.aggregation.allowance(self.bandwidth.rate());
            return (cwnd + sample.acked).min(self.in_flight(gain, extra));
        }
        let grows = cwnd < self.in_flight(gain, DataSize::ZERO) || sample.delivered < self.segments(WINDOW_INITIAL);
        if grows { cwnd + sample.acked } else { cwnd }
    }

    fn save(&mut self, window: &Window) {
        let lowered = matches!(self.mode, Mode::ProbeRtt(_));
        self.conservation.save(window.cwnd, lowered);
    }
}

impl Congestion for Bbr {
    /// It is told by samples.
    fn handle_ack(&mut self, _: &Ack, _: &mut Window) {}

    /// A loss leaves the threshold alone; the window follows with the samples.
    fn handle_loss(&mut self, _: DataSize, window: &mut Window) {
        self.save(window);
    }

    fn handle_timeout(&mut self, _: DataSize, window: &mut Window) {
        self.save(window);
        self.conservation.handle_timeout();
        self.full.handle_timeout();
    }

    fn pacing(&self) -> Option<Rate> {
        Some(self.pacing)
    }

    /// `bbr_tso_segs_goal`, in segments.
    fn burst(&self) -> u64 {
        let least = if self.pacing < BURST_RATE { 1 } else { 2 };
        ((self.pacing * BURST).as_bytes().min(BURST_MAX) / self.segment.as_bytes()).max(least)
    }

    fn handle_open(&mut self, now: Time, round_trip: Option<TimeDelta>, window: &Window) {
        self.round_trip = LeastRoundTrip::new(now, round_trip);
        self.aggregation = Aggregation::new(now);
        self.begin_pacing(round_trip, window);
    }

    fn handle_sample(&mut self, sample: &Sample, window: &mut Window) {
        self.measure(sample, window);
        self.go_on(sample);
        self.look_for_round_trip(sample, window);
        let (pacing_gain, window_gain) = self.gains();
        self.set_pacing(pacing_gain, sample, window);
        self.set_window(window_gain, sample, window);
    }

    fn holds_back(&self) -> bool {
        matches!(self.mode, Mode::ProbeRtt(_))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NO_THRESHOLD, Repair};
    use super::*;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;
    const BYTES: fn(u64) -> DataSize = DataSize::from_bytes;
    const SEGMENT: u64 = 1000;
    const LINK: Rate = Rate::from_kbps(10_000);

    fn opened() -> (Box<dyn Congestion>, Window) {
        let segment = BYTES(SEGMENT);
        let settings = Settings { segment, slow_start_limit: None, hystart: false, kernel_windows: false, seed: 1 };
        let window = Window { cwnd: BYTES(10 * SEGMENT), ssthresh: NO_THRESHOLD };
        let mut bbr = build(settings);
        bbr.handle_open(Time::ZERO, Some(MS(40)), &window);
        (bbr, window)
    }

    /// An ACK of two segments at this rate, 40 ms after they left, with the whole path full.
    fn sample(now: Time, delivered: u64, rate: Rate, limited: bool) -> Sample {
        let in_round = (LINK * MS(40)).as_bytes();
        Sample {
            now,
            acked: BYTES(2 * SEGMENT),
            lost: BYTES(0),
            delivered: BYTES(delivered),
            rate: Some((BYTES(delivered.saturating_sub(in_round)), rate)),
            limited,
            round_trip: Some(MS(40)),
            srtt: Some(MS(40)),
            pipe_before: BYTES(in_round),
            pipe: BYTES(in_round - 2 * SEGMENT),
            repair: Repair::None,
        }
    }

    #[test]
    fn ten_megabits_and_forty_milliseconds_hold_fifty_thousand_bytes() {
        assert_eq!(product(LINK, MS(40), 1.0, BYTES(SEGMENT)), 50);
        assert_eq!(product(LINK, MS(40), 2.0, BYTES(SEGMENT)), 100);
        assert_eq!(product(LINK, MS(40), 0.75, BYTES(SEGMENT)), 38, "upwards from 37.5");
        assert_eq!(pace(LINK, 1.25), Rate::from_kbps(12_375));
    }

    #[test]
    fn it_begins_at_a_window_each_round_trip_times_the_high_gain() {
        let (bbr, _) = opened();
        // 10 000 B in 40 ms are 2 Mbit/s; times 2.885, less 1 %.
        assert_eq!(bbr.pacing(), Some(Rate::from_bps(5_712_300)));
    }

    #[test]
    fn a_steady_rate_ends_startup_and_the_window_settles_at_twice_the_path() {
        let (mut bbr, mut window) = opened();
        let (mut now, mut paces, mut windows) = (Time::ZERO + MS(40), Vec::new(), Vec::new());
        // Two segments each 1.6 ms are 10 Mbit/s; 2 s of that.
        for n in 1..=1250 {
            // 22 segments wait in the queue; once, for a moment, they do not.
            let pipe = BYTES(if (301..=310).contains(&n) { 50 } else { 72 } * SEGMENT);
            let sample = Sample { pipe_before: pipe, pipe, ..sample(now, 2 * SEGMENT * n, LINK, false) };
            bbr.handle_sample(&sample, &mut window);
            now += TimeDelta::from_micros(1600);
            paces.push(bbr.pacing().unwrap_or_default());
            windows.push(window.cwnd.as_bytes() / SEGMENT);
        }
        // The first round brings 10 Mbit/s, and the three after it no more; DRAIN lasts until the queue is gone.
        let of = |gain| paces.iter().filter(|at| **at == pace(LINK, gain)).count();
        assert_eq!((of(HIGH_GAIN), of(DRAIN_GAIN)), (75, 225));
        // Then 1.52 s of cycles: eight phases of 41.6 ms each, 26 ACKs.
        assert_eq!(of(0.75) + of(1.0) + of(1.25), 950);
        assert!((75..=150).contains(&of(0.75)) && (75..=150).contains(&of(1.25)), "{} {}", of(0.75), of(1.25));
        // 100 segments, and 3 bursts of 2; two more while it probes, and two for the ACKs of two.
        let late = &windows[windows.len() - 500..];
        assert_eq!((late.iter().min(), late.iter().max()), (Some(&108), Some(&110)));
        assert_eq!(window.ssthresh, NO_THRESHOLD);
    }

    #[test]
    fn what_the_application_limits_neither_lowers_the_pace_nor_ends_startup() {
        let (mut bbr, mut window) = opened();
        let mut now = Time::ZERO + MS(40);
        for n in 1..=1250 {
            bbr.handle_sample(&sample(now, 2 * SEGMENT * n, Rate::from_kbps(3_000), n > 1), &mut window);
            now += TimeDelta::from_micros(1600);
        }
        assert_eq!(bbr.pacing(), Some(pace(Rate::from_kbps(3_000), HIGH_GAIN)));
        let (mut bbr, mut window) = opened();
        let mut now = Time::ZERO + MS(40);
        for n in 1..=1250 {
            let limited = n > 500;
            let rate = if limited { Rate::from_kbps(1_000) } else { LINK };
            bbr.handle_sample(&sample(now, 2 * SEGMENT * n, rate, limited), &mut window);
            now += TimeDelta::from_micros(1600);
        }
        let pacing = bbr.pacing().unwrap_or_default();
        assert!((pace(LINK, 0.75)..=pace(LINK, 1.25)).contains(&pacing), "{pacing}");
    }
}
