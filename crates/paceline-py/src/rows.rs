//! The table of results as columns: one row for each value of each run, as in the view `results` of `results.sqlite`.

use crate::packets::{Column, array};
use paceline_lab::results::database::MeasuredRun;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Texts as indices of names, each name once.
#[derive(Clone, Default)]
struct Texts {
    codes: Vec<i32>,
    names: Vec<String>,
    known: BTreeMap<String, i32>,
}

impl Texts {
    fn push(&mut self, text: &str) {
        let next = self.names.len() as i32;
        let code = self.known.get(text).copied().unwrap_or_else(|| {
            self.names.push(text.to_owned());
            self.known.insert(text.to_owned(), next);
            next
        });
        self.codes.push(code);
    }

    fn column(&self, py: Python<'_>, name: &'static str) -> Column {
        (name, array(py, self.codes.clone()), Some(self.names.clone()))
    }
}

/// Rows, each with the columns of the table and those of the caller, which precede them.
#[derive(Clone, Default)]
pub struct Rows {
    own: Vec<(&'static str, Texts)>,
    scenario: Texts,
    scenario_hash: Texts,
    changes: Texts,
    controllers: Texts,
    world: Texts,
    seed: Vec<u64>,
    window_from_s: Vec<f64>,
    window_to_s: Vec<f64>,
    flow: Texts,
    stream: Texts,
    metric: Texts,
    each: Texts,
    value: Vec<f64>,
    code: Texts,
    trace_hash: Texts,
}

impl Rows {
    /// Creates a table without rows. `own` are names of columns of the caller.
    pub fn new(own: &[&'static str]) -> Self {
        Self { own: own.iter().map(|name| (*name, Texts::default())).collect(), ..Self::default() }
    }

    /// Adds the values of a run, each quantity once. `own` are the values of the caller's columns.
    pub fn add(&mut self, own: &[&str], run: &MeasuredRun) {
        let mut controllers: Vec<&str> = Vec::new();
        for name in run.controllers.iter().flatten() {
            if !controllers.contains(&name.as_str()) {
                controllers.push(name);
            }
        }
        let (controllers, changes) = (controllers.join(", "), run.changes.join(", "));
        for (n, (key, value)) in run.values.iter().enumerate() {
            if run.values[..n].iter().any(|(other, _)| other == key) {
                continue;
            }
            self.own.iter_mut().zip(own).for_each(|((_, column), value)| column.push(value));
            self.scenario.push(&run.scenario);
            self.scenario_hash.push(&run.scenario_hash);
            self.changes.push(&changes);
            self.controllers.push(&controllers);
            self.world.push(&run.world);
            self.seed.push(run.seed);
            self.window_from_s.push(key.window_s.0);
            self.window_to_s.push(key.window_s.1);
            self.flow.push(&key.flow);
            self.stream.push(&key.stream);
            self.metric.push(&key.metric);
            self.each.push(&key.each);
            self.value.push(value.unwrap_or(f64::NAN));
            self.code.push(&run.code);
            self.trace_hash.push(&run.trace_hash);
        }
    }

    /// Returns the columns as Python receives them.
    pub fn columns(&self, py: Python<'_>) -> Vec<Column> {
        let mut columns: Vec<Column> = self.own.iter().map(|(name, texts)| texts.column(py, name)).collect();
        let numbers = |name, values: &Vec<f64>| (name, array(py, values.clone()), None);
        columns.extend([
            self.scenario.column(py, "scenario"),
            self.scenario_hash.column(py, "scenario_hash"),
            self.changes.column(py, "changes"),
            self.controllers.column(py, "controllers"),
            self.world.column(py, "world"),
            ("seed", array(py, self.seed.clone()), None),
            numbers("window_from_s", &self.window_from_s),
            numbers("window_to_s", &self.window_to_s),
            self.flow.column(py, "flow"),
            self.stream.column(py, "stream"),
            self.metric.column(py, "metric"),
            self.each.column(py, "each"),
            numbers("value", &self.value),
            self.code.column(py, "code"),
            self.trace_hash.column(py, "trace_hash"),
        ]);
        columns
    }
}
