//! The diagnosis of a session: the first rule that applies, with its evidence.

use crate::hosts::drift::Drift;
use serde::Serialize;

/// Share of lost packets above which loss limits: the loss-based controller of draft-ietf-rmcat-gcc-02, section 6, increases its rate
/// below this share only.
const LOSS_LIMIT: f64 = 0.02;

/// Share of the highest rate below which the mean target counts as held back.
const TARGET_LIMIT: f64 = 0.9;

/// Delay variation (95th percentile) above which delay limits, ms: ITU-T G.114 recommends at most 150 ms one way in total.
const VARIATION_LIMIT_MS: f64 = 150.0;

/// Lateness of timers (99th percentile) above which the sender is too slow, ms: packets of a frame are some milliseconds apart.
const LATE_LIMIT_MS: f64 = 5.0;

/// What limited a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Diagnosis {
    /// The peer reported no packet.
    NothingArrived,
    /// The peer reported packets, then none for ten seconds.
    FeedbackLost,
    /// The sending host did not keep up.
    SenderTooSlow,
    /// Loss is above 2 %.
    LossLimited,
    /// Delay seems to vary by more than 150 ms, but the drift of the clocks may explain what is above that, and the target did not stay low.
    ClockDriftSeen,
    /// The target stayed below the highest rate although loss was low, or delay varied by more than 150 ms.
    DelayLimited,
    /// None of the others.
    Steady,
}

/// The measured values that rules read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// Packets that arrived.
    pub received_packets: u64,
    /// Whether the session ended because no feedback arrived.
    pub silent: bool,
    /// Share of lost packets.
    pub loss_ratio: f64,
    /// Mean target in the second half, as a share of the highest rate.
    pub target_share: f64,
    /// 95th percentile of the delay variation, ms.
    pub variation_p95_ms: f64,
    /// Drift of the clocks that the delay variation includes; `None` if none was seen.
    pub drift: Option<Drift>,
    /// 99th percentile of the lateness of timers, ms.
    pub late_p99_ms: f64,
    /// Packets that the system did not accept.
    pub send_failures: u64,
    /// Goodput of the TCP flow beside the media, bit/s; `None` without one, or if it is not known.
    pub tcp_bps: Option<f64>,
}

/// Returns the diagnosis and its evidence as a sentence.
pub fn diagnose(evidence: &Evidence) -> (Diagnosis, String) {
    let (diagnosis, mut why) = diagnose_media(evidence);
    if let Some(drift) = &evidence.drift {
        why += &format!("; {}", describe(drift));
    }
    if let Some(tcp) = evidence.tcp_bps {
        why += &format!("; the TCP flow beside it received {:.2} Mbit/s", tcp / 1e6);
    }
    (diagnosis, why)
}

fn diagnose_media(evidence: &Evidence) -> (Diagnosis, String) {
    let Evidence { received_packets, silent, loss_ratio, target_share, variation_p95_ms, .. } = *evidence;
    let Evidence { late_p99_ms, send_failures, drift, .. } = *evidence;
    let (loss, target) = (loss_ratio * 100.0, target_share * 100.0);
    let explains = |drift: Drift| variation_p95_ms - drift.change_ms.abs() <= VARIATION_LIMIT_MS;
    let may_be_drift = target_share >= TARGET_LIMIT && drift.is_some_and(explains);
    match () {
        () if received_packets == 0 => (Diagnosis::NothingArrived, "no packet was reported as received".to_owned()),
        () if silent => (Diagnosis::FeedbackLost, "no feedback arrived for 10 s".to_owned()),
        () if send_failures > 0 => {
            (Diagnosis::SenderTooSlow, format!("this system did not accept {send_failures} packets"))
        }
        () if late_p99_ms > LATE_LIMIT_MS => {
            (Diagnosis::SenderTooSlow, format!("1 % of timers fired {late_p99_ms:.1} ms late or later (limit 5 ms)"))
        }
        () if loss_ratio > LOSS_LIMIT => {
            (Diagnosis::LossLimited, format!("{loss:.1} % of packets were lost (limit 2 %)"))
        }
        () if variation_p95_ms > VARIATION_LIMIT_MS => (
            if may_be_drift { Diagnosis::ClockDriftSeen } else { Diagnosis::DelayLimited },
            format!("5 % of packets were {variation_p95_ms:.0} ms or more above the smallest delay (limit 150 ms)"),
        ),
        () if target_share < TARGET_LIMIT => (
            Diagnosis::DelayLimited,
            format!(
                "the target was {target:.0} % of the highest rate (limit 90 %), loss {loss:.1} %, delay variation \
                 {variation_p95_ms:.1} ms at p95"
            ),
        ),
        () => (
            Diagnosis::Steady,
            format!(
                "the target was {target:.0} % of the highest rate, loss {loss:.1} %, delay variation \
                 {variation_p95_ms:.1} ms at p95"
            ),
        ),
    }
}

fn describe(drift: &Drift) -> String {
    let way = if drift.ppm > 0.0 { "faster" } else { "slower" };
    let (ppm, change) = (drift.ppm.abs(), drift.change_ms.abs());
    format!(
        "the receiver's clock is {ppm:.1} ppm {way} than this one, which changed the delays by {change:.1} ms over the session"
    )
}

impl Diagnosis {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::NothingArrived => "nothing arrived",
            Self::FeedbackLost => "feedback lost",
            Self::SenderTooSlow => "sender too slow",
            Self::LossLimited => "loss-limited",
            Self::ClockDriftSeen => "clock drift seen",
            Self::DelayLimited => "delay-limited",
            Self::Steady => "steady",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_applies_above_its_limit_and_not_at_it() {
        let good = Evidence {
            received_packets: 1,
            silent: false,
            loss_ratio: LOSS_LIMIT,
            target_share: TARGET_LIMIT,
            variation_p95_ms: VARIATION_LIMIT_MS,
            drift: None,
            late_p99_ms: LATE_LIMIT_MS,
            send_failures: 0,
            tcp_bps: None,
        };
        assert_eq!(diagnose(&good).0, Diagnosis::Steady, "every value is at its limit");
        let drift = |change_ms: f64| Some(Drift { ppm: change_ms, change_ms });
        for (evidence, verdict, word) in [
            (Evidence { received_packets: 0, ..good }, Diagnosis::NothingArrived, "no packet"),
            (Evidence { silent: true, ..good }, Diagnosis::FeedbackLost, "10 s"),
            (Evidence { loss_ratio: 0.021, ..good }, Diagnosis::LossLimited, "2.1 %"),
            (Evidence { variation_p95_ms: 151.0, ..good }, Diagnosis::DelayLimited, "151 ms"),
            (
                Evidence { variation_p95_ms: 200.0, drift: drift(-50.0), ..good },
                Diagnosis::ClockDriftSeen,
                "50.0 ppm slower",
            ),
            (
                Evidence { variation_p95_ms: 200.0, drift: drift(49.0), ..good },
                Diagnosis::DelayLimited,
                "49.0 ppm faster",
            ),
            (
                Evidence { variation_p95_ms: 200.0, drift: drift(90.0), target_share: 0.3, ..good },
                Diagnosis::DelayLimited,
                "200 ms or more",
            ),
            (Evidence { drift: drift(100.0), ..good }, Diagnosis::Steady, "by 100.0 ms over"),
            (Evidence { target_share: 0.89, ..good }, Diagnosis::DelayLimited, "89 %"),
            (Evidence { late_p99_ms: 5.1, ..good }, Diagnosis::SenderTooSlow, "5.1 ms"),
            // A TCP flow does not change the verdict.
            (Evidence { tcp_bps: Some(1.5e6), ..good }, Diagnosis::Steady, "1.50 Mbit/s"),
            (Evidence { tcp_bps: Some(1.5e6), loss_ratio: 0.021, ..good }, Diagnosis::LossLimited, "1.50 Mbit/s"),
            (Evidence { send_failures: 1, ..good }, Diagnosis::SenderTooSlow, "1 packets"),
            // A sender that is too slow says nothing about the path.
            (Evidence { late_p99_ms: 5.1, loss_ratio: 0.1, ..good }, Diagnosis::SenderTooSlow, "5.1 ms"),
        ] {
            let (judged, why) = diagnose(&evidence);
            assert!(judged == verdict && why.contains(word), "{evidence:?}: {judged:?}, {why}");
        }
    }
}
