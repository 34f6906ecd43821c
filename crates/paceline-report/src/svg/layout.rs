//! Where things stand: legends, panels, what each axis covers.

use super::ink::{Look, text_width};
use super::lanes::Lane;
use super::{Looks, thin::Place};
use crate::figure::{Figure, Kind, Panel, Role, Series};

/// Units to a millimetre.
pub const MM: i32 = 20;
/// Width of a picture, in units: a column of a paper.
pub const WIDTH: i32 = 90 * MM;
/// Most columns: a page of a paper has two.
const COLUMNS: usize = 2;

const LEFT: i32 = 13 * MM;
const RIGHT: i32 = WIDTH - 3 * MM;
/// Height of a panel that stands with others, and of one that stands alone.
const STACKED: i32 = 27 * MM;
const ALONE: i32 = 45 * MM;
/// A line of a legend.
const ROW: i32 = 4 * MM;
const LANE: i32 = 16 * MM / 5;
/// Between a panel and the next, where no axis is named.
const GAP: i32 = 2 * MM;
/// For the numbers and the name of an x axis.
const AXIS: i32 = 10 * MM;

/// A sample of a look and what it stands for.
pub(super) struct Key {
    pub(super) at: Place,
    pub(super) look: Look,
    pub(super) text: String,
}

/// Where a panel stands.
pub(super) struct Frame {
    /// Left end of the column.
    pub(super) edge: i32,
    pub(super) left: i32,
    pub(super) right: i32,
    pub(super) top: i32,
    pub(super) bottom: i32,
    pub(super) x: (f64, f64),
    pub(super) y: (f64, f64),
    pub(super) y_ticks: usize,
    pub(super) keys: Vec<Key>,
    /// Where the title stands; none if the panel above says it.
    pub(super) tag: Option<i32>,
    /// Rows of states; none if y is a number.
    pub(super) lanes: Vec<Lane>,
    /// Whether the x axis has its numbers and its name here.
    pub(super) shows_x: bool,
}

pub(super) struct Layout {
    pub(super) size: Place,
    pub(super) subjects: Vec<Key>,
    /// Of each panel of the figure, in its order.
    pub(super) frames: Vec<Frame>,
}

impl Layout {
    pub(super) fn of(figure: &Figure, looks: &Looks) -> Self {
        let parts: Vec<&[Panel]> = figure.panels.chunk_by(|a, b| a.title == b.title).collect();
        let columns = parts.len().clamp(1, COLUMNS);
        let mut subjects = Vec::new();
        let mut y = MM;
        if looks.several {
            let shown = |subject: &usize| {
                let mut series = figure.panels.iter().flat_map(|panel| &panel.series);
                series.any(|series| series.subject == Some(*subject))
            };
            let sample = |s| (Look::new(s, 0, Kind::Line, false), figure.subjects[s].label.clone());
            (subjects, y) = rows((0..figure.subjects.len()).filter(shown).map(sample).collect(), 0, y);
        }
        let mut frames = Vec::new();
        for row in parts.chunks(columns) {
            let mut below = y;
            for (column, part) in row.iter().enumerate() {
                below = below.max(stand(figure, part, looks, (WIDTH * column as i32, y), &mut frames));
            }
            y = below;
        }
        Self { size: (WIDTH * columns as i32, y), subjects, frames }
    }
}

/// Puts panels below each other, and answers where they end.
fn stand(figure: &Figure, part: &[Panel], looks: &Looks, (edge, mut y): Place, frames: &mut Vec<Frame>) -> i32 {
    for (index, panel) in part.iter().enumerate() {
        let tag = (index == 0 && !panel.title.is_empty()).then_some(y + ROW / 2);
        let (keys, below) = rows(samples(panel, looks), edge, y + if tag.is_some() { ROW } else { 0 });
        let lanes = super::lanes::lanes(panel);
        let height = match (lanes.len(), figure.panels.len()) {
            (0, 1) => ALONE,
            (0, _) => STACKED,
            (n, _) => LANE * n as i32,
        };
        let top = below.max(y + GAP / 2);
        let shows_x = part.get(index + 1).is_none_or(|next| next.x.label != panel.x.label);
        let like: Vec<&Panel> = figure.panels.iter().filter(|other| other.id == panel.id).collect();
        let mut frame = Frame {
            edge,
            left: edge + LEFT,
            right: edge + RIGHT,
            top,
            bottom: top + height,
            x: panel.x.range.unwrap_or_else(|| covered(&like, |series| &series.x)),
            y: panel.y.range.unwrap_or_else(|| covered(&like, |series| &series.y)),
            y_ticks: if figure.panels.len() == 1 { 8 } else { 5 },
            keys,
            tag,
            lanes,
            shows_x,
        };
        for (row, lane) in frame.lanes.iter_mut().enumerate() {
            (lane.top, lane.bottom) = (top + LANE * row as i32, top + LANE * (row as i32 + 1));
        }
        y = frame.bottom + if shows_x { AXIS } else { GAP };
        frames.push(frame);
    }
    y
}

impl Frame {
    /// Where a value of the x axis stands.
    pub(super) fn across(&self, x: f64) -> i32 {
        within((self.left, self.right), x, self.x)
    }

    /// Where a value of the y axis stands.
    pub(super) fn down(&self, y: f64) -> i32 {
        within((self.bottom, self.top), y, self.y)
    }
}

/// The place of a value on an axis; what lies beyond an end is drawn there.
fn within((from, to): (i32, i32), value: f64, axis: (f64, f64)) -> i32 {
    let share = ((value - axis.0) / (axis.1 - axis.0)).clamp(0.0, 1.0);
    from + (share * f64::from(to - from)).round() as i32
}

/// Samples in rows from left to right, and where the next row would stand.
fn rows(samples: Vec<(Look, String)>, edge: i32, top: i32) -> (Vec<Key>, i32) {
    let from = edge + LEFT;
    let (mut x, mut y) = (from, top);
    let mut keys = Vec::new();
    for (look, text) in samples {
        let width = look.sample_width() + MM + text_width(&text);
        if x > from && x + width > edge + RIGHT {
            (x, y) = (from, y + ROW);
        }
        keys.push(Key { at: (x, y + ROW / 2), look, text });
        x += width + 2 * MM;
    }
    let next = if keys.is_empty() { top } else { y + ROW };
    (keys, next)
}

/// What the lines of a panel are, unless there is only one kind, which the axis names.
fn samples(panel: &Panel, looks: &Looks) -> Vec<(Look, String)> {
    let mut samples: Vec<(Look, String)> = Vec::new();
    let bare = !super::lanes::lanes(panel).is_empty();
    for series in panel.series.iter().filter(|series| !bare && (series.role != Role::Limit || is_near(panel, series))) {
        let look = looks.look(panel, series);
        let look = if looks.several { look.of_nobody() } else { look };
        match samples.iter_mut().find(|(known, text)| *known == look || *text == series.label) {
            Some((_, text)) if *text != series.label && !text.split(", ").any(|t| t == series.label) => {
                *text += &format!(", {}", series.label);
            }
            Some(_) => {}
            None => samples.push((look, series.label.clone())),
        }
    }
    if samples.len() > 1 { samples } else { Vec::new() }
}

/// Whether a limit is near enough to what is drawn that showing it leaves room for that.
pub(super) fn is_near(panel: &Panel, limit: &Series) -> bool {
    let largest = |series: &Series| series.y.iter().copied().fold(0.0, f64::max);
    let drawn = panel.series.iter().filter(|series| series.role != Role::Limit).map(largest).fold(0.0, f64::max);
    largest(limit) <= 3.0 * drawn
}

/// What an axis of panels alike covers: from zero, if nothing is below it, to a little more than the largest value.
fn covered(panels: &[&Panel], of: impl Fn(&Series) -> &Vec<f64>) -> (f64, f64) {
    let is_shown = |panel, s: &Series| s.kind != Kind::Band && (s.role != Role::Limit || is_near(panel, s));
    let shown = panels.iter().flat_map(|panel| panel.series.iter().filter(|series| is_shown(panel, series)));
    let values = shown.flat_map(of).copied().filter(|value| value.is_finite());
    let (least, largest) = values.fold((0.0, 0.0), |(low, high): (f64, f64), value| (low.min(value), high.max(value)));
    match largest - least {
        0.0 => (0.0, 1.0),
        span => (if least < 0.0 { least - 0.06 * span } else { 0.0 }, largest + 0.06 * span),
    }
}
