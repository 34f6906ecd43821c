// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page of labels on a timeline: plots of everything, and below each label the plots that support it. It loads nothing.

use crate::report::error::ReportError;
use crate::report::figure::Figure;
use crate::report::page::tables::FigureView;
use crate::report::page::{PLOT_CODE, PLOT_STYLE, SCRIPT, STYLE, packed, write_page};
use crate::report::policy::policy;
use askama::Template;
use std::path::Path;

const OWN_STYLE: &str = include_str!("page/timeline.css");

#[derive(Clone, Debug, Default)]
pub struct Timeline {
    pub title: String,
    /// The parts, such as the flows of a call.
    pub parts: Vec<Part>,
    /// What limits the page.
    pub notes: Vec<String>,
    pub command: String,
}

#[derive(Clone, Debug)]
pub struct Part {
    pub name: String,
    /// What all parts of an input show, in a sentence; empty in all but the first of them.
    pub verdict: String,
    pub facts: Vec<(String, String)>,
    pub overview: Figure,
    pub labels: Vec<Label>,
    /// Columns and rows of a table below the labels; no rows: no table.
    pub table: (Vec<String>, Vec<Vec<String>>),
    /// What limits the numbers of the table, in sentences.
    pub caveats: Vec<String>,
}

/// A label of a span of time.
#[derive(Clone, Debug)]
pub struct Label {
    /// When, such as `17.2 s`.
    pub when: String,
    pub what: String,
    pub why: String,
    /// Why so: how sure, then the observations.
    pub evidence: Vec<String>,
    /// What else would explain it, in sentences.
    pub others: Vec<String>,
    pub advice: String,
    pub is_known: bool,
    /// The plots that show it; `None`: without plots.
    pub figure: Option<Figure>,
}

#[derive(Template)]
#[template(path = "timeline.html")]
struct Page<'a> {
    policy: String,
    timeline: &'a Timeline,
    parts: Vec<PartView<'a>>,
    figures: String,
    columns: String,
}

struct PartView<'a> {
    part: &'a Part,
    overview: FigureView<'a>,
    labels: Vec<(&'a Label, Option<FigureView<'a>>)>,
}

/// Returns the page.
pub fn render(timeline: &Timeline) -> Result<String, ReportError> {
    let figures: Vec<Figure> = timeline
        .parts
        .iter()
        .flat_map(|part| {
            [&part.overview].into_iter().chain(part.labels.iter().filter_map(|label| label.figure.as_ref()))
        })
        .cloned()
        .collect();
    let (data, columns) = packed(&figures);
    let parts = timeline.parts.iter().map(|part| PartView {
        part,
        overview: FigureView::of(&part.overview),
        labels: part.labels.iter().map(|label| (label, label.figure.as_ref().map(FigureView::of))).collect(),
    });
    let page = Page {
        policy: policy(&[PLOT_CODE, SCRIPT], &[PLOT_STYLE, STYLE, OWN_STYLE]),
        timeline,
        parts: parts.collect(),
        figures: data,
        columns,
    };
    Ok(page.render()?)
}

/// Writes the page.
pub fn write(timeline: &Timeline, to: &Path) -> Result<(), ReportError> {
    write_page(&render(timeline)?, to)
}
