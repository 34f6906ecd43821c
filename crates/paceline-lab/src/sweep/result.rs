//! Rows, in the order of jobs, to what each point came to, which is best, and where the published one stands.

use super::{Axis, JobRow, Measure, Sweep};
use crate::stats::{Paired, Summary};
use serde::Serialize;

/// What a sweep came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepResult {
    /// The sweep's id.
    pub id: String,
    /// Its axes.
    pub axes: Vec<Axis>,
    /// Its columns.
    pub measures: Vec<Measure>,
    /// Seeds per point.
    pub repeats: u64,
    /// Whether each measure goes from 0 to 1 before it is added to the sum.
    pub normalised: bool,
    /// What is 0 and what is 1 of each measure in a normalised sum; none: no point has a value.
    pub ranges: Vec<Option<(f64, f64)>>,
    /// The point with the largest sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<Better>,
    /// What was published as the best: the value of each key. It need not be a point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_at: Option<Vec<f64>>,
    /// The point that is nearest to the published one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<Better>,
    /// The claim on either side of the diagonal; none: there is no claim, or no sum on one of the sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sides: Option<Sides>,
    /// What each constant does, where they leave their base one at a time; of several controllers the first's come first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub swings: Vec<Swing>,
    /// Every point, the last axis fastest.
    pub points: Vec<Point>,
}

/// A point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The value of each key.
    pub at: Vec<toml::Value>,
    /// Each measure; none where a run has no value.
    pub values: Vec<Option<Summary>>,
    /// The sum of the measures; none without one, or where a measure has no value.
    pub sum: Option<f64>,
    /// The sum of the measures as they are.
    pub raw_sum: Option<f64>,
}

/// A point among the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Better {
    /// Its number.
    pub point: usize,
    /// The value of each key there.
    pub at: Vec<toml::Value>,
    /// Its sum.
    pub sum: f64,
    /// The sum of its measures as they are.
    pub raw_sum: f64,
    /// The how-manieth largest sum it is, from 1.
    pub rank: usize,
    /// What its sum lacks to the largest.
    pub deficit: f64,
    /// How far it lies from the published point, in powers of ten of all keys together; none: nothing was published, or
    /// a value is no positive number.
    pub decades: Option<f64>,
}

/// The sum's mean where one key exceeds another, and where it is less.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sides {
    /// The two keys.
    pub keys: (String, String),
    /// Where the first is larger: the mean of the sums, and of how many.
    pub larger: (f64, usize),
    /// Where it is less.
    pub less: (f64, usize),
    /// Whether the sum is larger where the first key is.
    pub holds: bool,
}

/// What a constant does when it leaves its base.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Swing {
    /// The controller; none: the scenarios' own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
    /// The constant.
    pub key: String,
    /// Its low value, its base, its high value.
    pub values: [f64; 3],
    /// Of each measure, how it changes at the low and at the high value, seed by seed; none where a run has no value.
    pub changes: Vec<[Option<Paired>; 2]>,
}

impl SweepResult {
    /// Points that have a sum, the largest first.
    pub fn ranking(&self) -> impl Iterator<Item = usize> + use<> {
        let mut ranked: Vec<(f64, usize)> =
            self.points.iter().enumerate().filter_map(|(index, point)| Some((point.sum?, index))).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        ranked.into_iter().map(|(_, index)| index)
    }

    /// The same without its points, which is small however many there are.
    pub fn without_points(&self) -> Self {
        Self { points: Vec::new(), ..self.clone() }
    }
}

/// Takes rows in the order of jobs.
pub(super) struct Gather<'a> {
    sweep: &'a Sweep,
    /// Of the point that rows are of now: the values of each measure, seed by seed.
    now: Vec<Vec<Option<f64>>>,
    points: Vec<Vec<Option<Summary>>>,
    /// Every value, if constants leave their base one at a time: by point, measure and seed.
    seeds: Option<Vec<Vec<Vec<Option<f64>>>>>,
}

impl<'a> Gather<'a> {
    pub(super) fn new(sweep: &'a Sweep) -> Self {
        let seeds = sweep.constants().map(|_| Vec::new());
        Self { sweep, now: vec![Vec::new(); sweep.measures.len()], points: Vec::new(), seeds }
    }

    pub(super) fn row(&mut self, row: &JobRow) {
        let job = self.sweep.job(row.job);
        let mut values = row.values.iter();
        for (measure, now) in self.sweep.measures.iter().zip(&mut self.now) {
            if measure.subject == job.subject {
                now.push(values.next().copied().flatten());
            }
        }
        // The last seed of the last subject.
        if self.sweep.jobs_of_point(job.point).end == row.job + 1 {
            let summary = |runs: &Vec<Option<f64>>| Summary::of(&runs.iter().copied().collect::<Option<Vec<_>>>()?);
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
            sides: sides(sweep, &points),
            swings: seeds.map_or_else(Vec::new, |seeds| swings(sweep, &seeds)),
            points,
        };
        let ranked: Vec<usize> = result.ranking().collect();
        let standing = |index: usize| {
            let point: &Point = &result.points[index];
            let largest = result.points[ranked[0]].sum?;
            Some(Better {
                point: index,
                at: point.at.clone(),
                sum: point.sum?,
                raw_sum: point.raw_sum?,
                rank: ranked.iter().position(|ranked| *ranked == index)? + 1,
                deficit: largest - point.sum?,
                decades: sweep.published.as_ref().and_then(|published| decades(&point.at, published)),
            })
        };
        let near = sweep.published.as_ref().and_then(|published| {
            let far = |index: &usize| decades(&result.points[*index].at, published);
            let far = ranked.iter().filter_map(|index| Some((far(index)?, *index)));
            far.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
        });
        let best = ranked.first().and_then(|first| standing(*first));
        let published = near.and_then(|(_, index)| standing(index));
        (result.best, result.published) = (best, published);
        result
    }
}

impl Sweep {
    /// The last axis and its constants, if they leave their base one at a time.
    fn constants(&self) -> Option<(&Axis, Vec<[f64; 3]>)> {
        let last = self.axes.last()?;
        Some((last, last.constants()?))
    }

    /// The jobs of a point.
    pub(super) fn jobs_of_point(&self, point: u64) -> std::ops::Range<u64> {
        let each = self.subjects.len() as u64 * self.repeats;
        point * each..(point + 1) * each
    }
}

/// A value as a number.
pub(super) fn number(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|i| i as f64))
}

/// How far a point lies from another, in powers of ten.
fn decades(at: &[toml::Value], from: &[f64]) -> Option<f64> {
    let apart = |(value, from): (&toml::Value, &f64)| {
        let value = number(value).filter(|value| *value > 0.0 && *from > 0.0)?;
        let decades = libm::log10(value / from);
        Some(decades * decades)
    };
    at.iter().zip(from).map(apart).sum::<Option<f64>>().map(f64::sqrt)
}

fn sides(sweep: &Sweep, points: &[Point]) -> Option<Sides> {
    let (first, second) = sweep.sum.as_ref()?.larger_where?;
    let mean = |side: fn(f64, f64) -> bool| {
        let there =
            |point: &&Point| number(&point.at[first]).zip(number(&point.at[second])).is_some_and(|(a, b)| side(a, b));
        let sums: Vec<f64> = points.iter().filter(there).filter_map(|point| point.sum).collect();
        (!sums.is_empty()).then(|| (sums.iter().sum::<f64>() / sums.len() as f64, sums.len()))
    };
    let (larger, less) = (mean(|a, b| a > b)?, mean(|a, b| a < b)?);
    let key = |index| sweep.keys().nth(index).unwrap_or_default().to_owned();
    Some(Sides { keys: (key(first), key(second)), larger, less, holds: larger.0 > less.0 })
}

/// Each controller's constants, in the order of the file.
fn swings(sweep: &Sweep, seeds: &[Vec<Vec<Option<f64>>>]) -> Vec<Swing> {
    let Some((axis, constants)) = sweep.constants() else { return Vec::new() };
    let mut swings = Vec::new();
    for (number, block) in seeds.chunks(axis.count() as usize).enumerate() {
        let at = sweep.at(number as u64 * axis.count());
        let controller = sweep.keys().zip(&at).find(|(key, _)| *key == super::CONTROLLER);
        let controller = controller.and_then(|(_, name)| name.as_str()).map(str::to_owned);
        let change = |measure: usize, point: usize| {
            let pairs = block[0][measure].iter().zip(&block[point][measure]);
            Paired::of(&pairs.map(|(base, there)| Some(((*base)?, (*there)?))).collect::<Option<Vec<_>>>()?)
        };
        for (key, values) in constants.iter().enumerate() {
            let changes = (0..sweep.measures.len()).map(|m| [change(m, 1 + 2 * key), change(m, 2 + 2 * key)]).collect();
            let (controller, key) = (controller.clone(), axis.keys[key].clone());
            swings.push(Swing { controller, key, values: *values, changes });
        }
    }
    swings
}

/// The least and the largest of each column, but where the sweep says other ends.
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

/// Each column from 0, where its range begins, to 1; 0 where all are equal.
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

    /// Ranges as of measures that say none.
    fn free(points: &[Vec<Option<f64>>]) -> Vec<Option<(f64, f64)>> {
        let column = |c: usize| points.iter().filter_map(move |p| p[c]);
        let of = |c| Some((column(c).reduce(f64::min)?, column(c).reduce(f64::max)?));
        (0..points[0].len()).map(of).collect()
    }

    #[test]
    fn normalised_sums_by_hand() {
        let points = [vec![Some(-4.0), Some(10.0)], vec![Some(-2.0), Some(30.0)], vec![Some(0.0), Some(20.0)]];
        assert_eq!(sums(&normalised(&points, &free(&points))), [Some(0.0), Some(1.5), Some(1.5)]);
        let points = [vec![Some(7.0)], vec![None], vec![Some(7.0)]];
        assert_eq!(sums(&normalised(&points, &free(&points))), [Some(0.0), None, Some(0.0)]);
        // Beyond ends that were given, more than 1 and less than 0.
        let points = [vec![Some(3.0)], vec![Some(-1.0)]];
        assert_eq!(sums(&normalised(&points, &[Some((0.0, 2.0))])), [Some(1.5), Some(-0.5)]);
    }

    #[test]
    fn decades_by_hand() {
        let at = [toml::Value::Float(0.1), toml::Value::Float(1e-3)];
        // One decade and one: the square root of two.
        assert!((decades(&at, &[0.01, 1e-2]).unwrap() - 2_f64.sqrt()).abs() < 1e-12);
        assert_eq!(decades(&at, &[0.01, -1.0]), None);
        assert_eq!(decades(&[toml::Value::String("x".to_owned())], &[1.0]), None);
    }
}
