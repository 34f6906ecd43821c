//! GCC of early 2013, as "Experimental Investigation of the Google Congestion Control for Real-Time Flows" (FhMN 2013)
//! describes it: a static threshold at the receiver, REMBs only while its rate falls, a sender that grows until one comes.
//!
//! ```text
//! receiver:  packets -> FrameGroups -> TwoStateKalman -> OveruseDetector -> RegionControl -> REMB, falls only
//!                        timestamps     1/C and m          T, 100 ms  ^      |    ^
//!                                                     25 or 12.5 ms   '------'    IncomingRate R, 500 ms
//! sender:    receiver reports -> LossController with TFRC -> A_s (eq. 1);  at a REMB: A_s = min(A_s, A_r) (eq. 2)
//! ```
//!
//! What the paper leaves open is taken from libwebrtc of March 2013; `docs/algorithms/gcc-2013.md` says what.

use super::{Alpha, Growth, RateState, RegionConfig, RegionEstimator, RembTimer};
use crate::blocks::{Departure, FrameGroups, IncomingRate, LossConfig, LossController, TwoStateConfig, rounded};
use crate::{
    Arrival, Config, Controller, Decision, Entry, FeedbackKind, Fields, MediaKind, Message, PacketKind, ReceiveHalf,
    ReceiverReport, SendHalf, Setup, SignalSpec, Signals,
};
use paceline_units::{Ecn, Rate, RemoteTime, StreamId, Time, TimeDelta};

/// `gcc-2013`.
pub(crate) fn entry() -> Entry {
    const SUMMARY: &str =
        "GCC of 2013: two-state Kalman filter, static threshold by region, REMB for falls, TFRC floor";
    const SOURCE: &str = "De Cicco, Carlucci, Mascolo: Experimental Investigation of the Google Congestion Control for Real-Time Flows (FhMN 2013); libwebrtc of March 2013";
    Entry::new("gcc-2013", SUMMARY, SOURCE, Gcc2013Config::default())
}

/// Every number of GCC 2013. `Default` is the paper, and libwebrtc of March 2013 where that is silent.
#[derive(Clone, Debug, PartialEq)]
pub struct Gcc2013Config {
    /// Arrivals are rounded to this.
    pub clock: TimeDelta,
    /// The arrival-time filter.
    pub kalman: TwoStateConfig,
    /// The threshold where the maximum is unknown, ms; half of it elsewhere.
    pub threshold_ms: f64,
    /// How long over-use must last, ms.
    pub overuse_ms: f64,
    /// The decrease factor near the maximum, and elsewhere.
    pub alpha: (f64, f64),
    /// Whether growth after Hold begins where the incoming rate was.
    pub recovery: bool,
    /// No step ends above this many times the incoming rate.
    pub headroom: f64,
    /// Round-trip time that the receiver assumes.
    pub rtt: TimeDelta,
    /// Window of the incoming rate, ms.
    pub window_ms: f64,
    /// Least interval of REMBs, ms, unless the rate falls by more than 3 %.
    pub remb_ms: f64,
    /// What REMBs tell.
    pub remb_rule: RembRule,
    /// Whether a REMB bounds `A_s` until the next.
    pub remb_lasts: bool,
    /// The loss-based controller.
    pub loss: LossConfig,
    /// Pacing rate over target; none: packets leave as they are made.
    pub pacing_factor: Option<f64>,
}

impl Default for Gcc2013Config {
    fn default() -> Self {
        Self {
            clock: TimeDelta::from_millis(1),
            kalman: TwoStateConfig::Y2013,
            threshold_ms: 25.0,
            overuse_ms: 100.0,
            alpha: (0.95, 0.9),
            recovery: true,
            headroom: 1.5,
            rtt: TimeDelta::from_millis(200),
            window_ms: 500.0,
            remb_ms: 1000.0,
            remb_rule: RembRule::Decrease,
            remb_lasts: false,
            loss: LossConfig::Y2013,
            pacing_factor: None,
        }
    }
}

impl Config for Gcc2013Config {
    const SIGNALS: (&'static [SignalSpec], &'static [SignalSpec]) = (
        &[
            SignalSpec::series("A_s", "bit/s"),
            SignalSpec::series("A_r received", "bit/s"),
            SignalSpec::series("f_l", ""),
        ],
        RegionEstimator::SIGNALS,
    );

    fn fields(&mut self, fields: &mut Fields<'_>) {
        fields
            .millis("clock_ms", (0.0, 100.0), &mut self.clock)
            .says("arrivals are rounded to this: libwebrtc counts whole milliseconds; 0: as they are");
        fields.block(
            &mut self.kalman,
            &[
                ("q_slope", "frame of 33.3 ms (OverUseDetectorOptions)"),
                ("q_offset", "frame of 33.3 ms (OverUseDetectorOptions)"),
                ("scale_noise", " (UpdateKalman); 0: it is per frame, as in 2015"),
                ("cap_keeps_sign", " (UpdateKalman): 0; it keeps its sign, as in 2015: 1"),
                ("variance_min", " (UpdateNoiseEstimate)"),
                ("learns_within", " (UpdateKalman): 1; while the detector says normal, as in 2015: 0"),
            ],
        );
        fields.number("threshold_ms", "ms", (0.0, 1e4), &mut self.threshold_ms).says(
            "threshold on min(n, 60)·m where the maximum is unknown; half of it elsewhere (SetRateControlRegion)",
        );
        fields
            .number("overuse_ms", "ms", (0.0, 1e4), &mut self.overuse_ms)
            .says("how long over-use must last (kOverUsingTimeThreshold)");
        fields
            .number("alpha_near", "", (0.1, 1.0), &mut self.alpha.0)
            .says("share of R kept in a decrease near the maximum, eq. 3 (ChangeRegion)");
        fields
            .number("alpha_far", "", (0.1, 1.0), &mut self.alpha.1)
            .says("share of R kept in a decrease elsewhere, eq. 3 (ChangeRegion)");
        fields.flag("recovery", &mut self.recovery).says(
            "growth after Hold begins at alpha times the highest R of that time (ChangeBitRate): 1; where it was: 0",
        );
        fields
            .number("headroom", "", (1.0, 100.0), &mut self.headroom)
            .says("no step ends above this many times R, section 2.2");
        fields
            .millis("rtt_ms", (0.0, 1e4), &mut self.rtt)
            .says("round-trip time that a receiver assumes (kDefaultRttMs)");
        fields.number("window_ms", "ms", (10.0, 1e4), &mut self.window_ms).says("window of R, eq. 3");
        fields
            .number("remb_ms", "ms", (10.0, 1e5), &mut self.remb_ms)
            .says("least interval of REMBs but for a fall of 3 %, section 2.2");
        fields.choice("remb_rule", &[RembRule::Fall, RembRule::Decrease, RembRule::Always], &mut self.remb_rule).says(
            "REMBs go out while A_r decreases, section 2.2, that is, in the state of that name or when it is lower: 1; only when it is lower: 0; in any case, as in libwebrtc: 2",
        );
        fields
            .flag("remb_lasts", &mut self.remb_lasts)
            .says("a REMB lowers A_s when it comes, eq. 2: 0; and bounds it until the next, as in libwebrtc: 1");
        fields.block(
            &mut self.loss,
            &[
                ("loss_low", ", eq. 1"),
                ("loss_high", ", eq. 1"),
                ("loss_increase", ", eq. 1"),
                ("loss_step", ", eq. 1"),
                ("loss_decrease", ", eq. 1"),
                ("tfrc", ", eq. 1: 1; without that: 0"),
            ],
        );
        let mut factor = self.pacing_factor.unwrap_or(0.0);
        fields.number("pacing_factor", "", (0.0, 10.0), &mut factor).says(
            "pacing rate over target; none (0): packets leave as they are made, as Chromium's did (video_leaky_bucket was off)",
        );
        self.pacing_factor = (factor > 0.0).then_some(factor.max(1.0));
    }

    fn build(&self, setup: &Setup) -> Controller {
        let (near, far) = self.alpha;
        let rate = RegionConfig {
            growth: Growth::Response,
            alpha: Alpha::ByRegion { near, far },
            recovery: self.recovery,
            headroom: self.headroom,
            rtt: self.rtt,
        };
        let estimator = RegionEstimator::new(self.kalman, self.overuse_ms, self.threshold_ms, rate, setup.min);
        Controller {
            send: Some(Box::new(Sender {
                loss: LossController::new(self.loss, setup.start),
                remb: None,
                lasts: self.remb_lasts,
                min: setup.min,
                max: setup.max,
                pacing_factor: self.pacing_factor,
            })),
            receive: Some(Box::new(Receiver {
                clock: self.clock,
                groups: FrameGroups::new(Departure::Timestamp),
                incoming: IncomingRate::new(TimeDelta::from_millis_f64(self.window_ms)),
                fresh: estimator.clone(),
                estimator,
                remb: RembTimer::new(TimeDelta::from_millis_f64(self.remb_ms)),
                rule: self.remb_rule,
                pending: None,
                steering: None,
                heard: None,
            })),
            feedback: FeedbackKind::None,
            ecn: Ecn::NotEct,
        }
    }
}

/// When a REMB that is due goes out: "every 1s, if A_r is decreasing" (section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RembRule {
    /// If it says less than the one before.
    Fall,
    /// Also while the rate controller decreases: eq. 3 may come to the same value again and again.
    Decrease,
    /// Always (libwebrtc).
    Always,
}

impl RembRule {
    fn tells(self, before: Option<Rate>, rate: Rate, state: RateState) -> bool {
        let falls = before.is_some_and(|before| rate < before);
        match self {
            Self::Fall => falls,
            Self::Decrease => falls || state == RateState::Decrease,
            Self::Always => true,
        }
    }
}

/// After this much silence everything begins anew (kStreamTimeOutMs).
const SILENCE: TimeDelta = TimeDelta::from_secs(2);

struct Receiver {
    clock: TimeDelta,
    groups: FrameGroups,
    incoming: IncomingRate,
    estimator: RegionEstimator,
    /// One that has seen nothing.
    fresh: RegionEstimator,
    remb: RembTimer,
    rule: RembRule,
    pending: Option<Rate>,
    /// The stream whose frames are grouped: the first video stream that came. Everything counts towards R.
    steering: Option<StreamId>,
    /// When the last packet arrived.
    heard: Option<RemoteTime>,
}

impl ReceiveHalf for Receiver {
    #[inline]
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, signals: &mut Signals) {
        self.incoming.handle_arrival(now, arrival.size);
        if self.heard.replace(now).is_some_and(|heard| now - heard > SILENCE) {
            self.groups.restart();
            self.estimator = self.fresh.clone();
        }
        let before = self.estimator.usage();
        if self.steers(arrival)
            && let Some(delta) = self.groups.handle_arrival(rounded(now, self.clock), arrival)
        {
            self.estimator.handle_group(&delta, signals);
        }
        let incoming = &mut self.incoming;
        if self.estimator.is_due(now, before, || incoming.rate(now))
            && let Some(received) = incoming.rate(now)
            && let Some(rate) = self.estimator.update(now, Some(received), signals)
            && let Some(before) = self.remb.turn(now, rate)
            && self.rule.tells(before, rate, self.estimator.state())
        {
            self.pending = Some(rate);
        }
    }

    #[inline]
    fn poll_message(&mut self, _: RemoteTime) -> Option<Message> {
        self.pending.take().map(Message::Remb)
    }
}

impl Receiver {
    /// Whether the packet belongs to a frame: FEC has its frame's timestamp and SSRC, as media has.
    fn steers(&mut self, arrival: &Arrival) -> bool {
        matches!(arrival.kind, PacketKind::Media | PacketKind::Fec)
            && arrival.media == MediaKind::Video
            && *self.steering.get_or_insert(arrival.stream) == arrival.stream
    }
}

struct Sender {
    loss: LossController,
    /// The last REMB.
    remb: Option<Rate>,
    /// Whether it bounds `A_s` until the next.
    lasts: bool,
    min: Rate,
    max: Rate,
    pacing_factor: Option<f64>,
}

impl SendHalf for Sender {
    /// Eq. 1.
    fn handle_report(&mut self, _: Time, report: &ReceiverReport, signals: &mut Signals) {
        self.loss.handle_report(report.fraction_lost, report.rtt);
        let remb = self.remb.filter(|_| self.lasts).unwrap_or(Rate::MAX);
        self.loss.bound(self.min, self.max.min(remb));
        signals.emit(0, self.loss.rate().as_bps_f64());
        signals.emit(2, report.fraction_lost.get());
    }

    /// Eq. 2, at this instant.
    fn handle_message(&mut self, _: Time, message: &Message, signals: &mut Signals) {
        let &Message::Remb(rate) = message else { return };
        self.remb = Some(rate);
        self.loss.bound(self.min, rate);
        signals.emit(0, self.loss.rate().as_bps_f64());
        signals.emit(1, rate.as_bps_f64());
    }

    fn decision(&self) -> Decision {
        let target = self.loss.rate();
        let pacing = self.pacing_factor.map_or(Rate::MAX, |factor| target.scale(factor));
        Decision { target, pacing, window: None, padding: Rate::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::{DataSize, Fraction};

    const SETUP: Setup = Setup { start: Rate::from_kbps(300), min: Rate::from_kbps(50), max: Rate::from_kbps(2000) };

    /// REMBs, (ms, kbit/s), of 20 s of frames at 480 kbit/s. From `queue.0` to `queue.1` seconds each frame takes 4 ms more
    /// than the one before, so that 429 kbit/s arrive.
    fn rembs(config: &Gcc2013Config, queue: (i64, i64), kind: PacketKind) -> Vec<(i64, u64)> {
        let mut half = config.build(&SETUP).receive.expect("it has one");
        let mut signals = Signals::unheard();
        let mut told = Vec::new();
        let mut delay = 0;
        for i in 0..600 {
            let sent = i * 100 / 3;
            delay += if (queue.0 * 1000..queue.1 * 1000).contains(&sent) { 4 } else { 0 };
            let now = RemoteTime::from_millis(70_000 + sent + delay);
            let arrival = Arrival {
                sent: None,
                timestamp: (i * 3000) as u32,
                sequence: i as u16,
                stream: StreamId(0),
                media: MediaKind::Video,
                kind,
                size: DataSize::from_bytes(2000),
                ecn: Ecn::NotEct,
            };
            half.handle_arrival(now, &arrival, &mut signals);
            if let Some(Message::Remb(rate)) = half.poll_message(now) {
                told.push((sent, rate.as_bps() / 1000));
            }
        }
        told
    }

    /// Without over-use `A_r` only grows, and nobody is told; libwebrtc tells it each second.
    #[test]
    fn growth_is_not_told() {
        let config = Gcc2013Config::default();
        assert_eq!(rembs(&config, (0, 0), PacketKind::Media), []);
        let all = rembs(&Gcc2013Config { remb_rule: RembRule::Always, ..config }, (0, 0), PacketKind::Media);
        assert!((17..=20).contains(&all.len()), "{all:?}");
        assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].1) && all[0].1 < all[5].1, "{all:?}");
    }

    /// Over-use is told at once, as 0.9 of what arrives; frames are built of media and FEC, not of what is sent again.
    #[test]
    fn overuse_is_told_at_once() {
        let config = Gcc2013Config::default();
        for kind in [PacketKind::Media, PacketKind::Fec] {
            let told = rembs(&config, (10, 13), kind);
            let (at, rate) = told[0];
            assert!((10_100..10_700).contains(&at), "{told:?}");
            assert!((386..=446).contains(&rate), "0.9 of 429 to 480, or a frame more: {told:?}");
            assert!(told.iter().all(|(at, _)| (10_000..14_500).contains(at)), "{told:?}");
        }
        assert_eq!(rembs(&config, (10, 13), PacketKind::Retransmission), []);
    }

    /// Over-use of 8 s comes to much the same value each time. It is told each second, or only while that falls.
    #[test]
    fn overuse_that_goes_on_is_told_again() {
        let told = |remb_rule| {
            let config = Gcc2013Config { remb_rule, ..Gcc2013Config::default() };
            rembs(&config, (10, 18), PacketKind::Media)
        };
        let (again, lower) = (told(RembRule::Decrease), told(RembRule::Fall));
        assert!((6..=10).contains(&again.len()), "{again:?}");
        assert!((1..=4).contains(&lower.len()), "{lower:?}");
        assert!(lower.windows(2).all(|pair| pair[1].1 < pair[0].1), "{lower:?}");
    }

    fn report(fraction: f64) -> ReceiverReport {
        ReceiverReport { fraction_lost: Fraction::new(fraction).unwrap(), rtt: Some(TimeDelta::from_millis(50)) }
    }

    /// Eq. 2 lowers `A_s` when the REMB comes, and the next report raises it above that; in libwebrtc it cannot.
    #[test]
    fn a_remb_counts_when_it_comes() {
        for (remb_lasts, after) in [(false, 211_050), (true, 200_000)] {
            let mut half =
                Gcc2013Config { remb_lasts, ..Gcc2013Config::default() }.build(&SETUP).send.expect("it has one");
            let mut signals = Signals::unheard();
            half.handle_message(Time::from_secs(1), &Message::Remb(Rate::from_kbps(400)), &mut signals);
            assert_eq!(half.decision().target, SETUP.start, "no rise");
            half.handle_message(Time::from_secs(2), &Message::Remb(Rate::from_kbps(200)), &mut signals);
            assert_eq!(half.decision().target, Rate::from_kbps(200));
            half.handle_report(Time::from_secs(3), &report(0.0), &mut signals);
            assert_eq!(half.decision().target.as_bps(), after, "1.05 · (200 + 1)");
            half.handle_message(Time::from_secs(4), &Message::Remb(Rate::ZERO), &mut signals);
            assert_eq!(half.decision().target, SETUP.min);
        }
    }

    /// Eq. 1 between the flow's bounds: up to the encoder's most, and with heavy loss not below what TCP would get.
    #[test]
    fn losses_steer() {
        let mut half = Gcc2013Config::default().build(&SETUP).send.expect("it has one");
        let mut signals = Signals::unheard();
        for second in 0..60 {
            half.handle_report(Time::from_secs(second), &report(0.01), &mut signals);
        }
        assert_eq!(half.decision().target, SETUP.max);
        assert_eq!(half.decision().pacing, Rate::MAX);
        half.handle_report(Time::from_secs(60), &report(0.05), &mut signals);
        assert_eq!(half.decision().target, SETUP.max, "rests");
        half.handle_report(Time::from_secs(61), &report(0.2), &mut signals);
        assert_eq!(half.decision().target, Rate::from_kbps(1800));
        for second in 62..120 {
            half.handle_report(Time::from_secs(second), &report(0.2), &mut signals);
        }
        // As in the test of `tfrc`: 1000 B, 50 ms, 0.2.
        assert_eq!(half.decision().target.as_bps(), 85_850);
    }
}
