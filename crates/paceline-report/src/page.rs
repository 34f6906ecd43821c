//! One HTML file: figures as compact columns, tables, and the code that draws them. It loads nothing from anywhere.

mod columns;
pub(crate) mod tables;

use crate::error::ReportError;
use crate::figure::{Figure, Kind, Panel, Role, Series, Subject};
use crate::panels;
use crate::read::Results;
use askama::Template;
use columns::{Columns, Place};
use paceline_lab::store::write_whole;
use serde::Serialize;
use std::fs;
use std::path::Path;
use tables::Section;

/// Name of the page in its folder, unless another is asked for.
pub const REPORT_FILE: &str = "report.html";

/// Decimal digits of a second that the page's times keep.
pub const TIME_QUANTUM_S: f64 = 1e-6;

/// Reads a folder of results and writes its page.
///
/// # Errors
/// The folder is not one of results, or a file of it is damaged, or the page cannot be written.
pub fn write(dir: &Path, to: &Path) -> Result<(), ReportError> {
    write_page(&render(&Results::open(dir)?)?, to)
}

/// Writes a page whole, or into a pipe.
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

/// The page of a folder of results.
///
/// # Errors
/// A table cannot be read.
pub fn render(results: &Results) -> Result<String, ReportError> {
    let figures = panels::figures(results)?;
    let mut columns = Columns::default();
    let told: Vec<ToldFigure<'_>> = figures.iter().map(|figure| ToldFigure::of(figure, &mut columns)).collect();
    let points = figures.iter().flat_map(|f| &f.panels).flat_map(|p| &p.series).map(Series::len).sum();
    let told = Told { time_quantum_s: TIME_QUANTUM_S, points, figures: told };
    let sections = results.scenarios().into_iter().map(|scenario| Section::of(results, scenario, &figures)).collect();
    let page = Page {
        title: results.scenarios().join(", "),
        sections,
        told: island(&told),
        columns: columns.packed(),
        version: env!("CARGO_PKG_VERSION"),
        plot_code: include_str!("../vendor/uplot-1.6.32/uPlot.iife.min.js"),
        plot_style: include_str!("../vendor/uplot-1.6.32/uPlot.min.css"),
        plot_licence: include_str!("../vendor/uplot-1.6.32/LICENSE"),
        code: include_str!("page/page.js"),
        style: include_str!("page/page.css"),
    };
    Ok(page.render()?)
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    title: String,
    sections: Vec<Section<'a>>,
    told: String,
    columns: String,
    version: &'static str,
    plot_code: &'static str,
    plot_style: &'static str,
    plot_licence: &'static str,
    code: &'static str,
    style: &'static str,
}

/// What the page's code is told of the figures; the numbers stand in the columns.
#[derive(Serialize)]
struct Told<'a> {
    time_quantum_s: f64,
    points: usize,
    figures: Vec<ToldFigure<'a>>,
}

#[derive(Serialize)]
struct ToldFigure<'a> {
    id: &'a str,
    scenario: &'a str,
    subjects: Vec<ToldSubject<'a>>,
    panels: Vec<ToldPanel<'a>>,
}

#[derive(Serialize)]
struct ToldSubject<'a> {
    label: &'a str,
    kind: &'a str,
    seed: u64,
    run: &'a str,
    flow: &'a str,
}

#[derive(Serialize)]
struct ToldPanel<'a> {
    id: &'a str,
    x: ToldAxis<'a>,
    y: ToldAxis<'a>,
    series: Vec<ToldSeries<'a>>,
}

#[derive(Serialize)]
struct ToldAxis<'a> {
    label: &'a str,
    unit: &'a str,
    range: Option<(f64, f64)>,
}

#[derive(Serialize)]
struct ToldSeries<'a> {
    id: &'a str,
    label: &'a str,
    subject: Option<usize>,
    role: &'static str,
    kind: &'static str,
    states: &'a [String],
    n: usize,
    x: Place,
    y: Place,
}

impl<'a> ToldFigure<'a> {
    fn of(figure: &'a Figure, columns: &mut Columns) -> Self {
        Self {
            id: &figure.id,
            scenario: &figure.scenario,
            subjects: figure
                .subjects
                .iter()
                .map(|Subject { label, kind, seed, run, flow, .. }| ToldSubject { label, kind, seed: *seed, run, flow })
                .collect(),
            panels: figure.panels.iter().map(|panel| ToldPanel::of(panel, columns)).collect(),
        }
    }
}

impl<'a> ToldPanel<'a> {
    fn of(panel: &'a Panel, columns: &mut Columns) -> Self {
        let axis = |axis: &'a crate::figure::Axis| ToldAxis { label: &axis.label, unit: &axis.unit, range: axis.range };
        let series = panel.series.iter().map(|series| ToldSeries {
            id: &series.id,
            label: &series.label,
            subject: series.subject,
            role: match series.role {
                Role::Main => "main",
                Role::Second => "second",
                Role::Limit => "limit",
            },
            kind: match series.kind {
                Kind::Line => "line",
                Kind::Steps => "steps",
                Kind::Points => "points",
                Kind::Band => "band",
                Kind::Cdf => "cdf",
            },
            states: &series.states,
            n: series.len(),
            x: if series.kind == Kind::Cdf { columns.floats(&series.x) } else { columns.times(&series.x) },
            y: columns.floats(&series.y),
        });
        Self { id: &panel.id, x: axis(&panel.x), y: axis(&panel.y), series: series.collect() }
    }
}

/// JSON that may stand between script tags.
fn island(told: &Told<'_>) -> String {
    let text = serde_json::to_string(told).expect("names and finite numbers are JSON");
    text.replace('<', "\\u003c")
}
