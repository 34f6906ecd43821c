//! Sweeps: what measures come to at each point of a grid, a list or a sample of settings.
//!
//! ```text
//! sweep file --load--> Sweep --number--> Job --plan, run--> JobRow --parts--> rows.parquet --gather--> SweepResult
//!                      (arithmetic, nothing is held)        (any process, any order)   (in the order of jobs)
//! ```
//!
//! A [`Job`] is a point, a subject (the scenario, case and settings that measures share) and a seed, and its number says
//! which: the plan is made where it is run, so a sweep of a million jobs is as small as one of ten. What a job came to is
//! a [`JobRow`], which hangs on nothing but the job; rows are read in the order of jobs, and so nothing tells how many
//! threads, processes or machines made them, or how often they were killed.
//!
//! **To run a sweep by other means than local threads** (a cluster's workers): in each process [`Sweep::load`] the same
//! text and call [`Sweep::batch`] with ranges of jobs; it reads no file and needs nobody else. One process holds the
//! [`SweepFolder`]: it says which [`batches`](SweepFolder::batches) are missing, takes rows as they come
//! ([`SweepFolder::write`], which may be told of the same job twice), and [merges](SweepFolder::merge) in the end. Before it
//! adds to what a folder holds it [proves](Sweep::prove) that code is still what it was.
//!
//! A swept key holds against the scenario, its constants and its case.

mod axis;
mod file;
mod folder;
mod job;
mod result;
mod run;

pub use axis::Axis;
pub use folder::SweepFolder;
pub use job::{Job, JobRow};
pub use result::{Better, Point, Sides, SweepResult, Swing};

use crate::label::Label;
use crate::metrics::{self, METRICS};
use crate::plan::{Plan, Quantity, Window};
use crate::scenario::{self, Catalogue, Changes, Origin, Placed, Problem, Setting, suggestion};
use crate::store::StoreError;
use crate::world::WorldError;
use file::{MeasureTable, RefineTable, SweepFile};
use miette::Diagnostic;
use paceline::Registry;
use paceline_units::Time;
use serde::Serialize;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Version of the program, which is part of what a job hangs on.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How many seeds per point there may be.
pub const REPEATS: RangeInclusive<u64> = 1..=10_000;

/// The key that is no scenario's: the controller of every media flow.
const CONTROLLER: &str = "controller";

/// Columns that are no measures.
const RESERVED: [&str; 8] = ["job", "address", "subject", "seed", "trace_hash", "point", "sum", "raw_sum"];

/// Points, and what is measured at each.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Its id, such as `mmsys16/fig8`.
    pub id: String,
    /// A line on it.
    pub title: String,
    /// Where it comes from.
    pub source: String,
    /// Seeds per point, from 1 on.
    pub repeats: u64,
    /// The dimensions, the last fastest.
    pub axes: Vec<Axis>,
    /// What is measured.
    pub measures: Vec<Measure>,
    /// The sum of the measures; none: there is none.
    pub sum: Option<Sum>,
    /// The point that was published as the best: the value of each key.
    pub published: Option<Vec<f64>>,
    refine: Option<RefineTable>,
    subjects: Vec<Subject>,
    origin: Origin,
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
    /// What is 0 and what is 1 of a normalised sum; none: the least and the largest of the sweep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
    /// Which of a point's runs.
    #[serde(skip)]
    subject: usize,
    #[serde(skip)]
    quantity: Quantity,
    /// Whether it is of the whole run, however long that is at a point.
    #[serde(skip)]
    whole: bool,
}

/// The sum of the measures.
#[derive(Clone, Debug, PartialEq)]
pub struct Sum {
    /// Whether each measure goes from 0 to 1 before it is added.
    pub normalised: bool,
    /// Two of the keys, by number: the claim that the sum's mean is larger where the first exceeds the second.
    pub larger_where: Option<(usize, usize)>,
}

/// What measures share: of one point and seed it is one run.
#[derive(Clone, Debug)]
struct Subject {
    scenario: Origin,
    case: Label,
    set: Vec<Setting>,
}

impl Subject {
    /// What results call it.
    fn name(&self) -> String {
        let name = self.scenario.name.strip_prefix("scenarios/").unwrap_or(&self.scenario.name);
        let name = name.strip_suffix(".toml").unwrap_or(name);
        let case = if self.case.is_empty() { String::new() } else { format!(" {}", self.case) };
        let set: String = self.set.iter().map(|setting| format!(" {setting}")).collect();
        format!("{name}{case}{set}")
    }
}

/// Why a sweep was not run.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[non_exhaustive]
pub enum SweepError {
    /// A point makes no plan.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Problem(#[from] Problem),
    /// The world did not run a plan.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A file was not written or not read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder holds a sweep, and it was not said that this one goes on with it.
    #[error("`{}` holds {done} of the {jobs} jobs of {id}", .path.display())]
    #[diagnostic(help("--resume goes on with them; for a sweep from the start name a new folder"))]
    Taken {
        /// The folder.
        path: PathBuf,
        /// Its sweep.
        id: String,
        /// How many jobs are done.
        done: u64,
        /// Of how many.
        jobs: u64,
    },
    /// The folder holds another sweep than the one to go on with.
    #[error("`{}` cannot be gone on with: {differs}", .path.display())]
    #[diagnostic(help(
        "name a new folder, or go back to what it was made with: its sweep.json says which sweep and version"
    ))]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// What differs.
        differs: String,
    },
    /// Another process is at the folder.
    #[error("another process is at `{}`", .path.display())]
    #[diagnostic(help("wait for it, or end it and go on with --resume"))]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// A row is of a job that the sweep does not have.
    #[error("`{}` has {jobs} jobs, numbered from 0, and a row is of job {job}", .path.display())]
    #[diagnostic(help(
        "workers read the same text, with the same seeds per point, as the process that holds the folder"
    ))]
    Beyond {
        /// The folder.
        path: PathBuf,
        /// The row's job.
        job: u64,
        /// How many there are.
        jobs: u64,
    },
    /// Rows were merged before all were there.
    #[error("`{}` lacks job {job}", .path.display())]
    #[diagnostic(help("--resume makes what is missing"))]
    Incomplete {
        /// The folder.
        path: PathBuf,
        /// The first that is missing.
        job: u64,
    },
}

impl Sweep {
    /// The sweep of this text.
    ///
    /// # Errors
    /// The text is none, or a first or last value of an axis makes no plan; of other points its job says so.
    pub fn load(origin: &Origin, registry: &Registry) -> Result<Self, Problem> {
        let file: SweepFile = scenario::parse(&origin.name, &origin.text)?;
        let complain = |message: &str| Problem::of(&origin.name, &origin.text, message);
        if file.measure.is_empty() {
            return Err(complain("nothing is measured").help("write [[measure]] with name, scenario and metric"));
        }
        for (index, measure) in file.measure.iter().enumerate() {
            let before = file.measure[..index].iter().map(|other| other.name.as_str());
            if before.chain(RESERVED).any(|taken| taken == measure.name) {
                let problem = complain(&format!("`{}` is already the name of a column", measure.name));
                return Err(problem.help("give each measure a name of its own"));
            }
        }
        let repeats = file.repeats.as_ref().map_or(1, |r| *r.get());
        if let Some(place) = file.repeats.as_ref().filter(|r| !REPEATS.contains(r.get())) {
            return Err(at(origin, place, "repeats are 1 to 10000").help("leave the key out for one"));
        }
        let controllers = file.controllers.as_ref().filter(|names| !names.get().is_empty());
        let mut axes: Vec<Axis> = controllers.iter().map(|names| Axis::controllers(names.get())).collect();
        for table in &file.axis {
            axes.push(Axis::read(origin, table)?);
        }
        if axes.is_empty() {
            return Err(complain("a sweep has an axis").help("write [[axis]] with a key and its values"));
        }
        let apart = |(n, axis): (usize, &Axis)| {
            axis.constants().is_some() && !(n + 1 == axes.len() && axes[..n].iter().all(|a| a.keys == [CONTROLLER]))
        };
        if axes.iter().enumerate().any(apart) {
            let problem =
                complain("constants that leave their base one at a time have no axis beside them but controllers'");
            return Err(problem.help("put that axis last, and what else is to differ into `set` of a [[measure]]"));
        }
        let keys: Vec<&str> = axes.iter().flat_map(|axis| &axis.keys).map(String::as_str).collect();
        if let Some((_, twice)) = keys.iter().enumerate().find(|(n, key)| keys[..*n].contains(key)) {
            return Err(complain(&format!("`{twice}` is on two axes")).help("a key has one value at a point"));
        }
        let points = axes.iter().try_fold(1_u64, |points, axis| points.checked_mul(axis.count()));
        if points.and_then(|p| p.checked_mul(repeats * file.measure.len() as u64)).is_none() {
            return Err(complain("more jobs than can be counted").help("leave out an axis"));
        }
        let published = file.published.as_ref().map(|place| published(origin, place, &keys)).transpose()?;
        let sum = file.sum.as_ref().map(|sum| {
            let number = |key: &String| keys.iter().position(|known| known == key);
            let larger_where = sum.larger_where.as_ref().map(|place| {
                let (first, second) = place.get();
                number(first).zip(number(second)).ok_or_else(|| {
                    at(origin, place, "the claim names a key of no axis").help(format!("keys: {}", keys.join(", ")))
                })
            });
            Ok::<_, Problem>(Sum { normalised: sum.normalised, larger_where: larger_where.transpose()? })
        });
        let sum = sum.transpose()?;
        if let Some(place) = file.refine.as_ref().filter(|r| sum.is_none() || !REPEATS.contains(&r.get().repeats)) {
            let problem = at(origin, place, "the best points are those with the largest sums, on 1 to 10000 seeds");
            return Err(problem.help("write [sum] normalised = true, and refine = { best = 10, repeats = 5 }"));
        }
        let refine = file.refine.as_ref().map(|place| *place.get()).filter(|refine| refine.best > 0);

        // Measures of the same scenario, case and settings share their runs.
        let mut subjects: Vec<(&MeasureTable, Subject)> = Vec::new();
        let mut subject_of = Vec::new();
        for measure in &file.measure {
            let index = match subjects.iter().position(|(other, _)| same_runs(other, measure)) {
                Some(index) => index,
                None => {
                    subjects.push((measure, subject(origin, measure)?));
                    subjects.len() - 1
                }
            };
            subject_of.push(index);
        }
        let subjects = subjects.into_iter().map(|(_, subject)| subject).collect();
        let mut sweep = Self {
            id: file.id,
            title: file.title,
            source: file.source,
            repeats,
            axes,
            measures: Vec::new(),
            sum,
            published,
            refine,
            subjects,
            origin: origin.clone(),
        };
        sweep.check_controllers(registry)?;
        let first: Vec<Plan> =
            (0..sweep.subjects.len()).map(|s| sweep.plan(0, s, registry)).collect::<Result<_, _>>()?;
        for (table, subject) in file.measure.iter().zip(subject_of) {
            sweep.measures.push(measure(origin, table, subject, &first[subject])?);
        }
        for point in sweep.ends() {
            for subject in 0..sweep.subjects.len() {
                sweep.plan(point, subject, registry)?;
            }
        }
        Ok(sweep)
    }

    /// The sweep of this text, with values of the file changed as by `--set`: `axis.0.log.steps=8`.
    ///
    /// # Errors
    /// Those of [`Sweep::load`].
    pub fn load_with(origin: &Origin, settings: &[Setting], registry: &Registry) -> Result<Self, Problem> {
        let text = scenario::apply(&origin.name, &origin.text, settings, |index, message| {
            Problem::of(&origin.name, &origin.text, format!("--set {}: {message}", settings[index]))
        })?;
        Self::load(&origin.with_text(text), registry)
    }

    /// How many points there are.
    pub fn points(&self) -> u64 {
        self.axes.iter().map(Axis::count).product()
    }

    /// Every key, in the order of [`Sweep::at`].
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.axes.iter().flat_map(|axis| &axis.keys).map(String::as_str)
    }

    /// The value of each key at a point, the last axis fastest.
    pub fn at(&self, point: u64) -> Vec<toml::Value> {
        self.places(point).into_iter().zip(&self.axes).flat_map(|(place, axis)| axis.at(place)).collect()
    }

    /// The sweep that a folder with this text came from, and where its scenarios are looked up.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// How long all runs last, simulated seconds, if all points' do as the first's.
    ///
    /// # Errors
    /// None of a sweep that was loaded.
    pub fn seconds(&self, registry: &Registry) -> Result<f64, Problem> {
        let plans = (0..self.subjects.len()).map(|subject| Ok(self.plan(0, subject, registry)?.duration.as_secs_f64()));
        Ok(plans.sum::<Result<f64, Problem>>()? * (self.points() * self.repeats) as f64)
    }

    /// The best points of a result once more, on more seeds, and the published one: a sweep of its own, as a file would
    /// say it. None, where the file does not ask for it or no point has a sum.
    ///
    /// # Errors
    /// None of a sweep that was loaded.
    pub fn refined(&self, result: &SweepResult, registry: &Registry) -> Result<Option<Self>, Problem> {
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
        // A scale of its own would make sums that cannot be compared with the grid's.
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

    /// The place of a point on each axis.
    fn places(&self, mut point: u64) -> Vec<u64> {
        let mut places: Vec<u64> = Vec::with_capacity(self.axes.len());
        for axis in self.axes.iter().rev() {
            places.push(point % axis.count());
            point /= axis.count();
        }
        places.reverse();
        places
    }

    /// The points at which one axis has its last value and all others their first.
    fn ends(&self) -> Vec<u64> {
        let mut stride = 1;
        let last = |axis: &Axis| {
            let point = (axis.count() - 1) * stride;
            stride *= axis.count();
            point
        };
        self.axes.iter().rev().map(last).collect()
    }

    /// What is run for a subject at a point.
    ///
    /// # Errors
    /// The values there do not fit the scenario, or a measure's window is longer than the run.
    fn plan(&self, point: u64, subject: usize, registry: &Registry) -> Result<Plan, Problem> {
        let Subject { scenario, case, set } = &self.subjects[subject];
        let mut changes = Changes { case: case.clone(), settings: set.clone(), ..Changes::default() };
        for (key, value) in self.keys().zip(self.at(point)) {
            match (key, &value) {
                (CONTROLLER, toml::Value::String(name)) => changes.controller = Some(name.clone()),
                _ => changes.settings.push(Setting::new(key, &value)),
            }
        }
        let mut plan = scenario::load(scenario, &changes, registry)?;
        // What the scenario itself asks for is not wanted here.
        (plan.expects, plan.asserts) = (Vec::new(), Vec::new());
        plan.references.clear();
        let end = Time::ZERO + plan.duration;
        for (key, measure) in self.measures.iter().enumerate().filter(|(_, m)| m.subject == subject) {
            let mut quantity = measure.quantity.clone();
            if measure.whole {
                quantity.window.to = end;
            }
            if quantity.window.to > end {
                let message = format!("the window of `{}` is longer than the run at point {point}", measure.name);
                return Err(Problem::of(&self.origin.name, &self.origin.text, message));
            }
            plan.references.insert(key, quantity);
        }
        Ok(plan)
    }

    fn check_controllers(&self, registry: &Registry) -> Result<(), Problem> {
        let known: Vec<&str> = registry.iter().map(|e| e.name()).collect();
        for axis in self.axes.iter().filter(|axis| axis.keys == [CONTROLLER]) {
            for name in (0..axis.count()).flat_map(|place| axis.at(place)) {
                if name.as_str().and_then(|name| registry.get(name)).is_none() {
                    let problem = Problem::of(&self.origin.name, &self.origin.text, format!("no controller {name}"));
                    return Err(problem.help(suggestion(name.as_str().unwrap_or_default(), &known)));
                }
            }
        }
        Ok(())
    }
}

fn at<T>(origin: &Origin, place: &Placed<T>, message: &str) -> Problem {
    Problem::at(&origin.name, &origin.text, place.span(), message)
}

fn same_runs(a: &MeasureTable, b: &MeasureTable) -> bool {
    let case = |m: &MeasureTable| m.case.as_ref().map(|c| c.get().clone());
    let set = |m: &MeasureTable| m.set.iter().map(|(k, v)| (k.clone(), v.0.to_string())).collect::<Vec<_>>();
    a.scenario.get() == b.scenario.get() && case(a) == case(b) && set(a) == set(b)
}

fn subject(origin: &Origin, measure: &MeasureTable) -> Result<Subject, Problem> {
    let scenario = Catalogue.find(measure.scenario.get()).map_err(|problem| {
        let hint = problem.hint().unwrap_or_default().to_owned();
        at(origin, &measure.scenario, &problem.to_string()).help(hint)
    })?;
    let case = measure.case.as_ref().map_or_else(Label::default, |c| c.get().clone());
    let set = measure.set.iter().map(|(key, value)| Setting::new(key, &value.0)).collect();
    Ok(Subject { scenario: bare(scenario), case, set })
}

/// A scenario without what it expects: most of its text, which is read anew at every point.
fn bare(scenario: Origin) -> Origin {
    // What cannot be read stays as it is, to be complained of where it is loaded.
    let Ok(mut document) = scenario.text.parse::<toml_edit::DocumentMut>() else { return scenario };
    document.remove("expect");
    document.remove("assert");
    scenario.with_text(document.to_string())
}

fn published(
    origin: &Origin,
    place: &Placed<std::collections::BTreeMap<String, f64>>,
    keys: &[&str],
) -> Result<Vec<f64>, Problem> {
    let at_keys: Option<Vec<f64>> = keys.iter().map(|key| place.get().get(*key).copied()).collect();
    at_keys.filter(|values| values.len() == place.get().len()).ok_or_else(|| {
        let problem = at(origin, place, "the published point has a value for each key of the axes, and no other");
        problem.help(format!("keys: {}", keys.join(", ")))
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
    let range = table.range.as_ref().map(|place| *place.get());
    // Ends that are equal are what the refined sweep says of a measure that was the same everywhere.
    if let Some(place) =
        table.range.as_ref().filter(|_| !range.is_some_and(|(low, high)| low <= high && (high - low).is_finite()))
    {
        let problem = at(origin, place, "a range goes from its lower end, which becomes 0, up to what becomes 1");
        return Err(problem.help("write range = [0, 1]"));
    }
    Ok(Measure {
        name: table.name.clone(),
        scenario: table.scenario.get().clone(),
        case: table.case.as_ref().map_or_else(Label::default, |c| c.get().clone()),
        metric: table.metric.get().clone(),
        flow: table.flow.as_ref().map(|f| f.get().clone()),
        published: table.published,
        range,
        subject,
        quantity: Quantity { metric: table.metric.get().clone(), flow, window: Window { from, to } },
        whole: table.window.is_none(),
    })
}
