// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sweeps: measures at each point of a grid, a list or a sample of values.
//!
//! ```text
//! sweep file ─load─▶ Sweep ─number─▶ Job ─scenario, run─▶ JobRow ─▶ results.sqlite ─aggregate─▶ SweepResult
//!                    (computed, not stored)          (any process, any order)       (in the order of jobs)
//! ```
//!
//! A [`Job`] is a point, a subject (the scenario, case and settings that measures share) and a seed. All three follow from its
//! number, and the scenario is only made where it is run, so memory does not grow with the number of jobs. Its result, a
//! [`JobRow`], depends only on the job. Rows are merged in the order of jobs, so the tables do not depend on the number of
//! threads, processes or machines, or on interruptions.
//!
//! **To run a sweep on other workers than local threads** (a cluster): in each process [`Sweep::load`] the same text and call
//! [`Sweep::batch`] with ranges of jobs, which uses no files. One process opens the [`SweepFolder`]. It lists the missing
//! [`batches`](SweepFolder::batches), takes the rows ([`SweepFolder::write`], also of the same job twice), and
//! [merges](SweepFolder::merge) them. Before it continues a folder, it [verifies](Sweep::verify) that the code still gives the
//! same rows.
//!
//! A swept key has priority over the scenario, its constants and its case.

mod aggregate;
mod axis;
mod error;
mod file;
mod folder;
mod job;
mod load;
mod run;
mod tables;

pub use error::SweepError;
pub use folder::SweepFolder;
pub use job::{Job, JobRow};

use crate::registries;
use crate::results::{Axis, Measure, SweepResult};
use file::RefineTable;
use paceline::Registry;
use paceline_netsim::records::Label;
use paceline_scenario::{Changes, Origin, Override, Quantity, Scenario, ScenarioError, load};
use paceline_units::Time;
use std::ops::RangeInclusive;

/// Allowed numbers of seeds per point.
pub const REPEATS: RangeInclusive<u64> = 1..=10_000;

/// The key that no scenario has: the controller of every media flow.
const CONTROLLER: &str = "controller";

#[derive(Clone, Debug)]
pub struct Sweep {
    /// Its id, such as `mmsys16/fig8`.
    pub id: String,
    pub title: String,
    pub source: String,
    pub repeats: u64,
    /// The dimensions; the last changes fastest.
    pub axes: Vec<Axis>,
    pub measures: Vec<Measure>,
    targets: Vec<Target>,
    pub sum: Option<Sum>,
    /// The published best point: the value of each key.
    pub published: Option<Vec<f64>>,
    refine: Option<RefineTable>,
    subjects: Vec<Subject>,
    origin: Origin,
}

#[derive(Clone, Debug)]
struct Target {
    subject: usize,
    quantity: Quantity,
    /// Whether the window is the whole run, whose duration may differ between points.
    whole: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sum {
    /// Whether each measure is scaled to 0 to 1 before it is added.
    pub normalised: bool,
    /// Indices of two keys: the claim that the mean of the sums is larger where the first exceeds the second.
    pub larger_where: Option<(usize, usize)>,
}

/// The scenario, case and settings that measures share: one run for each point and seed.
#[derive(Clone, Debug)]
struct Subject {
    scenario: Origin,
    case: Label,
    set: Vec<Override>,
}

impl Subject {
    fn name(&self) -> String {
        let name = self.scenario.name.strip_prefix("scenarios/").unwrap_or(&self.scenario.name);
        let name = name.strip_suffix(".toml").unwrap_or(name);
        let case = if self.case.is_empty() { String::new() } else { format!(" {}", self.case) };
        let set: String = self.set.iter().map(|setting| format!(" {setting}")).collect();
        format!("{name}{case}{set}")
    }
}

impl Sweep {
    pub fn points(&self) -> u64 {
        self.axes.iter().map(Axis::count).product()
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.axes.iter().flat_map(|axis| &axis.keys).map(String::as_str)
    }

    /// Returns the value of each key at a point. The last axis changes fastest.
    pub fn at(&self, point: u64) -> Vec<toml::Value> {
        self.places(point).into_iter().zip(&self.axes).flat_map(|(place, axis)| axis.at(place)).collect()
    }

    /// Returns the text of the sweep, and where its scenarios are looked up.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns the scenario that a measure measures at a point.
    pub fn measured_scenario(
        &self,
        point: u64,
        measure: usize,
        registry: &Registry,
    ) -> Result<Scenario, ScenarioError> {
        self.scenario(point, self.targets[measure].subject, registry)
    }

    /// Returns the simulated seconds of all runs, if all points last as long as the first.
    pub fn seconds(&self, registry: &Registry) -> Result<f64, ScenarioError> {
        let plans = (0..self.subjects.len())
            .map(|subject| Ok(self.scenario(0, subject, registry)?.plan.duration.as_secs_f64()));
        Ok(plans.sum::<Result<f64, ScenarioError>>()? * (self.points() * self.repeats) as f64)
    }

    /// Returns a sweep of the best points of a result, and of the published one, on more seeds. Returns `None` if the file has no
    /// `refine`, or no point has a sum.
    pub fn refined(&self, result: &SweepResult, registry: &Registry) -> Result<Option<Self>, ScenarioError> {
        let Some(RefineTable { best, repeats }) = self.refine.filter(|_| result.best.is_some()) else {
            return Ok(None);
        };
        let keys: Vec<toml::Value> = self.keys().map(|key| toml::Value::String(key.to_owned())).collect();
        let mut values: Vec<toml::Value> = result
            .ranking()
            .take(best as usize)
            .map(|index| toml::Value::Array(result.points[index].at.clone()))
            .collect();
        let published = self.published.iter().map(|at| at.iter().map(|x| toml::Value::Float(*x)).collect());
        values.extend(published.map(toml::Value::Array));
        let mut table: toml::Table = toml::from_str(&self.origin.text).expect("it was parsed before");
        for key in ["refine", "controllers"] {
            table.remove(key);
        }
        let axis = toml::Table::from_iter([("keys".to_owned(), keys.into()), ("values".to_owned(), values.into())]);
        table.insert("axis".to_owned(), vec![axis].into());
        table.insert("id".to_owned(), format!("{}/best", self.id).into());
        table.insert("title".to_owned(), format!("{}: the best points on more seeds", self.title).into());
        table.insert("repeats".to_owned(), (repeats as i64).into());
        // The same scale, so that the sums can be compared with those of the grid.
        let measures = table.get_mut("measure").and_then(toml::Value::as_array_mut).expect("it was parsed before");
        for (measure, range) in measures.iter_mut().zip(&result.ranges) {
            if let (Some(measure), Some((low, high))) = (measure.as_table_mut(), range) {
                measure.insert("range".to_owned(), vec![*low, *high].into());
            }
        }
        if let Some(sum) = table.get_mut("sum").and_then(toml::Value::as_table_mut) {
            sum.remove("larger_where");
        }
        Self::load(&self.origin.with_text(table.to_string()), registry).map(Some)
    }

    fn places(&self, mut point: u64) -> Vec<u64> {
        let mut places: Vec<u64> = Vec::with_capacity(self.axes.len());
        for axis in self.axes.iter().rev() {
            places.push(point % axis.count());
            point /= axis.count();
        }
        places.reverse();
        places
    }

    /// Returns the points at which one axis has its last value and all others their first.
    fn ends(&self) -> Vec<u64> {
        let mut stride = 1;
        let last = |axis: &Axis| {
            let point = (axis.count() - 1) * stride;
            stride *= axis.count();
            point
        };
        self.axes.iter().rev().map(last).collect()
    }

    /// Returns the scenario of a subject at a point.
    fn scenario(&self, point: u64, subject: usize, registry: &Registry) -> Result<Scenario, ScenarioError> {
        let Subject { scenario, case, set } = &self.subjects[subject];
        let mut changes = Changes { case: case.clone(), settings: set.clone(), ..Changes::default() };
        for (key, value) in self.keys().zip(self.at(point)) {
            match (key, &value) {
                (CONTROLLER, toml::Value::String(name)) => changes.controller = Some(name.clone()),
                _ => changes.settings.push(Override::new(key, &value)),
            }
        }
        let mut scenario = load(scenario, &changes, registries(registry))?;
        // The values and bounds of the scenario itself are not needed.
        (scenario.expects, scenario.asserts) = (Vec::new(), Vec::new());
        scenario.references.clear();
        let end = Time::ZERO + scenario.plan.duration;
        for (key, measure) in self.measures.iter().enumerate().filter(|(key, _)| self.targets[*key].subject == subject)
        {
            let target = &self.targets[key];
            let mut quantity = target.quantity.clone();
            if target.whole {
                quantity.window.to = end;
            }
            if quantity.window.to > end {
                let message = format!("the window of `{}` is longer than the run at point {point}", measure.name);
                return Err(ScenarioError::of(&self.origin.name, &self.origin.text, message));
            }
            scenario.references.insert(key, quantity);
        }
        Ok(scenario)
    }
}
