// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures independent of the output format (HTML or SVG).
//!
//! A [`Figure`] is a stack of [`Panel`]s over one kind of x axis. Each [`Series`] of a panel belongs to a [`Subject`], a flow
//! of a run, which has the same colour in every panel.

use serde::Serialize;

#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Unique in a report, such as `mmsys16/table1/time`.
    pub id: String,
    pub scenario: String,
    pub title: String,
    /// The flows that the series refer to. Figures of single runs have the same ones; those of an overlay are groups of runs.
    pub subjects: Vec<Subject>,
    pub panels: Vec<Panel>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Subject {
    pub run: String,
    pub seed: u64,
    /// Id of the flow, or a name for several flows.
    pub flow: String,
    /// Controller, or the congestion control of TCP.
    #[serde(skip)]
    pub controller: String,
    /// Short label, unique in the figure.
    pub label: String,
    /// The label without the seed.
    pub kind: String,
    pub traffic: bool,
}

impl Subject {
    /// Creates a subject of this label that is no flow of a single run.
    pub fn named(label: &str) -> Self {
        Self { label: label.to_owned(), kind: label.to_owned(), ..Self::default() }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Unique in its figure, such as `rate`.
    pub id: String,
    pub title: String,
    /// Explains the marks and bins.
    pub caption: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
}

impl Figure {
    pub(crate) fn with_panels(&self, panels: Vec<Panel>) -> Self {
        let Self { id, scenario, title, subjects, .. } = self;
        Self { id: id.clone(), scenario: scenario.clone(), title: title.clone(), subjects: subjects.clone(), panels }
    }
}

impl Panel {
    pub(crate) fn with_series(&self, series: Vec<Series>) -> Self {
        let Self { id, title, caption, x, y, .. } = self;
        let (id, title, caption) = (id.clone(), title.clone(), caption.clone());
        Self { id, title, caption, x: x.clone(), y: y.clone(), series }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    pub label: String,
    /// Unit; empty for a plain number.
    pub unit: String,
    /// Range, if it does not follow from the data.
    pub range: Option<(f64, f64)>,
    /// The smallest possible value, at which intervals are cut; `None` if there is none.
    pub least: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SeriesKind {
    /// Straight lines from point to point.
    Line,
    /// Each value holds until the next.
    Steps,
    Points,
    /// Each state holds until the next: y is an index in [`Series::states`], or NaN for no state.
    Band,
    /// A cumulative distribution: y, from 0 to 1, is the share of values up to x.
    Cdf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Main,
    /// A quantity for comparison, such as the target beside the received rate.
    Second,
    /// A limit of the path, such as the capacity; it has no subject.
    Limit,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Unique in its panel among those of its subject, such as `received`.
    pub id: String,
    /// Label, such as `received rate`.
    pub label: String,
    /// Index in [`Figure::subjects`]; `None` for a limit.
    pub subject: Option<usize>,
    pub role: Role,
    pub kind: SeriesKind,
    /// Names of the values of a [`SeriesKind::Band`].
    pub states: Vec<String>,
    /// Times since the start of the run, s, or values; not decreasing.
    pub x: Vec<f64>,
    /// Values in the unit of the panel, as many as `x`; NaN for a missing value.
    pub y: Vec<f64>,
    /// Half-widths of the 95 % intervals of means, as many as `x`; empty for values that are no means of several runs.
    pub ci95: Vec<f64>,
}

impl Figure {
    /// Returns whether its subjects are groups of runs.
    pub fn is_overlay(&self) -> bool {
        self.id.ends_with("/overlay")
    }

    pub fn panel(&self, id: &str) -> Option<&Panel> {
        self.panels.iter().find(|panel| panel.id == id)
    }
}

impl Axis {
    pub fn time(seconds: f64) -> Self {
        Self { label: "time".to_owned(), unit: "s".to_owned(), range: Some((0.0, seconds)), least: None }
    }

    /// Creates an axis whose range follows from the data.
    pub fn new(label: &str, unit: &str) -> Self {
        Self { label: label.to_owned(), unit: unit.to_owned(), range: None, least: None }
    }

    /// Returns the value, or the smallest possible one if it is below.
    pub fn cut(&self, value: f64) -> f64 {
        self.least.map_or(value, |least| value.max(least))
    }

    /// Returns the axis of a quantity that cannot be negative.
    pub fn not_negative(self) -> Self {
        Self { least: Some(0.0), ..self }
    }
}

impl Series {
    pub fn new(id: &str, label: &str, subject: usize, role: Role, kind: SeriesKind) -> Self {
        Self {
            id: id.to_owned(),
            label: label.to_owned(),
            subject: Some(subject),
            role,
            kind,
            states: Vec::new(),
            x: Vec::new(),
            y: Vec::new(),
            ci95: Vec::new(),
        }
    }

    pub fn push(&mut self, x: f64, y: f64) {
        self.x.push(x);
        self.y.push(y);
    }

    pub fn without_points(&self) -> Self {
        let Self { id, label, subject, role, kind, .. } = self;
        Self { subject: *subject, states: self.states.clone(), ..Self::new(id, label, 0, *role, *kind) }
    }

    pub fn len(&self) -> usize {
        self.x.len()
    }

    pub fn is_empty(&self) -> bool {
        self.x.is_empty()
    }
}
