// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of a call that need an explanation: drops, plateaus and slow returns of the rate.

use crate::model::{Flow, Quantity, Series, sorted};
use paceline_units::{Time, TimeDelta};
use schemars::JsonSchema;
use serde::Serialize;

/// The step at which rates are examined. Assumed: the shortest interval of reports in use (RFC 8888 and transport-wide feedback).
const STEP: TimeDelta = TimeDelta::from_millis(100);
/// A drop ends when the rate has not fallen further for this time. Assumed: longer than a round trip of most paths.
const QUIET: TimeDelta = TimeDelta::from_millis(1000);
/// A drop is a fall to this share of the largest rate of the last [`REFERENCE`]. Assumed: GCC multiplies by 0.85, SCReAM and NADA
/// take smaller steps several times.
const DROP: f64 = 0.9;
/// Sent rates follow the content. Assumed: only a large and lasting fall counts.
pub(crate) const SENT_DROP: f64 = 0.6;
/// The span before a drop whose largest rate is its reference. Assumed: two reports of 1 s.
const REFERENCE: TimeDelta = TimeDelta::from_millis(2000);
/// A plateau is at least this long. Assumed: shorter ones are common while a controller holds its rate.
const PLATEAU: TimeDelta = TimeDelta::from_secs(10);
/// Within a plateau the rate stays within this share of its first value. Assumed: controllers that probe change more.
const FLAT: f64 = 0.03;
/// Lower rates are not examined. Assumed: 20 kbit/s is below the minimum of all controllers here.
const LEAST: f64 = 20_000.0;
/// A return is slow if the rate has not reached [`RETURNED`] of its former value after this time. Assumed: libwebrtc waits 1 s for
/// the result of a probe and asks for the next within 5 s (`probe_controller.cc`).
pub(crate) const SLOW: TimeDelta = TimeDelta::from_secs(8);
/// The share of the former rate that counts as returned. Assumed: the former rate may have been a peak.
pub(crate) const RETURNED: f64 = 0.85;

#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EpisodeKind {
    /// The rate of the controller fell.
    Drop,
    /// The sent rate fell, and the rate of the controller did not.
    SentDrop,
    /// The rate stayed at one value.
    Plateau,
    /// The rate needed long to return after a drop.
    SlowReturn,
}

/// A part of a call that needs an explanation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Episode {
    pub kind: EpisodeKind,
    /// Its beginning: the last time of the old rate.
    pub start: Time,
    /// Its end: the first time of the new rate.
    pub end: Time,
    /// The rate before, bit/s.
    pub from: f64,
    /// The rate after, bit/s.
    pub to: f64,
}

/// Returns the episodes of a flow in order of time.
pub fn find(flow: &Flow) -> Vec<Episode> {
    let Some((quantity, series)) = flow.rate() else { return Vec::new() };
    let mut found = match quantity {
        Quantity::Target | Quantity::Estimate => drops(&stepped(series, flow.span), EpisodeKind::Drop, Fall::Target),
        _ => Vec::new(),
    };
    if let Some(sent) = flow.get(Quantity::SentRate).or(flow.get(Quantity::ReceivedRate)) {
        let kind = if found.is_empty() && !matches!(quantity, Quantity::Target | Quantity::Estimate) {
            EpisodeKind::Drop
        } else {
            EpisodeKind::SentDrop
        };
        let sent = drops(&smoothed(sent, flow.span), kind, Fall::Rate);
        // A fall of the sent rate beside one of the controller is the same, also if it shows in the sample before.
        let margin = TimeDelta::from_secs(3).max(flow.interval.scale(1.1));
        let same = |sent: &Episode| found.iter().any(|d| sent.start <= d.end + margin && d.start <= sent.end + margin);
        let own: Vec<Episode> = sent.into_iter().filter(|sent| !same(sent)).collect();
        found.extend(own);
    }
    found.sort_by_key(|episode| episode.start);
    if matches!(quantity, Quantity::Target | Quantity::Estimate) {
        let grid = stepped(series, flow.span);
        // Two samples are no plateau.
        let flat = plateaus(&grid, &found, PLATEAU.max(flow.interval.scale(2.5)));
        found.extend([slow_returns(&grid, &found), flat].concat());
        found.sort_by_key(|episode| episode.start);
    }
    found
}

type Grid = Vec<(Time, f64)>;

/// Returns the value that holds at each step.
fn stepped(series: &Series, (from, to): (Time, Time)) -> Grid {
    let mut grid = Vec::new();
    let (mut at, mut index, points) = (from, 0, &series.points);
    while at <= to {
        while index < points.len() && points[index].0 <= at {
            index += 1;
        }
        if index > 0 {
            grid.push((at, points[index - 1].1));
        }
        at += STEP;
    }
    grid
}

/// Returns the mean of the second around each step.
fn smoothed(series: &Series, span: (Time, Time)) -> Grid {
    let half = TimeDelta::from_millis(500);
    let points = &series.points;
    let (mut low, mut high, mut sum) = (0, 0, 0.0);
    let grid = stepped(series, span).into_iter().map(|(at, value)| {
        while high < points.len() && points[high].0 < at + half {
            sum += points[high].1;
            high += 1;
        }
        while low < high && points[low].0 < at - half {
            sum -= points[low].1;
            low += 1;
        }
        // The sum may be slightly beside 0 after large values.
        let mean = if high > low { sum / (high - low) as f64 } else { value };
        (at, if mean < 1.0 { 0.0 } else { mean })
    });
    grid.collect()
}

/// What falls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fall {
    /// The target or the estimate.
    Target,
    /// The rate of packets, which follows the content.
    Rate,
}

fn drops(grid: &Grid, kind: EpisodeKind, fall: Fall) -> Vec<Episode> {
    let share = if fall == Fall::Target { DROP } else { SENT_DROP };
    let mut found = Vec::new();
    let reference = (REFERENCE.as_nanos() / STEP.as_nanos()) as usize;
    let quiet = (QUIET.as_nanos() / STEP.as_nanos()) as usize;
    // Rates before `after` belong to an earlier drop.
    let (mut after, mut index) = (0, 0);
    while index < grid.len() {
        let span = index.saturating_sub(reference).max(after)..index;
        let top = span.clone().rev().max_by(|a, b| grid[*a].1.total_cmp(&grid[*b].1));
        let value = grid[index].1;
        let Some(top) = top.filter(|top| grid[*top].1 >= LEAST && value <= share * grid[*top].1) else {
            index += 1;
            continue;
        };
        let mut low = index;
        let mut at = index;
        while at < grid.len() && at <= low + quiet {
            if grid[at].1 < 0.99 * grid[low].1 {
                low = at;
            }
            if grid[at].1 > 1.25 * grid[low].1 {
                break;
            }
            at += 1;
        }
        // A sent rate that returns at once was a pause between two pictures.
        let lasts = fall == Fall::Target
            || grid[low..(low + 15).min(grid.len())].iter().all(|(_, value)| *value <= (share + 0.15) * grid[top].1);
        if lasts {
            // The last time of the old rate, and not the first.
            let from = grid[top].1;
            let last = (top..index).rev().find(|at| grid[*at].1 >= 0.97 * from).unwrap_or(top);
            let start = grid[last].0;
            let (end, to) = grid[low];
            if fall == Fall::Rate && is_peak(&grid[..=last], to) {
                (after, index) = (low, low + 1);
                continue;
            }
            found.push(Episode { kind, start, end, from, to });
        }
        after = low;
        index = low + 1;
    }
    found
}

/// Assumed: the steps before a fall that show whether the rate was usual, 6 s, and how many of them are needed.
const HISTORY: (usize, usize) = (60, 25);
/// Assumed: rates of encoders vary by this share between two key frames.
const USUAL: f64 = 1.25;
/// Assumed: a call that begins with a key frame falls to more than this share of it; one that is paused does not.
const BEGUN: f64 = 0.02;

/// Returns whether a sent rate falls to what it was in a quarter of the seconds before: a key frame, or the begin of a call, is a peak.
fn is_peak(before: &[(Time, f64)], to: f64) -> bool {
    let rates = sorted(before.iter().rev().take(HISTORY.0).map(|(_, rate)| *rate));
    let Some((usual, top)) = rates.get(rates.len() / 4).zip(rates.last()) else { return false };
    if rates.len() < HISTORY.1 { to > BEGUN * top } else { *usual <= USUAL * to }
}

fn slow_returns(grid: &Grid, drops: &[Episode]) -> Vec<Episode> {
    let mut found: Vec<Episode> = Vec::new();
    for (index, drop) in drops.iter().enumerate().filter(|(_, drop)| drop.kind == EpisodeKind::Drop) {
        if drop.to > 0.7 * drop.from || found.last().is_some_and(|last| last.end > drop.start) {
            continue;
        }
        let next = drops[index + 1..].iter().map(|next| next.start).next().unwrap_or(Time::MAX);
        let after = grid.partition_point(|(at, _)| *at <= drop.end);
        let mut end = drop.end;
        let mut rate = drop.to;
        for (at, value) in &grid[after..] {
            if *at >= next || *value >= RETURNED * drop.from {
                break;
            }
            (end, rate) = (*at, *value);
        }
        // Growth distinguishes a slow return from a plateau.
        if end - drop.end >= SLOW && rate > 1.05 * drop.to {
            found.push(Episode { kind: EpisodeKind::SlowReturn, start: drop.end, end, from: drop.from, to: rate });
        }
    }
    found
}

fn plateaus(grid: &Grid, drops: &[Episode], least: TimeDelta) -> Vec<Episode> {
    let mut found: Vec<Episode> = Vec::new();
    let mut start = 0;
    for end in 1..=grid.len() {
        let first = grid[start].1;
        if end < grid.len() && (grid[end].1 - first).abs() <= FLAT * first {
            continue;
        }
        let (from, to) = (grid[start], grid[end - 1]);
        if to.0 - from.0 >= least && first >= LEAST {
            let is_drop = |drop: &&Episode| drop.kind == EpisodeKind::Drop && drop.start > from.0 && drop.end < to.0;
            if !drops.iter().any(|drop| is_drop(&drop)) {
                found.push(Episode { kind: EpisodeKind::Plateau, start: from.0, end: to.0, from: first, to: to.1 });
            }
        }
        start = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Confidence, Origin};

    fn flow(points: &[(f64, f64)], end: i64) -> Flow {
        let points = points.iter().map(|(at, value)| (Time::from_secs_f64(*at), *value));
        let target = Series::of(Origin::Log, Confidence::Exact, points);
        let mut flow = Flow { span: (Time::ZERO, Time::from_secs(end)), ..Flow::default() };
        flow.series.insert(Quantity::Target, target);
        flow
    }

    #[test]
    fn joins_the_steps_of_a_drop() {
        let steps: Vec<(f64, f64)> = (0..12).map(|n| (20.0 + 0.1 * f64::from(n), 4e6 - 3e5 * f64::from(n))).collect();
        let found = find(&flow(&[&[(0.0, 4e6)], &steps[..]].concat(), 30));
        let drops: Vec<&Episode> = found.iter().filter(|e| e.kind == EpisodeKind::Drop).collect();
        assert_eq!(drops.len(), 1, "{found:?}");
        assert_eq!((drops[0].from, drops[0].to), (4e6, 7e5));
        let lasted = (drops[0].end - drops[0].start).as_secs_f64();
        assert!((0.9..1.5).contains(&lasted), "{lasted}");
    }

    #[test]
    fn two_drops_with_a_pause_are_two() {
        let found = find(&flow(&[(0.0, 2e6), (10.0, 1.5e6), (14.0, 1e6)], 18));
        let drops: Vec<(f64, f64)> =
            found.iter().filter(|e| e.kind == EpisodeKind::Drop).map(|e| (e.from, e.to)).collect();
        assert_eq!(drops, [(2e6, 1.5e6), (1.5e6, 1e6)]);
    }

    #[test]
    fn small_steps_are_no_drop_and_a_constant_rate_is_a_plateau() {
        let found = find(&flow(&[(0.0, 1e6), (5.0, 0.95e6), (10.0, 0.92e6)], 30));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].kind, EpisodeKind::Plateau);
    }

    #[test]
    fn a_return_is_slow_if_it_takes_long() {
        let growth: Vec<(f64, f64)> = (0..200).map(|n| (11.0 + 0.1 * f64::from(n), 4e5 + 5e3 * f64::from(n))).collect();
        let found = find(&flow(&[&[(0.0, 2e6), (10.0, 4e5)], &growth[..]].concat(), 30));
        assert!(found.iter().any(|e| e.kind == EpisodeKind::SlowReturn), "{found:?}");
        let growth: Vec<(f64, f64)> = (0..200).map(|n| (11.0 + 0.1 * f64::from(n), 4e5 + 5e4 * f64::from(n))).collect();
        let found = find(&flow(&[&[(0.0, 2e6), (10.0, 4e5)], &growth[..]].concat(), 30));
        assert!(found.iter().all(|e| e.kind != EpisodeKind::SlowReturn), "{found:?}");
    }

    #[test]
    fn sums_of_large_values_leave_no_negative_rate() {
        let rate = |second: i64| if second < 5 { 1e6 / 3.0 + 0.1 * second as f64 } else { 0.0 };
        let points = (0..10).map(|second| (Time::from_secs(second), rate(second)));
        let sent = Series::of(Origin::Statistics, Confidence::Coarse, points);
        let grid = smoothed(&sent, (Time::ZERO, Time::from_secs(9)));
        assert!(grid.iter().all(|(_, value)| *value >= 0.0), "{grid:?}");
        assert!(grid[0].1 > 3e5 && grid[grid.len() - 1].1 == 0.0, "{grid:?}");
    }

    /// The sent rates of 60 s in steps of 100 ms, without a target.
    fn sent(rate: &dyn Fn(f64) -> f64) -> Vec<Episode> {
        let points: Vec<(f64, f64)> = (0..600).map(|index| f64::from(index) / 10.0).map(|at| (at, rate(at))).collect();
        let mut flow = flow(&points, 60);
        let series = flow.series.remove(&Quantity::Target).unwrap();
        flow.series.insert(Quantity::SentRate, series);
        find(&flow)
    }

    #[test]
    fn key_frames_are_no_drops_of_a_sent_rate() {
        for (period, lasts) in [(2.0, 0.1), (4.0, 0.3), (8.5, 1.0), (10.0, 1.5), (30.0, 0.5)] {
            let found = sent(&|at| if at % period < lasts { 1e6 } else { 1.2e5 });
            assert_eq!(found, [], "{lasts} s each {period} s");
        }
        let fall = sent(&|at| if at < 30.0 { 1e6 } else { 3e5 });
        assert_eq!(fall.len(), 1, "{fall:?}");
        let pause = sent(&|at| if at < 1.0 { 1e6 } else { 0.0 });
        assert_eq!(pause.len(), 1, "{pause:?}");
    }

    #[test]
    fn between_rare_samples_a_plateau_has_three_and_a_fall_shows_once() {
        let kinds = |steps: &[(f64, f64)], interval: i64| {
            let mut flow = flow(steps, 60);
            flow.interval = TimeDelta::from_secs(interval);
            find(&flow).into_iter().map(|episode| episode.kind).collect::<Vec<_>>()
        };
        let steps = [(0.0, 1e6), (10.0, 1.2e6), (20.0, 1.4e6), (30.0, 1.4e6), (40.0, 1.6e6), (50.0, 1.8e6)];
        assert_eq!(kinds(&steps, 10), []);
        assert_eq!(kinds(&steps, 1).len(), 2);
        assert_eq!(kinds(&[(0.0, 1e6), (40.0, 1.2e6)], 10), [EpisodeKind::Plateau]);
        let mut early = flow(&[(0.0, 1e6), (40.0, 5e5)], 60);
        let points = (0..60).map(|at| (Time::from_secs(at), if at < 30 { 1e6 } else { 5e5 }));
        let sent = Series::of(Origin::Statistics, Confidence::Coarse, points);
        early.series.insert(Quantity::SentRate, sent);
        let drops = |flow: &Flow| find(flow).iter().filter(|episode| episode.kind != EpisodeKind::Plateau).count();
        assert_eq!(drops(&early), 2);
        early.interval = TimeDelta::from_secs(10);
        assert_eq!(drops(&early), 1);
    }
}
