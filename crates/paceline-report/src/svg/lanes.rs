//! States: a row for each, with a bar while it holds; and shades, while something else does.

use super::ink::{Ink, Look, SHADE};
use super::layout::Frame;
use super::{Looks, thin};
use crate::figure::{Kind, Panel, Series};

/// A row of a panel: a state of those series that have its name.
pub(super) struct Lane {
    /// Which series, by id.
    pub(super) of: String,
    /// Its number among the series' states.
    pub(super) state: usize,
    /// What it is called.
    pub(super) name: String,
    pub(super) top: i32,
    pub(super) bottom: i32,
}

/// The rows of a panel that shows nothing but states.
pub(super) fn lanes(panel: &Panel) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    if panel.series.iter().any(|series| series.kind != Kind::Band) {
        return lanes;
    }
    for series in &panel.series {
        for (state, name) in series.states.iter().enumerate() {
            if !lanes.iter().any(|lane| lane.of == series.id && lane.state == state) {
                let (of, name) = (series.id.clone(), name.clone());
                lanes.push(Lane { of, state, name, top: 0, bottom: 0 });
            }
        }
    }
    lanes
}

/// Draws the bars; those of several flows lie below each other in a row.
pub(super) fn draw(ink: &mut Ink<'_>, frame: &Frame, panel: &Panel, looks: &Looks) {
    for (index, lane) in frame.lanes.iter().enumerate() {
        if index > 0 && frame.lanes[index - 1].of != lane.of {
            ink.part((frame.left, lane.top), (frame.right, lane.top));
        }
        let of_lane: Vec<&Series> = panel.series.iter().filter(|series| series.id == lane.of).collect();
        let share = (lane.bottom - lane.top) / of_lane.len() as i32;
        for (row, series) in of_lane.into_iter().enumerate() {
            let top = lane.top + share * row as i32;
            let look = looks.look(panel, series);
            for (from, to) in held(frame, series, |y| y == lane.state as f64) {
                ink.bar((from, top + share / 6), (to, top + share - share / 6), look, 1.0);
            }
        }
    }
}

/// Shades the whole height while a series has any state.
pub(super) fn shade(ink: &mut Ink<'_>, frame: &Frame, series: &Series, look: Look) {
    for (from, to) in held(frame, series, |y| !y.is_nan()) {
        ink.bar((from, frame.top), (to, frame.bottom), look, SHADE);
    }
}

/// From where to where the value is such, in columns of the picture: what is closer together is one.
fn held(frame: &Frame, series: &Series, is: impl Fn(f64) -> bool) -> Vec<(i32, i32)> {
    let mut held: Vec<(i32, i32)> = Vec::new();
    for at in (0..series.len()).filter(|at| is(series.y[*at])) {
        let Some(until) = series.x.get(at + 1) else { continue };
        let (from, to) = (frame.across(series.x[at]), frame.across(*until));
        // A bar that cannot be seen would be a lie.
        let to = to.max(from + thin::COLUMN / 2);
        match held.last_mut() {
            Some(last) if from - last.1 < thin::COLUMN / 2 => last.1 = last.1.max(to),
            _ => held.push((from, to)),
        }
    }
    held
}
