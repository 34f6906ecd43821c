// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes checked values for the terminal, Markdown and HTML: the value with its interval, what is allowed, and the judgement.

use crate::results::{Assertion, BoundResult, Cell, Judgement, SuiteBound, ValidationCheck, ValueFormat};
use paceline_netsim::records::{MetricCatalogue, MetricKind, Summary};
use std::fmt;

#[derive(Clone, Copy, Debug)]
pub enum ValueText {
    Metric(MetricKind),
    Ratio,
    /// As a plain number with four decimals, for formulas.
    Plain,
}

impl ValueText {
    /// Returns how the values of a metric are written, of a share of windows, or of a ratio of two values.
    pub fn of(metrics: MetricCatalogue, metric: &str, is_share: bool, is_ratio: bool) -> Self {
        match metrics.get(metric) {
            _ if is_share => Self::Metric(MetricKind::Share),
            _ if is_ratio => Self::Ratio,
            Some(metric) => Self::Metric(metric.kind),
            None => Self::Plain,
        }
    }

    /// Formats a value; a dash if it is missing.
    pub fn value(self, value: Option<f64>) -> String {
        match (value, self) {
            (None, _) => "–".to_owned(),
            (Some(infinite), _) if infinite.is_infinite() => if infinite > 0.0 { "∞" } else { "-∞" }.to_owned(),
            (Some(value), Self::Metric(kind)) => kind.show(value),
            (Some(value), Self::Ratio) => format!("× {value:.3}"),
            (Some(value), Self::Plain) => format!("{value:.4}"),
        }
    }

    /// Formats a half-width or a tolerance, with its sign.
    pub fn size(self, size: f64) -> String {
        format!("± {}", self.value(Some(size)).trim_start_matches("× "))
    }

    /// Formats a mean with the half-width of its interval, if there is one.
    pub fn mean(self, mean: Option<f64>, ci95: Option<f64>) -> String {
        let interval = ci95.map_or(String::new(), |ci95| format!(" {}", self.size(ci95)));
        self.value(mean) + &interval
    }

    /// Formats bounds, without ends that are infinite.
    pub fn range(self, bounds: (f64, f64)) -> String {
        let end = |end: f64| self.value(Some(end));
        match bounds {
            (f64::NEG_INFINITY, f64::INFINITY) => self.value(None),
            (low, f64::INFINITY) => format!("at least {}", end(low)),
            (f64::NEG_INFINITY, high) => format!("at most {}", end(high)),
            (low, high) => format!("{} to {}", end(low), end(high)),
        }
    }
}

/// Formats a mean with the half-width of its interval, if there is one.
pub fn summary_text(summary: &Summary, show: impl Fn(f64) -> String) -> String {
    match summary.ci95.is_finite() {
        true => format!("{} ± {}", show(summary.mean), show(summary.ci95)),
        false => show(summary.mean),
    }
}

/// A checked value in one line: `rate, utilization: 38.2 % ± 1.1 %, allowed 30.0 % to 40.0 %: holds`.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckLine {
    pub text: String,
    pub judgement: Judgement,
}

impl fmt::Display for CheckLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.text, self.judgement)
    }
}

impl CheckLine {
    fn new(what: &str, measured: &str, allowed: &str, judgement: Judgement) -> Self {
        Self { text: format!("{what}: {measured}, allowed {allowed}"), judgement }
    }

    pub fn of_assertion(assertion: &Assertion, metrics: MetricCatalogue) -> Self {
        let Assertion { id, metric, flow, stream, each, ratio, runs, bounds, .. } = assertion;
        let [flow, stream] =
            [flow, stream].map(|name| name.as_deref().map_or(String::new(), |name| format!(" of {name}")));
        let metric_of = format!("{}{stream}{flow}", runs.qualify(metric));
        let quantity = each.as_ref().map_or(metric_of.clone(), |each| each.describe(&metric_of));
        let text = ValueText::of(metrics, metric, each.is_some(), *ratio);
        let what = format!("{id}, {quantity}{}", if *ratio { " relative to its reference" } else { "" });
        Self::new(&what, &text.mean(assertion.measured, assertion.ci95), &text.range(*bounds), assertion.judgement)
    }

    /// Returns the line of a difference between two worlds.
    pub fn of_validation(check: &ValidationCheck) -> Self {
        let kind = check.kind();
        let difference = check.difference.map_or("a run has no value".to_owned(), |d| kind.show_difference(d));
        let interval = check.ci95.map_or(String::new(), |ci95| format!(" ± {}", kind.show_size(ci95)));
        let allowed = format!("± {}", kind.show_size(check.tolerance));
        let what = format!("{} of {}", check.metric, check.hop);
        Self::new(&what, &format!("{difference}{interval}"), &allowed, check.judgement)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct BoundText {
    metrics: MetricCatalogue,
}

impl BoundText {
    pub fn new(metrics: MetricCatalogue) -> Self {
        Self { metrics }
    }

    fn values(self, bound: &SuiteBound) -> ValueText {
        ValueText::of(
            self.metrics,
            &bound.metric,
            bound.format == ValueFormat::Share,
            bound.format == ValueFormat::Ratio,
        )
    }

    /// Describes the measured quantity: flow, window and metric.
    pub fn quantity(self, bound: &SuiteBound) -> String {
        let flow = bound.flow.as_ref().map_or(String::new(), |flow| format!("{flow}, "));
        let (from, to) = bound.window_s;
        format!("{flow}{from} to {to} s, {}", bound.quantity)
    }

    /// Formats the measured mean with its interval; a dash without a value.
    pub fn measured(self, bound: &SuiteBound, result: &BoundResult) -> String {
        self.values(bound).mean(result.measured, result.ci95)
    }

    pub fn allowed(self, bound: &SuiteBound) -> String {
        self.values(bound).range(bound.bounds)
    }

    pub fn line(self, test: &str, bound: &SuiteBound, result: &BoundResult) -> CheckLine {
        let what = format!("{test}: {}, {}", bound.id, self.quantity(bound));
        CheckLine::new(&what, &self.measured(bound, result), &self.allowed(bound), result.judgement)
    }
}

/// Returns the verdict on a cell: the judgement of a claim; for a published value the word of reproductions, with the judgement if it is
/// undecided.
pub fn cell_verdict(cell: &Cell) -> String {
    let undecided = |judgement: &Judgement| judgement.verdict == crate::results::Verdict::Undecided;
    match cell.judgement() {
        Some(judgement) if cell.published.is_none() => judgement.to_string(),
        Some(judgement) if undecided(&judgement) => format!("{} ({judgement})", cell.verdict.name()),
        _ => cell.verdict.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Verdict;
    use paceline_netsim::records::{Better, MetricInfo};

    const METRICS: [MetricInfo; 1] = [MetricInfo {
        of_streams: false,
        id: "utilization",
        kind: MetricKind::Utilization,
        better: Better::Higher,
        summary: "used share of the capacity",
    }];

    #[test]
    fn a_line_has_value_allowance_and_judgement() {
        let metrics = MetricCatalogue::new(&METRICS);
        let bound = SuiteBound {
            id: "fills".to_owned(),
            quantity: "utilization".to_owned(),
            metric: "utilization".to_owned(),
            window_s: (0.0, 10.0),
            bounds: (0.3, 0.4),
            ..SuiteBound::default()
        };
        let judgement = Judgement { verdict: Verdict::Undecided, further_runs: Some(6) };
        let result = BoundResult { measured: Some(0.382), ci95: Some(0.031), pass: false, judgement };
        assert_eq!(
            BoundText::new(metrics).line("own/a", &bound, &result).to_string(),
            "own/a: fills, 0 to 10 s, utilization: 38.2 % ± 3.1 %, allowed 30.0 % to 40.0 %: undecided, 6 more runs"
        );
        let at_most = SuiteBound { bounds: (f64::NEG_INFINITY, 1.5), format: ValueFormat::Ratio, ..bound };
        let none =
            BoundResult { judgement: Judgement { verdict: Verdict::Fails, further_runs: None }, ..<_>::default() };
        assert_eq!(
            BoundText::new(metrics).line("own/a", &at_most, &none).to_string(),
            "own/a: fills, 0 to 10 s, utilization: –, allowed at most × 1.500: fails"
        );
    }

    #[test]
    fn formats_ratios_and_infinite_values() {
        assert_eq!(ValueText::Ratio.mean(Some(1.25), Some(0.5)), "× 1.250 ± 0.500");
        assert_eq!(ValueText::Plain.mean(Some(f64::NEG_INFINITY), None), "-∞");
        assert_eq!(ValueText::Metric(MetricKind::Utilization).range((0.5, f64::INFINITY)), "at least 50.0 %");
    }
}
