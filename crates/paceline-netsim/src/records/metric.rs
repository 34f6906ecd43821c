// SPDX-License-Identifier: MIT OR Apache-2.0
//! Description of metrics: id, unit, and how values are printed. The computation lives elsewhere.

use serde::{Deserialize, Serialize};

/// The description of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricInfo {
    /// Id in scenarios and results.
    pub id: &'static str,
    pub kind: MetricKind,
    /// Which values are better.
    pub better: Better,
    /// Whether single streams of a flow have values.
    pub of_streams: bool,
    /// A description in one line.
    pub summary: &'static str,
}

/// Which values of a metric are better for the user of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Higher values.
    Higher,
    /// Lower values.
    Lower,
    /// Neither: the metric describes, and does not judge.
    #[default]
    Neither,
}

impl Better {
    /// Returns the name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::Neither => "neither",
        }
    }

    /// Returns whether a change by `difference` is an improvement; `None` if the metric does not judge, or for 0.
    pub fn judge(self, difference: f64) -> Option<bool> {
        match self {
            Self::Neither => None,
            _ if difference == 0.0 => None,
            Self::Higher => Some(difference > 0.0),
            Self::Lower => Some(difference < 0.0),
        }
    }
}

/// Every metric of a program.
#[derive(Clone, Copy, Debug)]
pub struct MetricCatalogue(&'static [MetricInfo]);

impl MetricCatalogue {
    /// Creates a catalogue of `metrics`.
    pub const fn new(metrics: &'static [MetricInfo]) -> Self {
        Self(metrics)
    }

    pub fn get(self, id: &str) -> Option<&'static MetricInfo> {
        self.0.iter().find(|metric| metric.id == id)
    }

    /// Returns every metric, in the order of the registry.
    pub fn iter(self) -> impl Iterator<Item = &'static MetricInfo> {
        self.0.iter()
    }
}

/// The kind of a metric: it determines the unit, the format, and the tolerance against published values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Used share of the capacity.
    Utilization,
    /// Another ratio between 0 and 1.
    Share,
    /// Loss ratio.
    Loss,
    /// Jain's fairness index.
    Jain,
    /// A mean opinion score, from 1 (bad) to 5 (excellent).
    Score,
    /// Points of the score of a call, from 0 to 100.
    Points,
    /// A number without unit.
    Number,
    Count,
    /// A delay: queuing, one-way, round-trip or frame delay.
    Delay,
    /// A duration.
    Time,
    Rate,
}

impl MetricKind {
    /// Returns which values are better, for most metrics of the kind.
    pub const fn better(self) -> Better {
        match self {
            Self::Utilization | Self::Jain | Self::Rate | Self::Score | Self::Points => Better::Higher,
            Self::Loss | Self::Delay | Self::Time => Better::Lower,
            Self::Share | Self::Number | Self::Count => Better::Neither,
        }
    }

    /// Returns the unit of the values; empty for plain numbers and ratios.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Utilization | Self::Share | Self::Loss | Self::Jain | Self::Points | Self::Number | Self::Count => "",
            Self::Score => "MOS",
            Self::Delay => "ms",
            Self::Time => "s",
            Self::Rate => "bit/s",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Utilization => "utilisation",
            Self::Share => "share",
            Self::Loss => "loss",
            Self::Jain => "Jain's index",
            Self::Score => "score",
            Self::Points => "points",
            Self::Number => "number",
            Self::Count => "count",
            Self::Delay => "delay",
            Self::Time => "time",
            Self::Rate => "rate",
        }
    }

    /// Returns the unit in which values are printed; empty for plain numbers.
    pub fn shown_unit(self) -> &'static str {
        match self {
            Self::Utilization | Self::Share | Self::Loss => "%",
            Self::Rate => "Mbit/s",
            _ => self.unit(),
        }
    }

    /// Formats a value without its [unit](Self::shown_unit), with the digits that are significant.
    pub fn digits(self, value: f64) -> String {
        match self {
            Self::Utilization | Self::Share => format!("{:.1}", value * 100.0),
            Self::Loss => format!("{:.3}", value * 100.0),
            Self::Jain => format!("{value:.3}"),
            Self::Number | Self::Score => format!("{value:.2}"),
            Self::Points | Self::Count | Self::Delay | Self::Time => format!("{value:.1}"),
            Self::Rate => format!("{:.3}", value / 1e6),
        }
    }

    /// Formats a value: fractions in per cent, rates in Mbit/s, with the digits that are significant.
    pub fn show(self, value: f64) -> String {
        match self.shown_unit() {
            "" => self.digits(value),
            unit => format!("{} {unit}", self.digits(value)),
        }
    }

    /// Formats the size of a difference; fractions are in percentage points.
    pub fn show_size(self, value: f64) -> String {
        match self {
            Self::Utilization | Self::Share | Self::Loss => format!("{} points", self.digits(value)),
            _ => self.show(value),
        }
    }

    /// Formats a difference with its sign.
    pub fn show_difference(self, value: f64) -> String {
        let size = self.show_size(value.abs());
        // A difference that rounds to zero has no sign.
        let sign = match size.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
            false => "",
            true if value < 0.0 => "-",
            true => "+",
        };
        format!("{sign}{size}")
    }

    /// Returns whether values lie between 0 and 1.
    pub fn is_fraction(self) -> bool {
        matches!(self, Self::Utilization | Self::Share | Self::Loss | Self::Jain)
    }
}
