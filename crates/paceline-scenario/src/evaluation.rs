// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measurement and evaluation of the runs of a scenario: published values, bounds, windows and assumed constants.

use paceline_netsim::plan::Plan;
use paceline_netsim::records::{Label, Statistic};
use paceline_units::{Rate, Time, TimeDelta};
use std::collections::BTreeMap;

/// How the notes that hold for many scenarios begin.
pub(crate) const ASSUMED: &str = "assumed, as ";
pub(crate) const RATES: &str = "rates and sizes count whole IP packets";

/// One case of a scenario with every default filled in: the plan that a world runs, and how its runs are evaluated.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The plan that a world runs.
    pub plan: Plan,
    /// Whether its file is one of the catalogue.
    pub is_shipped: bool,
    /// The number of runs that a reproduction makes at first.
    pub repeats: u32,
    /// The definitions with which metrics are computed.
    pub measure: Measure,
    /// The condition under which a run is included in the results; if `None`, all runs are.
    pub include_if: Option<IncludeIf>,
    /// The rate of each flow under an oracle, on a bottleneck that shares a medium.
    pub oracle_rate: Option<Rate>,
    /// Every case of the experiment.
    pub cases: Vec<Label>,
    /// The constants of its paper, whether they apply or not.
    pub constants: Vec<Constant>,
    /// Published values of this case, to compare with measured ones.
    pub expects: Vec<Expect>,
    /// Bounds on the runs of this case.
    pub asserts: Vec<Assert>,
    /// The references of ratios of other cases, by key.
    pub references: BTreeMap<usize, Quantity>,
    /// Remarks for the reader: the traces used, the headers counted, the limits that follow the capacity.
    pub notes: Vec<String>,
}

impl Scenario {
    /// Returns a plan that is run once, without published values and bounds.
    pub fn of_plan(plan: Plan) -> Self {
        Self {
            plan,
            is_shipped: false,
            repeats: 1,
            measure: Measure::default(),
            include_if: None,
            oracle_rate: None,
            cases: Vec::new(),
            constants: Vec::new(),
            expects: Vec::new(),
            asserts: Vec::new(),
            references: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    /// Returns whether a note holds for many scenarios: on the constants that a paper leaves open, or on what rates count.
    pub fn is_general(note: &str) -> bool {
        [ASSUMED, RATES].iter().any(|start| note.starts_with(start))
    }

    /// Removes the published values, and notes why they do not apply to this run of the scenario. Bounds remain.
    pub fn remove_published(&mut self, why: &str) {
        if !self.expects.is_empty() {
            self.expects.clear();
            self.notes.insert(0, format!("published values are for the scenario as written, not {why}"));
        }
    }

    /// Returns every quantity that is measured in a run of this case, with repetitions.
    pub fn quantities(&self) -> impl Iterator<Item = &Quantity> {
        let expects = self.expects.iter().map(|e| (&e.quantity, e.relative_to.as_ref()));
        let asserts = self.asserts.iter().map(|a| (&a.quantity, a.relative_to.as_ref()));
        let own = expects.chain(asserts).flat_map(|(quantity, relative_to)| {
            let reference = match relative_to {
                Some(Reference::SameRun(quantity)) => Some(quantity),
                _ => None,
            };
            core::iter::once(quantity).chain(reference)
        });
        own.chain(self.references.values()).chain(self.include_if.iter().map(|condition| &condition.quantity))
    }

    /// Returns whether any quantity is measured, for the values and bounds of this case or of another.
    pub fn is_evaluated(&self) -> bool {
        !(self.expects.is_empty() && self.asserts.is_empty() && self.references.is_empty())
    }

    /// Returns whether a run is included; `value` returns the value of a quantity in that run.
    pub fn includes_run(&self, value: impl FnOnce(&Quantity) -> Option<f64>) -> bool {
        self.include_if.as_ref().is_none_or(|condition| condition.includes(value(&condition.quantity)))
    }
}

/// The delay that `queue_*` metrics measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueMeasure {
    /// Waiting time of each packet at the bottleneck.
    #[default]
    Packet,
    /// Round-trip time over its minimum, sampled when RTCP gives a sample (mmsys16, fhmn13).
    Rtcp,
    /// One-way delay over propagation, jitter included (med16).
    OneWay,
}

/// The bytes by which losses are divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossMeasure {
    /// Bytes sent (mmsys16, med16).
    #[default]
    Sent,
    /// Bytes received (fhmn13).
    Received,
}

impl QueueMeasure {
    /// Every measure, by the name that scenarios use.
    pub const NAMES: [(&'static str, Self); 3] =
        [("packet", Self::Packet), ("rtcp", Self::Rtcp), ("one-way", Self::OneWay)];
}

impl LossMeasure {
    /// Every measure, by the name that scenarios use.
    pub const NAMES: [(&'static str, Self); 2] = [("sent", Self::Sent), ("received", Self::Received)];
}

/// The definitions with which metrics are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    /// The delay that `queue_*` metrics measure.
    pub queue: QueueMeasure,
    /// The bytes by which losses are divided.
    pub loss: LossMeasure,
}

/// A span of a run, from its first time to before its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window {
    /// The first instant of the window.
    pub from: Time,
    /// The instant after the window.
    pub to: Time,
}

impl Window {
    /// Returns both ends, s.
    pub fn seconds(&self) -> (f64, f64) {
        (self.from.as_secs_f64(), self.to.as_secs_f64())
    }
}

/// A number that is measured in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// Metric id.
    pub metric: String,
    /// The flow that is measured; none: the run as a whole.
    pub flow: Option<usize>,
    /// The stream of the flow that is measured; none: the flow as a whole.
    pub stream: Option<usize>,
    /// The span of time that is measured.
    pub window: Window,
    /// If present, the number is the share of windows in which the metric is within bounds.
    pub each: Option<Each>,
}

impl Quantity {
    /// Returns the quantity of a metric in a window, of a flow or of the run as a whole.
    pub fn new(metric: impl Into<String>, flow: Option<usize>, window: Window) -> Self {
        Self { metric: metric.into(), flow, stream: None, window, each: None }
    }

    /// Returns whether the number depends on this metric.
    pub fn reads(&self, metric: &str) -> bool {
        let relative_to = self.each.as_ref().and_then(|each| each.relative_to.as_ref());
        self.metric == metric || relative_to.is_some_and(|of| of.metric == metric)
    }

    /// Returns every window in which the metric is measured.
    pub fn windows(&self) -> &[Window] {
        self.each.as_ref().map_or(core::slice::from_ref(&self.window), |each| &each.windows)
    }
}

/// Bounds on a metric in each of several windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Each {
    /// How the windows are chosen.
    pub of: EachOf,
    /// The windows in order, at least one.
    pub windows: Vec<Window>,
    /// The lowest and the highest allowed value in a window. A window without a value is not within them.
    pub bounds: (f64, f64),
    /// The quantity by which the metric is divided, measured in the same window.
    pub relative_to: Option<Box<Quantity>>,
}

/// How a span is divided into windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EachOf {
    /// Windows of this length from the start of the span on. A shorter rest is left out.
    Length(TimeDelta),
    /// Windows from each change of the path to the next. The first one begins with the span.
    Change,
}

impl core::fmt::Display for EachOf {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Length(length) => write!(f, "{length}"),
            Self::Change => f.write_str("change"),
        }
    }
}

/// The condition under which a run is included, for papers that leave out the others.
#[derive(Clone, Debug, PartialEq)]
pub struct IncludeIf {
    /// The quantity that is compared with `at_least`.
    pub quantity: Quantity,
    /// The lowest value with which a run is included.
    pub at_least: f64,
    /// A remark on a case in which fewer than half of the runs are included.
    pub note: Option<String>,
}

impl IncludeIf {
    /// Returns whether a run with this value is included. A run without a value is not.
    pub fn includes(&self, value: Option<f64>) -> bool {
        value.is_some_and(|value| value >= self.at_least)
    }

    /// Returns whether fewer than half of the runs are included: too few to represent the case.
    pub fn too_few(included: usize, total: usize) -> bool {
        2 * included < total
    }

    /// Describes the number of included runs and the condition.
    pub fn describe(&self, included: usize, total: usize) -> String {
        format!("{included} of {total} runs included, those with {} of {} or more", self.quantity.metric, self.at_least)
    }
}

/// The quantity by which another is divided, run by run of the same seed.
#[derive(Clone, Debug, PartialEq)]
pub enum Reference {
    /// A quantity of the same run.
    SameRun(Quantity),
    /// A quantity of the run of another case, which has it among its [`Scenario::references`].
    OtherCase {
        /// The label of that case.
        case: Label,
        /// The key of the quantity in that case.
        key: usize,
    },
}

/// A published value.
#[derive(Clone, Debug, PartialEq)]
pub struct Expect {
    /// The measured quantity.
    pub quantity: Quantity,
    /// The reference by which the quantity is divided, if it is a ratio.
    pub relative_to: Option<Reference>,
    /// The published value, in the metric's unit.
    pub published: f64,
    /// The largest distance of the measured mean; none: the tolerance of every metric of its kind.
    pub tolerance: Option<f64>,
    /// The id of the bounds that the value supports.
    pub claim: Option<String>,
    /// The key that was chosen by a sweep of this value.
    pub fitted: Option<String>,
    /// A remark for when it is not reproduced.
    pub remark: Remark,
    /// The index among the values and bounds of the scenario file.
    pub index: usize,
}

/// A bound on the runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Assert {
    /// Its name.
    pub id: String,
    /// The bounded quantity.
    pub quantity: Quantity,
    /// The reference by which the quantity is divided, if it is a ratio.
    pub relative_to: Option<Reference>,
    /// The statistic of several runs that is bounded.
    pub runs: Statistic,
    /// The lowest and the highest allowed value.
    pub bounds: (f64, f64),
    /// The reason for the bounds.
    pub why: Option<String>,
    /// The key that was chosen by a sweep of the bounded quantity.
    pub fitted: Option<String>,
    /// A remark for when it does not hold.
    pub remark: Remark,
    /// The index among the values and bounds of the scenario file.
    pub index: usize,
}

/// A remark on a value that is not reproduced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remark {
    /// The cause, as far as it is known.
    pub note: Option<String>,
    /// The `--set` changes with which it is reproduced.
    pub reproduced_with: Vec<String>,
}

/// A number that a paper does not give.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// Its name.
    pub id: String,
    /// The key of scenarios that it sets; `media.` and `tcp.` are all flows of that kind.
    pub key: String,
    /// Its value, as a scenario would write it.
    pub value: String,
    /// The lowest and the highest that are plausible, in the same form.
    pub range: (String, String),
    /// The reason for this value.
    pub why: String,
    /// The experiment and the case to which it is limited, such as `fig11 threshold=static`.
    pub only: Option<String>,
    /// Whether it set a value of this scenario.
    pub applied: bool,
}

/// Metrics that have another id now: the old id, and the new one.
const RENAMED_METRICS: [(&str, &str); 7] = [
    ("attained", "link_share"),
    ("converge_s", "convergence_time_s"),
    ("spread", "max_min_ratio"),
    ("drops", "bottleneck_drops"),
    ("overuses", "overuse_count"),
    ("freeze_s", "freeze_duration_s"),
    ("rembs", "remb_count"),
];

/// Returns the new id of a metric that has been renamed.
pub fn renamed_metric(old: &str) -> Option<&'static str> {
    RENAMED_METRICS.iter().find(|(id, _)| *id == old).map(|(_, new)| *new)
}
