// SPDX-License-Identifier: MIT OR Apache-2.0
//! Media arrives, and the reports about it do not, or late.

use super::{Cause, Evidence, Strength, ms};
use crate::episodes::EpisodeKind;
use crate::facts::Facts;
use crate::model::{Confidence, Origin, Quantity};
use paceline_units::TimeDelta;

pub(super) const CAUSE: Cause = Cause {
    id: "feedback",
    title: "lost or late reports: media arrived, its reports did not",
    advice: "look at the reverse path: loss, a full uplink queue, a firewall that drops RTCP",
    examine,
};

/// A gap of reports. Assumed: ten times the longest usual interval of transport feedback (100 ms in libwebrtc's default of about 10
/// reports per second); with statistics, three reports of 1 s.
const GAP: TimeDelta = TimeDelta::from_millis(1000);
const GAP_COARSE: TimeDelta = TimeDelta::from_millis(3000);
/// At most this share of the packets of the gap is lost. Assumed: as `outage::LOST`.
const LOST: f64 = 0.3;

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    // A gap lowers a rate. It does not slow the return for seconds.
    if facts.episode.kind == EpisodeKind::SlowReturn {
        return None;
    }
    let (from, to) = facts.window();
    let from = from - TimeDelta::from_millis(4500);
    let gap = facts.silence(Quantity::Feedback, from, to + TimeDelta::from_millis(1500))?;
    let lasted = gap.1 - gap.0;
    let feedback = facts.flow.get(Quantity::Feedback)?;
    let least = if feedback.confidence == Confidence::Exact { GAP } else { GAP_COARSE };
    // The usual interval before: reports of 1 s are not missing after 1 s.
    let calm = from - TimeDelta::from_secs(10);
    let reports = feedback.sum(calm, from);
    let usual = if reports > 0.0 { (from - calm).as_secs_f64() / reports } else { 1.0 };
    // A silence of whole samples is shorter than the gap by half a sample at either end.
    let between = lasted.as_secs_f64() + if feedback.confidence == Confidence::Exact { 0.0 } else { 1.0 };
    // Statistics do not show a report between two samples.
    let usual = usual.max(0.95 * facts.flow.interval.as_secs_f64());
    if lasted < least || between < 3.0 * usual {
        return None;
    }
    let sent = facts.sent(gap.0, gap.1)? > 0.0;
    let arrived = match facts.flow.get(Quantity::ReceivedRate).filter(|received| received.origin != Origin::Reports) {
        // A sender may stop soon for want of reports.
        Some(received) => {
            received.within(gap.0, gap.0 + TimeDelta::from_secs(1)).iter().filter(|(_, bps)| *bps > 0.0).count() >= 3
        }
        // Reports that were lost say nothing about their packets, but later ones do.
        None if facts.is_coarse() => !super::outage::media_stopped(facts, gap),
        None => facts.loss_within(gap.0, gap.1).is_none_or(|(loss, _)| loss <= LOST),
    };
    // Without losses and arrivals, as with encrypted or cut reports, media may have stopped too.
    let is_known = facts.loss().is_some() || facts.flow.get(Quantity::ReceivedRate).is_some();
    let (strength, media) = match is_known {
        true => (Strength::Strong, "while media arrived"),
        false => (Strength::Weak, "and the input does not show whether media arrived"),
    };
    (sent && arrived && !super::outage::held_up(facts, gap)).then(|| Evidence {
        strength,
        text: format!("no report reached the sender for {}, {media}", ms(lasted.as_secs_f64())),
        series: vec![Quantity::Feedback, Quantity::ReceivedRate, Quantity::Target],
        span: gap,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_flow::{drop_between, packets};

    #[test]
    fn without_losses_a_gap_of_reports_is_weak_evidence() {
        let strength = |lost: f64| {
            let flow = packets(&[
                (Quantity::SentRate, &|_| 1e6),
                (Quantity::PacketsSent, &|_| 10.0),
                (Quantity::PacketsLost, &|_| lost),
                (Quantity::Feedback, &|at| if (27.0..30.0).contains(&at) { 0.0 } else { 1.0 }),
            ]);
            examine(&Facts { flow: &flow, episode: &drop_between(29.9, 30.0) }).unwrap().strength
        };
        assert_eq!([strength(0.0), strength(f64::NAN)], [Strength::Strong, Strength::Weak]);
    }
}
