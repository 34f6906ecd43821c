//! The verdict of a comparison in two sentences: which controller serves the media best, and what that costs.
//!
//! Only significant differences of media to the baseline count. The estimated quality of the media flows decides. Where it does not
//! differ, a controller is preferred to the baseline if it is better in more quantities than it is worse in, with equal weights;
//! the one with the largest surplus is chosen, and of equal ones the first.

use paceline_results::{ComparisonRow, ComparisonTable, DifferenceVerdict, Role};
use std::cmp::Ordering;

/// The metric that decides.
const QUALITY: &str = "quality_mos";
/// The number of quantities that a sentence names.
const NAMED: usize = 4;

/// Returns the sentences.
pub(super) fn sentences(table: &ComparisonTable) -> Vec<String> {
    if table.controllers.len() < 2 {
        return Vec::new();
    }
    if table.seeds.len() < 2 {
        let text = "One seed gives no confidence interval, so there is no verdict.";
        return vec![text.to_owned(), "Use `--repeats 10`.".to_owned()];
    }
    let baseline = &table.controllers[0];
    let candidates: Vec<Candidate<'_>> = (1..table.controllers.len()).map(|c| Candidate::of(table, c)).collect();
    let best = candidates.iter().rev().max_by(|a, b| a.rank().partial_cmp(&b.rank()).unwrap_or(Ordering::Equal));
    if let Some(best) = best.filter(|best| best.is_preferred()) {
        let first =
            format!("For the media, choose `{}`: compared with `{baseline}` it is {}.", best.name, best.describe());
        return vec![first, others(table, best.index)];
    }
    let differs = |candidate: &&Candidate<'_>| !candidate.better.is_empty() || !candidate.worse.is_empty();
    match candidates.iter().filter(differs).max_by_key(|candidate| candidate.better.len()) {
        None => vec![
            format!("For the media, no controller differs significantly from `{baseline}`."),
            "More runs (`--repeats`) find smaller differences.".to_owned(),
        ],
        Some(other) => vec![
            format!(
                "For the media, keep `{baseline}`: no other controller gives better quality, or is better in more quantities than it is worse in."
            ),
            format!("`{}` is {}.", other.name, other.describe()),
        ],
    }
}

/// A controller, and the quantities of media in which it differs significantly from the baseline.
struct Candidate<'a> {
    index: usize,
    name: &'a str,
    better: Vec<&'a ComparisonRow>,
    worse: Vec<&'a ComparisonRow>,
}

impl<'a> Candidate<'a> {
    fn of(table: &'a ComparisonTable, index: usize) -> Self {
        let rows = |verdict: DifferenceVerdict| {
            let media = table.rows.iter().filter(|row| row.subject.role == Role::Media);
            media.filter(|row| verdict_of(row, index) == Some(verdict)).collect()
        };
        Self {
            index,
            name: &table.controllers[index],
            better: rows(DifferenceVerdict::Better),
            worse: rows(DifferenceVerdict::Worse),
        }
    }

    /// Describes where it is better and where it is worse; it is one of both.
    fn describe(&self) -> String {
        let parts = [("better", &self.better), ("worse", &self.worse)];
        let parts = parts.iter().filter(|(_, rows)| !rows.is_empty());
        parts.map(|(word, rows)| format!("{word} in {}", listed(rows))).collect::<Vec<_>>().join(", but ")
    }

    /// Returns the mean difference of quality of the media flows if it is significant, and the surplus of advantages.
    fn rank(&self) -> (f64, isize) {
        let quality = |rows: &[&ComparisonRow]| {
            let flows = rows.iter().filter(|row| row.metric == QUALITY && row.subject.stream.is_none());
            flows.filter_map(|row| Some((*row.differences.get(self.index)?)?.mean)).sum::<f64>()
        };
        (quality(&self.better) + quality(&self.worse), self.surplus())
    }

    fn is_preferred(&self) -> bool {
        match self.rank() {
            (0.0, surplus) => surplus > 0,
            (quality, _) => quality > 0.0,
        }
    }

    fn surplus(&self) -> isize {
        self.better.len() as isize - self.worse.len() as isize
    }
}

fn verdict_of(row: &ComparisonRow, controller: usize) -> Option<DifferenceVerdict> {
    Some((*row.differences.get(controller)?)?.verdict)
}

/// Describes what a controller does to other traffic and to the queue, compared with the baseline.
fn others(table: &ComparisonTable, controller: usize) -> String {
    let changed = |row: &&ComparisonRow| {
        matches!(verdict_of(row, controller), Some(DifferenceVerdict::Better | DifferenceVerdict::Worse))
    };
    let describe = |row: &ComparisonRow| {
        let kind = crate::metrics::find(&row.metric).map_or(paceline_records::MetricKind::Number, |metric| metric.kind);
        let mean = |of: usize| row.values[of].map_or_else(String::new, |value| kind.show(value.mean));
        format!("the {} is {} instead of {}", named(row), mean(controller), mean(0))
    };
    let rows: Vec<String> = table
        .rows
        .iter()
        .filter(|row| row.subject.role != Role::Media)
        .filter(changed)
        .take(NAMED)
        .map(describe)
        .collect();
    match rows.is_empty() {
        true => "It changes neither other traffic nor the bottleneck significantly.".to_owned(),
        false => format!("With it, {}.", joined(&rows)),
    }
}

fn named(row: &ComparisonRow) -> String {
    format!("{} of {}", row.label, row.subject.name())
}

/// Lists the quantities, of each subject together: `rate and loss of call, frozen of call/video`.
fn listed(rows: &[&ComparisonRow]) -> String {
    let mut names: Vec<String> = rows.iter().take(NAMED).map(|row| named(row)).collect();
    if rows.len() > NAMED {
        names.push(format!("{} more", rows.len() - NAMED));
    }
    joined(&names)
}

/// Joins names by commas and a final `and`.
fn joined(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_records::{Better, Label, Summary};
    use paceline_results::{ComparedDifference, Subject};

    /// A table of three controllers; of each row the role, the label, and the verdicts on the second and third controller.
    fn table(rows: &[(Role, &str, DifferenceVerdict, DifferenceVerdict)], seeds: u64) -> ComparisonTable {
        let row = |(role, label, second, third): &(Role, &str, DifferenceVerdict, DifferenceVerdict)| ComparisonRow {
            subject: Subject { role: *role, flow: Some("call".to_owned()), stream: None },
            metric: "throughput_bps".to_owned(),
            label: (*label).to_owned(),
            better: Better::Higher,
            values: [1e6, 2e6, 3e6].map(|mean| Some(Summary { mean, std: 0.0, ci95: 0.0, n: seeds as usize })).into(),
            best: vec![false; 3],
            differences: [None, Some(*second), Some(*third)]
                .map(|verdict| Some(ComparedDifference { mean: 0.0, interval: 0.0, verdict: verdict? }))
                .into(),
        };
        ComparisonTable {
            scenario: "x/y".to_owned(),
            title: String::new(),
            case: Label::default(),
            changes: Vec::new(),
            world: "sim".to_owned(),
            controllers: ["a", "b", "c"].map(str::to_owned).into(),
            seeds: (1..=seeds).collect(),
            command: String::new(),
            judged: 2 * rows.len(),
            rows: rows.iter().map(row).collect(),
            verdict: Vec::new(),
        }
    }

    #[test]
    fn controller_with_the_largest_surplus_is_chosen() {
        use DifferenceVerdict::{Better, NotSignificant, Worse};
        let media = [
            (Role::Media, "rate", Better, Better),
            (Role::Media, "loss", Better, Better),
            (Role::Media, "frozen", Worse, NotSignificant),
            (Role::Traffic, "rate", NotSignificant, Worse),
        ];
        let found = sentences(&table(&media, 5));
        assert_eq!(
            found[0],
            "For the media, choose `c`: compared with `a` it is better in rate of call and loss of call."
        );
        assert_eq!(found[1], "With it, the rate of call is 3.000 Mbit/s instead of 1.000 Mbit/s.");
        // Without the third one, the second has one more advantage than disadvantage.
        let found = sentences(&table(&media.map(|(role, label, second, _)| (role, label, second, NotSignificant)), 5));
        assert!(
            found[0].ends_with("better in rate of call and loss of call, but worse in frozen of call."),
            "{found:?}"
        );
        assert_eq!(found[1], "It changes neither other traffic nor the bottleneck significantly.");
    }

    #[test]
    fn baseline_is_kept_unless_another_controller_has_a_surplus() {
        use DifferenceVerdict::{Better, Equal, NotSignificant, Worse};
        let even = [(Role::Media, "rate", Better, Worse), (Role::Media, "loss", Worse, Worse)];
        let found = sentences(&table(&even, 5));
        assert!(found[0].starts_with("For the media, keep `a`"), "{found:?}");
        assert_eq!(found[1], "`b` is better in rate of call, but worse in loss of call.");
        let same = sentences(&table(&[(Role::Media, "rate", Equal, NotSignificant)], 5));
        assert_eq!(same[0], "For the media, no controller differs significantly from `a`.");
        assert!(sentences(&table(&even, 1))[0].starts_with("One seed gives no confidence interval"));
    }
}
