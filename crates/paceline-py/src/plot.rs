// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plot of rate and queue over time for notebooks, drawn by `paceline_lab::report`.

use crate::errors::Failure;
use numpy::PyReadonlyArray1;
use paceline_lab::report::figure::{Axis, Panel, Role, Series, SeriesKind, Subject};
use paceline_lab::report::{Figure, svg as drawing};
use paceline_netsim::records::RunDescription;
use pyo3::prelude::*;

/// Bin of the received rate, s.
const BIN_S: f64 = 0.5;
const MBIT: f64 = 1e6;
/// A capacity above this multiple of the rates is cut.
const CUT: f64 = 2.0;
/// Maximum number of flows in the plot: the number of colours.
const FLOWS_MAX: usize = 7;

/// Name, times and values.
type NamedSeries<'py> = (String, PyReadonlyArray1<'py, f64>, PyReadonlyArray1<'py, f64>);

/// Draws rate and queue of a run over time as an SVG document. `description` is what plots need besides events, as JSON.
#[pyfunction]
pub fn svg(description: &str, controllers: Vec<String>, seed: u64, series: Vec<NamedSeries<'_>>) -> PyResult<String> {
    let setting = serde_json::from_str(description).map_err(Failure::from)?;
    Ok(Plot { setting, controllers, seed, series }.draw())
}

struct Plot<'py> {
    setting: RunDescription,
    controllers: Vec<String>,
    seed: u64,
    series: Vec<NamedSeries<'py>>,
}

impl<'py> Plot<'py> {
    fn series(&self, name: &str) -> Option<(&PyReadonlyArray1<'py, f64>, &PyReadonlyArray1<'py, f64>)> {
        let (_, time, value) = self.series.iter().find(|(known, ..)| known == name)?;
        Some((time, value))
    }

    fn draw(&self) -> String {
        let subjects = self.subjects();
        let panels = [self.rate(&subjects, true), self.rate(&subjects, false), self.queue()];
        drawing::draw(&Figure {
            id: "run".to_owned(),
            scenario: String::new(),
            title: String::new(),
            subjects,
            panels: panels.into_iter().filter(|panel| !panel.series.is_empty()).collect(),
        })
    }

    /// Returns whether a flow sends over the forward path.
    fn is_forward(&self, flow: &str) -> bool {
        let route = self.setting.flows.iter().find(|known| known.id == flow).and_then(|flow| flow.route.first());
        let hop = route.and_then(|id| self.setting.hops.iter().find(|hop| hop.id == *id));
        hop.is_none_or(|hop| hop.forward)
    }

    fn subjects(&self) -> Vec<Subject> {
        let flows = self.setting.flows.iter().zip(&self.controllers).take(FLOWS_MAX);
        let subject = |(flow, controller): (&paceline_netsim::records::FlowDescription, &String)| {
            let label = format!("{} ({controller})", flow.id);
            Subject {
                run: String::new(),
                seed: self.seed,
                flow: flow.id.clone(),
                controller: controller.clone(),
                kind: label.clone(),
                label,
                traffic: flow.kind != "media",
            }
        };
        flows.map(subject).collect()
    }

    /// Draws the flows of one direction, below the capacities of its hops.
    fn rate(&self, subjects: &[Subject], forward: bool) -> Panel {
        let (id, label) = if forward { ("rate", "rate") } else { ("reverse-rate", "rate, reverse path") };
        let mut panel = self.panel(id, Axis::new(label, "Mbit/s"));
        let drawn = |subject: &Subject| self.is_forward(&subject.flow) == forward;
        if !subjects.iter().any(drawn) {
            return panel;
        }
        for (index, subject) in subjects.iter().enumerate().filter(|(_, subject)| drawn(subject)) {
            if let Some((time, bytes)) = self.series(&format!("{}.received_bytes", subject.flow)) {
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
            if let Some((time, target)) = self.series(&format!("{}.target_bps", subject.flow)) {
                let mut series = Series::new("target", "target", index, Role::Second, SeriesKind::Steps);
                time.as_array().iter().zip(target.as_array()).for_each(|(at, bps)| series.push(*at, bps / MBIT));
                self.extend_to_end(&mut series);
                panel.series.push(series);
            }
        }
        self.add_capacities(&mut panel, forward);
        panel
    }

    /// Draws the capacities of one direction behind the rates. A capacity far above them is cut, so that the rates stay visible.
    fn add_capacities(&self, panel: &mut Panel, forward: bool) {
        let highest = panel.series.iter().flat_map(|series| &series.y).copied().fold(0.0, f64::max);
        for hop in self.setting.hops.iter().filter(|hop| hop.forward == forward) {
            let Some(steps) = &hop.capacity else { continue };
            let cut = CUT * highest;
            let is_cut = highest > 0.0 && steps.iter().any(|(_, bps)| bps / MBIT > cut);
            let above = if is_cut { format!(" (cut at {cut:.1})") } else { String::new() };
            let label = format!("capacity of {}{above}", hop.id);
            let mut series = Series::new("capacity", &label, 0, Role::Limit, SeriesKind::Steps);
            series.subject = None;
            for (at, bps) in steps {
                series.push(*at, if is_cut { (bps / MBIT).min(cut) } else { bps / MBIT });
            }
            self.extend_to_end(&mut series);
            panel.series.push(series);
        }
    }

    fn queue(&self) -> Panel {
        let mut panel = self.panel("queue", Axis::new("queuing delay", "ms"));
        for hop in self.setting.hops.iter().filter(|hop| hop.forward && hop.capacity.is_some()) {
            if let Some((time, waited)) = self.series(&format!("{}.queue_ms", hop.id)) {
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
