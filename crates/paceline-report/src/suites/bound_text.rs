//! Formats the bounds of suites for the terminal and the page.

use paceline_netsim::records::{MetricCatalogue, MetricKind};
use paceline_results::{BoundResult, SuiteBound, ValueFormat};

/// Formats bounds in the units of their metrics.
#[derive(Clone, Copy, Debug)]
pub struct BoundText {
    metrics: MetricCatalogue,
}

impl BoundText {
    /// Creates a formatter for these metrics.
    pub fn new(metrics: MetricCatalogue) -> Self {
        Self { metrics }
    }

    /// Describes the measured quantity: flow, window and metric.
    pub fn quantity(self, bound: &SuiteBound) -> String {
        let flow = bound.flow.as_ref().map_or(String::new(), |flow| format!("{flow}, "));
        let (from, to) = bound.window_s;
        format!("{flow}{from} to {to} s: {}", bound.quantity)
    }

    /// Formats the measured mean with its interval; a dash without a value.
    pub fn measured(self, bound: &SuiteBound, result: &BoundResult) -> String {
        let Some(measured) = result.measured else { return "–".to_owned() };
        match result.ci95 {
            Some(ci95) => format!("{} ± {}", self.value(bound, measured), self.value(bound, ci95)),
            None => self.value(bound, measured),
        }
    }

    /// Formats the bounds, without ends that are infinite.
    pub fn allowed(self, bound: &SuiteBound) -> String {
        match bound.bounds {
            (low, high) if bound.format == ValueFormat::Share && high >= 1.0 => {
                format!("at least {}", self.value(bound, low))
            }
            (low, f64::INFINITY) => format!("at least {}", self.value(bound, low)),
            (f64::NEG_INFINITY, high) => format!("at most {}", self.value(bound, high)),
            (low, high) => format!("{} to {}", self.value(bound, low), self.value(bound, high)),
        }
    }

    fn value(self, bound: &SuiteBound, value: f64) -> String {
        match bound.format {
            ValueFormat::Metric => {
                self.metrics.get(&bound.metric).map_or(MetricKind::Number, |metric| metric.kind).show(value)
            }
            ValueFormat::Ratio => format!("{value:.2} times"),
            ValueFormat::Share => MetricKind::Share.show(value),
        }
    }
}
