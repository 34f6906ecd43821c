// SPDX-License-Identifier: MIT OR Apache-2.0
//! One line for each group of equal runs, such as the runs of a controller: means over seeds with intervals, and the
//! distributions of frame delay.

use super::rate;
use super::run_view::{changes, differing_controllers};
use crate::report::figure::{Axis, Figure, Panel, Role, Series, SeriesKind, Subject};
use crate::report::read::Run;
use paceline_netsim::records::Summary;
use serde_json::Value;

/// Length of the bins, s: that of the received rate.
const BIN_S: f64 = rate::BIN_MS as f64 / 1e3;
/// Most flows with their own panel of rates. The rates of more flows are drawn as a sum.
const MOST_FLOWS: usize = 4;
/// Largest number of steps of a distribution.
const STEPS: usize = 1000;

/// Runs that differ in their seeds alone.
struct Group<'a> {
    label: String,
    runs: Vec<&'a Run>,
}

/// Returns the figure of a scenario; `None` for a single run. `time` is the figure of the same runs over time.
pub(super) fn figure(runs: &[&Run], time: &Figure) -> Option<Figure> {
    if runs.len() < 2 {
        return None;
    }
    let groups = groups(runs);
    let source = Source { time, groups: &groups, bins: (time.panels.first()?.x.range?.1 / BIN_S).ceil() as usize };
    let mut panels = source.rates();
    panels.extend(source.queues());
    panels.extend(source.frame_delays());
    panels.retain(|panel| panel.series.iter().any(|series| series.subject.is_some()));
    let several_seeds = groups.iter().any(|group| group.runs.len() > 1);
    Some(Figure {
        id: format!("{}/overlay", time.scenario),
        scenario: time.scenario.clone(),
        title: if several_seeds { "Means over seeds" } else { "Side by side" }.to_owned(),
        subjects: groups.iter().map(|group| Subject::named(&group.label)).collect(),
        panels,
    })
}

/// Returns the groups of runs in order of their first run. Their labels say in what they differ.
fn groups<'a>(runs: &[&'a Run]) -> Vec<Group<'a>> {
    let differ = |of: &dyn Fn(&Run) -> String| runs.iter().any(|run| of(run) != of(runs[0]));
    let world = |run: &Run| run.about.run.world.clone();
    let (changed, worlds) = (differ(&changes), differ(&world));
    let mut groups: Vec<Group<'a>> = Vec::new();
    for run in runs {
        let mut parts = vec![differing_controllers(run, runs)];
        if changed {
            parts.push(changes(run));
        }
        if worlds {
            parts.push(world(run));
        }
        parts.extend(run.cut());
        parts.retain(|part| !part.is_empty());
        let label = if parts.is_empty() { "all runs".to_owned() } else { parts.join(" · ") };
        match groups.iter_mut().find(|group| group.label == label) {
            Some(group) => group.runs.push(run),
            None => groups.push(Group { label, runs: vec![run] }),
        }
    }
    groups
}

struct Source<'a> {
    time: &'a Figure,
    groups: &'a [Group<'a>],
    bins: usize,
}

impl<'a> Source<'a> {
    /// Returns the series of a run in a panel over time with the ids of their flows.
    fn of_run(&self, panel: &str, run: &Run) -> impl Iterator<Item = (&'a str, &'a Series)> {
        let (time, directory) = (self.time, run.about.run.directory.clone());
        time.panel(panel).into_iter().flat_map(|panel| &panel.series).filter_map(move |series| {
            let subject = &time.subjects[series.subject?];
            (subject.run == directory).then_some((subject.flow.as_str(), series))
        })
    }

    /// Returns different values of the runs, in order of first use.
    fn different(&self, of: impl Fn(&Run) -> Vec<String>) -> Vec<String> {
        let mut different = Vec::new();
        for value in self.groups.iter().flat_map(|group| &group.runs).flat_map(|run| of(run)) {
            if !different.contains(&value) {
                different.push(value);
            }
        }
        different
    }

    /// Returns a line per group: the mean of the values of its runs in each bin, with the interval.
    fn means(&self, of: impl Fn(&Run) -> Vec<Option<f64>>) -> Vec<Series> {
        let line = |(index, group): (usize, &Group<'_>)| {
            let runs: Vec<Vec<Option<f64>>> = group.runs.iter().map(|run| of(run)).collect();
            let mut line = Series::new("mean", "mean", index, Role::Main, SeriesKind::Line);
            for bin in 0..self.bins {
                let values: Vec<f64> = runs.iter().filter_map(|run| run.get(bin).copied().flatten()).collect();
                if let Some(Summary { mean, ci95, .. }) = Summary::from_values(&values) {
                    line.push((bin as f64 + 0.5) * BIN_S, mean);
                    line.ci95.push(if ci95.is_finite() { ci95 } else { 0.0 });
                }
            }
            if group.runs.len() < 2 {
                line.ci95.clear();
            }
            line
        };
        self.groups.iter().enumerate().map(line).filter(|line| !line.is_empty()).collect()
    }

    fn panel(&self, id: String, title: String, caption: String, y: Axis, series: Vec<Series>) -> Panel {
        Panel { id, title, caption, x: self.time.panels[0].x.clone(), y, series }
    }

    fn rates(&self) -> Vec<Panel> {
        ["rate", "rate-reverse"].into_iter().flat_map(|panel| self.rates_of(panel)).collect()
    }

    /// Returns the panels of the flows of a panel of rates, which have the same limits.
    fn rates_of(&self, of: &str) -> Vec<Panel> {
        let received =
            |run: &Run| self.of_run(of, run).filter(|(_, series)| series.id == "received").collect::<Vec<_>>();
        let flows = self.different(|run| received(run).into_iter().map(|(flow, _)| flow.to_owned()).collect());
        let panel = |name: &str, is_shown: &dyn Fn(&str) -> bool| {
            let lines = self.means(|run| {
                let shown = received(run).into_iter().filter(|(flow, _)| is_shown(flow));
                sums(shown.map(|(_, series)| held(series, self.bins)))
            });
            let limits = self.time.panel(of).into_iter().flat_map(|panel| &panel.series);
            let limits = limits.filter(|series| series.subject.is_none()).cloned();
            self.panel(
                format!("rate:{name}"),
                format!("Received rate of {name}"),
                format!("Received bytes including headers, in bins of {} ms. {INTERVAL}", rate::BIN_MS),
                Axis::new("received rate", "Mbit/s"),
                limits.chain(lines).collect(),
            )
        };
        if flows.len() > MOST_FLOWS {
            return vec![panel(if of == "rate" { "all flows" } else { "all reverse flows" }, &|_| true)];
        }
        flows.iter().map(|name| panel(name, &|flow| flow == name)).collect()
    }

    fn queues(&self) -> Vec<Panel> {
        let waited = |run: &Run| -> Vec<(&'a str, &'a Series)> {
            let hop = |(_, series): (&'a str, &'a Series)| Some((series.id.strip_prefix("waited:")?, series));
            self.of_run("queue", run).filter_map(hop).collect()
        };
        let hops = self.different(|run| waited(run).into_iter().map(|(hop, _)| hop.to_owned()).collect());
        let panel = |name: &String| {
            let lines = self.means(|run| {
                bin_means(waited(run).into_iter().filter(|(hop, _)| hop == name).map(|(_, series)| series), self.bins)
            });
            self.panel(
                format!("queue:{name}"),
                format!("Queuing delay at {name}"),
                format!("Mean of the packets that left the hop in each bin of {} ms. {INTERVAL}", rate::BIN_MS),
                Axis::new("queuing delay", "ms"),
                lines,
            )
        };
        hops.iter().map(panel).collect()
    }

    fn frame_delays(&self) -> Vec<Panel> {
        let rendered = |run: &Run| -> Vec<(&'a str, &'a str, &'a Series)> {
            let stream =
                |(flow, series): (&'a str, &'a Series)| Some((flow, series.id.strip_prefix("delay:")?, series));
            self.of_run("frames", run).filter_map(stream).collect()
        };
        let streams = self.different(|run| rendered(run).into_iter().map(|(f, s, _)| format!("{f}/{s}")).collect());
        let panel = |name: &String| {
            let line = |(index, group): (usize, &Group<'_>)| {
                let runs: Vec<(&[f64], usize)> = group
                    .runs
                    .iter()
                    .flat_map(|run| rendered(run).into_iter().map(|rendered| (*run, rendered)))
                    .filter(|(_, (flow, stream, _))| format!("{flow}/{stream}") == *name)
                    .map(|(run, (flow, stream, series))| (series.y.as_slice(), frames_of(run, flow, stream)))
                    .collect();
                let mut line = Series::new("cdf", "share", index, Role::Main, SeriesKind::Cdf);
                distribution(&runs).into_iter().for_each(|(delay, share)| line.push(delay, share));
                line
            };
            Panel {
                id: format!("frames:{name}"),
                title: format!("Frame delay of {name}"),
                caption: "Share of frames that were rendered within this time of their capture: the mean of the runs. Frames that \
                          were never rendered count, so a line that ends below 1 shows their share."
                    .to_owned(),
                x: Axis::new("frame delay", "ms"),
                y: Axis { range: Some((0.0, 1.0)), ..Axis::new("share of frames", "") },
                series: self.groups.iter().enumerate().map(line).filter(|line| !line.is_empty()).collect(),
            }
        };
        streams.iter().map(panel).collect()
    }
}

const INTERVAL: &str = "Lines: means of the runs. Shaded: 95 % intervals of the means, by Student's t.";

/// Returns the value that a series of steps holds in the middle of each bin.
fn held(series: &Series, bins: usize) -> Vec<Option<f64>> {
    let end = series.x.last().copied().unwrap_or(0.0);
    let value = |bin: usize| {
        let middle = (bin as f64 + 0.5) * BIN_S;
        let after = series.x.partition_point(|x| *x <= middle);
        (after > 0 && middle < end).then(|| series.y[after - 1])
    };
    (0..bins).map(value).collect()
}

/// Returns the sums of the values of each bin; `None` where no series has a value.
fn sums(series: impl Iterator<Item = Vec<Option<f64>>>) -> Vec<Option<f64>> {
    let add = |a: Option<f64>, b: Option<f64>| a.map(|a| a + b.unwrap_or(0.0)).or(b);
    series.reduce(|sums, next| sums.into_iter().zip(next).map(|(a, b)| add(a, b)).collect()).unwrap_or_default()
}

/// Returns the mean of all points in each bin; `None` in a bin without points.
fn bin_means<'s>(series: impl Iterator<Item = &'s Series>, bins: usize) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0_u32); bins];
    for (x, y) in series.flat_map(|series| series.x.iter().zip(&series.y)) {
        if let Some((sum, count)) = sums.get_mut((x / BIN_S) as usize) {
            *sum += y;
            *count += 1;
        }
    }
    sums.into_iter().map(|(sum, count)| (count > 0).then(|| sum / f64::from(count))).collect()
}

/// Returns the number of captured frames of a stream that count in the metrics; 0 if it is unknown.
fn frames_of(run: &Run, flow: &str, stream: &str) -> usize {
    let with_id = |list: &Value, id: &str| list.as_array()?.iter().find(|item| item["id"] == id).cloned();
    let count = |stream: &Value| Some(stream["frames"].as_u64()? + stream["frames_dropped"].as_u64()?);
    let found = with_id(&run.result["flows"], flow).and_then(|flow| with_id(&flow["streams"], stream));
    found.as_ref().and_then(count).map_or(0, |frames| frames as usize)
}

/// Returns the mean of the distributions of runs, each the delays of its rendered frames and its number of frames: points of
/// delay and share of frames, at most [`STEPS`] and one more.
fn distribution(runs: &[(&[f64], usize)]) -> Vec<(f64, f64)> {
    let mut weighted: Vec<(f64, f64)> = Vec::new();
    for (delays, frames) in runs {
        let weight = 1.0 / (delays.len().max(*frames) * runs.len()) as f64;
        weighted.extend(delays.iter().map(|delay| (*delay, weight)));
    }
    weighted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some(first) = weighted.first() else { return Vec::new() };
    let (mut points, mut share) = (vec![(first.0, 0.0)], 0.0);
    for (index, (delay, weight)) in weighted.iter().enumerate() {
        share += weight;
        let step = |index: usize| index * STEPS / weighted.len();
        if step(index) != step(index + 1) || index + 1 == weighted.len() {
            points.push((*delay, share.min(1.0)));
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(points: &[(f64, f64)]) -> Series {
        let mut series = Series::new("s", "s", 0, Role::Main, SeriesKind::Steps);
        points.iter().for_each(|(x, y)| series.push(*x, *y));
        series
    }

    #[test]
    fn bins_have_the_values_that_steps_hold() {
        let series = steps(&[(0.5, 2.0), (1.0, 4.0), (1.5, 4.0)]);
        assert_eq!(held(&series, 4), [None, Some(2.0), Some(4.0), None]);
        assert_eq!(
            sums([vec![None, Some(1.0), None], vec![Some(2.0), Some(3.0), None]].into_iter()),
            [Some(2.0), Some(4.0), None]
        );
    }

    #[test]
    fn bins_have_the_means_of_all_points() {
        let (a, b) = (steps(&[(0.1, 2.0), (0.6, 5.0)]), steps(&[(0.49, 4.0), (9.0, 1.0)]));
        assert_eq!(bin_means([&a, &b].into_iter(), 3), [Some(3.0), Some(5.0), None]);
    }

    #[test]
    fn distribution_counts_frames_that_were_never_rendered() {
        // Half of each run's weight per run: run 1 rendered 2 of 4 frames, run 2 its only one.
        let points = distribution(&[(&[30.0, 10.0], 4), (&[20.0], 1)]);
        assert_eq!(points, [(10.0, 0.0), (10.0, 0.125), (20.0, 0.625), (30.0, 0.75)]);
        let many: Vec<f64> = (0..5000).map(f64::from).collect();
        let points = distribution(&[(&many, 0)]);
        assert_eq!((points.len(), points[1000].0), (1001, 4999.0));
        assert!((points[500].1 - 0.5).abs() < 1e-9 && distribution(&[]).is_empty());
    }
}
