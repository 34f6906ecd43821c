// SPDX-License-Identifier: MIT OR Apache-2.0
//! The layout of a figure: legends, panels and axis ranges.

use super::style::{MM, Point, SeriesStyles, Style, WIDTH, text_width};
use crate::report::figure::{Figure, Panel, Role, Series, SeriesKind};

/// Most columns: a page of a paper has two.
const COLUMNS: usize = 2;

const LEFT: i32 = 13 * MM;
const RIGHT: i32 = WIDTH - 3 * MM;
/// Height of a panel in a stack, and of a single panel.
const STACKED: i32 = 27 * MM;
const ALONE: i32 = 45 * MM;
const LEGEND_ROW: i32 = 4 * MM;
const STATE_ROW: i32 = 16 * MM / 5;
/// Gap between two panels that share the x axis.
const GAP: i32 = 2 * MM;
/// Height of the numbers and the name of an x axis.
const AXIS: i32 = 10 * MM;

pub(super) struct LegendEntry {
    pub(super) at: Point,
    pub(super) style: Style,
    pub(super) text: String,
}

pub(super) struct Frame {
    pub(super) edge: i32,
    pub(super) left: i32,
    pub(super) right: i32,
    pub(super) top: i32,
    pub(super) bottom: i32,
    pub(super) x: (f64, f64),
    pub(super) y: (f64, f64),
    pub(super) y_ticks: usize,
    pub(super) legend: Vec<LegendEntry>,
    /// Vertical position of the title, unless the panel above has the same.
    pub(super) title: Option<i32>,
    /// Rows of states; empty if y is a number.
    pub(super) rows: Vec<StateRow>,
    /// Whether the numbers and the name of the x axis are drawn here.
    pub(super) shows_x: bool,
}

pub(super) struct Layout {
    pub(super) size: Point,
    /// Position of the figure's title, if it has one.
    pub(super) note: Option<Point>,
    pub(super) subjects: Vec<LegendEntry>,
    /// One frame per panel, in the order of the figure.
    pub(super) frames: Vec<Frame>,
}

impl Layout {
    pub(super) fn of(figure: &Figure, styles: &SeriesStyles) -> Self {
        let parts: Vec<&[Panel]> = figure.panels.chunk_by(|a, b| a.title == b.title).collect();
        let columns = parts.len().clamp(1, COLUMNS);
        let mut subjects = Vec::new();
        let mut y = MM;
        let note = (!figure.title.is_empty()).then_some((LEFT, y + LEGEND_ROW / 2));
        if note.is_some() {
            y += LEGEND_ROW;
        }
        if styles.several {
            let shown = |subject: &usize| {
                let mut series = figure.panels.iter().flat_map(|panel| &panel.series);
                series.any(|series| series.subject == Some(*subject))
            };
            let sample = |s| (Style::new(s, 0, SeriesKind::Line, false), figure.subjects[s].label.clone());
            (subjects, y) = legend((0..figure.subjects.len()).filter(shown).map(sample).collect(), 0, y);
        }
        let left = left(figure);
        let mut frames = Vec::new();
        for row in parts.chunks(columns) {
            let mut below = y;
            for (column, part) in row.iter().enumerate() {
                below = below.max(stack(figure, part, styles, (WIDTH * column as i32, left, y), &mut frames));
            }
            y = below;
        }
        Self { size: (WIDTH * columns as i32, y), note, subjects, frames }
    }
}

/// Returns the width left of the panels, in which the names of states have room.
fn left(figure: &Figure) -> i32 {
    let names = figure.panels.iter().flat_map(state_rows).map(|row| text_width(&row.name) + 2 * MM);
    names.fold(LEFT, i32::max)
}

/// Places panels below each other, from `left` of `edge` on, and returns their lower end.
fn stack(
    figure: &Figure,
    part: &[Panel],
    styles: &SeriesStyles,
    (edge, left, mut y): (i32, i32, i32),
    frames: &mut Vec<Frame>,
) -> i32 {
    for (index, panel) in part.iter().enumerate() {
        let title = (index == 0 && !panel.title.is_empty()).then_some(y + LEGEND_ROW / 2);
        let (legend, below) = legend(samples(panel, styles), edge, y + if title.is_some() { LEGEND_ROW } else { 0 });
        let rows = state_rows(panel);
        let height = match (rows.len(), figure.panels.len()) {
            (0, 1) => ALONE,
            (0, _) => STACKED,
            (n, _) => STATE_ROW * n as i32,
        };
        let top = below.max(y + GAP / 2);
        let shows_x = part.get(index + 1).is_none_or(|next| next.x.label != panel.x.label);
        let like: Vec<&Panel> = figure.panels.iter().filter(|other| other.id == panel.id).collect();
        let mut frame = Frame {
            edge,
            left: edge + left,
            right: edge + RIGHT,
            top,
            bottom: top + height,
            x: panel.x.range.unwrap_or_else(|| value_range(&like, |series| &series.x)),
            y: panel.y.range.unwrap_or_else(|| value_range(&like, |series| &series.y)),
            y_ticks: if figure.panels.len() == 1 { 8 } else { 5 },
            legend,
            title,
            rows,
            shows_x,
        };
        for (row, state) in frame.rows.iter_mut().enumerate() {
            (state.top, state.bottom) = (top + STATE_ROW * row as i32, top + STATE_ROW * (row as i32 + 1));
        }
        y = frame.bottom + if shows_x { AXIS } else { GAP };
        frames.push(frame);
    }
    y
}

pub(super) struct StateRow {
    /// Id of the series.
    pub(super) of: String,
    /// Index in the states of the series.
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) top: i32,
    pub(super) bottom: i32,
}

/// Returns the rows of a panel that contains only states.
fn state_rows(panel: &Panel) -> Vec<StateRow> {
    let mut rows: Vec<StateRow> = Vec::new();
    if panel.series.iter().any(|series| series.kind != SeriesKind::Band) {
        return rows;
    }
    for series in &panel.series {
        for (index, name) in series.states.iter().enumerate() {
            if !rows.iter().any(|row| row.of == series.id && row.index == index) {
                let (of, name) = (series.id.clone(), name.clone());
                rows.push(StateRow { of, index, name, top: 0, bottom: 0 });
            }
        }
    }
    rows
}

impl Frame {
    pub(super) fn across(&self, x: f64) -> i32 {
        position((self.left, self.right), x, self.x)
    }

    pub(super) fn down(&self, y: f64) -> i32 {
        position((self.bottom, self.top), y, self.y)
    }
}

/// Returns the position of a value on an axis. Values beyond an end are drawn at that end.
fn position((from, to): (i32, i32), value: f64, axis: (f64, f64)) -> i32 {
    let share = ((value - axis.0) / (axis.1 - axis.0)).clamp(0.0, 1.0);
    from + (share * f64::from(to - from)).round() as i32
}

/// Places samples in rows from left to right, and returns them with the position of the next row.
fn legend(samples: Vec<(Style, String)>, edge: i32, top: i32) -> (Vec<LegendEntry>, i32) {
    let from = edge + LEFT;
    let (mut x, mut y) = (from, top);
    let mut entries = Vec::new();
    for (style, text) in samples {
        let width = style.sample_width() + MM + text_width(&text);
        if x > from && x + width > edge + RIGHT {
            (x, y) = (from, y + LEGEND_ROW);
        }
        entries.push(LegendEntry { at: (x, y + LEGEND_ROW / 2), style, text });
        x += width + 2 * MM;
    }
    let next = if entries.is_empty() { top } else { y + LEGEND_ROW };
    (entries, next)
}

/// Returns the style and label of each kind of series, if there are several.
fn samples(panel: &Panel, styles: &SeriesStyles) -> Vec<(Style, String)> {
    let mut samples: Vec<(Style, String)> = Vec::new();
    let only_states = !state_rows(panel).is_empty();
    for series in
        panel.series.iter().filter(|series| !only_states && (series.role != Role::Limit || is_near(panel, series)))
    {
        let style = styles.style(panel, series);
        let style = if styles.several { style.neutral() } else { style };
        match samples.iter_mut().find(|(known, text)| *known == style || *text == series.label) {
            Some((_, text)) if *text != series.label && !text.split(", ").any(|t| t == series.label) => {
                *text += &format!(", {}", series.label);
            }
            Some(_) => {}
            None => samples.push((style, series.label.clone())),
        }
    }
    if samples.len() > 1 { samples } else { Vec::new() }
}

/// Returns whether a limit is close enough to the other values to be drawn without compressing them.
pub(super) fn is_near(panel: &Panel, limit: &Series) -> bool {
    let largest = |series: &Series| series.y.iter().copied().fold(0.0, f64::max);
    let drawn = panel.series.iter().filter(|series| series.role != Role::Limit).map(largest).fold(0.0, f64::max);
    largest(limit) <= 3.0 * drawn
}

/// Returns the range of an axis of equal panels: from zero or the smallest value to slightly above the largest.
fn value_range(panels: &[&Panel], of: impl Fn(&Series) -> &Vec<f64>) -> (f64, f64) {
    let is_shown = |panel, s: &Series| s.kind != SeriesKind::Band && (s.role != Role::Limit || is_near(panel, s));
    let shown = panels.iter().flat_map(|panel| panel.series.iter().filter(|series| is_shown(panel, series)));
    let values = shown.flat_map(of).copied().filter(|value| value.is_finite());
    let (least, largest) = values.fold((0.0, 0.0), |(low, high): (f64, f64), value| (low.min(value), high.max(value)));
    match largest - least {
        0.0 => (0.0, 1.0),
        span => (if least < 0.0 { least - 0.06 * span } else { 0.0 }, largest + 0.06 * span),
    }
}
