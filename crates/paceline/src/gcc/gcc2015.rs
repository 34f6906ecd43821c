//! GCC as libwebrtc's receiver ran it in March 2015, the baseline of uottawa15 and what its dynamic alpha changes: a
//! threshold by region and a decrease factor by region.
//!
//! ```text
//! receiver:  packets -> BurstGroups -> TwoStateKalman -> OveruseDetector -> RegionControl -> REMB
//!                        5 ms           1/C and m          T, 100 ms  ^      |    ^
//!                                                    25 or 12.5 ms    '------'    IncomingRate R, 1 s
//! sender:    REMB A_r, receiver reports -> LossController with TFRC -> A = min(A_s, A_r)
//! ```
//!
//! The thesis changes `aimd_rate_control.cc`, so growth is that file's; `docs/algorithms/gcc-2015.md` says what else is
//! taken from where.

use super::{Alpha, Growth, Reading, RegionConfig, RegionEstimator, RembTimer};
use crate::blocks::{BurstConfig, BurstGroups, IncomingRate, LossConfig, LossController, TwoStateConfig};
use crate::{
    Arrival, Config, Controller, Decision, Entry, FeedbackKind, Fields, Message, ReceiveHalf, ReceiverReport, SendHalf,
    Setup, SignalSpec, Signals,
};
use paceline_units::{Ecn, Rate, RemoteTime, Time, TimeDelta};

const SOURCE: &str = "Atwah: Dynamic Alpha Congestion Controller for WebRTC (thesis, Ottawa 2015), chapters 3 and 4; libwebrtc of 2014 and 2015";

/// `gcc-2015`: a constant decrease factor in each region.
pub(crate) fn fixed_alpha() -> Entry {
    let summary = "GCC of 2015: two-state Kalman filter, threshold and decrease factor by region, REMB";
    Entry::new("gcc-2015", summary, SOURCE, Gcc2015Config::default())
}

/// `gcc-dynamic-alpha`: the decrease factor follows from gradient and threshold.
pub(crate) fn dynamic_alpha() -> Entry {
    let config = Gcc2015Config { dynamic: Some(Reading::Printed), ..Gcc2015Config::default() };
    Entry::new("gcc-dynamic-alpha", "gcc-2015 with the thesis's dynamic decrease factor", SOURCE, config)
}

/// Every number of GCC 2015. `Default` is libwebrtc's of March 2015, as far as the thesis shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Gcc2015Config {
    /// Grouping of packets.
    pub groups: BurstConfig,
    /// The arrival-time filter.
    pub kalman: TwoStateConfig,
    /// The threshold where the maximum is unknown, ms; half of it elsewhere.
    pub threshold_ms: f64,
    /// How long over-use must last, ms.
    pub overuse_ms: f64,
    /// The law of growth.
    pub growth: Growth,
    /// The decrease factor near the maximum, and elsewhere.
    pub alpha: (f64, f64),
    /// The decrease factor by equation 4.1 instead.
    pub dynamic: Option<Reading>,
    /// Whether growth after Hold begins where the incoming rate was.
    pub recovery: bool,
    /// No step ends above this many times the incoming rate.
    pub headroom: f64,
    /// Round-trip time that the receiver assumes.
    pub rtt: TimeDelta,
    /// Window of the incoming rate, ms.
    pub window_ms: f64,
    /// Least interval of REMBs, ms, unless the rate falls.
    pub remb_ms: f64,
    /// The loss-based controller.
    pub loss: LossConfig,
    /// Pacing rate over target.
    pub pacing_factor: f64,
}

impl Default for Gcc2015Config {
    fn default() -> Self {
        Self {
            groups: BurstConfig::LIBWEBRTC,
            kalman: TwoStateConfig::Y2015,
            threshold_ms: 25.0,
            overuse_ms: 100.0,
            growth: Growth::Aimd,
            alpha: (0.95, 0.9),
            dynamic: None,
            recovery: false,
            headroom: 1.5,
            rtt: TimeDelta::from_millis(200),
            window_ms: 1000.0,
            remb_ms: 200.0,
            loss: LossConfig::Y2013,
            pacing_factor: 2.5,
        }
    }
}

impl Config for Gcc2015Config {
    const SIGNALS: (&'static [SignalSpec], &'static [SignalSpec]) = (
        &[
            SignalSpec::series("A_s", "bit/s"),
            SignalSpec::series("A_r received", "bit/s"),
            SignalSpec::series("f_l", ""),
        ],
        RegionEstimator::SIGNALS,
    );

    fn fields(&mut self, fields: &mut Fields<'_>) {
        fields.block(
            &mut self.groups,
            &[
                ("group_ms", " (kTimestampGroupLengthMs)"),
                ("burst_ms", " (kBurstDeltaThresholdMs)"),
                ("clock_ms", ": libwebrtc counts whole milliseconds; 0: as they are"),
            ],
        );
        fields.block(
            &mut self.kalman,
            &[
                ("q_slope", "group (OverUseDetectorOptions)"),
                ("q_offset", "group (OverUseDetectorOptions)"),
                ("variance_min", " (UpdateNoiseEstimate)"),
            ],
        );
        fields.number("threshold_ms", "ms", (0.0, 1e4), &mut self.threshold_ms).says(
            "threshold on min(n, 60)·m where the maximum is unknown, section 4.1; half of it elsewhere, algorithm 2",
        );
        fields
            .number("overuse_ms", "ms", (0.0, 1e4), &mut self.overuse_ms)
            .says("how long over-use must last (overusing_time_threshold)");
        fields.choice("growth", &[Growth::Aimd, Growth::Response], &mut self.growth).says(
            "law of growth: 0: additive near the maximum, 8 % a second elsewhere (aimd_rate_control.cc, which the thesis changes); 1: the eta of 2013",
        );
        fields
            .number("alpha_near", "", (0.1, 1.0), &mut self.alpha.0)
            .says("share of R kept in a decrease near the maximum, section 4.3");
        fields
            .number("alpha_far", "", (0.1, 1.0), &mut self.alpha.1)
            .says("share of R kept in a decrease elsewhere, section 4.3");
        let readings = [None, Some(Reading::Printed), Some(Reading::Tabulated)];
        fields.choice("dynamic_alpha", &readings, &mut self.dynamic).says(
            "0: alpha by region; 1: by equation 4.1 as printed; 2: by equation 4.1 with the line of 4.2 that table 2 comes nearest to, (0.99 - b) / 1.3, everywhere",
        );
        fields.flag("recovery", &mut self.recovery).says(
            "growth after Hold begins at alpha times the highest R of that time: 1 in 2013 and 2014; the thesis shows no such line (0)",
        );
        fields
            .number("headroom", "", (1.0, 100.0), &mut self.headroom)
            .says("no step ends above this many times R, section 3.2.2");
        fields
            .millis("rtt_ms", (0.0, 1e4), &mut self.rtt)
            .says("round-trip time that a receiver assumes (kDefaultRttMs)");
        fields.number("window_ms", "ms", (10.0, 1e4), &mut self.window_ms).says("window of R (incoming_bitrate_)");
        fields
            .number("remb_ms", "ms", (10.0, 1e5), &mut self.remb_ms)
            .says("least interval of REMBs but for a fall of 3 % (kRembSendIntervalMs)");
        fields.block(
            &mut self.loss,
            &[
                ("loss_low", ", eq. 3.1"),
                ("loss_high", ", eq. 3.1"),
                ("loss_increase", ", eq. 3.1"),
                ("loss_step", ", eq. 3.1"),
                ("loss_decrease", ", eq. 3.1"),
                ("tfrc", ", eq. 3.1: 1; without that: 0"),
            ],
        );
        fields
            .number("pacing_factor", "", (1.0, 10.0), &mut self.pacing_factor)
            .says("pacing rate over target (kDefaultPaceMultiplier)");
    }

    fn build(&self, setup: &Setup) -> Controller {
        let (near, far) = self.alpha;
        let alpha = match self.dynamic {
            None => Alpha::ByRegion { near, far },
            Some(reading) => Alpha::Dynamic { reading, last: far },
        };
        let rate = RegionConfig {
            growth: self.growth,
            alpha,
            recovery: self.recovery,
            headroom: self.headroom,
            rtt: self.rtt,
        };
        Controller {
            send: Some(Box::new(Sender {
                loss: LossController::new(self.loss, setup.start),
                remb: None,
                min: setup.min,
                pacing_factor: self.pacing_factor,
            })),
            receive: Some(Box::new(Receiver {
                groups: BurstGroups::new(self.groups),
                incoming: IncomingRate::new(TimeDelta::from_millis_f64(self.window_ms)),
                estimator: RegionEstimator::new(self.kalman, self.overuse_ms, self.threshold_ms, rate, setup.min),
                remb: RembTimer::new(TimeDelta::from_millis_f64(self.remb_ms)),
                pending: None,
                heard: None,
            })),
            feedback: FeedbackKind::None,
            ecn: Ecn::NotEct,
        }
    }
}

/// After this much silence filter and groups begin anew (kStreamTimeOutMs).
const SILENCE: TimeDelta = TimeDelta::from_secs(2);

struct Receiver {
    groups: BurstGroups,
    incoming: IncomingRate,
    estimator: RegionEstimator,
    remb: RembTimer,
    pending: Option<Rate>,
    /// When the last packet arrived.
    heard: Option<RemoteTime>,
}

impl ReceiveHalf for Receiver {
    #[inline]
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, signals: &mut Signals) {
        let Some(sent) = arrival.sent else { return };
        self.incoming.restart_if_empty(now);
        self.incoming.handle_arrival(now, arrival.size);
        if self.heard.replace(now).is_none_or(|heard| now - heard > SILENCE) {
            self.groups.restart();
            self.estimator.restart_filter();
        }
        let before = self.estimator.usage();
        if let Some(delta) = self.groups.handle_arrival(now, sent, arrival.size) {
            self.estimator.handle_group(&delta, signals);
        }
        let incoming = &mut self.incoming;
        if self.estimator.is_due(now, before, || incoming.rate_so_far(now))
            && let Some(rate) = self.estimator.update(now, incoming.rate_so_far(now), signals)
            && self.remb.poll(now, rate)
        {
            self.pending = Some(rate);
        }
    }

    #[inline]
    fn poll_message(&mut self, _: RemoteTime) -> Option<Message> {
        self.pending.take().map(Message::Remb)
    }
}

struct Sender {
    loss: LossController,
    remb: Option<Rate>,
    min: Rate,
    pacing_factor: f64,
}

/// The most that the sender asks for, whatever a REMB says.
const MAX: Rate = Rate::from_kbps(1_000_000);

impl Sender {
    fn bound(&mut self) {
        self.loss.bound(self.min, self.remb.unwrap_or(MAX).min(MAX));
    }
}

impl SendHalf for Sender {
    fn handle_report(&mut self, _: Time, report: &ReceiverReport, signals: &mut Signals) {
        self.loss.handle_report(report.fraction_lost, report.rtt);
        self.bound();
        signals.emit(0, self.loss.rate().as_bps_f64());
        signals.emit(2, report.fraction_lost.get());
    }

    fn handle_message(&mut self, _: Time, message: &Message, signals: &mut Signals) {
        let &Message::Remb(rate) = message else { return };
        self.remb = Some(rate);
        self.bound();
        signals.emit(0, self.loss.rate().as_bps_f64());
        signals.emit(1, rate.as_bps_f64());
    }

    fn decision(&self) -> Decision {
        let target = self.loss.rate();
        Decision { target, pacing: target.scale(self.pacing_factor), window: None, padding: Rate::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcc::Region;
    use crate::{MediaKind, PacketKind};
    use paceline_units::{DataSize, StreamId};

    /// The signals (threshold, alpha, region) that differ from those before, over a queue that grows from 10 s on.
    fn steps(config: &Gcc2015Config) -> Vec<(f64, f64, f64)> {
        let setup = Setup { start: Rate::from_kbps(300), min: Rate::from_kbps(30), max: Rate::from_kbps(2000) };
        let mut half = config.build(&setup).receive.expect("it has one");
        let mut signals = Signals::heard();
        let (mut now, mut steps) = ((0.0, 0.0, 0.0), Vec::new());
        for i in 0..600 {
            let arrival = Arrival {
                sent: Some(Time::from_millis(20 * i)),
                timestamp: 0,
                sequence: 0,
                stream: StreamId(0),
                media: MediaKind::Video,
                kind: PacketKind::Media,
                size: DataSize::from_bytes(1250),
                ecn: Ecn::NotEct,
            };
            let at = RemoteTime::from_millis(90_000 + 20 * i + 4 * (i - 500).max(0));
            half.handle_arrival(at, &arrival, &mut signals);
            for (signal, value) in signals.drain() {
                match signal {
                    2 => now.0 = value,
                    7 => now.2 = value,
                    8 => now.1 = value,
                    _ => {}
                }
            }
            if steps.last() != Some(&now) {
                steps.push(now);
            }
        }
        steps.retain(|(gamma, alpha, _)| *gamma > 0.0 && *alpha > 0.0);
        steps
    }

    /// Over-use halves the threshold and, with constants, raises alpha from 0.9 to 0.95.
    #[test]
    fn threshold_and_alpha_follow_the_region() {
        let (near, unknown) = (Region::NearMax.index(), Region::MaxUnknown.index());
        let fixed = steps(&Gcc2015Config::default());
        // The threshold is told with the next group.
        assert_eq!(fixed, [(25.0, 0.9, unknown), (25.0, 0.95, near), (12.5, 0.95, near)]);
    }

    /// By equation 4.1 the first over-use, just above the threshold, gives nearly 0.99; those that follow near the maximum
    /// lie between 0.95 and 1, and between 0.90 and 0.99 where all regions take the first line of 4.2.
    #[test]
    fn dynamic_alpha_follows_the_gradient() {
        for (reading, low, high) in [(Reading::Printed, 0.9517, 1.0), (Reading::Tabulated, 0.9015, 0.9923)] {
            let all = steps(&Gcc2015Config { dynamic: Some(reading), ..Gcc2015Config::default() });
            assert_eq!(all[0].1, 0.9, "before over-use: section 4.3");
            assert!((0.94..0.9923).contains(&all[1].1), "{all:?}");
            let later: Vec<f64> = all[3..].iter().map(|(_, alpha, _)| *alpha).collect();
            assert!(!later.is_empty() && later.iter().all(|alpha| (low..=high).contains(alpha)), "{all:?}");
        }
    }
}
