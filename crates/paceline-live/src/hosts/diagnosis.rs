// SPDX-License-Identifier: MIT OR Apache-2.0
//! The diagnosis of a session: the first rule that applies, with its evidence.

use crate::hosts::drift::Drift;
use crate::hosts::host_facts::HostFacts;
use crate::hosts::path_log::LostLarge;
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

/// Share of refused packets, and of time in which the sender did not run, above which the host limits: as for timers.
const HOST_LIMIT: f64 = 0.01;

/// Share of time in freezes of the video above which a session is not steady: below it is one freeze of half a second in 25 s.
const FROZEN_LIMIT: f64 = 0.02;

/// What limited a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Diagnosis {
    /// The peer reported no packet.
    NothingArrived,
    /// The peer reported packets, then none for ten seconds.
    FeedbackLost,
    /// The network of the sending host refused packets: they exceed its MTU, it was down, or a firewall forbids them.
    LocalNetwork,
    /// The sending host did not keep up, or did not run.
    SenderTooSlow,
    /// Loss is above 2 %.
    LossLimited,
    /// Delay seems to vary by more than 150 ms, but the drift of the clocks may explain what is above that, and the target did not stay low.
    ClockDriftSeen,
    /// The target stayed below the highest rate although loss was low, or delay varied by more than 150 ms.
    DelayLimited,
    /// None of these, but the video was frozen for more than 2 % of the time.
    VideoFrozen,
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
    /// Time from the start to the last media, s, and the packets of this time.
    pub lasted_s: f64,
    pub sent_packets: u64,
    /// What happened to this host.
    pub host: HostFacts,
    /// Packets that were lost because of their size; `None` if there are none.
    pub lost_large: Option<LostLarge>,
    /// Share of time in which the video was frozen; `None` if it is not known.
    pub frozen_ratio: Option<f64>,
    /// Goodput of the TCP flow beside the media, bit/s; `None` without one, or if it is not known.
    pub tcp_bps: Option<f64>,
}

/// Returns the diagnosis and its evidence as a sentence.
pub fn diagnose(evidence: &Evidence) -> (Diagnosis, String) {
    // What limits on this host comes first: the path is not its cause.
    let of_host = diagnose_host(evidence);
    let is_of_host = of_host.is_some();
    let (diagnosis, mut why) = of_host.unwrap_or_else(|| diagnose_media(evidence));
    let frozen = evidence.frozen_ratio.filter(|frozen| *frozen > FROZEN_LIMIT && diagnosis != Diagnosis::VideoFrozen);
    let frozen = frozen.map(|frozen| format!("the video was frozen for {:.1} % of the time", frozen * 100.0));
    let facts = evidence.host.describe().into_iter().filter(|_| !is_of_host);
    for fact in frozen.into_iter().chain(facts) {
        why += &format!("; {fact}");
    }
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
    let Evidence { late_p99_ms, drift, frozen_ratio, .. } = *evidence;
    let (loss, target) = (loss_ratio * 100.0, target_share * 100.0);
    let explains = |drift: Drift| variation_p95_ms - drift.change_ms.abs() <= VARIATION_LIMIT_MS;
    let may_be_drift = target_share >= TARGET_LIMIT && drift.is_some_and(explains);
    match () {
        () if received_packets == 0 => (Diagnosis::NothingArrived, "no packet was reported as received".to_owned()),
        () if silent => (Diagnosis::FeedbackLost, "no feedback arrived for 10 s".to_owned()),
        () if late_p99_ms > LATE_LIMIT_MS => {
            (Diagnosis::SenderTooSlow, format!("1 % of timers fired {late_p99_ms:.1} ms late or later (limit 5 ms)"))
        }
        () if loss_ratio > LOSS_LIMIT => {
            let lost = format!("{loss:.1} % of packets were lost (limit 2 %)");
            let cause = evidence.lost_large.map(|LostLarge { above_bytes, packets }| {
                format!(
                    ": none of {packets} packets above {above_bytes} B arrived, as if the path or the receiver had an MTU below 1280 B"
                )
            });
            (Diagnosis::LossLimited, lost + &cause.unwrap_or_default())
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
        () if frozen_ratio.is_some_and(|frozen| frozen > FROZEN_LIMIT) => (
            Diagnosis::VideoFrozen,
            format!(
                "the video was frozen for {:.1} % of the time (limit 2 %), although loss was {loss:.1} % and delay varied by \
                 {variation_p95_ms:.1} ms at p95: a host did not send or show its frames in time",
                frozen_ratio.unwrap_or_default() * 100.0
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

/// Returns the diagnosis if the sending host refused packets, or did not run, above its limit.
fn diagnose_host(evidence: &Evidence) -> Option<(Diagnosis, String)> {
    let Evidence { host, sent_packets, lasted_s, .. } = evidence;
    let exceeds = |count: u64| count as f64 / (*sent_packets).max(1) as f64 > HOST_LIMIT;
    let refused = host.refused;
    let diagnosis = match () {
        () if exceeds(refused.too_large + refused.unreachable + refused.forbidden) => Diagnosis::LocalNetwork,
        () if exceeds(refused.buffers_full + refused.other) => Diagnosis::SenderTooSlow,
        () if host.absent_s() > HOST_LIMIT * lasted_s => Diagnosis::SenderTooSlow,
        () => return None,
    };
    Some((diagnosis, host.describe().join("; ")))
}

fn describe(drift: &Drift) -> String {
    let way = if drift.ppm > 0.0 { "faster" } else { "slower" };
    let (ppm, change) = (drift.ppm.abs(), drift.change_ms.abs());
    format!(
        "the receiver's clock is {ppm:.1} ppm {way} than this one, which changed the delays by {change:.1} ms over the session"
    )
}

impl Diagnosis {
    pub fn name(self) -> &'static str {
        match self {
            Self::NothingArrived => "nothing arrived",
            Self::FeedbackLost => "feedback lost",
            Self::LocalNetwork => "local network",
            Self::SenderTooSlow => "sender too slow",
            Self::LossLimited => "loss-limited",
            Self::ClockDriftSeen => "clock drift seen",
            Self::DelayLimited => "delay-limited",
            Self::VideoFrozen => "video frozen",
            Self::Steady => "steady",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::host_facts::Refused;

    #[test]
    fn each_rule_applies_above_its_limit_and_not_at_it() {
        // Every value is at its limit.
        let refused = Refused { too_large: 10, ..Refused::default() };
        let good = Evidence {
            received_packets: 1,
            silent: false,
            loss_ratio: LOSS_LIMIT,
            target_share: TARGET_LIMIT,
            variation_p95_ms: VARIATION_LIMIT_MS,
            drift: None,
            late_p99_ms: LATE_LIMIT_MS,
            lasted_s: 12.0,
            sent_packets: 1000,
            host: HostFacts { stalls: 1, stalled_s: 0.12, longest_stall_s: 0.12, refused, ..HostFacts::default() },
            lost_large: None,
            frozen_ratio: Some(FROZEN_LIMIT),
            tcp_bps: None,
        };
        use Diagnosis::*;
        fn drift(change_ms: f64) -> Option<Drift> {
            Some(Drift { ppm: change_ms, change_ms })
        }
        const LARGE: LostLarge = LostLarge { above_bytes: 972, packets: 20 };
        type Row = (fn(&mut Evidence), Diagnosis, &'static str);
        let rows: [Row; 25] = [
            (|e| e.received_packets = 0, NothingArrived, "no packet"),
            (|e| e.silent = true, FeedbackLost, "10 s"),
            (|e| e.loss_ratio = 0.021, LossLimited, "2.1 %"),
            (|e| e.variation_p95_ms = 151.0, DelayLimited, "151 ms"),
            (|e| (e.drift, e.variation_p95_ms) = (drift(-50.0), 200.0), ClockDriftSeen, "50.0 ppm slower"),
            (|e| (e.drift, e.variation_p95_ms) = (drift(49.0), 200.0), DelayLimited, "49.0 ppm faster"),
            (
                |e| (e.drift, e.variation_p95_ms, e.target_share) = (drift(90.0), 200.0, 0.3),
                DelayLimited,
                "200 ms or more",
            ),
            (|e| (e.drift, e.variation_p95_ms) = (drift(100.0), VARIATION_LIMIT_MS), Steady, "by 100.0 ms over"),
            (|e| e.target_share = 0.89, DelayLimited, "89 %"),
            (|e| e.late_p99_ms = 5.1, SenderTooSlow, "5.1 ms"),
            // A TCP flow does not change the verdict.
            (|e| e.tcp_bps = Some(1.5e6), Steady, "1.50 Mbit/s"),
            (|e| (e.tcp_bps, e.loss_ratio) = (Some(1.5e6), 0.021), LossLimited, "1.50 Mbit/s"),
            (|e| e.frozen_ratio = Some(0.3341), VideoFrozen, "33.4 % of the time"),
            (|e| (e.frozen_ratio, e.target_share) = (Some(0.3341), 0.5), DelayLimited, "frozen for 33.4 %"),
            (|e| (e.loss_ratio, e.lost_large) = (0.021, Some(LARGE)), LossLimited, "none of 20 packets above 972 B"),
            // This host, whatever else is seen.
            (|e| (e.host.stalled_s, e.frozen_ratio) = (4.0, Some(0.3341)), SenderTooSlow, "did not run for 4.0 s"),
            (|e| (e.host.suspended_s, e.silent) = (30.0, true), SenderTooSlow, "suspended for 30.0 s"),
            (|e| (e.host.mtu, e.host.refused.too_large) = (Some(1000), 11), LocalNetwork, "1000 B"),
            (|e| (e.host.refused.unreachable, e.loss_ratio) = (300, 0.3), LocalNetwork, "no network for 300 packets"),
            (|e| (e.host.refused.forbidden, e.received_packets) = (1000, 0), LocalNetwork, "firewall"),
            (|e| e.host.refused.buffers_full = 11, SenderTooSlow, "full for 11"),
            // It does not limit, but it is named.
            (|e| (e.host.clock_steps, e.host.last_clock_step_s) = (1, -3.0), Steady, "by -3.0 s"),
            (|e| e.received_packets = 0, NothingArrived, "refused 10 packets"),
            // A sender that is too slow says nothing about the path.
            (|e| (e.late_p99_ms, e.loss_ratio) = (5.1, 0.1), SenderTooSlow, "5.1 ms"),
            (|_| (), Steady, "refused 10 packets"),
        ];
        for (change, verdict, word) in rows {
            let mut evidence = good;
            change(&mut evidence);
            let (judged, why) = diagnose(&evidence);
            assert!(judged == verdict && why.contains(word), "{evidence:?}: {judged:?}, {why}");
        }
    }
}
