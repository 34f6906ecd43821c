//! A run as Python holds it: its documents, its series as numpy arrays, and a picture of rate and queue for notebooks, drawn by
//! `paceline-report`.

use crate::series::Series as Seen;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use paceline_lab::plan::Plan;
use paceline_lab::store::Setting;
use paceline_report::figure::{Axis, Kind, Panel, Role, Series, Subject};
use paceline_report::{Figure, svg};
use pyo3::prelude::*;

/// Bin of the received rate, s.
const BIN_S: f64 = 0.5;
const MBIT: f64 = 1e6;
/// Flows that are drawn: there are as many colours.
const FLOWS_DRAWN: usize = 7;

/// Name, unit, times and values; numpy owns what the run filled.
type Column = (String, String, Py<PyArray1<f64>>, Py<PyArray1<f64>>);

/// A run that was watched.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct Watched {
    /// What `run --json` prints of it.
    #[pyo3(get)]
    document: String,
    /// Every metric of the run as a whole, by id, as JSON.
    #[pyo3(get)]
    metrics: String,
    columns: Vec<Column>,
    setting: Setting,
    controllers: Vec<String>,
    seed: u64,
}

impl Watched {
    pub fn new(
        py: Python<'_>,
        plan: &Plan,
        seed: u64,
        setting: Setting,
        (document, metrics): (String, String),
        series: Vec<Seen>,
    ) -> Self {
        let array = |values| PyArray1::from_vec(py, values).unbind();
        let column = |s: Seen| (s.name, s.unit, array(s.time_s), array(s.value));
        let controllers = plan.flows.iter().map(|f| f.control().to_owned()).collect();
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
        let flows = self.setting.flows.iter().zip(&self.controllers).take(FLOWS_DRAWN);
        let subject = |(flow, controller): (&paceline_lab::store::FlowSetting, &String)| {
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
            let mut series = Series::new("capacity", &format!("capacity of {}", hop.id), 0, Role::Limit, Kind::Steps);
            series.subject = None;
            steps.iter().for_each(|(at, bps)| series.push(*at, bps / MBIT));
            self.carry(&mut series);
            panel.series.push(series);
        }
        for (index, subject) in subjects.iter().enumerate() {
            if let Some((time, bytes)) = self.column(py, &format!("{}.received_bytes", subject.flow)) {
                let mut series = Series::new("received", "received rate", index, Role::Main, Kind::Steps);
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
                let mut series = Series::new("target", "target", index, Role::Second, Kind::Steps);
                time.as_array().iter().zip(target.as_array()).for_each(|(at, bps)| series.push(*at, bps / MBIT));
                self.carry(&mut series);
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
                    Kind::Line,
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

    /// What holds last holds to the end.
    fn carry(&self, series: &mut Series) {
        if let Some(last) = series.y.last().copied() {
            series.push(self.setting.duration_s, last);
        }
    }
}

/// A value that holds from a time on: each time, and the value.
type Steps = Vec<(f64, f64)>;

#[pymethods]
impl Watched {
    /// Name, unit, times in s and values of every series.
    fn series(&self, py: Python<'_>) -> Vec<Column> {
        let column =
            |(name, unit, time, value): &Column| (name.clone(), unit.clone(), time.clone_ref(py), value.clone_ref(py));
        self.columns.iter().map(column).collect()
    }

    /// From when (s) which capacity (bit/s) each hop has: its name and the steps; none for a hop without limit.
    fn capacity(&self) -> Vec<(String, Option<Steps>)> {
        self.setting.hops.iter().map(|hop| (hop.id.clone(), hop.capacity.clone())).collect()
    }

    /// A line on the scenario.
    fn title(&self) -> &str {
        &self.setting.title
    }

    /// Rate and queue over time, as an SVG document.
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
