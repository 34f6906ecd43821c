// SPDX-License-Identifier: MIT OR Apache-2.0
//! The network carries nothing for a while.

use super::{Cause, Evidence, Strength, ms};
use crate::episodes::EpisodeKind;
use crate::facts::Facts;
use crate::frames;
use crate::model::{Origin, Quantity};
use paceline_units::{Time, TimeDelta};

pub(super) const CAUSE: Cause = Cause {
    id: "outage",
    title: "outage: the network carried nothing",
    advice: "check the access network (Wi-Fi range, handover, modem); an ICE restart helps if the gap lasts",
    examine,
};

/// A gap in arrivals of RTP (libwebrtc, `rtc_event_log_visualizer/alerts.cc`: 500 ms), and of RTCP (2 s).
const RTP_GAP: TimeDelta = TimeDelta::from_millis(500);
const RTCP_GAP: TimeDelta = TimeDelta::from_millis(2000);
/// Of the packets of a gap, at least this share is lost. Assumed: a queue may keep the rest.
const LOST: f64 = 0.3;

/// Assumed: statistics spread losses over the time since the last report, so that less is lost in the gap, but several times as much
/// as around it.
const LOST_COARSE: f64 = 0.02;
const LOST_TIMES: f64 = 4.0;
/// Assumed. The receiver measures jitter from arrivals (RFC 3550, section 6.4.1). Packets that a gap held up raise it; reports that are
/// lost do not.
const JITTER: f64 = 0.004;
const JITTER_TIMES: f64 = 4.0;
/// Assumed: after a gap that a longer path explains, the delay is longer by at least this share of the gap.
const LONGER: f64 = 0.7;

/// Assumed: counters are spread over the time between two samples, so that an answer before a gap may count in part.
const ANSWERED: f64 = 0.9;
/// Assumed: packets that were sent when a gap began waited for at least this share of it.
const LATE: f64 = 0.5;

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    // A gap lowers a rate. It does not slow the return for seconds.
    if facts.episode.kind == EpisodeKind::SlowReturn {
        return None;
    }
    let (from, to) = facts.window();
    let from = from - TimeDelta::from_millis(4000);
    if let Some(span) = facts.disconnection() {
        let (at, lasted) = ((span.0 - facts.flow.span.0).as_secs_f64(), ms((span.1 - span.0).as_secs_f64()));
        return Some(Evidence {
            strength: Strength::Strong,
            text: format!("the connection was lost at {at:.1} s, for {lasted}"),
            series: vec![Quantity::ReceivedRate, Quantity::SentRate, Quantity::RoundTrip],
            span,
        });
    }
    let received = facts.flow.get(Quantity::ReceivedRate).filter(|series| series.origin != Origin::Reports);
    if received.is_some() {
        let gap = facts.silence(Quantity::ReceivedRate, from, to)?;
        let lasted = gap.1 - gap.0;
        let sent = facts.sent(gap.0, gap.1).unwrap_or(1.0) > 0.0;
        let reports = |quantity| facts.flow.get(quantity).map(|series| series.sum(gap.0, gap.1));
        // Without packets to carry only reports show that the network is gone.
        // A sender that stops for want of reports goes on for a while.
        let at_once = facts
            .silence(Quantity::Feedback, from, to + TimeDelta::from_secs(1))
            .is_none_or(|silence| gap.0 - silence.0 <= TimeDelta::from_millis(700));
        let no_network = sent
            || (at_once
                && reports(Quantity::FeedbackSent).unwrap_or(0.0) > 0.0
                && reports(Quantity::Feedback) == Some(0.0))
            || (lasted >= RTCP_GAP && reports(Quantity::Feedback) == Some(0.0));
        // On a longer path packets are late once, and stay so.
        let is_longer_path = facts.flow.get(Quantity::DelayLow).is_some_and(|delay| {
            let before = delay.quantile(gap.0 - TimeDelta::from_secs(3), gap.0, 0.5).unwrap_or(0.0);
            let after = delay.quantile(gap.1, gap.1 + TimeDelta::from_secs(3), 0.1).unwrap_or(0.0);
            after - before >= LONGER * lasted.as_secs_f64()
        });
        // A path that answers is there: the other side sent nothing.
        let until = received.and_then(|series| series.points.iter().find(|(at, bps)| *at >= gap.0 && *bps > 0.0));
        let until = until.map_or(Time::MAX, |(at, _)| *at);
        let answers = facts.flow.get(Quantity::PathAnswers).map(|answers| answers.sum(gap.0, until));
        let answered = answers.is_some_and(|answers| answers >= ANSWERED);
        return (lasted >= RTP_GAP && no_network && !is_longer_path && !answered).then(|| Evidence {
            strength: Strength::Strong,
            text: format!("nothing arrived for {}", ms(lasted.as_secs_f64())),
            series: vec![Quantity::SentRate, Quantity::ReceivedRate],
            span: gap,
        });
    }
    if let Some((gap, rise)) = released(facts, from, to) {
        return Some(Evidence {
            strength: Strength::Strong,
            text: format!("a report was held up for {}, the next was not: no queue drains so fast", ms(rise)),
            series: vec![Quantity::RoundTrip, Quantity::Jitter, Quantity::PacketsLost],
            span: gap,
        });
    }
    // At the sender, reports are missing, and later ones say that the packets of the gap were lost or came late.
    let gap = facts.silence(Quantity::Feedback, from, to + TimeDelta::from_secs(1))?;
    let lasted = (gap.1 - gap.0).as_secs_f64();
    let loss = facts.loss_within(gap.0, gap.1).map_or(0.0, |(loss, _)| loss);
    let late = held_up(facts, gap);
    if facts.is_coarse() {
        // Statistics do not show a report between two samples: with the sample after it, a gap has three.
        let least = RTCP_GAP.max(facts.flow.interval.scale(2.9) - TimeDelta::from_secs(1));
        return (gap.1 - gap.0 >= least && media_stopped(facts, gap)).then(|| Evidence {
            strength: Strength::Strong,
            text: format!("no report for {}, and packets sent in that time were lost or held up", ms(lasted)),
            series: vec![Quantity::Feedback, Quantity::PacketsLost, Quantity::Jitter, Quantity::RoundTrip],
            span: gap,
        });
    }
    (gap.1 - gap.0 >= RTCP_GAP && (loss >= LOST || late)).then(|| Evidence {
        strength: Strength::Strong,
        text: match late {
            true => format!("no report for {}, and the packets of that time arrived as much later", ms(lasted)),
            false => {
                format!("no report for {}, and {:.0} % of the packets of that time were lost", ms(lasted), loss * 100.0)
            }
        },
        series: vec![Quantity::Feedback, Quantity::PacketsLost, Quantity::DelayHigh],
        span: gap,
    })
}

/// Returns the time before a report that was held up, and for how long, s: its round trip was long, and the next was shorter by more
/// than the time between the two. A queue of one second takes a second to drain.
fn released(facts: &Facts<'_>, from: Time, to: Time) -> Option<((Time, Time), f64)> {
    if !facts.is_coarse() || facts.episode.kind == EpisodeKind::Plateau {
        return None;
    }
    let reports = facts.flow.get(Quantity::RoundTrip)?.within(from, to + RTCP_GAP);
    let slack = facts.flow.interval.as_secs_f64();
    let threes = reports.windows(3).map(|three| (three[0], three[1], three[2]));
    let released = threes.filter_map(|(before, held, after)| {
        let (gap, rise) = ((before.0, held.0), held.1 - before.1.max(after.1));
        let is_released = rise >= RTCP_GAP.as_secs_f64() && rise >= (after.0 - held.0).as_secs_f64() + slack;
        (is_released && facts.may_follow(gap)).then_some((gap, rise))
    });
    let longest = released.max_by(|a, b| a.1.total_cmp(&b.1));
    longest.filter(|(gap, _)| media_stopped(facts, *gap))
}

/// Returns whether statistics say that the media of a gap of reports was lost or held up.
pub(super) fn media_stopped(facts: &Facts<'_>, gap: (Time, Time)) -> bool {
    let second = TimeDelta::from_secs(1);
    let share = |from, to| facts.loss_within(from, to).map_or(0.0, |(share, _)| share);
    let loss = share(gap.0, gap.1);
    let around = share(gap.0 - second * 6, gap.0 - second).max(share(gap.1 + second, gap.1 + second * 4));
    let is_lost = loss >= LOST_COARSE.max(LOST_TIMES * around);
    // A slow bottleneck raises the jitter too.
    let slow = frames::spread(facts).unwrap_or(0.0);
    let is_late = facts.flow.get(Quantity::Jitter).is_some_and(|jitter| {
        let usual = jitter.quantile(gap.0 - second * 10, gap.0, 0.5).unwrap_or(0.0).max(slow);
        jitter.max(gap.1, gap.1 + second * 2).is_some_and(|most| most >= JITTER.max(JITTER_TIMES * usual))
    });
    is_lost || is_late
}

/// Returns whether packets that were sent in a gap of reports waited for most of it.
pub(super) fn held_up(facts: &Facts<'_>, gap: (Time, Time)) -> bool {
    let Some(delay) = facts.flow.get(Quantity::DelayHigh) else { return false };
    let usual = delay.quantile(gap.0 - TimeDelta::from_secs(5), gap.0, 0.5).unwrap_or(0.0);
    delay
        .max(gap.0 - TimeDelta::from_millis(500), gap.1)
        .is_some_and(|most| most - usual >= LATE * (gap.1 - gap.0).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::of_flow;
    use crate::model::{Flow, Mark, MarkKind};
    use crate::test_flow::statistics;

    /// Statistics of a target that falls at 30 s while packets are lost, with these states of the connection.
    fn lossy(states: &[(i64, bool)]) -> Flow {
        let during = |at: f64| (29.0..32.0).contains(&at);
        let mut flow = statistics(&[
            (Quantity::Target, &|at| if at < 30.0 { 2e6 } else { 5e5 + 1e4 * at }),
            (Quantity::SentRate, &|at| if at < 30.0 { 2e6 } else { 5e5 }),
            (Quantity::PacketsSent, &|_| 100.0),
            (Quantity::PacketsLost, &|at| if during(at) { 40.0 } else { 0.0 }),
            (Quantity::RoundTrip, &|at| if (31.0..36.0).contains(&at) { 5.0 } else { 0.05 }),
            (Quantity::Feedback, &|_| 1.0),
        ]);
        for (at, is_connected) in states {
            flow.marks.push(Mark { at: Time::from_secs(*at), kind: MarkKind::Connected(*is_connected) });
        }
        flow
    }

    fn first_cause(flow: &Flow) -> &'static str {
        of_flow(flow).iter().find(|finding| finding.episode.kind == EpisodeKind::Drop).unwrap().cause
    }

    #[test]
    fn a_connection_that_was_lost_is_an_outage() {
        let without = first_cause(&lossy(&[]));
        assert_ne!(without, "outage");
        assert_eq!(first_cause(&lossy(&[(0, true)])), without);
        for lost in [[(27, false), (33, true)], [(31, false), (32, true)], [(34, false), (40, true)]] {
            assert_eq!(first_cause(&lossy(&lost)), "outage", "{lost:?}");
        }
        assert_eq!(first_cause(&lossy(&[(31, false)])), "outage", "it did not return");
        for elsewhere in [[(5, false), (9, true)], [(45, false), (50, true)]] {
            assert_eq!(first_cause(&lossy(&elsewhere)), without, "{elsewhere:?}");
        }
        assert_eq!(lossy(&[(3, false), (4, false), (6, true), (50, false)]).disconnections().len(), 2);
    }

    #[test]
    fn silence_on_a_path_that_answers_is_no_outage() {
        let cause = |answers: f64| {
            let paused = |at: f64| at >= 30.0;
            first_cause(&statistics(&[
                (Quantity::ReceivedRate, &|at| if paused(at) { 0.0 } else { 1e6 }),
                (Quantity::PacketsSent, &|at| if paused(at) { 0.0 } else { 100.0 }),
                (Quantity::PacketsLost, &|_| 0.0),
                (Quantity::PathAnswers, &|at| if paused(at) { answers } else { 0.4 }),
            ]))
        };
        assert_eq!([cause(0.0), cause(0.4)], ["outage", "application"]);
    }

    /// Whether media stopped from 30 s to 34 s by what statistics say: lost packets of 100 in each second, and jitter, s.
    fn stopped(lost: &dyn Fn(f64) -> f64, jitter: &dyn Fn(f64) -> f64) -> bool {
        let flow = statistics(&[
            (Quantity::SentRate, &|_| 1e6),
            (Quantity::PacketsSent, &|_| 100.0),
            (Quantity::PacketsLost, lost),
            (Quantity::Jitter, jitter),
        ]);
        let episode = crate::test_flow::drop_between(31.0, 33.0);
        media_stopped(&Facts { flow: &flow, episode: &episode }, (Time::from_secs(30), Time::from_secs(34)))
    }

    fn in_gap(at: f64) -> bool {
        (30.0..34.0).contains(&at)
    }

    #[test]
    fn media_stopped_where_more_is_lost_than_around() {
        assert!(stopped(&|at| if in_gap(at) { 20.0 } else { 0.0 }, &|_| 0.001));
        assert!(!stopped(&|_| 20.0, &|_| 0.001), "as much is lost all the time");
        assert!(!stopped(&|_| 0.0, &|_| 0.001), "nothing is lost");
    }

    #[test]
    fn a_queue_of_seconds_takes_seconds_to_drain() {
        // Reports every 3 s.
        let found = |kind, held_s: f64, drop: (f64, f64)| {
            let held = |at: f64| if (33.0..36.0).contains(&at) { held_s } else { 0.12 };
            let mut flow = statistics(&[
                (Quantity::SentRate, &|_| 1e6),
                (Quantity::RoundTrip, &held),
                (Quantity::Jitter, &|at| if at < 33.0 { 0.008 } else { 0.07 }),
            ]);
            flow.interval = TimeDelta::from_secs(1);
            let reports = flow.series.get_mut(&Quantity::RoundTrip).unwrap();
            reports.points.retain(|(at, _)| at.as_secs_f64() % 3.0 < 0.5);
            let episode = crate::episodes::Episode { kind, ..crate::test_flow::drop_between(drop.0, drop.1) };
            examine(&Facts { flow: &flow, episode: &episode }).map(|evidence| evidence.text)
        };
        let text = "a report was held up for 4080 ms, the next was not: no queue drains so fast";
        assert_eq!(found(EpisodeKind::Drop, 4.2, (31.0, 33.0)).as_deref(), Some(text));
        assert_eq!(found(EpisodeKind::Drop, 4.0, (31.0, 33.0)), None, "3 s and a sample later a queue may be gone");
        assert_eq!(found(EpisodeKind::Drop, 4.2, (37.0, 38.0)), None, "long before");
        assert_eq!(found(EpisodeKind::Plateau, 4.2, (31.0, 45.0)), None);
    }

    #[test]
    fn media_stopped_where_jitter_rises_after_the_gap() {
        assert!(stopped(&|_| 0.0, &|at| if at < 34.0 { 0.001 } else { 0.02 }));
        assert!(!stopped(&|_| 0.0, &|_| 0.02), "as high before");
    }
}
