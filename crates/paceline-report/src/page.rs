//! The report page: one HTML file with tables, figures as compact columns, and the scripts that draw them. It loads nothing.

mod columns;
pub(crate) mod tables;

use crate::error::ReportError;
use crate::figure::{Axis, Figure, Role, Series, SeriesKind, Subject};
use crate::panels;
use crate::read::Results;
use askama::Template;
use columns::{Column, Columns};
use paceline_records::MetricCatalogue;
use paceline_results::write_whole;
use serde::Serialize;
use std::fs;
use std::path::Path;
use tables::Section;

/// Default name of the page in its folder.
pub const REPORT_FILE: &str = "report.html";

/// Resolution of times on the page, s.
pub const TIME_QUANTUM_S: f64 = 1e-6;

/// Reads a folder of results and writes its page.
///
/// # Errors
/// The results cannot be read, or the page cannot be written.
pub fn write(dir: &Path, to: &Path, metrics: MetricCatalogue) -> Result<(), ReportError> {
    write_page(&render(&Results::open(dir)?, metrics)?, to)
}

/// Writes a page atomically to a file, or directly to a pipe.
pub(crate) fn write_page(page: &str, to: &Path) -> Result<(), ReportError> {
    let is_pipe = fs::metadata(to).is_ok_and(|at| !at.is_file());
    if is_pipe {
        return fs::write(to, page).map_err(|source| ReportError::Io {
            action: "write",
            path: to.to_path_buf(),
            source,
        });
    }
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    Ok(write_whole(to.parent().unwrap_or(Path::new("")), &name, page.as_bytes())?)
}

/// Returns the page of a folder of results.
///
/// # Errors
/// A table cannot be read.
pub fn render(results: &Results, metrics: MetricCatalogue) -> Result<String, ReportError> {
    let figures = panels::figures(results)?;
    let mut columns = Columns::default();
    let points = figures.iter().flat_map(|f| &f.panels).flat_map(|p| &p.series).map(Series::len).sum();
    let data = figures.iter().map(|figure| figure_data(figure, &mut columns)).collect();
    let data = PageData { time_quantum_s: TIME_QUANTUM_S, points, figures: data };
    let sections =
        results.scenarios().into_iter().map(|scenario| Section::of(results, scenario, &figures, metrics)).collect();
    let page = Page {
        title: results.scenarios().join(", "),
        sections,
        figures: embedded_json(&data),
        columns: columns.packed(),
        version: env!("CARGO_PKG_VERSION"),
        plot_code: include_str!("../vendor/uplot-1.6.32/uPlot.iife.min.js"),
        plot_style: include_str!("../vendor/uplot-1.6.32/uPlot.min.css"),
        plot_licence: include_str!("../vendor/uplot-1.6.32/LICENSE"),
        code: concat!(include_str!("page/common.js"), include_str!("page/page.js")),
        style: STYLE,
    };
    Ok(page.render()?)
}

/// The style of the report page and the scoreboard.
pub(crate) const STYLE: &str = concat!(include_str!("page/common.css"), include_str!("page/page.css"));

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    title: String,
    sections: Vec<Section<'a>>,
    figures: String,
    columns: String,
    version: &'static str,
    plot_code: &'static str,
    plot_style: &'static str,
    plot_licence: &'static str,
    code: &'static str,
    style: &'static str,
}

/// The figures as the script of the page reads them. Their numbers are in the columns.
#[derive(Serialize)]
struct PageData<'a> {
    time_quantum_s: f64,
    points: usize,
    figures: Vec<FigureData<'a>>,
}

#[derive(Serialize)]
struct FigureData<'a> {
    id: &'a str,
    scenario: &'a str,
    subjects: &'a [Subject],
    panels: Vec<PanelData<'a>>,
}

#[derive(Serialize)]
struct PanelData<'a> {
    id: &'a str,
    x: &'a Axis,
    y: &'a Axis,
    series: Vec<SeriesData<'a>>,
}

#[derive(Serialize)]
struct SeriesData<'a> {
    id: &'a str,
    label: &'a str,
    subject: Option<usize>,
    role: Role,
    kind: SeriesKind,
    states: &'a [String],
    n: usize,
    x: Column,
    y: Column,
}

fn figure_data<'a>(Figure { id, scenario, subjects, panels, .. }: &'a Figure, columns: &mut Columns) -> FigureData<'a> {
    let mut series = |series: &'a Series| SeriesData {
        id: &series.id,
        label: &series.label,
        subject: series.subject,
        role: series.role,
        kind: series.kind,
        states: &series.states,
        n: series.len(),
        x: if series.kind == SeriesKind::Cdf { columns.floats(&series.x) } else { columns.times(&series.x) },
        y: columns.floats(&series.y),
    };
    let panels = panels.iter().map(|panel| PanelData {
        id: &panel.id,
        x: &panel.x,
        y: &panel.y,
        series: panel.series.iter().map(&mut series).collect(),
    });
    FigureData { id, scenario, subjects, panels: panels.collect() }
}

/// Returns JSON that is safe inside a script element.
fn embedded_json(data: &PageData<'_>) -> String {
    let text = serde_json::to_string(data).expect("names and finite numbers are JSON");
    text.replace('<', "\\u003c")
}
