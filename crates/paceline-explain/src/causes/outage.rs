//! The network carries nothing for a while.

use super::{Cause, Evidence, Strength, ms};
use crate::facts::Facts;
use crate::model::{Origin, Quantity};
use paceline_units::TimeDelta;

pub(super) const CAUSE: Cause = Cause {
    id: "outage",
    title: "outage: the network carried nothing",
    advice: "check the access network (Wi-Fi range, handover, modem); an ICE restart helps if the gap lasts",
    examine,
};

/// A gap in arrivals of RTP (libwebrtc, `rtc_event_log_visualizer/alerts.cc`: 500 ms), and of RTCP (2 s).
const RTP_GAP: TimeDelta = TimeDelta::from_millis(500);
const RTCP_GAP: TimeDelta = TimeDelta::from_millis(2000);
/// Of the packets of a gap, at least this share is lost. Ours: a queue may keep the rest.
const LOST: f64 = 0.5;

/// Ours: after a gap that a longer path explains, the delay is longer by at least this share of the gap.
const LONGER: f64 = 0.7;

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    let (from, to) = facts.window();
    let from = from - TimeDelta::from_millis(4000);
    let received = facts.flow.get(Quantity::ReceivedRate).filter(|series| series.origin != Origin::Reports);
    if received.is_some() {
        let gap = facts.silence(Quantity::ReceivedRate, from, to)?;
        let lasted = gap.1 - gap.0;
        let sent = facts.sent(gap.0, gap.1).unwrap_or(1.0) > 0.0;
        let reports = |quantity| facts.flow.get(quantity).map(|series| series.sum(gap.0, gap.1));
        // Without packets to carry only reports show that the network is gone.
        let no_network = sent
            || (reports(Quantity::FeedbackSent).unwrap_or(0.0) > 0.0 && reports(Quantity::Feedback) == Some(0.0))
            || (lasted >= RTCP_GAP && reports(Quantity::Feedback) == Some(0.0));
        // On a longer path packets are late once, and stay so.
        let is_longer_path = facts.flow.get(Quantity::DelayLow).is_some_and(|delay| {
            let before = delay.quantile(gap.0 - TimeDelta::from_secs(3), gap.0, 0.5).unwrap_or(0.0);
            let after = delay.quantile(gap.1, gap.1 + TimeDelta::from_secs(3), 0.1).unwrap_or(0.0);
            after - before >= LONGER * lasted.as_secs_f64()
        });
        return (lasted >= RTP_GAP && no_network && !is_longer_path).then(|| Evidence {
            strength: Strength::Strong,
            text: format!("nothing arrived for {}", ms(lasted.as_secs_f64())),
            series: vec![Quantity::SentRate, Quantity::ReceivedRate],
            span: gap,
        });
    }
    // At the sender, reports are missing, and later ones say that most packets of the gap are lost.
    let gap = facts.silence(Quantity::Feedback, from, to)?;
    let (loss, _) = facts.loss_within(gap.0, gap.1)?;
    (gap.1 - gap.0 >= RTCP_GAP && loss >= LOST).then(|| Evidence {
        strength: Strength::Strong,
        text: format!("no report for {}, and {:.0} % of the packets of that time were lost", ms((gap.1 - gap.0).as_secs_f64()), loss * 100.0),
        series: vec![Quantity::Feedback, Quantity::PacketsLost],
        span: gap,
    })
}
