//! Pictures as vector files, for papers and pages: one column wide, white, of thin lines and few words.
//!
//! Panels stand above each other and share the time axis where they have one; what is drawn apart stands side by side,
//! on the same scales. A flow has the colour that it has on the page; where there is only one flow, colours tell its series apart. Drawn through plotters, whose coordinates are whole
//! numbers: a unit is a twentieth of a millimetre.

pub mod contour;
mod ink;
mod lanes;
mod layout;
mod thin;
pub mod tornado;

use crate::error::ReportError;
use crate::figure::{Axis, Figure, Kind, Panel, Role, Series};
use crate::panels;
use crate::pictures::pictures;
use crate::read::Results;
use ink::{Ink, Look};
use layout::{Frame, Layout};
use std::fs;
use std::path::{Path, PathBuf};
use thin::Place;

pub use layout::{MM, WIDTH};

/// Name of the folder of pictures in a folder of results, unless another is asked for.
pub const FIGURES_FOLDER: &str = "figures";

/// Draws all pictures of a folder of results into a folder, and answers the files.
///
/// # Errors
/// The folder is not one of results, or a file of it is damaged, or a picture cannot be written.
pub fn write(dir: &Path, into: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let results = Results::open(dir)?;
    let figures = panels::figures(&results)?;
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| ReportError::Io { action: "write", path, source }
    };
    fs::create_dir_all(into).map_err(failed(into))?;
    let mut files = Vec::new();
    for picture in pictures(&results, &figures) {
        let file = into.join(file_name(&picture.id));
        fs::write(&file, draw(&picture)).map_err(failed(&file))?;
        files.push(file);
    }
    Ok(files)
}

/// The file of a picture: `mmsys16-fig13.svg` for `mmsys16/fig13`.
pub fn file_name(id: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "._".contains(c) { c } else { '-' };
    id.chars().map(plain).collect::<String>() + ".svg"
}

/// A figure as an SVG document: the same text for the same figure.
pub fn draw(figure: &Figure) -> String {
    let looks = Looks::of(figure);
    let layout = Layout::of(figure, &looks);
    let (mut text, size) = (String::new(), layout.size);
    let mut ink = Ink::new(&mut text, size);
    layout.subjects.iter().for_each(|key| ink.key(key));
    for (panel, frame) in figure.panels.iter().zip(&layout.frames) {
        panel_into(&mut ink, panel, frame, &looks);
    }
    ink.close();
    ink::finished(&text, size)
}

/// How the series of a figure look.
struct Looks {
    /// Whether colours tell flows apart, and not series.
    several: bool,
}

impl Looks {
    fn of(figure: &Figure) -> Self {
        let mut subjects = figure.panels.iter().flat_map(|panel| &panel.series).filter_map(|series| series.subject);
        let first = subjects.next();
        Self { several: subjects.any(|subject| Some(subject) != first) }
    }

    fn look(&self, panel: &Panel, series: &Series) -> Look {
        let Some(subject) = series.subject else { return Look::limit() };
        // A threshold of either sign is one thing.
        let plain = |series: &Series| series.id.trim_start_matches(['+', '−']).to_owned();
        let same = |role: Option<Role>| {
            let all = panel.series.iter().filter(|s| s.subject == Some(subject) && role.is_none_or(|r| r == s.role));
            let mut names: Vec<String> = all.map(plain).collect();
            names.dedup();
            names.iter().position(|name| *name == plain(series)).unwrap_or(0)
        };
        let (colour, dash) = match (self.several, series.role) {
            (true, Role::Main) => (subject, same(Some(Role::Main))),
            (true, _) => (subject, 1),
            (false, Role::Main) => (same(None), 0),
            (false, _) => (same(None), 1),
        };
        Look::new(colour, dash, series.kind, self.several && series.role != Role::Main)
    }
}

fn panel_into(ink: &mut Ink<'_>, panel: &Panel, frame: &Frame, looks: &Looks) {
    frame.keys.iter().for_each(|key| ink.key(key));
    if let Some(at) = frame.tag {
        ink.tag((frame.left, at), &panel.title);
    }
    let y_ticks = if frame.lanes.is_empty() { ticks(frame.y, frame.y_ticks) } else { Vec::new() };
    let x_ticks = ticks(frame.x, 9);
    y_ticks.iter().for_each(|(value, _)| ink.grid((frame.left, frame.down(*value)), (frame.right, frame.down(*value))));

    let place = |x: f64, y: f64| -> Place { (frame.across(x), frame.down(y)) };
    let of_role = |role: Role| panel.series.iter().filter(move |series| series.role == role);
    let bands = panel.series.iter().filter(|series| series.kind == Kind::Band);
    if frame.lanes.is_empty() {
        bands.for_each(|series| lanes::shade(ink, frame, series, looks.look(panel, series)));
    } else {
        lanes::draw(ink, frame, panel, looks);
    }
    for series in of_role(Role::Limit).chain(of_role(Role::Main)).chain(of_role(Role::Second)) {
        let look = looks.look(panel, series);
        match series.kind {
            Kind::Band => {}
            _ if series.role == Role::Limit && !layout::is_near(panel, series) => {}
            Kind::Points => thin::points(series, ink::DOT, place).iter().for_each(|at| ink.dot(*at, look)),
            Kind::Line | Kind::Steps | Kind::Cdf => thin::lines(series, place).iter().for_each(|l| ink.line(l, look)),
        }
    }

    ink.frame((frame.left, frame.top), (frame.right, frame.bottom));
    for (value, text) in &y_ticks {
        ink.tick_left((frame.left, frame.down(*value)), text);
    }
    for lane in &frame.lanes {
        ink.label_left((frame.left, (lane.top + lane.bottom) / 2), &lane.name);
    }
    for (value, text) in &x_ticks {
        let text = if frame.shows_x { text } else { "" };
        ink.tick_below((frame.across(*value), frame.bottom), text);
    }
    if frame.shows_x {
        ink.name_below(((frame.left + frame.right) / 2, frame.bottom), &named(&panel.x));
    }
    if frame.lanes.is_empty() {
        ink.name_left((frame.edge, (frame.top + frame.bottom) / 2), &named(&panel.y));
    }
}

fn named(axis: &Axis) -> String {
    if axis.unit.is_empty() { axis.label.clone() } else { format!("{} ({})", axis.label, axis.unit) }
}

/// Round values of an axis, at most so many, with their texts in as many decimals as they all need.
fn ticks((from, to): (f64, f64), most: usize) -> Vec<(f64, String)> {
    use plotters::coord::ranged1d::Ranged;
    let values = plotters::coord::types::RangedCoordf64::from(from..to).key_points(most);
    let whole = |scale: f64| values.iter().all(|value| (value * scale - (value * scale).round()).abs() < 1e-6);
    let decimals = [1.0, 10.0, 1e2, 1e3, 1e4, 1e5].into_iter().position(whole).unwrap_or(6);
    let text = |value: f64| format!("{:.decimals$}", if value == 0.0 { 0.0 } else { value }).replace('-', "−");
    values.iter().map(|value| (*value, text(*value))).collect()
}
