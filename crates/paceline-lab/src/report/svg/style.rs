// SPDX-License-Identifier: MIT OR Apache-2.0
//! How series look: colours, dashes and marks, and the units of a drawing.

use crate::report::figure::{Figure, Panel, Role, Series, SeriesKind};
use plotters::style::RGBColor;

/// Drawing units per millimetre.
pub const MM: i32 = 20;
/// Width of a column, in units: one column of a paper.
pub const WIDTH: i32 = 90 * MM;
/// A point of the drawing, in units.
pub(super) type Point = (i32, i32);

/// The palette of Okabe and Ito, distinguishable with every kind of colour vision. Black marks limits.
pub(super) const COLOURS: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x8c, 0x8c, 0x00),
];
pub(super) const FOREGROUND: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub(super) const LIMIT: RGBColor = RGBColor(0xa8, 0xa8, 0xa8);

/// Line widths in units, with their dash patterns. Plotters writes no dashes, so each pattern has its own width, and
/// [`finish_document`](super::canvas::finish_document) adds the pattern to the lines of that width.
pub(super) const STROKES: [(u32, &str); 5] = [(6, ""), (7, "22 12"), (8, "5 12"), (9, "36 10 5 10"), (4, "")];
const LIMIT_STROKE: usize = 4;

/// Height of text, in units: 7 pt.
pub(super) const TEXT_HEIGHT: i32 = 49;
const SAMPLE: i32 = 5 * MM;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Style {
    pub(super) colour: RGBColor,
    /// Index in [`STROKES`].
    pub(super) stroke: usize,
    pub(super) mark: Mark,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mark {
    Line,
    Dot,
    Shade,
}

impl Style {
    pub(super) fn new(colour: usize, dash: usize, kind: SeriesKind, dark: bool) -> Self {
        // From the eighth flow on, colours repeat with another dash.
        let dash = (dash + colour / COLOURS.len()) % LIMIT_STROKE;
        let mark = match kind {
            SeriesKind::Points => Mark::Dot,
            SeriesKind::Band => Mark::Shade,
            SeriesKind::Line | SeriesKind::Steps | SeriesKind::Cdf => Mark::Line,
        };
        let RGBColor(r, g, b) = COLOURS[colour % COLOURS.len()];
        let darker = |part: u8| if dark && mark == Mark::Line { part / 2 } else { part };
        Self { colour: RGBColor(darker(r), darker(g), darker(b)), stroke: dash, mark }
    }

    pub(super) fn limit() -> Self {
        Self { colour: LIMIT, stroke: LIMIT_STROKE, mark: Mark::Shade }
    }

    pub(super) fn neutral(self) -> Self {
        Self { colour: if self.stroke == LIMIT_STROKE { LIMIT } else { FOREGROUND }, ..self }
    }

    pub(super) fn sample_width(self) -> i32 {
        if self.mark == Mark::Line { SAMPLE } else { SAMPLE / 2 }
    }
}

pub(super) struct SeriesStyles {
    /// Whether there are several flows. Colours then distinguish flows, otherwise series.
    pub(super) several: bool,
}

impl SeriesStyles {
    pub(super) fn of(figure: &Figure) -> Self {
        let mut subjects = figure.panels.iter().flat_map(|panel| &panel.series).filter_map(|series| series.subject);
        let first = subjects.next();
        Self { several: subjects.any(|subject| Some(subject) != first) }
    }

    pub(super) fn style(&self, panel: &Panel, series: &Series) -> Style {
        let Some(subject) = series.subject else { return Style::limit() };
        // A threshold and its negative have the same style.
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
        Style::new(colour, dash, series.kind, self.several && series.role != Role::Main)
    }
}

/// Estimates the width of a text: letters are half as wide as high, capitals three quarters.
pub(super) fn text_width(text: &str) -> i32 {
    text.chars().map(|letter| if letter.is_uppercase() { TEXT_HEIGHT * 3 / 4 } else { TEXT_HEIGHT / 2 }).sum()
}
