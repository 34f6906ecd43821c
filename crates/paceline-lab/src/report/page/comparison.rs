// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a page of a comparison opens with: the verdict, the ranking, and quantities by controllers.

use crate::report::check_text::summary_text;
use crate::report::ranking_text;
use crate::results::{ComparisonRow, ComparisonTable, Role};
use paceline_netsim::records::{MetricCatalogue, MetricKind};

pub(super) struct ComparisonView {
    /// Case and changes; empty for the scenario as written.
    pub(super) name: String,
    pub(super) controllers: Vec<String>,
    pub(super) subjects: Vec<SubjectView>,
    pub(super) verdict: String,
    /// The rows of the ranking, the headings first.
    pub(super) ranking: Vec<Vec<String>>,
    pub(super) ranking_legend: String,
    pub(super) legend: String,
}

pub(super) struct SubjectView {
    pub(super) name: String,
    pub(super) rows: Vec<RowView>,
}

pub(super) struct RowView {
    /// The quantity with its unit.
    pub(super) label: String,
    pub(super) cells: Vec<CellView>,
}

pub(super) struct CellView {
    pub(super) controller: String,
    pub(super) value: String,
    pub(super) is_best: bool,
    /// `better`, `worse` or empty.
    pub(super) class: &'static str,
    pub(super) difference: String,
}

impl ComparisonView {
    pub(super) fn of(table: &ComparisonTable, metrics: MetricCatalogue) -> Self {
        let mut name = vec![table.case.to_string(), table.changes.join(", ")];
        name.retain(|part| !part.is_empty());
        let baseline = &table.controllers[0];
        let legend = match table.seeds.len() {
            1 => format!(
                "One run of each controller, seed {}. One seed gives no interval. Bold: the best value.",
                table.seeds[0]
            ),
            runs => format!(
                "Means of {runs} runs of each controller on the same seeds ± half of the 95 % interval. Bold: the best mean. ▲ better \
                 and ▼ worse than {baseline} by an amount that matters: the interval of the differences seed by seed, corrected for {} \
                 comparisons, excludes 0.",
                table.judged
            ),
        };
        Self {
            name: name.join(" · "),
            controllers: table.controllers.clone(),
            subjects: table.by_subject().map(|rows| SubjectView::of(rows, &table.controllers, metrics)).collect(),
            // Backticks mark names in the terminal only.
            verdict: table.verdict.join(" ").replace('`', ""),
            ranking: ranking_text::rows(&table.ranking),
            ranking_legend: ranking_text::legend(&table.ranking),
            legend,
        }
    }
}

impl SubjectView {
    fn of(rows: &[ComparisonRow], controllers: &[String], metrics: MetricCatalogue) -> Self {
        let subject = &rows[0].subject;
        let role = match subject.role {
            Role::Traffic => ", other traffic",
            Role::Media | Role::Link => "",
        };
        let row = |row: &ComparisonRow| {
            let kind = metrics.get(&row.metric).map_or(MetricKind::Number, |metric| metric.kind);
            let unit = kind.shown_unit();
            let cell = |(index, controller): (usize, &String)| CellView::of(row, kind, index, controller);
            RowView {
                label: if unit.is_empty() { row.label.clone() } else { format!("{}, {unit}", row.label) },
                cells: controllers.iter().enumerate().map(cell).collect(),
            }
        };
        Self { name: format!("{}{role}", subject.name()), rows: rows.iter().map(row).collect() }
    }
}

impl CellView {
    fn of(row: &ComparisonRow, kind: MetricKind, index: usize, controller: &str) -> Self {
        let value = row
            .values
            .get(index)
            .copied()
            .flatten()
            .map_or_else(|| "–".to_owned(), |value| summary_text(&value, |v| kind.digits(v)));
        let difference = row.differences.get(index).copied().flatten();
        Self {
            controller: controller.to_owned(),
            value,
            is_best: row.best.get(index) == Some(&true),
            class: match difference.and_then(|d| d.improves()) {
                Some(true) => "better",
                Some(false) => "worse",
                None => "",
            },
            difference: difference.map_or_else(String::new, |d| {
                let interval =
                    if d.interval.is_finite() { format!(" ± {}", kind.show_size(d.interval)) } else { String::new() };
                format!("{}{interval}: {d}", kind.show_difference(d.mean))
            }),
        }
    }
}
