// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report page: one HTML file with tables, figures as compact columns, and the scripts that draw them. It loads nothing.

mod columns;
mod comparison;
mod downsample;
pub(crate) mod tables;

use crate::report::error::ReportError;
use crate::report::figure::{Axis, Figure, Role, Series, SeriesKind, Subject};
use crate::report::panels;
use crate::report::policy::policy;
use crate::report::read::Results;
use crate::results::files::io;
use crate::results::{Store, write_whole};
use askama::Template;
use columns::{Column, Columns, TICKS_PER_SECOND, shortened, ticks_per_second};
use downsample::{Downsampled, MOST_POINTS};
use paceline_netsim::records::MetricCatalogue;
use serde::Serialize;
use std::fs;
use std::path::Path;
use tables::Section;

/// Default name of the page in its folder.
pub const REPORT_FILE: &str = "report.html";

pub fn write(dir: &Path, to: &Path, metrics: MetricCatalogue) -> Result<(), ReportError> {
    write_page(&Store::read_settled(dir, || render(&Results::open(dir)?, metrics))?, to)
}

/// Writes a page atomically to a file, or directly to a pipe.
pub(crate) fn write_page(page: &str, to: &Path) -> Result<(), ReportError> {
    let is_pipe = fs::metadata(to).is_ok_and(|at| !at.is_file());
    if is_pipe {
        return Ok(fs::write(to, page).map_err(io("write", to))?);
    }
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    Ok(write_whole(to.parent().unwrap_or(Path::new("")), &name, page.as_bytes())?)
}

pub fn render(results: &Results, metrics: MetricCatalogue) -> Result<String, ReportError> {
    let figures = panels::figures(results)?;
    let drawn = downsample::downsample(&figures, MOST_POINTS);
    let (data, columns) = pack(&drawn);
    let mut sections: Vec<Section<'_>> =
        results.scenarios().into_iter().map(|scenario| Section::of(results, scenario, &figures, metrics)).collect();
    for section in &mut sections {
        let count = |figures: &mut dyn Iterator<Item = &Figure>| -> usize {
            figures.filter(|figure| figure.scenario == section.scenario).map(points).sum()
        };
        let (all, shown) = (count(&mut figures.iter()), count(&mut drawn.iter().map(|drawn| &drawn.figure)));
        if shown < all {
            section.single.left_out += &downsample::note(shown, all);
        }
    }
    let page = Page {
        policy: policy(&[PLOT_CODE, SCRIPT], &[PLOT_STYLE, STYLE]),
        title: results.scenarios().join(", "),
        sections,
        figures: data,
        columns,
    };
    Ok(page.render()?)
}

/// The plotting library, and the script that draws figures with it.
pub(crate) const PLOT_CODE: &str = include_str!("../../vendor/uplot-1.6.32/uPlot.iife.min.js");
pub(crate) const PLOT_STYLE: &str = include_str!("../../vendor/uplot-1.6.32/uPlot.min.css");
pub(crate) const PLOT_LICENCE: &str = include_str!("../../vendor/uplot-1.6.32/LICENSE");
pub(crate) const SCRIPT: &str = concat!(include_str!("page/common.js"), include_str!("page/page.js"));

/// Returns figures as the script reads them: their description as JSON, and their numbers.
pub(crate) fn packed(figures: &[Figure]) -> (String, String) {
    pack(&downsample::downsample(figures, MOST_POINTS))
}

fn pack(drawn: &[Downsampled]) -> (String, String) {
    let mut columns = Columns::default();
    let data = drawn.iter().map(|figure| figure_data(figure, &mut columns)).collect();
    let data = PageData { points: drawn.iter().map(|drawn| points(&drawn.figure)).sum(), figures: data };
    (embedded_json(&data), columns.packed())
}

/// The style of the report page and the scoreboard.
pub(crate) const STYLE: &str = concat!(include_str!("page/common.css"), include_str!("page/page.css"));

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    policy: String,
    title: String,
    sections: Vec<Section<'a>>,
    figures: String,
    columns: String,
}

/// The figures as the script of the page reads them. Their numbers are in the columns.
#[derive(Serialize)]
struct PageData<'a> {
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
    #[serde(skip_serializing_if = "Option::is_none")]
    ci95: Option<Column>,
}

fn points(figure: &Figure) -> usize {
    figure.panels.iter().flat_map(|panel| &panel.series).map(Series::len).sum()
}

fn figure_data<'a>(drawn: &'a Downsampled, columns: &mut Columns) -> FigureData<'a> {
    let Downsampled { figure: Figure { id, scenario, subjects, panels, .. }, intervals_s } = drawn;
    let panels = panels.iter().zip(intervals_s).map(|(panel, intervals_s)| PanelData {
        id: &panel.id,
        x: &panel.x,
        y: &panel.y,
        series: panel
            .series
            .iter()
            .zip(intervals_s)
            .map(|(s, interval_s)| series_data(s, *interval_s, columns))
            .collect(),
    });
    FigureData { id, scenario, subjects, panels: panels.collect() }
}

/// `interval_s`: length of the intervals of a down-sampled series.
fn series_data<'a>(series: &'a Series, interval_s: Option<f64>, columns: &mut Columns) -> SeriesData<'a> {
    let exact = |values: &'a [f64]| values.iter().map(|value| *value as f32);
    SeriesData {
        id: &series.id,
        label: &series.label,
        subject: series.subject,
        role: series.role,
        kind: series.kind,
        states: &series.states,
        n: series.len(),
        x: match series.kind {
            SeriesKind::Cdf => columns.floats(exact(&series.x)),
            _ => columns.times(&series.x, interval_s.map_or(TICKS_PER_SECOND, ticks_per_second)),
        },
        y: match interval_s {
            None => columns.floats(exact(&series.y)),
            Some(_) => columns.floats(series.y.iter().map(|value| shortened(*value))),
        },
        ci95: (!series.ci95.is_empty()).then(|| columns.floats(exact(&series.ci95))),
    }
}

/// Returns JSON that is safe inside a script element.
fn embedded_json(data: &PageData<'_>) -> String {
    let text = serde_json::to_string(data).expect("names and finite numbers are JSON");
    text.replace('<', "\\u003c")
}
