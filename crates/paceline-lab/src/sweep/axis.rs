//! One dimension of a sweep: its keys, and what each takes at the n-th place. Nothing is made before it is asked for, so an
//! axis of a million draws is as small as one of ten values.

use super::file::{AxisTable, ConstantTable, Numbers, SamplesTable, StepsTable};
use crate::scenario::{Origin, Placed, Problem};
use paceline_units::Streams;
use serde::Serialize;

/// Most values of an axis.
const MOST: u64 = 100_000_000;

/// Keys that move together, and the values that they take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    /// As of `--set`; `controller` is the controller of every media flow.
    pub keys: Vec<String>,
    #[serde(flatten)]
    values: Values,
}

/// Where the values of an axis come from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Values {
    /// Each as written, a value for each key.
    #[serde(rename = "values")]
    Listed(Vec<Vec<toml::Value>>),
    /// Equal ratios, both ends exact.
    Log { from: f64, to: f64, steps: u64 },
    /// Equal differences, both ends exact.
    Linear { from: f64, to: f64, steps: u64 },
    /// Draws whose logarithm is uniform, each of a random stream of its own.
    Samples { from: Vec<f64>, to: Vec<f64>, count: u64, seed: u64 },
    /// First all at their base; then of each key its low and its high value, all others at their base.
    #[serde(rename = "one_at_a_time")]
    OneAtATime { base: Vec<f64>, low: Vec<f64>, high: Vec<f64> },
}

impl Axis {
    /// An axis of controllers.
    pub(super) fn controllers(names: &[String]) -> Self {
        let values = names.iter().map(|name| vec![toml::Value::String(name.clone())]).collect();
        Self { keys: vec![super::CONTROLLER.to_owned()], values: Values::Listed(values) }
    }

    /// What a file says.
    pub(super) fn read(origin: &Origin, table: &AxisTable) -> Result<Self, Problem> {
        if let Some(constants) = &table.one_at_a_time {
            return one_at_a_time(origin, table, constants);
        }
        let keys = keys(origin, table)?;
        let values = match (&table.values, &table.log, &table.linear, &table.samples) {
            (Some(values), None, None, None) => Values::Listed(list(origin, values, &keys)?),
            (None, Some(log), None, None) => {
                let StepsTable { from, to, steps } = *steps(origin, log, &keys, "log")?;
                if from <= 0.0 {
                    let problem = at(origin, log, "a log grid goes from above 0 up");
                    return Err(problem.help("write it like { from = 1e-5, to = 0.1, steps = 8 }"));
                }
                Values::Log { from, to, steps }
            }
            (None, None, Some(linear), None) => {
                let StepsTable { from, to, steps } = *steps(origin, linear, &keys, "linear")?;
                Values::Linear { from, to, steps }
            }
            (None, None, None, Some(samples)) => draws(origin, samples, &keys)?,
            _ => {
                let span = table.key.as_ref().map(Placed::span).or(table.keys.as_ref().map(Placed::span));
                let message = "an axis has one of `values`, `log`, `linear`, `samples` and `one_at_a_time`";
                let problem = Problem::at(&origin.name, &origin.text, span.unwrap_or(0..0), message);
                return Err(problem.help("write values = [1, 2] or log = { from = 1e-5, to = 0.1, steps = 8 }"));
            }
        };
        Ok(Self { keys, values })
    }

    /// How many places it has.
    pub fn count(&self) -> u64 {
        match &self.values {
            Values::Listed(values) => values.len() as u64,
            Values::Log { steps, .. } | Values::Linear { steps, .. } => *steps,
            Values::Samples { count, .. } => *count,
            Values::OneAtATime { base, .. } => 1 + 2 * base.len() as u64,
        }
    }

    /// The value of each key at a place below [`Axis::count`].
    pub fn at(&self, place: u64) -> Vec<toml::Value> {
        let float = |value: f64| vec![toml::Value::Float(value)];
        match &self.values {
            Values::Listed(values) => values[place as usize].clone(),
            Values::Log { from, to, steps } => float(log_step(*from, *to, *steps, place)),
            Values::Linear { from, to, steps } => float(match place + 1 == *steps {
                true => *to,
                false => from + (to - from) * (place as f64 / (steps - 1) as f64),
            }),
            Values::Samples { from, to, seed, .. } => {
                let streams = Streams::new(*seed);
                let draw = |((key, from), to): ((&String, &f64), &f64)| {
                    let unit = streams.stream(&format!("sweep/{key}/{place}")).unit();
                    toml::Value::Float(from * libm::pow(to / from, unit))
                };
                self.keys.iter().zip(from).zip(to).map(draw).collect()
            }
            Values::OneAtATime { base, low, high } => {
                let mut values = base.clone();
                if let Some(which) = place.checked_sub(1).map(|n| n as usize) {
                    values[which / 2] = if which % 2 == 0 { low[which / 2] } else { high[which / 2] };
                }
                values.into_iter().map(toml::Value::Float).collect()
            }
        }
    }

    /// Low, base and high value of each key, if they leave their base one at a time.
    pub fn constants(&self) -> Option<Vec<[f64; 3]>> {
        let Values::OneAtATime { base, low, high } = &self.values else { return None };
        Some(low.iter().zip(base).zip(high).map(|((low, base), high)| [*low, *base, *high]).collect())
    }

    /// What the n-th key's values are called; none if they are numbers.
    pub(super) fn names(&self, key: usize) -> Option<Vec<String>> {
        let Values::Listed(values) = &self.values else { return None };
        if values.iter().all(|each| super::result::number(&each[key]).is_some()) {
            return None;
        }
        let mut names: Vec<String> = Vec::new();
        for name in values.iter().map(|each| label(&each[key])) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Some(names)
    }

    /// The values of its only key, where both it and they are few enough for a table.
    pub fn few(&self) -> Option<Vec<toml::Value>> {
        let few = self.keys.len() == 1 && self.count() <= 24;
        few.then(|| (0..self.count()).map(|place| self.at(place).remove(0)).collect())
    }
}

/// A value as a word.
pub(super) fn label(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn at<T>(origin: &Origin, place: &Placed<T>, message: &str) -> Problem {
    Problem::at(&origin.name, &origin.text, place.span(), message)
}

fn keys(origin: &Origin, table: &AxisTable) -> Result<Vec<String>, Problem> {
    match (&table.key, &table.keys) {
        (Some(key), None) => Ok(vec![key.get().clone()]),
        (None, Some(keys)) if !keys.get().is_empty() => Ok(keys.get().clone()),
        (_, Some(keys)) => {
            Err(at(origin, keys, "an axis has either `key` or `keys`").help("write keys = [\"a\", \"b\"]"))
        }
        (None, None) => {
            let problem = Problem::of(&origin.name, &origin.text, "an axis without a key");
            Err(problem.help("write key = \"media.config.k_u\""))
        }
    }
}

fn list(
    origin: &Origin,
    values: &Placed<Vec<crate::scenario::Anything>>,
    keys: &[String],
) -> Result<Vec<Vec<toml::Value>>, Problem> {
    if values.get().is_empty() {
        return Err(at(origin, values, "an axis without values").help("write values = [1, 2]"));
    }
    let each = values.get().iter().map(|value| match (&value.0, keys.len()) {
        (value, 1) => Ok(vec![value.clone()]),
        (toml::Value::Array(several), n) if several.len() == n => Ok(several.clone()),
        _ => {
            let problem = at(origin, values, "a value of an axis with several keys is a list, a value for each");
            Err(problem.help(format!("write values = [[1, 2]] with {} in each", keys.len())))
        }
    });
    each.collect()
}

fn steps<'a>(
    origin: &Origin,
    place: &'a Placed<StepsTable>,
    keys: &[String],
    name: &str,
) -> Result<&'a StepsTable, Problem> {
    let StepsTable { from, to, steps } = place.get();
    let sound = from.is_finite() && to.is_finite() && from < to && (2..=MOST).contains(steps) && keys.len() == 1;
    match sound {
        true => Ok(place.get()),
        false => {
            let above = if name == "log" { "above 0 " } else { "" };
            let message = format!("a {name} grid goes from {above}up, in 2 steps or more, for one key");
            let problem = at(origin, place, &message);
            Err(problem.help("write it like { from = 1e-5, to = 0.1, steps = 8 }"))
        }
    }
}

fn draws(origin: &Origin, place: &Placed<SamplesTable>, keys: &[String]) -> Result<Values, Problem> {
    let table = place.get();
    let each = |numbers: &Numbers| match numbers {
        Numbers::One(one) => vec![*one; keys.len()],
        Numbers::Each(each) => each.clone(),
    };
    let (from, to) = (each(&table.from), each(&table.to));
    let fits = from.len() == keys.len() && to.len() == keys.len() && (1..=MOST).contains(&table.count);
    if !fits || from.iter().zip(&to).any(|(from, to)| !(*from > 0.0 && from < to && to.is_finite())) {
        let problem = at(origin, place, "samples are drawn from above 0 up, from one range or one for each key");
        return Err(problem.help("write it like { from = 1e-5, to = 0.1, count = 1000 }"));
    }
    Ok(Values::Samples { from, to, count: table.count, seed: table.seed.unwrap_or(1) })
}

fn one_at_a_time(origin: &Origin, table: &AxisTable, place: &Placed<Vec<ConstantTable>>) -> Result<Axis, Problem> {
    let alone = table.key.is_none() && table.keys.is_none() && table.values.is_none();
    let alone = alone && table.log.is_none() && table.linear.is_none() && table.samples.is_none();
    let constants = place.get();
    if !alone || constants.is_empty() {
        let problem = at(origin, place, "constants that leave their base one at a time are an axis of their own");
        return Err(
            problem.help("write one_at_a_time = [{ key = \"media.config.k_u\", base = 0.01 }], and nothing beside")
        );
    }
    let low: Vec<f64> = constants.iter().map(|c| c.low.unwrap_or(c.base / 2.0)).collect();
    let high: Vec<f64> = constants.iter().map(|c| c.high.unwrap_or(c.base * 2.0)).collect();
    for (constant, (low, high)) in constants.iter().zip(low.iter().zip(&high)) {
        if !(*low < constant.base && constant.base < *high) {
            let message = format!("`{}` does not go from below its base to above it", constant.key);
            return Err(at(origin, place, &message).help("write low and high where half and double do not fit"));
        }
    }
    let keys = constants.iter().map(|c| c.key.clone()).collect();
    let base = constants.iter().map(|c| c.base).collect();
    Ok(Axis { keys, values: Values::OneAtATime { base, low, high } })
}

/// The n-th of `steps` values of equal ratio.
fn log_step(from: f64, to: f64, steps: u64, place: u64) -> f64 {
    match place + 1 == steps {
        true => to,
        false => from * libm::pow(to / from, place as f64 / (steps - 1) as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(values: Values) -> Axis {
        Axis { keys: vec!["a".to_owned(), "b".to_owned()], values }
    }

    #[test]
    fn log_grid_by_hand() {
        let grid: Vec<f64> = (0..4).map(|place| log_step(1e-4, 0.1, 4, place)).collect();
        let by_hand = [1e-4, 1e-3, 1e-2, 0.1];
        assert!(grid.iter().zip(by_hand).all(|(a, b)| (a / b - 1.0).abs() < 1e-12), "{grid:?}");
        assert_eq!((grid[0], grid[3]), (1e-4, 0.1));
    }

    #[test]
    fn linear_grid_by_hand() {
        let axis = axis(Values::Linear { from: -1.0, to: 2.0, steps: 4 });
        let grid: Vec<Option<f64>> = (0..4).map(|place| axis.at(place)[0].as_float()).collect();
        assert_eq!(grid, [Some(-1.0), Some(0.0), Some(1.0), Some(2.0)]);
    }

    #[test]
    fn one_constant_leaves_its_base_at_a_time() {
        let axis = axis(Values::OneAtATime { base: vec![2.0, 20.0], low: vec![1.0, 10.0], high: vec![4.0, 40.0] });
        let at = |place| axis.at(place).iter().map(|value| value.as_float().unwrap()).collect::<Vec<_>>();
        assert_eq!(axis.count(), 5);
        let all: Vec<Vec<f64>> = (0..5).map(at).collect();
        assert_eq!(all, [[2.0, 20.0], [1.0, 20.0], [4.0, 20.0], [2.0, 10.0], [2.0, 40.0]]);
    }

    /// The million-th draw costs what the first does, keys draw apart, and logarithms fill their range evenly.
    #[test]
    fn draws_are_uniform_in_their_logarithm() {
        let many = axis(Values::Samples { from: vec![1e-4, 1.0], to: vec![1.0, 100.0], count: 1_000_000, seed: 3 });
        let at = |place| many.at(place).iter().map(|value| value.as_float().unwrap()).collect::<Vec<_>>();
        assert_eq!(at(999_999), at(999_999));
        let draws: Vec<Vec<f64>> = (0..4000).map(at).collect();
        assert!(draws.iter().all(|d| (1e-4..1.0).contains(&d[0]) && (1.0..100.0).contains(&d[1])));
        let share = |below: f64| draws.iter().filter(|d| d[0] < below).count() as f64 / 4000.0;
        assert!((share(1e-2) - 0.5).abs() < 0.03 && (share(1e-3) - 0.25).abs() < 0.03, "{}", share(1e-2));
        let both = draws.iter().filter(|d| d[0] < 1e-2 && d[1] < 10.0).count() as f64 / 4000.0;
        assert!((both - 0.25).abs() < 0.03, "keys draw apart: {both}");
        let other = axis(Values::Samples { from: vec![1e-4, 1.0], to: vec![1.0, 100.0], count: 1_000_000, seed: 4 });
        assert_ne!(at(0), other.at(0).iter().map(|value| value.as_float().unwrap()).collect::<Vec<_>>());
    }
}
