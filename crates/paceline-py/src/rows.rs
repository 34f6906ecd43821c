// SPDX-License-Identifier: MIT OR Apache-2.0
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

/// The columns of texts: those before the numbers of a run, those before the value, and those after it.
const TEXTS: [&[&str]; 3] = [
    &["scenario", "scenario_hash", "changes", "controllers", "world"],
    &["flow", "stream", "metric", "each"],
    &["code", "trace_hash"],
];

/// Rows, each with the columns of the table and those of the caller, which precede them.
#[derive(Clone)]
pub struct Rows {
    texts: Vec<(&'static str, Texts)>,
    seed: Vec<u64>,
    window_from_s: Vec<f64>,
    window_to_s: Vec<f64>,
    value: Vec<f64>,
}

impl Default for Rows {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl Rows {
    /// Creates a table without rows. `own` are names of columns of the caller.
    pub fn new(own: &[&'static str]) -> Self {
        let texts = own.iter().chain(TEXTS.into_iter().flatten()).map(|name| (*name, Texts::default())).collect();
        let (seed, [window_from_s, window_to_s, value]) = (Vec::new(), [const { Vec::new() }; 3]);
        Self { texts, seed, window_from_s, window_to_s, value }
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
            let of_run = [&run.scenario, &run.scenario_hash, &changes, &controllers, &run.world].map(String::as_str);
            let of_value = [&*key.flow, &*key.stream, &*key.metric, &*key.each, &*run.code, &*run.trace_hash];
            let texts = own.iter().copied().chain(of_run).chain(of_value);
            self.texts.iter_mut().zip(texts).for_each(|((_, column), text)| column.push(text));
            self.seed.push(run.seed);
            self.window_from_s.push(key.window_s.0);
            self.window_to_s.push(key.window_s.1);
            self.value.push(value.unwrap_or(f64::NAN));
        }
    }

    /// Returns the columns as Python receives them.
    pub fn columns(&self, py: Python<'_>) -> Vec<Column> {
        let mut columns: Vec<Column> = self.texts.iter().map(|(name, texts)| texts.column(py, name)).collect();
        let numbers = |name, values: &Vec<f64>| (name, array(py, values.clone()), None);
        let after_value = columns.len() - TEXTS[2].len();
        columns.insert(after_value, numbers("value", &self.value));
        let of_run = [
            ("seed", array(py, self.seed.clone()), None),
            numbers("window_from_s", &self.window_from_s),
            numbers("window_to_s", &self.window_to_s),
        ];
        let after_run = after_value - TEXTS[1].len();
        columns.splice(after_run..after_run, of_run);
        columns
    }
}
