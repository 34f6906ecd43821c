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

/// Values by bin; `None` where there is none.
type Bins = Vec<Option<f64>>;

/// The binned values of every run of a scenario. Its runs are read one after the other, so their events are not kept.
#[derive(Default)]
pub(super) struct Means<'a> {
    runs: Vec<RunBins<'a>>,
}

struct RunBins<'a> {
    run: &'a Run,
    /// Received rates by flow, of the panels [`RATES`].
    rates: [Vec<(String, Bins)>; 2],
    /// Queuing delay by hop.
    queues: Vec<(String, Bins)>,
    frames: Vec<FrameDelays>,
}

struct FrameDelays {
    /// Flow and stream.
    name: String,
    delays: Vec<f64>,
    captured: usize,
}

const RATES: [&str; 2] = ["rate", "rate-reverse"];

/// Runs that differ in their seeds alone.
struct Group<'g, 'a> {
    label: String,
    runs: Vec<&'g RunBins<'a>>,
}

impl<'a> Means<'a> {
    /// Adds a run with its panels over time. `flow` names the flow of a series.
    pub(super) fn add(&mut self, run: &'a Run, panels: &[Vec<Panel>], flow: impl Fn(&Series) -> Option<String>) {
        let bins = (run.duration_s() / BIN_S).ceil() as usize;
        let panel = |id: &str| panels.iter().flatten().find(|panel| panel.id == id);
        let series = |id: &str| panel(id).map_or(&[][..], |panel| &panel.series).iter();
        let rates = |panel: &str| {
            let received = series(panel).filter(|series| series.id == "received");
            received.filter_map(|series| Some((flow(series)?, held(series, bins)))).collect()
        };
        let waited = || series("queue").filter_map(|series| Some((series.id.strip_prefix("waited:")?, series)));
        let mut hops: Vec<&str> = Vec::new();
        for (hop, _) in waited() {
            if !hops.contains(&hop) {
                hops.push(hop);
            }
        }
        let queue = |hop: &str| bin_means(waited().filter(|(of, _)| *of == hop).map(|(_, series)| series), bins);
        let delays = |series: &Series| {
            let (flow, stream) = (flow(series)?, series.id.strip_prefix("delay:")?);
            let captured = frames_of(run, &flow, stream);
            Some(FrameDelays { name: format!("{flow}/{stream}"), delays: series.y.clone(), captured })
        };
        self.runs.push(RunBins {
            run,
            rates: RATES.map(rates),
            queues: hops.iter().map(|hop| ((*hop).to_owned(), queue(hop))).collect(),
            frames: series("frames").filter_map(delays).collect(),
        });
    }

    /// Returns the figure of a scenario; `None` for a single run. `time` is the figure of single runs over time.
    pub(super) fn figure(&self, time: &Figure) -> Option<Figure> {
        if self.runs.len() < 2 {
            return None;
        }
        let groups = groups(&self.runs);
        let duration_s = self.runs.iter().map(|of| of.run.duration_s()).fold(0.0, f64::max);
        let source = Source { time, groups: &groups, duration_s };
        let mut panels = source.rates();
        panels.extend(source.queues());
        panels.extend(source.frame_delays());
        panels.retain(|panel| panel.series.iter().any(|series| series.subject.is_some()));
        let several_seeds = groups.iter().any(|group| group.runs.len() > 1);
        let subject = |group: &Group<'_, '_>| {
            let label = format!("{} (n = {})", group.label, group.runs.len());
            Subject { label, ..Subject::named(&group.label) }
        };
        Some(Figure {
            id: format!("{}/overlay", time.scenario),
            scenario: time.scenario.clone(),
            title: if several_seeds { "Means over seeds" } else { "Side by side" }.to_owned(),
            subjects: groups.iter().map(subject).collect(),
            panels,
        })
    }
}

/// Returns the groups of runs in order of their first run. Their labels say in what they differ.
fn groups<'g, 'a>(all: &'g [RunBins<'a>]) -> Vec<Group<'g, 'a>> {
    let runs: Vec<&Run> = all.iter().map(|of| of.run).collect();
    let differ = |of: &dyn Fn(&Run) -> String| runs.iter().any(|run| of(run) != of(runs[0]));
    let world = |run: &Run| run.about.run.world.clone();
    let (changed, worlds) = (differ(&changes), differ(&world));
    let mut groups: Vec<Group<'g, 'a>> = Vec::new();
    for of in all {
        let mut parts = vec![differing_controllers(of.run, &runs)];
        if changed {
            parts.push(changes(of.run));
        }
        if worlds {
            parts.push(world(of.run));
        }
        parts.extend(of.run.cut());
        parts.retain(|part| !part.is_empty());
        let label = if parts.is_empty() { "all runs".to_owned() } else { parts.join(" · ") };
        match groups.iter_mut().find(|group| group.label == label) {
            Some(group) => group.runs.push(of),
            None => groups.push(Group { label, runs: vec![of] }),
        }
    }
    groups
}

struct Source<'g, 'a> {
    time: &'g Figure,
    groups: &'g [Group<'g, 'a>],
    /// Length of the longest run.
    duration_s: f64,
}

impl<'g, 'a> Source<'g, 'a> {
    /// Returns different names in the runs, in order of first use.
    fn different<'n>(&self, of: impl Fn(&'g RunBins<'a>) -> Vec<&'n str>) -> Vec<&'n str> {
        let mut different = Vec::new();
        for value in self.groups.iter().flat_map(|group| &group.runs).flat_map(|run| of(run)) {
            if !different.contains(&value) {
                different.push(value);
            }
        }
        different
    }

    /// Returns a line per group: the mean of the values of its runs in each bin, with the interval.
    fn means(&self, of: impl Fn(&RunBins<'a>) -> Bins) -> Vec<Series> {
        let line = |(index, group): (usize, &Group<'_, 'a>)| {
            let runs: Vec<Bins> = group.runs.iter().map(|run| of(run)).collect();
            let mut line = Series::new("mean", "mean", index, Role::Main, SeriesKind::Line);
            for bin in 0..runs.iter().map(Vec::len).max().unwrap_or(0) {
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
        let caption =
            format!("{caption} Lines: means of the n runs. Shaded: 95 % intervals of the means, by Student's t.");
        Panel { id, title, caption, x: Axis::time(self.duration_s), y: y.not_negative(), series }
    }

    fn rates(&self) -> Vec<Panel> {
        [0, 1].into_iter().flat_map(|direction| self.rates_of(direction)).collect()
    }

    /// Returns the panels of the flows of a direction, which have the same limits.
    fn rates_of(&self, direction: usize) -> Vec<Panel> {
        let flows = self.different(|of| of.rates[direction].iter().map(|(flow, _)| flow.as_str()).collect());
        let panel = |name: &str, is_shown: &dyn Fn(&str) -> bool| {
            let shown = |of: &RunBins<'_>| -> Vec<Bins> {
                of.rates[direction].iter().filter(|(flow, _)| is_shown(flow)).map(|(_, bins)| bins.clone()).collect()
            };
            let limits = self.time.panel(RATES[direction]).into_iter().flat_map(|panel| &panel.series);
            let limits = limits.filter(|series| series.subject.is_none()).cloned();
            self.panel(
                format!("rate:{name}"),
                format!("Received rate of {name}"),
                format!("Received bytes including headers, in bins of {} ms.", rate::BIN_MS),
                Axis::new("received rate", "Mbit/s"),
                limits.chain(self.means(|of| sums(shown(of).into_iter()))).collect(),
            )
        };
        if flows.len() > MOST_FLOWS {
            return vec![panel(["all flows", "all reverse flows"][direction], &|_| true)];
        }
        flows.iter().map(|name| panel(name, &|flow| flow == *name)).collect()
    }

    fn queues(&self) -> Vec<Panel> {
        let hops = self.different(|of| of.queues.iter().map(|(hop, _)| hop.as_str()).collect());
        let panel = |name: &&str| {
            let of_hop = |of: &RunBins<'_>| of.queues.iter().find(|(hop, _)| hop == name).map(|(_, bins)| bins.clone());
            self.panel(
                format!("queue:{name}"),
                format!("Queuing delay at {name}"),
                format!("Mean of the packets that left the hop in each bin of {} ms.", rate::BIN_MS),
                Axis::new("queuing delay", "ms"),
                self.means(|of| of_hop(of).unwrap_or_default()),
            )
        };
        hops.iter().map(panel).collect()
    }

    fn frame_delays(&self) -> Vec<Panel> {
        let streams = self.different(|of| of.frames.iter().map(|frames| frames.name.as_str()).collect());
        let panel = |name: &&str| {
            let line = |(index, group): (usize, &Group<'_, '_>)| {
                let frames = group.runs.iter().flat_map(|of| &of.frames).filter(|frames| frames.name == *name);
                let runs: Vec<(&[f64], usize)> = frames.map(|of| (of.delays.as_slice(), of.captured)).collect();
                let mut line = Series::new("cdf", "share", index, Role::Main, SeriesKind::Cdf);
                distribution(&runs).into_iter().for_each(|(delay, share)| line.push(delay, share));
                line
            };
            Panel {
                id: format!("frames:{name}"),
                title: format!("Frame delay of {name}"),
                caption: "Share of frames that were rendered within this time of their capture: the mean of the n runs. Frames \
                          that were never rendered count, so a line that ends below 1 shows their share."
                    .to_owned(),
                x: Axis::new("frame delay", "ms"),
                y: Axis { range: Some((0.0, 1.0)), ..Axis::new("share of frames", "") },
                series: self.groups.iter().enumerate().map(line).filter(|line| !line.is_empty()).collect(),
            }
        };
        streams.iter().map(panel).collect()
    }
}

/// Returns the value that a series of steps holds in the middle of each bin.
fn held(series: &Series, bins: usize) -> Bins {
    let end = series.x.last().copied().unwrap_or(0.0);
    let value = |bin: usize| {
        let middle = (bin as f64 + 0.5) * BIN_S;
        let after = series.x.partition_point(|x| *x <= middle);
        (after > 0 && middle < end).then(|| series.y[after - 1])
    };
    (0..bins).map(value).collect()
}

/// Returns the sums of the values of each bin; `None` where no series has a value.
fn sums(series: impl Iterator<Item = Bins>) -> Bins {
    let add = |a: Option<f64>, b: Option<f64>| a.map(|a| a + b.unwrap_or(0.0)).or(b);
    series.reduce(|sums, next| sums.into_iter().zip(next).map(|(a, b)| add(a, b)).collect()).unwrap_or_default()
}

/// Returns the mean of all points in each bin; `None` in a bin without points.
fn bin_means<'s>(series: impl Iterator<Item = &'s Series>, bins: usize) -> Bins {
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
