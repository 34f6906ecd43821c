// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of a sweep, as `sweep --json` prints it.

use crate::results::Verdict;
use paceline_netsim::records::{Label, Paired, Summary};
use paceline_units::RandomStreams;
use serde::Serialize;

/// Keys that change together, and their values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    /// Keys of `--set`; `controller` is the controller of every media flow.
    pub keys: Vec<String>,
    #[serde(flatten)]
    pub values: AxisValues,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AxisValues {
    /// Listed values, one for each key.
    #[serde(rename = "values")]
    Listed(Vec<Vec<toml::Value>>),
    /// Values with equal ratios; both ends are exact.
    Log { from: f64, to: f64, steps: u64 },
    /// Values with equal differences; both ends are exact.
    Linear { from: f64, to: f64, steps: u64 },
    /// Draws with a uniform logarithm, each from a separate random stream.
    Samples { from: Vec<f64>, to: Vec<f64>, count: u64, seed: u64 },
    /// First all keys at their base; then each key at its low and at its high value, the others at their base.
    #[serde(rename = "one_at_a_time")]
    OneAtATime { base: Vec<f64>, low: Vec<f64>, high: Vec<f64> },
}

/// A measured column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measure {
    pub name: String,
    /// Scenario id or file.
    pub scenario: String,
    pub case: Label,
    pub metric: String,
    pub flow: Option<String>,
    /// The published value, in the metric's unit.
    pub published: Option<f64>,
    /// The values that become 0 and 1 in a normalised sum; `None` for the least and the largest of the sweep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepResult {
    pub id: String,
    pub axes: Vec<Axis>,
    pub measures: Vec<Measure>,
    pub repeats: u64,
    /// Whether each measure is scaled to 0 to 1 before it is added to the sum.
    pub normalised: bool,
    /// For each measure, the values that become 0 and 1 in a normalised sum; `None` if no point has a value.
    pub ranges: Vec<Option<(f64, f64)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<RankedPoint>,
    /// The published best point: the value of each key. It need not be a point of the sweep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_at: Option<Vec<f64>>,
    /// The point nearest to the published one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<RankedPoint>,
    /// The claim on both sides of the diagonal; `None` without a claim, or without a sum on one of the sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sides: Option<OrderingClaim>,
    /// The effect of each constant that is varied one at a time, by controller.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub swings: Vec<ConstantEffect>,
    /// Every point; the last axis changes fastest.
    pub points: Vec<Point>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The value of each key.
    pub at: Vec<toml::Value>,
    /// Each measure; `None` if a run has no value.
    pub values: Vec<Option<Summary>>,
    /// The sum of the measures; `None` if there is no sum, or if a measure has no value.
    pub sum: Option<f64>,
    /// The sum of the measures without scaling.
    pub raw_sum: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RankedPoint {
    pub point: usize,
    pub at: Vec<toml::Value>,
    pub sum: f64,
    /// The sum of its measures without scaling.
    pub raw_sum: f64,
    /// Rank of its sum; the largest has rank 1.
    pub rank: usize,
    /// Largest sum minus its sum.
    pub deficit: f64,
    /// Euclidean distance to the published point, in decades; `None` if nothing was published, or a value is not a positive
    /// number.
    pub decades: Option<f64>,
}

/// The mean of the sums where one key exceeds another, and where it is less.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OrderingClaim {
    pub keys: (String, String),
    /// Where the first is larger: mean and number of the sums.
    pub larger: (f64, usize),
    /// Where it is less: mean and number of the sums.
    pub less: (f64, usize),
    /// Whether the mean is larger where the first key is larger.
    pub verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConstantEffect {
    /// The controller; `None` for that of the scenarios.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
    pub key: String,
    /// Low value, base, high value.
    pub values: [f64; 3],
    /// For each measure, the change at the low and at the high value, seed by seed; `None` if a run has no value.
    pub changes: Vec<[Option<Paired>; 2]>,
}

impl SweepResult {
    /// Returns the points that have a sum, largest sum first.
    pub fn ranking(&self) -> impl Iterator<Item = usize> + use<> {
        let mut ranked: Vec<(f64, usize)> =
            self.points.iter().enumerate().filter_map(|(index, point)| Some((point.sum?, index))).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        ranked.into_iter().map(|(_, index)| index)
    }

    /// Returns the result without its points, which is small for any sweep.
    pub fn without_points(&self) -> Self {
        Self { points: Vec::new(), ..self.clone() }
    }
}

impl Axis {
    /// Returns the number of its positions.
    pub fn count(&self) -> u64 {
        match &self.values {
            AxisValues::Listed(values) => values.len() as u64,
            AxisValues::Log { steps, .. } | AxisValues::Linear { steps, .. } => *steps,
            AxisValues::Samples { count, .. } => *count,
            AxisValues::OneAtATime { base, .. } => 1 + 2 * base.len() as u64,
        }
    }

    /// Returns the value of each key at a position below [`Axis::count`].
    pub fn at(&self, place: u64) -> Vec<toml::Value> {
        let float = |value: f64| vec![toml::Value::Float(value)];
        match &self.values {
            AxisValues::Listed(values) => values[place as usize].clone(),
            AxisValues::Log { from, to, steps } => float(log_step(*from, *to, *steps, place)),
            AxisValues::Linear { from, to, steps } => float(match place + 1 == *steps {
                true => *to,
                false => from + (to - from) * (place as f64 / (steps - 1) as f64),
            }),
            AxisValues::Samples { from, to, seed, .. } => {
                let streams = RandomStreams::new(*seed);
                let draw = |((key, from), to): ((&String, &f64), &f64)| {
                    let unit = streams.stream(&format!("sweep/{key}/{place}")).unit();
                    toml::Value::Float(from * libm::pow(to / from, unit))
                };
                self.keys.iter().zip(from).zip(to).map(draw).collect()
            }
            AxisValues::OneAtATime { base, low, high } => {
                let mut values = base.clone();
                if let Some(which) = place.checked_sub(1).map(|n| n as usize) {
                    values[which / 2] = if which % 2 == 0 { low[which / 2] } else { high[which / 2] };
                }
                values.into_iter().map(toml::Value::Float).collect()
            }
        }
    }

    /// Returns low, base and high value of each key, if they are varied one at a time.
    pub fn constants(&self) -> Option<Vec<[f64; 3]>> {
        let AxisValues::OneAtATime { base, low, high } = &self.values else { return None };
        Some(low.iter().zip(base).zip(high).map(|((low, base), high)| [*low, *base, *high]).collect())
    }

    /// Returns the values of its key, if it has only one key and few enough values for a table.
    pub fn few(&self) -> Option<Vec<toml::Value>> {
        let few = self.keys.len() == 1 && self.count() <= 24;
        few.then(|| (0..self.count()).map(|place| self.at(place).remove(0)).collect())
    }
}

/// Returns one of `steps` values with equal ratios.
fn log_step(from: f64, to: f64, steps: u64, place: u64) -> f64 {
    match place + 1 == steps {
        true => to,
        false => from * libm::pow(to / from, place as f64 / (steps - 1) as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(values: AxisValues) -> Axis {
        Axis { keys: vec!["a".to_owned(), "b".to_owned()], values }
    }

    #[test]
    fn grids_have_equal_steps_and_exact_ends() {
        let grid = |values| (0..4).map(|place| axis_of(values, place)).collect::<Vec<f64>>();
        let log = grid(|| AxisValues::Log { from: 1e-4, to: 0.1, steps: 4 });
        assert!(log.iter().zip([1e-4, 1e-3, 1e-2, 0.1]).all(|(a, b)| (a / b - 1.0).abs() < 1e-12), "{log:?}");
        assert_eq!((log[0], log[3]), (1e-4, 0.1));
        assert_eq!(grid(|| AxisValues::Linear { from: -1.0, to: 2.0, steps: 4 }), [-1.0, 0.0, 1.0, 2.0]);
    }

    fn axis_of(values: fn() -> AxisValues, place: u64) -> f64 {
        axis(values()).at(place)[0].as_float().unwrap()
    }

    #[test]
    fn constants_vary_one_at_a_time() {
        let axis = axis(AxisValues::OneAtATime { base: vec![2.0, 20.0], low: vec![1.0, 10.0], high: vec![4.0, 40.0] });
        let at = |place| axis.at(place).iter().map(|value| value.as_float().unwrap()).collect::<Vec<_>>();
        assert_eq!(axis.count(), 5);
        let all: Vec<Vec<f64>> = (0..5).map(at).collect();
        assert_eq!(all, [[2.0, 20.0], [1.0, 20.0], [4.0, 20.0], [2.0, 10.0], [2.0, 40.0]]);
    }

    #[test]
    fn draws_are_independent_and_log_uniform() {
        let many = axis(AxisValues::Samples { from: vec![1e-4, 1.0], to: vec![1.0, 100.0], count: 1_000_000, seed: 3 });
        let at = |place| many.at(place).iter().map(|value| value.as_float().unwrap()).collect::<Vec<_>>();
        assert_eq!(at(999_999), at(999_999));
        let draws: Vec<Vec<f64>> = (0..4000).map(at).collect();
        assert!(draws.iter().all(|d| (1e-4..1.0).contains(&d[0]) && (1.0..100.0).contains(&d[1])));
        let share = |below: f64| draws.iter().filter(|d| d[0] < below).count() as f64 / 4000.0;
        assert!((share(1e-2) - 0.5).abs() < 0.03 && (share(1e-3) - 0.25).abs() < 0.03, "{}", share(1e-2));
        let both = draws.iter().filter(|d| d[0] < 1e-2 && d[1] < 10.0).count() as f64 / 4000.0;
        assert!((both - 0.25).abs() < 0.03, "keys are independent: {both}");
        let other =
            axis(AxisValues::Samples { from: vec![1e-4, 1.0], to: vec![1.0, 100.0], count: 1_000_000, seed: 4 });
        assert_ne!(at(0), other.at(0).iter().map(|value| value.as_float().unwrap()).collect::<Vec<_>>());
    }
}
