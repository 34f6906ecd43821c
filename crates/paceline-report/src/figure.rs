//! What a picture shows, before it is HTML or SVG.
//!
//! A [`Figure`] is a stack of [`Panel`]s over one kind of x axis; a panel's [`Series`] belong to [`Subject`]s, a flow of a
//! run each, which have the same look in every panel.

/// Panels that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Unique in a report, such as `mmsys16/table1/time`.
    pub id: String,
    /// Scenario whose runs it shows.
    pub scenario: String,
    /// What it shows.
    pub title: String,
    /// Whose series the panels hold; shared by all figures of a scenario.
    pub subjects: Vec<Subject>,
    /// From top to bottom.
    pub panels: Vec<Panel>,
}

/// Whose a series is: a flow of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// The run's folder, which is its name in the manifest.
    pub run: String,
    /// Its seed.
    pub seed: u64,
    /// The flow, or what stands for several.
    pub flow: String,
    /// The flow's controller or TCP's congestion control.
    pub controller: String,
    /// What tells it from the others of its figure, in few words.
    pub label: String,
    /// The same without its seed.
    pub kind: String,
}

/// One plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Unique in its figure, such as `rate`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// How to read it: what each mark is, in which bins.
    pub caption: String,
    /// The x axis.
    pub x: Axis,
    /// The y axis.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it measures.
    pub label: String,
    /// In which unit; empty for a plain number.
    pub unit: String,
    /// Its ends, where something other than the data says them.
    pub range: Option<(f64, f64)>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Straight lines from point to point.
    Line,
    /// A value holds until the next.
    Steps,
    /// Points alone.
    Points,
    /// A state holds until the next: y is an index in [`Series::states`], or NaN for none.
    Band,
    /// A cumulative distribution: y, from 0 to 1, is the share of values up to x.
    Cdf,
}

/// What a series is to its panel; pictures give less weight to what is not main.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// What the panel is about.
    Main,
    /// What it is compared with, such as the target beside the received rate.
    Second,
    /// What the world allows, such as the capacity; belongs to no subject.
    Limit,
}

/// One line of a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Unique in its panel among those of its subject, such as `received`.
    pub id: String,
    /// What it is, such as `received rate`.
    pub label: String,
    /// Index in [`Figure::subjects`]; none for a limit.
    pub subject: Option<usize>,
    /// What it is to its panel.
    pub role: Role,
    /// How it is drawn.
    pub kind: Kind,
    /// For a [`Kind::Band`], what its values are called.
    pub states: Vec<String>,
    /// Times in s since the run's start, or values, not decreasing.
    pub x: Vec<f64>,
    /// In the panel's unit; as many as `x`. NaN: nothing here.
    pub y: Vec<f64>,
}

impl Figure {
    /// The panel of this id.
    pub fn panel(&self, id: &str) -> Option<&Panel> {
        self.panels.iter().find(|panel| panel.id == id)
    }
}

impl Axis {
    /// Time of a run of this length.
    pub fn time(seconds: f64) -> Self {
        Self { label: "time".to_owned(), unit: "s".to_owned(), range: Some((0.0, seconds)) }
    }

    /// An axis that begins and ends where its data do.
    pub fn new(label: &str, unit: &str) -> Self {
        Self { label: label.to_owned(), unit: unit.to_owned(), range: None }
    }
}

impl Series {
    /// One without points.
    pub fn new(id: &str, label: &str, subject: usize, role: Role, kind: Kind) -> Self {
        Self {
            id: id.to_owned(),
            label: label.to_owned(),
            subject: Some(subject),
            role,
            kind,
            states: Vec::new(),
            x: Vec::new(),
            y: Vec::new(),
        }
    }

    /// Adds a point.
    pub fn push(&mut self, x: f64, y: f64) {
        self.x.push(x);
        self.y.push(y);
    }

    /// How many points it has.
    pub fn len(&self) -> usize {
        self.x.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.x.is_empty()
    }
}
