//! Sweeps: what measures come to at each point of a grid of settings.
//!
//! ```text
//! sweep file --load--> plans (one for each point and subject) x seeds --runs--> values --> points
//! ```
//!
//! A job is a plan and a seed. All jobs are one list, and results are merged in its order, so that they do not depend on
//! how many threads there are. A swept key holds against the scenario, its constants and its case.

mod file;

use crate::label::Label;
use crate::metrics::{self, METRICS};
use crate::plan::{Plan, Quantity, Window};
use crate::run::{Runner, windows};
use crate::scenario::{self, Catalogue, Changes, Origin, Placed, Problem, Setting, suggestion};
use crate::stats::Summary;
use crate::world::WorldError;
use file::{AxisTable, MeasureTable, SweepFile};
use paceline::Registry;
use paceline_units::Time;
use rayon::prelude::*;
use serde::Serialize;

/// A grid and what is measured on it.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Its id, such as `mmsys16/fig8`.
    pub id: String,
    /// A line on it.
    pub title: String,
    /// Where it comes from.
    pub source: String,
    /// Seeds per point.
    pub repeats: u64,
    /// One or two.
    pub axes: Vec<Axis>,
    /// What is measured.
    pub measures: Vec<Measure>,
    /// Whether there is a sum, and whether each measure is normalised before it is added.
    pub sum: Option<bool>,
    /// Of each point, a plan of each subject; points in the order of [`Sweep::at`].
    plans: Vec<Vec<Plan>>,
}

/// A key and the values that it takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    /// As of `--set`.
    pub key: String,
    /// In order.
    pub values: Vec<toml::Value>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measure {
    /// Its name.
    pub name: String,
    /// Scenario id or file.
    pub scenario: String,
    /// Case of the scenario.
    pub case: Label,
    /// Metric id.
    pub metric: String,
    /// The flow it is taken of.
    pub flow: Option<String>,
    /// What was published, in the metric's unit.
    pub published: Option<f64>,
    /// Which of a point's plans.
    #[serde(skip)]
    subject: usize,
    #[serde(skip)]
    quantity: Quantity,
}

/// What a sweep came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepResult {
    /// The sweep's id.
    pub id: String,
    /// Its axes.
    pub axes: Vec<Axis>,
    /// Its columns.
    pub measures: Vec<Measure>,
    /// Every point, the last axis fastest.
    pub points: Vec<Point>,
}

/// A point of the grid.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The value on each axis.
    pub at: Vec<toml::Value>,
    /// Each measure; none where a run has no value.
    pub values: Vec<Option<Summary>>,
    /// The sum of the measures; none without one, or where a measure has no value.
    pub sum: Option<f64>,
}

impl Sweep {
    /// The sweep of this text.
    pub fn load(origin: &Origin, registry: &Registry) -> Result<Self, Problem> {
        let file: SweepFile = scenario::parse(&origin.name, &origin.text)?;
        let complain = |message: &str| Problem::of(&origin.name, &origin.text, message);
        if !(1..=2).contains(&file.axis.len()) {
            return Err(complain("a sweep has one or two axes").help("write [[axis]] with a key and its values"));
        }
        if file.measure.is_empty() {
            return Err(complain("nothing is measured").help("write [[measure]] with name, scenario and metric"));
        }
        let repeats = file.repeats.as_ref().map_or(1, |r| *r.get());
        if let Some(place) = file.repeats.as_ref().filter(|r| !(1..=10_000).contains(r.get())) {
            return Err(at(origin, place, "repeats are 1 to 10000").help("leave the key out for one"));
        }
        let axes = file.axis.iter().map(|axis| values(origin, axis)).collect::<Result<Vec<_>, _>>()?;

        // Measures of the same scenario, case and settings share their runs.
        let mut subjects: Vec<(&MeasureTable, Origin)> = Vec::new();
        let mut subject_of = Vec::new();
        let same = |a: &MeasureTable, b: &MeasureTable| {
            let case = |m: &MeasureTable| m.case.as_ref().map(|c| c.get().clone());
            let set = |m: &MeasureTable| m.set.iter().map(|(k, v)| (k.clone(), v.0.to_string())).collect::<Vec<_>>();
            a.scenario.get() == b.scenario.get() && case(a) == case(b) && set(a) == set(b)
        };
        for measure in &file.measure {
            let index = match subjects.iter().position(|(other, _)| same(other, measure)) {
                Some(index) => index,
                None => {
                    let found = Catalogue.find(measure.scenario.get()).map_err(|problem| {
                        let hint = problem.hint().unwrap_or_default().to_owned();
                        at(origin, &measure.scenario, &problem.to_string()).help(hint)
                    })?;
                    subjects.push((measure, found));
                    subjects.len() - 1
                }
            };
            subject_of.push(index);
        }
        let plan = |point: &[toml::Value], (measure, scenario): &(&MeasureTable, Origin)| {
            let fixed = measure.set.iter().map(|(key, value)| Setting::new(key, &value.0));
            let swept = axes.iter().zip(point).map(|(axis, value)| Setting::new(&axis.key, value));
            let case = measure.case.as_ref().map_or_else(Label::default, |c| c.get().clone());
            let changes = Changes { case, settings: fixed.chain(swept).collect(), ..Changes::default() };
            scenario::load(scenario, &changes, registry)
        };
        let mut plans = grid(&axes)
            .iter()
            .map(|point| subjects.iter().map(|subject| plan(point, subject)).collect())
            .collect::<Result<Vec<Vec<Plan>>, _>>()?;

        let mut measures = Vec::new();
        for (key, (table, subject)) in file.measure.iter().zip(subject_of).enumerate() {
            let measure = measure(origin, table, subject, &plans[0][subject])?;
            for point in &mut plans {
                let plan = &mut point[subject];
                let end = Time::ZERO + plan.duration;
                let mut quantity = measure.quantity.clone();
                if table.window.is_none() {
                    quantity.window.to = end; // the whole run, however long it is at this point
                }
                if quantity.window.to > end {
                    return Err(complain("a window is longer than the run at some point of the grid"));
                }
                // What the scenario itself asks for is not wanted here.
                if !measures.iter().any(|m: &Measure| m.subject == subject) {
                    (plan.expects, plan.asserts) = (Vec::new(), Vec::new());
                    plan.references.clear();
                }
                plan.references.insert(key, quantity);
            }
            measures.push(measure);
        }
        let sum = file.sum.map(|s| s.normalised);
        Ok(Self { id: file.id, title: file.title, source: file.source, repeats, axes, measures, sum, plans })
    }

    /// Every point's values on the axes, the last axis fastest.
    pub fn at(&self) -> Vec<Vec<toml::Value>> {
        grid(&self.axes)
    }

    /// What `seeds` runs of everything take, simulated seconds.
    pub fn seconds(&self, seeds: u64) -> f64 {
        self.plans.iter().flatten().map(|p| p.duration.as_secs_f64() * seeds as f64).sum()
    }

    /// Every point, on seeds from 1 on.
    pub fn run(&self, runner: &Runner<'_>, seeds: u64) -> Result<SweepResult, WorldError> {
        let jobs: Vec<(usize, usize, u64)> = (0..self.plans.len())
            .flat_map(|point| (0..self.plans[point].len()).map(move |subject| (point, subject)))
            .flat_map(|(point, subject)| (1..=seeds).map(move |seed| (point, subject, seed)))
            .collect();
        let each = |(point, subject, seed): &(usize, usize, u64)| {
            let plan = &self.plans[*point][*subject];
            let (run, ()) = runner.undisturbed(|| Ok::<_, WorldError>((runner.run(plan, *seed, None)?, ())))?;
            let windows = windows(plan);
            // By key, which is by measure.
            Ok(plan.references.values().map(|quantity| run.value(plan, &windows, quantity)).collect())
        };
        let done: Vec<Vec<Option<f64>>> =
            runner.on_threads(|| jobs.par_iter().map(each).collect::<Result<_, WorldError>>())?;
        let mut values = vec![vec![Vec::new(); self.measures.len()]; self.plans.len()];
        for ((point, subject, _), came) in jobs.iter().zip(&done) {
            let columns = self.measures.iter().enumerate().filter(|(_, m)| m.subject == *subject);
            for ((column, _), value) in columns.zip(came) {
                values[*point][column].push(*value);
            }
        }
        let summary = |runs: &Vec<Option<f64>>| Summary::of(&runs.iter().copied().collect::<Option<Vec<_>>>()?);
        let values: Vec<Vec<Option<Summary>>> = values.iter().map(|p| p.iter().map(summary).collect()).collect();
        let means: Vec<Vec<Option<f64>>> =
            values.iter().map(|p| p.iter().map(|v| v.map(|s| s.mean)).collect()).collect();
        let sums = match self.sum {
            None => vec![None; means.len()],
            Some(true) => sums(&normalised(&means)),
            Some(false) => sums(&means),
        };
        let points = self.at().into_iter().zip(values).zip(sums);
        let points = points.map(|((at, values), sum)| Point { at, values, sum }).collect();
        Ok(SweepResult { id: self.id.clone(), axes: self.axes.clone(), measures: self.measures.clone(), points })
    }
}

fn at<T>(origin: &Origin, place: &Placed<T>, message: &str) -> Problem {
    Problem::at(&origin.name, &origin.text, place.span(), message)
}

fn values(origin: &Origin, axis: &AxisTable) -> Result<Axis, Problem> {
    let values = match (&axis.values, &axis.log) {
        (Some(values), None) if values.get().is_empty() => {
            return Err(at(origin, values, "an axis without values").help("write values = [1, 2]"));
        }
        (Some(values), None) => values.get().iter().map(|v| v.0.clone()).collect(),
        (None, Some(place)) => {
            let log = place.get();
            if !(log.from > 0.0 && log.from < log.to && log.to.is_finite() && (2..=10_000).contains(&log.steps)) {
                let problem = at(origin, place, "a log grid goes from above 0 up, in 2 to 10000 steps");
                return Err(problem.help("write it like { from = 1e-5, to = 0.1, steps = 8 }"));
            }
            log_grid(log.from, log.to, log.steps).into_iter().map(toml::Value::Float).collect()
        }
        _ => {
            let problem = at(origin, &axis.key, "an axis has either `values` or `log`");
            return Err(problem.help("write values = [1, 2] or log = { from = 1e-5, to = 0.1, steps = 8 }"));
        }
    };
    Ok(Axis { key: axis.key.get().clone(), values })
}

/// `steps` values of equal ratio, both ends exact.
fn log_grid(from: f64, to: f64, steps: usize) -> Vec<f64> {
    let inner = |i: usize| from * libm::pow(to / from, i as f64 / (steps - 1) as f64);
    (0..steps).map(|i| if i + 1 == steps { to } else { inner(i) }).collect()
}

fn grid(axes: &[Axis]) -> Vec<Vec<toml::Value>> {
    axes.iter().fold(vec![Vec::new()], |points, axis| {
        let longer = |point: &Vec<toml::Value>, value: &toml::Value| [point.clone(), vec![value.clone()]].concat();
        points.iter().flat_map(|point| axis.values.iter().map(move |value| longer(point, value))).collect()
    })
}

fn measure(origin: &Origin, table: &MeasureTable, subject: usize, plan: &Plan) -> Result<Measure, Problem> {
    if metrics::find(table.metric.get()).is_none() {
        let known: Vec<&str> = METRICS.iter().map(|m| m.id).collect();
        let problem = at(origin, &table.metric, &format!("no metric `{}`", table.metric.get()));
        return Err(problem.help(suggestion(table.metric.get(), &known)));
    }
    let names: Vec<&str> = plan.flows.iter().map(|f| f.id.as_str()).collect();
    let flow = match &table.flow {
        None => None,
        Some(place) => match names.iter().position(|name| name == place.get()) {
            Some(index) => Some(index),
            None => {
                let problem = at(origin, place, &format!("no flow `{}`", place.get()));
                return Err(problem.help(suggestion(place.get(), &names)));
            }
        },
    };
    let whole = (Time::ZERO, Time::ZERO + plan.duration);
    let (from, to) = table.window.as_ref().map_or(whole, |w| *w.get());
    if let Some(place) = table.window.as_ref().filter(|_| from >= to || to > whole.1) {
        let problem = at(origin, place, "a window is [from, to] within the run");
        return Err(problem.help(format!("the run lasts {}", plan.duration)));
    }
    Ok(Measure {
        name: table.name.clone(),
        scenario: table.scenario.get().clone(),
        case: table.case.as_ref().map_or_else(Label::default, |c| c.get().clone()),
        metric: table.metric.get().clone(),
        flow: table.flow.as_ref().map(|f| f.get().clone()),
        published: table.published,
        subject,
        quantity: Quantity { metric: table.metric.get().clone(), flow, window: Window { from, to } },
    })
}

/// Each column from 0 (its least) to 1 (its largest); 0 where all are equal.
fn normalised(points: &[Vec<Option<f64>>]) -> Vec<Vec<Option<f64>>> {
    let column = |c: usize| points.iter().filter_map(move |p| p[c]);
    let range = |c: usize| (column(c).fold(f64::INFINITY, f64::min), column(c).fold(f64::NEG_INFINITY, f64::max));
    let ranges: Vec<(f64, f64)> = (0..points.first().map_or(0, Vec::len)).map(range).collect();
    let scaled = |v: f64, (low, high): (f64, f64)| if high > low { (v - low) / (high - low) } else { 0.0 };
    points.iter().map(|p| p.iter().zip(&ranges).map(|(v, r)| v.map(|v| scaled(v, *r))).collect()).collect()
}

fn sums(points: &[Vec<Option<f64>>]) -> Vec<Option<f64>> {
    points.iter().map(|p| p.iter().copied().sum()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_grid_by_hand() {
        let grid = log_grid(1e-4, 0.1, 4);
        let by_hand = [1e-4, 1e-3, 1e-2, 0.1];
        assert!(grid.iter().zip(by_hand).all(|(a, b)| (a / b - 1.0).abs() < 1e-12), "{grid:?}");
        assert_eq!((grid[0], grid[3], grid.len()), (1e-4, 0.1, 4));
    }

    #[test]
    fn normalised_sums_by_hand() {
        let points = [vec![Some(-4.0), Some(10.0)], vec![Some(-2.0), Some(30.0)], vec![Some(0.0), Some(20.0)]];
        assert_eq!(sums(&normalised(&points)), [Some(0.0), Some(1.5), Some(1.5)]);
        assert_eq!(sums(&normalised(&[vec![Some(7.0)], vec![None], vec![Some(7.0)]])), [Some(0.0), None, Some(0.0)]);
    }
}
