// SPDX-License-Identifier: MIT OR Apache-2.0
//! Aggregates rows, in the order of jobs, to the values of each point and the result of the sweep.

use super::axis::number;
use super::{CONTROLLER, JobRow, Sweep};
use crate::results::{Axis, Check, ConstantEffect, Measure, OrderingClaim, Point, RankedPoint, SweepResult};
use paceline_netsim::records::{Paired, Summary};

pub(super) struct Aggregator<'a> {
    sweep: &'a Sweep,
    /// Values of each measure at the current point, seed by seed.
    now: Vec<Vec<Option<f64>>>,
    points: Vec<Vec<Option<Summary>>>,
    /// Every value by point, measure and seed, if constants are varied one at a time.
    seeds: Option<Vec<Vec<Vec<Option<f64>>>>>,
}

impl<'a> Aggregator<'a> {
    pub(super) fn new(sweep: &'a Sweep) -> Self {
        let seeds = sweep.constants().map(|_| Vec::new());
        Self { sweep, now: vec![Vec::new(); sweep.measures.len()], points: Vec::new(), seeds }
    }

    pub(super) fn row(&mut self, row: &JobRow) {
        let job = self.sweep.job(row.job);
        let mut values = row.values.iter();
        for (target, now) in self.sweep.targets.iter().zip(&mut self.now) {
            if target.subject == job.subject {
                now.push(values.next().copied().flatten());
            }
        }
        // The last seed of the last subject.
        if self.sweep.jobs_of_point(job.point).end == row.job + 1 {
            let summary =
                |runs: &Vec<Option<f64>>| Summary::from_values(&runs.iter().copied().collect::<Option<Vec<_>>>()?);
            self.points.push(self.now.iter().map(summary).collect());
            if let Some(seeds) = &mut self.seeds {
                seeds.push(self.now.clone());
            }
            self.now.iter_mut().for_each(Vec::clear);
        }
    }

    pub(super) fn finish(self) -> SweepResult {
        let Self { sweep, points, seeds, now: _ } = self;
        let means: Vec<Vec<Option<f64>>> =
            points.iter().map(|p| p.iter().map(|v| v.map(|s| s.mean)).collect()).collect();
        let ranges = ranges(&means, &sweep.measures);
        let raw = sums(&means);
        let (sums, raw) = match &sweep.sum {
            None => (vec![None; means.len()], vec![None; means.len()]),
            Some(sum) if sum.normalised => (sums(&normalised(&means, &ranges)), raw),
            Some(_) => (raw.clone(), raw),
        };
        let values = points.into_iter().zip(sums).zip(raw).enumerate();
        let points: Vec<Point> = values
            .map(|(point, ((values, sum), raw_sum))| Point { at: sweep.at(point as u64), values, sum, raw_sum })
            .collect();
        let mut result = SweepResult {
            id: sweep.id.clone(),
            axes: sweep.axes.clone(),
            measures: sweep.measures.clone(),
            repeats: sweep.repeats,
            normalised: sweep.sum.as_ref().is_some_and(|sum| sum.normalised),
            ranges,
            best: None,
            published_at: sweep.published.clone(),
            published: None,
            sides: ordering_claim(sweep, &points),
            swings: seeds.map_or_else(Vec::new, |seeds| constant_effects(sweep, &seeds)),
            points,
        };
        let ranked: Vec<usize> = result.ranking().collect();
        let standing = |index: usize| {
            let point: &Point = &result.points[index];
            let largest = result.points[ranked[0]].sum?;
            Some(RankedPoint {
                point: index,
                at: point.at.clone(),
                sum: point.sum?,
                raw_sum: point.raw_sum?,
                rank: ranked.iter().position(|ranked| *ranked == index)? + 1,
                deficit: largest - point.sum?,
                decades: sweep.published.as_ref().and_then(|published| decades(&point.at, published)),
            })
        };
        let nearest = sweep.published.as_ref().and_then(|published| {
            let distance = |index: &usize| decades(&result.points[*index].at, published);
            let distances = ranked.iter().filter_map(|index| Some((distance(index)?, *index)));
            distances.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
        });
        let best = ranked.first().and_then(|first| standing(*first));
        let published = nearest.and_then(|(_, index)| standing(index));
        (result.best, result.published) = (best, published);
        result
    }
}

impl Sweep {
    /// Returns the last axis and its constants, if they are varied one at a time.
    fn constants(&self) -> Option<(&Axis, Vec<[f64; 3]>)> {
        let last = self.axes.last()?;
        Some((last, last.constants()?))
    }

    pub(super) fn jobs_of_point(&self, point: u64) -> std::ops::Range<u64> {
        let each = self.subjects.len() as u64 * self.repeats;
        point * each..(point + 1) * each
    }
}

/// Returns the Euclidean distance of two points, in decades.
fn decades(at: &[toml::Value], from: &[f64]) -> Option<f64> {
    let apart = |(value, from): (&toml::Value, &f64)| {
        let value = number(value).filter(|value| *value > 0.0 && *from > 0.0)?;
        let decades = libm::log10(value / from);
        Some(decades * decades)
    };
    at.iter().zip(from).map(apart).sum::<Option<f64>>().map(f64::sqrt)
}

fn ordering_claim(sweep: &Sweep, points: &[Point]) -> Option<OrderingClaim> {
    let (first, second) = sweep.sum.as_ref()?.larger_where?;
    let mean = |side: fn(f64, f64) -> bool| {
        let there =
            |point: &&Point| number(&point.at[first]).zip(number(&point.at[second])).is_some_and(|(a, b)| side(a, b));
        let sums: Vec<f64> = points.iter().filter(there).filter_map(|point| point.sum).collect();
        (!sums.is_empty()).then(|| (sums.iter().sum::<f64>() / sums.len() as f64, sums.len()))
    };
    let (larger, less) = (mean(|a, b| a > b)?, mean(|a, b| a < b)?);
    let key = |index| sweep.keys().nth(index).unwrap_or_default().to_owned();
    let verdict = Check::Ordering.judge(Summary::from_values(&[larger.0 - less.0]).as_ref()).verdict;
    Some(OrderingClaim { keys: (key(first), key(second)), larger, less, verdict })
}

/// Returns the effects of the constants of each controller, in the order of the file.
fn constant_effects(sweep: &Sweep, seeds: &[Vec<Vec<Option<f64>>>]) -> Vec<ConstantEffect> {
    let Some((axis, constants)) = sweep.constants() else { return Vec::new() };
    let mut swings = Vec::new();
    for (number, block) in seeds.chunks(axis.count() as usize).enumerate() {
        let at = sweep.at(number as u64 * axis.count());
        let controller = sweep.keys().zip(&at).find(|(key, _)| *key == CONTROLLER);
        let controller = controller.and_then(|(_, name)| name.as_str()).map(str::to_owned);
        let change = |measure: usize, point: usize| {
            let pairs = block[0][measure].iter().zip(&block[point][measure]);
            Paired::from_pairs(&pairs.map(|(base, there)| Some(((*base)?, (*there)?))).collect::<Option<Vec<_>>>()?)
        };
        for (key, values) in constants.iter().enumerate() {
            let changes = (0..sweep.measures.len()).map(|m| [change(m, 1 + 2 * key), change(m, 2 + 2 * key)]).collect();
            let (controller, key) = (controller.clone(), axis.keys[key].clone());
            swings.push(ConstantEffect { controller, key, values: *values, changes });
        }
    }
    swings
}

/// Returns the range of each measure: that of the sweep file, or the least and the largest value.
fn ranges(points: &[Vec<Option<f64>>], measures: &[Measure]) -> Vec<Option<(f64, f64)>> {
    let of = |(c, measure): (usize, &Measure)| {
        let ends = |range: Option<(f64, f64)>, value| match range {
            None => Some((value, value)),
            Some((low, high)) => Some((low.min(value), high.max(value))),
        };
        measure.range.or_else(|| points.iter().filter_map(|p| p[c]).fold(None, ends))
    };
    measures.iter().enumerate().map(of).collect()
}

/// Scales each measure so that its range becomes 0 to 1; 0 if the range is empty.
fn normalised(points: &[Vec<Option<f64>>], ranges: &[Option<(f64, f64)>]) -> Vec<Vec<Option<f64>>> {
    let scaled = |v: f64, (low, high): (f64, f64)| if high > low { (v - low) / (high - low) } else { 0.0 };
    points.iter().map(|p| p.iter().zip(ranges).map(|(v, r)| Some(scaled((*v)?, (*r)?))).collect()).collect()
}

fn sums(points: &[Vec<Option<f64>>]) -> Vec<Option<f64>> {
    points.iter().map(|p| p.iter().copied().sum()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranges of measures without one in the file.
    fn free(points: &[Vec<Option<f64>>]) -> Vec<Option<(f64, f64)>> {
        let column = |c: usize| points.iter().filter_map(move |p| p[c]);
        let of = |c| Some((column(c).reduce(f64::min)?, column(c).reduce(f64::max)?));
        (0..points[0].len()).map(of).collect()
    }

    #[test]
    fn sums_are_scaled_to_the_ranges() {
        let points = [vec![Some(-4.0), Some(10.0)], vec![Some(-2.0), Some(30.0)], vec![Some(0.0), Some(20.0)]];
        assert_eq!(sums(&normalised(&points, &free(&points))), [Some(0.0), Some(1.5), Some(1.5)]);
        let points = [vec![Some(7.0)], vec![None], vec![Some(7.0)]];
        assert_eq!(sums(&normalised(&points, &free(&points))), [Some(0.0), None, Some(0.0)]);
        // Values outside of a given range.
        let points = [vec![Some(3.0)], vec![Some(-1.0)]];
        assert_eq!(sums(&normalised(&points, &[Some((0.0, 2.0))])), [Some(1.5), Some(-0.5)]);
    }

    #[test]
    fn distances_are_in_decades() {
        let at = [toml::Value::Float(0.1), toml::Value::Float(1e-3)];
        // One decade in each key: the square root of two.
        assert!((decades(&at, &[0.01, 1e-2]).unwrap() - 2_f64.sqrt()).abs() < 1e-12);
        assert_eq!(decades(&at, &[0.01, -1.0]), None);
        assert_eq!(decades(&[toml::Value::String("x".to_owned())], &[1.0]), None);
    }
}
