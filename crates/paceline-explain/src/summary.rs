// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings to an answer: how long a flow was poor, its causes by the seconds that they cost, and one sentence for the call.

use crate::causes::{self, Strength, UNKNOWN, rate};
use crate::diagnosis::Finding;
use crate::episodes::{EpisodeKind, RETURNED, SENT_DROP};
use crate::explanation::FlowExplanation;
use crate::facts::REACTION;
use crate::model::{Flow, MarkKind, Media, Origin, Quantity, Series};
use paceline_units::{Time, TimeDelta};

pub use crate::explanation::CauseSummary;

/// A second is poor if its rate is below this share of the rate before a fall. Assumed: a quarter less shows in a picture.
const POOR: f64 = 0.75;
/// The rate before a fall counts up to this quantile of the call. Assumed: a higher one was a peak.
const PEAK: f64 = 0.9;
/// A further cause is in the sentence if it cost this share of the poor seconds. Assumed.
const NOTABLE: f64 = 0.2;
/// Causes at the sender. All others are causes of the path or of the receiver.
const OF_SENDER: [&str; 2] = ["cpu", "application"];

/// Returns the number of poor seconds of a flow, and its causes: first those that cost most of them, then in order of time.
pub(crate) fn of_findings(flow: &Flow, findings: &[Finding]) -> (usize, Vec<CauseSummary>) {
    let mut all: Vec<CauseSummary> = Vec::new();
    for (index, Finding { episode, cause, evidence, .. }) in findings.iter().enumerate() {
        let kind = if episode.kind == EpisodeKind::SentDrop { EpisodeKind::Drop } else { episode.kind };
        let same = all.iter().position(|other| (other.cause, other.kind) == (*cause, kind)).unwrap_or_else(|| {
            let (lowest_bps, findings) = (f64::INFINITY, Vec::new());
            all.push(CauseSummary { cause, kind, count: 0, strong: 0, poor_s: 0, lowest_bps, findings });
            all.len() - 1
        });
        let group = &mut all[same];
        group.count += 1;
        group.strong += usize::from(evidence.as_ref().is_some_and(|evidence| evidence.strength == Strength::Strong));
        group.lowest_bps = group.lowest_bps.min(episode.to);
        group.findings.push(index);
    }
    let mut owner = vec![0; findings.len()];
    for (nth, group) in all.iter().enumerate() {
        group.findings.iter().for_each(|index| owner[*index] = nth);
    }
    let poor = poor_seconds(flow, findings);
    poor.iter().flatten().for_each(|finding| all[owner[*finding]].poor_s += 1);
    all.sort_by_key(|group| std::cmp::Reverse(group.poor_s));
    (poor.len(), all)
}

/// A fall from which the rate has not returned.
struct Low<'a> {
    finding: usize,
    reference: f64,
    series: &'a Series,
}

/// Returns, for each poor second, the finding to which it belongs: the rate is low after a fall, the picture stood still, or the
/// connection was lost.
fn poor_seconds(flow: &Flow, findings: &[Finding]) -> Vec<Option<usize>> {
    let (begin, second) = (flow.span.0, TimeDelta::from_secs(1));
    let whole = ((flow.span.1 - begin).as_secs_f64().max(0.0)) as usize;
    let mut stopped = vec![false; whole];
    for (from, to) in frozen(flow).into_iter().chain(flow.disconnections()) {
        let index = |at: Time| (at - begin).as_secs_f64().max(0.0);
        let last = (index(to).ceil() as usize).min(whole);
        stopped[(index(from) as usize).min(last)..last].fill(true);
    }
    let sent = flow.get(Quantity::SentRate).or(flow.get(Quantity::ReceivedRate));
    let controlled = flow.rate().map(|(_, series)| series);
    let peak = |series: Option<&Series>| series.and_then(|series| series.quantile(begin, Time::MAX, PEAK));
    let peaks = (peak(controlled), peak(sent));
    let (mut poor, mut next, mut last, mut low) = (Vec::new(), 0, None, None::<Low<'_>>);
    for (at, stopped) in (0..whole).map(|index| begin + second * index as i64).zip(stopped) {
        while let Some(Finding { episode, .. }) = findings.get(next).filter(|found| found.episode.start < at + second) {
            let (series, peak) = match episode.kind {
                EpisodeKind::Drop => (controlled, peaks.0),
                EpisodeKind::SentDrop => (sent, peaks.1),
                EpisodeKind::Plateau | EpisodeKind::SlowReturn => (None, None),
            };
            if let Some((series, peak)) = series.zip(peak) {
                let before = low.take().filter(|low| std::ptr::eq(low.series, series)).map_or(0.0, |low| low.reference);
                low = Some(Low { finding: next, reference: before.max(episode.from.min(peak)), series });
            }
            last = Some(next);
            next += 1;
        }
        let value = low.as_ref().and_then(|low| low.series.mean(at, at + second).or(low.series.at(at)));
        let share = value.zip(low.as_ref()).map_or(1.0, |(value, low)| value / low.reference);
        if share < POOR || stopped {
            let near = last.filter(|index| findings[*index].episode.end + REACTION >= at);
            poor.push(low.as_ref().map(|low| low.finding).or(near));
        }
        // In the second of a fall the rate may still be the old one.
        low = low.filter(|low| share < RETURNED || findings[low.finding].episode.end >= at);
    }
    poor
}

/// Returns the spans in which the picture stood still. They do not overlap.
fn frozen(flow: &Flow) -> Vec<(Time, Time)> {
    let mut spans: Vec<(Time, Time)> = Vec::new();
    for mark in &flow.marks {
        if let MarkKind::Freeze(lasted) = mark.kind {
            let after = spans.last().map_or(flow.span.0, |(_, to)| *to);
            spans.push(((mark.at - lasted).max(after), mark.at));
        }
    }
    spans
}

/// Returns why the cause of a finding without evidence cannot be known, and what to record to know it.
pub(crate) fn unknowable(flow: &Flow) -> (String, &'static str) {
    let has = |quantities: &[Quantity]| quantities.iter().any(|quantity| flow.get(*quantity).is_some());
    let wanted = [
        ("delays", has(&[Quantity::DelayLow, Quantity::RoundTrip])),
        ("losses", has(&[Quantity::PacketsLost])),
        ("target of the controller", has(&[Quantity::Target, Quantity::Estimate])),
    ];
    let lacks: Vec<&str> = wanted.into_iter().filter(|(_, is_there)| !is_there).map(|(what, _)| what).collect();
    let is_coarse = is_coarse(flow);
    let why = match is_coarse {
        _ if !lacks.is_empty() => format!("it has no {}", lacks.join(" and no ")),
        true => format!("it has one sample every {:.0} s", flow.interval.as_secs_f64().max(1.0)),
        false => "no series in it shows one".to_owned(),
    };
    let record = match (flow.is_sent, is_coarse) {
        (false, _) => "a dump or an RTC event log at the sender",
        (true, true) => "an RTC event log at the sender",
        (true, false) if lacks.is_empty() => "a webrtc-internals dump of the same time",
        (true, false) => "packets at both ends, or an RTC event log with a webrtc-internals dump",
    };
    (why, record)
}

fn is_coarse(flow: &Flow) -> bool {
    flow.series.values().any(|series| series.origin == Origin::Statistics)
}

/// Returns the index of the flow that was poor for longest; of equal ones that with the most findings, then the first.
pub fn worst(explained: &[FlowExplanation]) -> Option<usize> {
    (0..explained.len()).rev().max_by_key(|index| (explained[*index].poor_s, explained[*index].findings.len()))
}

/// Returns the answer in one sentence: which flow was poor and for how long, why, and what did not limit it. It is about the
/// [worst](worst) flow.
pub(crate) fn verdict(flows: &[Flow], explained: &[FlowExplanation]) -> String {
    let Some((flow, of)) = worst(explained).map(|index| (&flows[index], &explained[index])) else {
        return "Nothing was sent or received.".to_owned();
    };
    let of_its_kind = flows.iter().filter(|other| other.is_sent == flow.is_sent).count();
    let mut sentence = subject(flow, of_its_kind > 1);
    let (poor, whole) = (of.poor_s, of.duration_s);
    if let Some((from, to)) = of.disconnected_s.first() {
        let count = of.disconnected_s.len();
        let often = if count > 1 { format!(", first of {count} times") } else { String::new() };
        sentence += &format!(" lost its connection at {from:.1} s for {:.1} s{often}, and", to - from);
    }
    let falls: Vec<&CauseSummary> = of.causes.iter().filter(|cause| cause.kind == EpisodeKind::Drop).collect();
    sentence += &match (poor, falls.iter().map(|cause| cause.count).sum()) {
        (1.., _) => format!(" was poor for {poor} of {whole:.0} s"),
        (0, 1) => format!(" was not poor in {whole:.0} s, although its rate fell once"),
        (0, 2..) => format!(
            " was not poor in {whole:.0} s, although its rate fell {}",
            times(falls.iter().map(|cause| cause.count).sum())
        ),
        (0, 0) if !of.causes.is_empty() => {
            let plateau = of.causes.iter().flat_map(|cause| &cause.findings).map(|index| &of.findings[*index]);
            let lasted: f64 = plateau.clone().map(|found| found.end_s - found.start_s).sum();
            let highest = plateau.map(|found| found.from_bps).fold(0.0, f64::max);
            format!(" did not fall; its rate stood at up to {} for {lasted:.0} of {whole:.0} s", rate(highest))
        }
        (0, 0) if matches!(of.rate, Some(Quantity::SentRate | Quantity::ReceivedRate)) => format!(
            " was not poor in {whole:.0} s: its rate did not fall by {:.0} % for long, and smaller falls show only in the target of \
             the controller",
            100.0 * (1.0 - SENT_DROP)
        ),
        (0, 0) => {
            format!(" was not poor in {whole:.0} s: its rate neither fell nor stood still for a cause that shows")
        }
    };
    let least = NOTABLE * poor as f64;
    let is_notable =
        |cause: &&CauseSummary| cause.poor_s as f64 >= least && (falls.is_empty() || cause.kind == EpisodeKind::Drop);
    let mut notable: Vec<&CauseSummary> = of.causes.iter().filter(is_notable).take(2).collect();
    // A second has at most one finding, so the sum of all causes is at most `poor`.
    let explained: usize = of.causes.iter().filter(|cause| cause.cause != UNKNOWN).map(|cause| cause.poor_s).sum();
    let is_unexplained = poor > 0 && poor.saturating_sub(explained) as f64 >= least;
    if notable.is_empty() && !is_unexplained {
        // Many causes, each with few of the poor seconds.
        notable.extend(falls.first().filter(|cause| cause.poor_s > 0));
    }
    let known = notable.iter().filter(|cause| cause.cause != UNKNOWN).map(|cause| reason(cause));
    let known: Vec<String> = known.collect();
    if !known.is_empty() {
        sentence += &format!(", because {}", known.join(", and "));
    }
    let is_unknown =
        is_unexplained || poor > 0 && notable.is_empty() || notable.iter().any(|cause| cause.cause == UNKNOWN);
    if is_unknown {
        let (why, record) = unknowable(flow);
        let of_some = if known.is_empty() { "" } else { " of some of it" };
        sentence +=
            &format!("; the cause{of_some} cannot be known from this file, because {why}: record {record} to know");
    }
    sentence += &unlimited(flow, of).map_or_else(String::new, |what| format!("; {what}"));
    sentence + "."
}

fn subject(flow: &Flow, is_named: bool) -> String {
    let media = match flow.media {
        Some(Media::Video) => "Video",
        Some(Media::Audio) => "Audio",
        None => "Media",
    };
    let both = flow.series.values().any(|series| series.origin == Origin::BothEnds);
    let direction = match (both, flow.is_sent) {
        (true, _) => return format!("{media} of `{}`", flow.name),
        (false, true) => "sent by this end",
        (false, false) => "received by this end",
    };
    let name = if is_named { format!(" (`{}`)", flow.name) } else { String::new() };
    format!("{media} {direction}{name}")
}

fn reason(cause: &CauseSummary) -> String {
    let title = causes::find(cause.cause).map_or(UNKNOWN, |cause| cause.title);
    let clause = title.split_once(": ").map_or(title, |(_, clause)| clause);
    let times = if cause.count > 1 { format!(", {}", times(cause.count)) } else { String::new() };
    let down = match cause.kind {
        EpisodeKind::Drop => format!(", down to {}", rate(cause.lowest_bps)),
        _ => String::new(),
    };
    format!("{clause}{times}{down} ({}, evidence: {})", cause.cause, cause.confidence())
}

/// Returns how often something happened in words.
pub fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

/// Returns what did not limit a flow, as far as its series show it.
fn unlimited(flow: &Flow, of: &FlowExplanation) -> Option<&'static str> {
    let fits = |is: &dyn Fn(&str) -> bool| {
        of.findings.iter().any(|found| is(found.cause) || found.others.iter().any(|other| is(other.cause)))
    };
    let has = |quantities: &[Quantity]| quantities.iter().all(|quantity| flow.get(*quantity).is_some());
    let says_limit = flow.marks.iter().any(|mark| matches!(mark.kind, MarkKind::Limited(_)));
    let has_cpu = says_limit || has(&[Quantity::EncodeTime, Quantity::FrameRate]);
    let has_target = has(&[Quantity::Target]) || has(&[Quantity::Estimate]);
    let has_application = has_target && has(&[Quantity::SentRate]);
    let has_path = has(&[Quantity::PacketsLost]) && (has(&[Quantity::RoundTrip]) || has(&[Quantity::DelayLow]));
    if !flow.is_sent || of.findings.is_empty() {
        return None;
    }
    match (has_cpu && !fits(&|id| id == "cpu"), has_application && !fits(&|id| id == "application")) {
        (true, true) => Some("nothing at the sender limited it"),
        // A cause at the sender, and none of the path.
        _ if has_path && !fits(&|id| !OF_SENDER.contains(&id)) => Some("the path did not limit it"),
        (true, false) => Some("the CPU did not limit it"),
        (false, true) => Some("the application did not limit it"),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::explain;
    use crate::model::{Call, Limit, Mark};
    use crate::test_flow;

    /// Statistics of 60 s with a target that is a third from 20 s to 26 s and from 40 s to 45 s. Each time a queue stands before.
    fn statistics() -> Flow {
        let is_low = |at: f64| (20.0..26.0).contains(&at) || (40.0..45.0).contains(&at);
        let is_queue = |at: f64| [20.0, 40.0].iter().any(|queue| (-2.0..1.0).contains(&(at - queue)));
        let rate = move |at: f64| if is_low(at) { 4e5 + 1e3 * at } else { 1.2e6 + 1e3 * at };
        let mut flow = test_flow::statistics(&[
            (Quantity::Target, &rate),
            (Quantity::SentRate, &rate),
            (Quantity::RoundTrip, &move |at| if is_queue(at) { 0.4 } else { 0.05 }),
            (Quantity::PacketsSent, &|_| 100.0),
            (Quantity::PacketsLost, &|_| 0.0),
        ]);
        flow.series.remove(&Quantity::DelayLow);
        flow.series.values_mut().for_each(|series| series.origin = Origin::Statistics);
        (flow.is_sent, flow.media, flow.interval) = (true, Some(Media::Video), TimeDelta::from_secs(1));
        flow
    }

    fn of(flow: &Flow) -> (String, FlowExplanation) {
        let mut explained = explain(&Call { flows: vec![flow.clone()], ..Call::default() });
        (explained.verdict, explained.flows.remove(0))
    }

    #[test]
    fn the_answer_names_the_direction_the_poor_seconds_and_the_cause_with_its_number() {
        let (verdict, explained) = of(&statistics());
        assert!((10..=12).contains(&explained.poor_s), "{explained:?}");
        let begin = format!("Video sent by this end was poor for {} of 60 s, because ", explained.poor_s);
        assert!(verdict.starts_with(&begin), "{verdict}");
        assert!(verdict.contains(", twice, down to 420 kbit/s (own-queue, evidence: strong)"), "{verdict}");
        let drops: Vec<_> = explained.causes.iter().filter(|cause| cause.kind == EpisodeKind::Drop).collect();
        assert_eq!((drops.len(), drops[0].count, drops[0].strong), (1, 2, 2), "{drops:?}");
        assert_eq!(drops[0].poor_s, explained.poor_s);
    }

    #[test]
    fn the_sender_or_the_path_is_excluded_only_with_evidence() {
        let mut flow = statistics();
        assert!(of(&flow).0.ends_with("; the application did not limit it."), "{}", of(&flow).0);
        flow.marks.push(Mark { at: Time::ZERO, kind: MarkKind::Limited(Limit::None) });
        assert!(of(&flow).0.ends_with("; nothing at the sender limited it."), "{}", of(&flow).0);
        flow.is_sent = false;
        assert!(!of(&flow).0.contains("limit"), "a receiver does not see the sender: {}", of(&flow).0);
    }

    #[test]
    fn an_unknown_cause_comes_with_what_is_missing_and_what_to_record() {
        let mut flow = statistics();
        flow.series.retain(|quantity, _| matches!(quantity, Quantity::Target | Quantity::SentRate));
        let (verdict, explained) = of(&flow);
        let missing = "the cause cannot be known from this file, because it has no delays and no losses";
        assert!(
            verdict.contains(missing) && verdict.contains("record an RTC event log at the sender to know"),
            "{verdict}"
        );
        assert!(explained.findings.iter().any(|found| found.title.contains(missing)), "{explained:?}");
        assert!(!of(&statistics()).0.contains("cannot be known"));
    }

    #[test]
    fn a_call_without_falls_is_not_poor_unless_the_picture_stands_still() {
        let mut flow = statistics();
        let calm = |at: f64| 1.2e6 + 2e4 * at;
        let points = (0..60).map(|at| (Time::from_secs(at), calm(at as f64)));
        let series = Series::of(Origin::Statistics, crate::model::Confidence::Coarse, points);
        flow.series.insert(Quantity::Target, series.clone());
        flow.series.insert(Quantity::SentRate, series);
        assert!(of(&flow).0.starts_with("Video sent by this end was not poor in 60 s"), "{}", of(&flow).0);
        // Freezes that are longer than the call overlap each other.
        for at in [30, 31] {
            let kind = MarkKind::Freeze(TimeDelta::from_secs(86400));
            flow.marks.push(Mark { at: Time::from_secs(at), kind });
        }
        assert_eq!(of(&flow).1.poor_s, 31);
        assert!(of(&flow).0.contains("was poor for 31 of 60 s; the cause cannot be known"), "{}", of(&flow).0);
    }

    /// The sentence on [`statistics`] if its falls own these poor seconds, and no cause owns the others.
    fn with_poor_seconds(owned: usize, unowned: usize) -> String {
        let flow = statistics();
        let (_, mut explained) = of(&flow);
        explained.causes.iter_mut().for_each(|cause| cause.poor_s = 0);
        explained.causes.iter_mut().find(|cause| cause.kind == EpisodeKind::Drop).unwrap().poor_s = owned;
        explained.poor_s = owned + unowned;
        verdict(&[flow], &[explained])
    }

    #[test]
    fn poor_seconds_without_a_cause_are_unknown_from_a_fifth_of_all_poor_seconds() {
        let some = "; the cause of some of it cannot be known from this file";
        let most = with_poor_seconds(10, 30);
        assert!(most.contains("poor for 40 of 60 s, because ") && most.contains("own-queue"), "{most}");
        assert!(most.contains(some), "{most}");
        assert!(with_poor_seconds(40, 10).contains(some));
        for few in [with_poor_seconds(41, 10), with_poor_seconds(10, 0)] {
            assert!(few.contains(", because ") && !few.contains("cannot be known"), "{few}");
        }
    }

    #[test]
    fn the_cause_is_unknown_if_no_cause_owns_a_fifth_of_the_poor_seconds() {
        let none = with_poor_seconds(1, 30);
        assert!(none.contains("was poor for 31 of 60 s; the cause cannot be known from this file"), "{none}");
        assert!(!none.contains("because more was sent"), "{none}");
    }

    #[test]
    fn freezes_far_from_every_finding_belong_to_no_cause() {
        let mut flow = statistics();
        let poor = of(&flow).1.poor_s;
        let freeze = |s| MarkKind::Freeze(TimeDelta::from_secs(s));
        flow.marks.push(Mark { at: Time::from_secs(15), kind: freeze(12) });
        let (verdict, explained) = of(&flow);
        assert_eq!(explained.poor_s, poor + 12);
        assert_eq!(explained.causes.iter().map(|cause| cause.poor_s).sum::<usize>(), poor, "{explained:?}");
        assert!(verdict.contains("own-queue") && verdict.contains("the cause of some of it cannot be"), "{verdict}");
        // During a fall, freezes belong to its cause.
        flow.marks[0] = Mark { at: Time::from_secs(25), kind: freeze(4) };
        let (verdict, explained) = of(&flow);
        assert_eq!(explained.poor_s, poor);
        assert!(!verdict.contains("cannot be known"), "{verdict}");
    }

    #[test]
    fn many_causes_with_few_poor_seconds_each_name_the_first() {
        let flow = statistics();
        let (_, mut explained) = of(&flow);
        let drop = explained.causes.iter().find(|cause| cause.kind == EpisodeKind::Drop).unwrap().clone();
        explained.causes = vec![CauseSummary { poor_s: 5, ..drop }; 6];
        explained.poor_s = 30;
        let verdict = verdict(&[flow], &[explained]);
        assert!(verdict.contains("own-queue") && !verdict.contains("cannot be known"), "{verdict}");
    }
}
