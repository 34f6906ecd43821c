//! A run with its documents, its series as numpy arrays, and a plot of rate and queue for notebooks, drawn by
//! `paceline-report`.

use crate::series::Series as RecordedSeries;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use paceline_records::RunDescription;
use paceline_report::figure::{Axis, Panel, Role, Series, SeriesKind, Subject};
use paceline_report::{Figure, svg};
use paceline_scenario::Scenario;
use pyo3::prelude::*;

/// Bin of the received rate, s.
const BIN_S: f64 = 0.5;
const MBIT: f64 = 1e6;
/// Maximum number of flows in the plot: the number of colours.
const FLOWS_MAX: usize = 7;

/// Name, unit, times and values. The arrays own the memory that the run filled.
type Column = (String, String, Py<PyArray1<f64>>, Py<PyArray1<f64>>);

/// A run with its recorded series.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct RecordedRun {
    /// The JSON document of `run --json`.
    #[pyo3(get)]
    document: String,
    /// Every metric of the whole run, by id, as JSON.
    #[pyo3(get)]
    metrics: String,
    columns: Vec<Column>,
    setting: RunDescription,
    controllers: Vec<String>,
    seed: u64,
}

impl RecordedRun {
    /// Converts the series to numpy arrays.
    pub fn new(
        py: Python<'_>,
        scenario: &Scenario,
        seed: u64,
        setting: RunDescription,
        (document, metrics): (String, String),
        series: Vec<RecordedSeries>,
    ) -> Self {
        let array = |values| PyArray1::from_vec(py, values).unbind();
        let column = |s: RecordedSeries| (s.name, s.unit, array(s.time_s), array(s.value));
        let controllers = scenario.plan.flows.iter().map(|f| f.control().to_owned()).collect();
        Self { document, metrics, columns: series.into_iter().map(column).collect(), setting, controllers, seed }
    }

    fn column<'py>(
        &self,
        py: Python<'py>,
        name: &str,
    ) -> Option<(PyReadonlyArray1<'py, f64>, PyReadonlyArray1<'py, f64>)> {
        let (_, _, time, value) = self.columns.iter().find(|(known, ..)| known == name)?;
        Some((time.bind(py).try_readonly().ok()?, value.bind(py).try_readonly().ok()?))
    }

    fn subjects(&self) -> Vec<Subject> {
        let flows = self.setting.flows.iter().zip(&self.controllers).take(FLOWS_MAX);
        let subject = |(flow, controller): (&paceline_records::FlowDescription, &String)| {
            let label = format!("{} ({controller})", flow.id);
            Subject {
                run: String::new(),
                seed: self.seed,
                flow: flow.id.clone(),
                controller: controller.clone(),
                kind: label.clone(),
                label,
            }
        };
        flows.map(subject).collect()
    }

    fn rate(&self, py: Python<'_>, subjects: &[Subject]) -> Panel {
        let mut panel = self.panel("rate", Axis::new("rate", "Mbit/s"));
        for hop in self.setting.hops.iter().filter(|hop| hop.forward) {
            let Some(steps) = &hop.capacity else { continue };
            let mut series =
                Series::new("capacity", &format!("capacity of {}", hop.id), 0, Role::Limit, SeriesKind::Steps);
            series.subject = None;
            steps.iter().for_each(|(at, bps)| series.push(*at, bps / MBIT));
            self.extend_to_end(&mut series);
            panel.series.push(series);
        }
        for (index, subject) in subjects.iter().enumerate() {
            if let Some((time, bytes)) = self.column(py, &format!("{}.received_bytes", subject.flow)) {
                let mut series = Series::new("received", "received rate", index, Role::Main, SeriesKind::Steps);
                let (mut bin, mut sum) = (0, 0.0);
                let mut close = |bin: usize, sum: f64| series.push(bin as f64 * BIN_S, sum * 8.0 / BIN_S / MBIT);
                for (at, size) in time.as_array().iter().zip(bytes.as_array()) {
                    let own = (at / BIN_S) as usize;
                    while bin < own {
                        close(bin, core::mem::take(&mut sum));
                        bin += 1;
                    }
                    sum += size;
                }
                panel.series.push(series);
            }
            if let Some((time, target)) = self.column(py, &format!("{}.target_bps", subject.flow)) {
                let mut series = Series::new("target", "target", index, Role::Second, SeriesKind::Steps);
                time.as_array().iter().zip(target.as_array()).for_each(|(at, bps)| series.push(*at, bps / MBIT));
                self.extend_to_end(&mut series);
                panel.series.push(series);
            }
        }
        panel
    }

    fn queue(&self, py: Python<'_>) -> Panel {
        let mut panel = self.panel("queue", Axis::new("queuing delay", "ms"));
        for hop in self.setting.hops.iter().filter(|hop| hop.forward && hop.capacity.is_some()) {
            if let Some((time, waited)) = self.column(py, &format!("{}.queue_ms", hop.id)) {
                let mut series = Series::new(
                    &format!("waited:{}", hop.id),
                    &format!("waited at {}", hop.id),
                    0,
                    Role::Main,
                    SeriesKind::Line,
                );
                time.as_array().iter().zip(waited.as_array()).for_each(|(at, ms)| series.push(*at, *ms));
                panel.series.push(series);
            }
        }
        panel
    }

    fn panel(&self, id: &str, y: Axis) -> Panel {
        let (title, caption) = (String::new(), String::new());
        Panel { id: id.to_owned(), title, caption, x: Axis::time(self.setting.duration_s), y, series: Vec::new() }
    }

    /// Extends the last value of a series to the end of the run.
    fn extend_to_end(&self, series: &mut Series) {
        if let Some(last) = series.y.last().copied() {
            series.push(self.setting.duration_s, last);
        }
    }
}

/// Steps of a value over time: start, and the value from then on.
type Steps = Vec<(f64, f64)>;

#[pymethods]
impl RecordedRun {
    /// Returns name, unit, times in s and values of every series.
    fn series(&self, py: Python<'_>) -> Vec<Column> {
        let column =
            |(name, unit, time, value): &Column| (name.clone(), unit.clone(), time.clone_ref(py), value.clone_ref(py));
        self.columns.iter().map(column).collect()
    }

    /// Returns the name and the capacity of each hop as steps (s, bit/s); `None` for a hop without limit.
    fn capacity(&self) -> Vec<(String, Option<Steps>)> {
        self.setting.hops.iter().map(|hop| (hop.id.clone(), hop.capacity.clone())).collect()
    }

    /// Returns the title of the scenario.
    fn title(&self) -> &str {
        &self.setting.title
    }

    /// Draws rate and queue over time as an SVG document.
    fn svg(&self, py: Python<'_>) -> String {
        let subjects = self.subjects();
        let panels = [self.rate(py, &subjects), self.queue(py)];
        svg::draw(&Figure {
            id: "run".to_owned(),
            scenario: String::new(),
            title: String::new(),
            subjects,
            panels: panels.into_iter().filter(|panel| !panel.series.is_empty()).collect(),
        })
    }
}
