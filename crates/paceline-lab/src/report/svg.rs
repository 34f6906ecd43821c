// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures as SVG files for papers and web pages: one column wide, on white.
//!
//! Panels are stacked and share the time axis. Parts with different titles are placed side by side with equal scales. A flow
//! has the same colour as on the report page; with one flow, colours distinguish series. Plotters uses integer coordinates,
//! so a unit is a twentieth of a millimetre.

mod canvas;
pub mod contour;
mod downsample;
mod layout;
mod state_bars;
mod style;
pub mod tornado;

use crate::report::error::ReportError;
use crate::report::figure::{Axis, Figure, Panel, Role, SeriesKind};
use crate::report::figure_groups::select;
use crate::report::panels;
use crate::report::read::Results;
use crate::results::Store;
use crate::results::files::io;
use canvas::Canvas;
use layout::{Frame, Layout};
use std::fs;
use std::path::{Path, PathBuf};
use style::{Point, SeriesStyles};

pub use style::{MM, WIDTH};

pub const FIGURES_FOLDER: &str = "figures";

/// Writes all figures of a folder of results into a folder and returns the files.
pub fn write(dir: &Path, into: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let (results, figures) = Store::read_settled(dir, || {
        let results = Results::open(dir)?;
        let figures = panels::figures(&results)?;
        Ok::<_, ReportError>((results, figures))
    })?;
    write_all(into, select(&results, &figures).iter().map(|figure| (figure.id.clone(), draw(figure))))
}

/// Writes SVG documents with the ids of their figures into a folder and returns the files.
pub(crate) fn write_all(
    into: &Path,
    documents: impl Iterator<Item = (String, String)>,
) -> Result<Vec<PathBuf>, ReportError> {
    fs::create_dir_all(into).map_err(io("write", into))?;
    let write = |(id, document): (String, String)| {
        let file = into.join(file_name(&id));
        fs::write(&file, document).map_err(io("write", &file))?;
        Ok(file)
    };
    documents.map(write).collect()
}

/// Returns the file name of a figure: `mmsys16-fig13.svg` for `mmsys16/fig13`.
pub fn file_name(id: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "._".contains(c) { c } else { '-' };
    id.chars().map(plain).collect::<String>() + ".svg"
}

/// Returns a figure as an SVG document. Equal figures give equal text.
pub fn draw(figure: &Figure) -> String {
    let styles = SeriesStyles::of(figure);
    let layout = Layout::of(figure, &styles);
    let (mut text, size) = (String::new(), layout.size);
    let mut canvas = Canvas::new(&mut text, size);
    if let Some(at) = layout.note {
        canvas.title(at, &figure.title);
    }
    layout.subjects.iter().for_each(|entry| canvas.legend_entry(entry));
    for (panel, frame) in figure.panels.iter().zip(&layout.frames) {
        draw_panel(&mut canvas, panel, frame, &styles);
    }
    canvas.close();
    canvas::finish_document(&text, size)
}

fn draw_panel(canvas: &mut Canvas<'_>, panel: &Panel, frame: &Frame, styles: &SeriesStyles) {
    frame.legend.iter().for_each(|entry| canvas.legend_entry(entry));
    if let Some(at) = frame.title {
        canvas.title((frame.left, at), &panel.title);
    }
    let y_ticks = if frame.rows.is_empty() { ticks(frame.y, frame.y_ticks) } else { Vec::new() };
    let x_ticks = ticks(frame.x, 9);
    y_ticks
        .iter()
        .for_each(|(value, _)| canvas.grid((frame.left, frame.down(*value)), (frame.right, frame.down(*value))));

    let place = |x: f64, y: f64| -> Point { (frame.across(x), frame.down(y)) };
    let of_role = |role: Role| panel.series.iter().filter(move |series| series.role == role);
    let bands = panel.series.iter().filter(|series| series.kind == SeriesKind::Band);
    if frame.rows.is_empty() {
        bands.for_each(|series| state_bars::shade(canvas, frame, series, styles.style(panel, series)));
    } else {
        state_bars::draw(canvas, frame, panel, styles);
    }
    for series in panel.series.iter().filter(|series| !series.ci95.is_empty()) {
        let edge = |sign: f64| {
            let points = series.x.iter().zip(&series.y).zip(&series.ci95);
            points.map(move |((x, y), half)| place(*x, panel.y.cut(y + sign * half)))
        };
        let area: Vec<Point> = edge(1.0).chain(edge(-1.0).rev()).collect();
        canvas.area(&area, styles.style(panel, series));
    }
    for series in of_role(Role::Limit).chain(of_role(Role::Main)).chain(of_role(Role::Second)) {
        let style = styles.style(panel, series);
        let is_limit = series.role == Role::Limit;
        match series.kind {
            SeriesKind::Band => {}
            _ if is_limit && !layout::is_near(panel, series) => {}
            SeriesKind::Points => {
                downsample::points(series, canvas::DOT, place).iter().for_each(|at| canvas.dot(*at, style))
            }
            SeriesKind::Line | SeriesKind::Steps | SeriesKind::Cdf => {
                for line in downsample::lines(series, place) {
                    if let ([first, .., last], true) = (&line[..], is_limit) {
                        let ends = [(last.0, frame.bottom), (first.0, frame.bottom)];
                        canvas.area(&[&line[..], &ends].concat(), style);
                    }
                    canvas.line(&line, style);
                }
            }
        }
    }

    canvas.frame((frame.left, frame.top), (frame.right, frame.bottom));
    for (value, text) in &y_ticks {
        canvas.y_tick((frame.left, frame.down(*value)), text);
    }
    for row in &frame.rows {
        canvas.label_left((frame.left, (row.top + row.bottom) / 2), &row.name);
    }
    for (value, text) in &x_ticks {
        let text = if frame.shows_x { text } else { "" };
        canvas.x_tick((frame.across(*value), frame.bottom), text);
    }
    if frame.shows_x {
        canvas.x_name(((frame.left + frame.right) / 2, frame.bottom), &named(&panel.x));
    }
    if frame.rows.is_empty() {
        canvas.y_name((frame.edge, (frame.top + frame.bottom) / 2), &named(&panel.y));
    }
}

fn named(axis: &Axis) -> String {
    if axis.unit.is_empty() { axis.label.clone() } else { format!("{} ({})", axis.label, axis.unit) }
}

/// Returns at most `most` round values of an axis with their labels, all with the same number of decimals.
fn ticks((from, to): (f64, f64), most: usize) -> Vec<(f64, String)> {
    use plotters::coord::ranged1d::Ranged;
    let values = plotters::coord::types::RangedCoordf64::from(from..to).key_points(most);
    let whole = |scale: f64| values.iter().all(|value| (value * scale - (value * scale).round()).abs() < 1e-6);
    let decimals = [1.0, 10.0, 1e2, 1e3, 1e4, 1e5].into_iter().position(whole).unwrap_or(6);
    let text = |value: f64| format!("{:.decimals$}", if value == 0.0 { 0.0 } else { value }).replace('-', "−");
    values.iter().map(|value| (*value, text(*value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figure::{Series, Subject};

    /// Returns the lower end of the band 1 ± 5 on an axis from -10 to 10, as a share of the height of the panel.
    fn lower_end(y: Axis) -> f64 {
        let mut series = Series::new("mean", "mean", 0, Role::Main, SeriesKind::Line);
        [0.0, 1.0].into_iter().for_each(|x| series.push(x, 1.0));
        series.ci95 = vec![5.0; 2];
        let y = Axis { range: Some((-10.0, 10.0)), ..y };
        let (id, x) = (String::new(), Axis::time(1.0));
        let panel = Panel { id: id.clone(), title: id.clone(), caption: id.clone(), x, y, series: vec![series] };
        let (scenario, title) = (id.clone(), id.clone());
        let figure = Figure { id, scenario, title, subjects: vec![Subject::named("a")], panels: vec![panel] };
        let frame = &Layout::of(&figure, &SeriesStyles::of(&figure)).frames[0];
        let text = draw(&figure);
        let polygon = text.split("<polygon").nth(1).and_then(|rest| rest.split("points=\"").nth(1)).unwrap();
        let corners = polygon.split('"').next().unwrap().split_whitespace();
        let lowest = corners.map(|corner| corner.split_once(',').unwrap().1.parse::<i32>().unwrap()).max().unwrap();
        f64::from(frame.bottom - lowest) / f64::from(frame.bottom - frame.top)
    }

    #[test]
    fn bands_end_at_the_smallest_possible_value() {
        assert!((lower_end(Axis::new("rate", "Mbit/s").not_negative()) - 0.5).abs() < 0.01);
        assert!((lower_end(Axis::new("signal", "")) - 0.3).abs() < 0.01);
    }
}
