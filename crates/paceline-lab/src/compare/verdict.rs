//! The verdict of a comparison in two sentences: which controller serves the media best, and what that costs.
//!
//! Only differences of media to the baseline count that hold: significant and not smaller than [`relevant`]. The estimated quality
//! of the media flows decides. Where it does not differ, a controller is chosen that is better in something and worse in nothing;
//! without one, the sentence names the trade-off with its figures. A mean that differs by an amount that matters, but not
//! significantly, is no equality: the sentence names it and asks for more runs.

use crate::metrics;
use crate::results::{ComparedDifference, ComparisonRow, ComparisonTable, Role, Verdict};
use paceline_netsim::records::MetricKind;

/// The metric that decides.
const QUALITY: &str = "quality_mos";
/// A call of lower quality is of no use: the scale calls 1 bad and 2 poor (ITU-T P.800).
const QUALITY_MIN: f64 = 1.5;
/// With fewer runs of each controller, the lack of a significant difference says little.
const SEEDS_MIN: usize = 5;
/// The number of quantities that a sentence names.
const NAMED: usize = 3;
/// Metrics in the order in which sentences name them. Each is named once, for the first row that has it.
const ORDER: [&str; 8] = [
    QUALITY,
    "frame_delay_p95_ms",
    "late_or_lost_ratio",
    "freeze_ratio",
    "throughput_bps",
    "loss_ratio",
    "audio_gap_ratio",
    "owd_p95_ms",
];

/// Returns the smallest difference of a quantity that matters to a choice; `value` is that of the baseline. The numbers are our
/// own: the error of the quality model is several times 0.1 (ITU-T P.1203), and 20 ms is less than a frame of 30 a second.
pub(super) fn relevant(metric: &str, value: f64) -> f64 {
    match (metric, kind(metric)) {
        (QUALITY, _) => 0.1,
        ("loss_ratio", _) => 0.001,
        (_, MetricKind::Rate) => 0.05 * value.abs(),
        (_, MetricKind::Delay) => 20.0,
        (_, MetricKind::Number) => 0.0,
        _ => 0.005,
    }
}

/// Returns the sentences.
pub(super) fn sentences(table: &ComparisonTable) -> Vec<String> {
    if table.controllers.len() < 2 {
        return Vec::new();
    }
    let seeds = table.seeds.len();
    if seeds < 2 {
        let text = "One seed gives no confidence interval, so there is no verdict.";
        return vec![text.to_owned(), "Use `--repeats 10`.".to_owned()];
    }
    if let Some(best) = best_quality(table).filter(|best| *best < QUALITY_MIN) {
        return vec![
            format!("No controller makes this call usable: the estimated quality is at most {best:.2} of 5."),
            "Change the path, the rates of the sources, or the other traffic.".to_owned(),
        ];
    }
    let baseline = &table.controllers[0];
    let candidates: Vec<Candidate<'_>> = (1..table.controllers.len()).map(|c| Candidate::of(table, c)).collect();
    let better_quality = candidates.iter().rev().filter(|c| c.quality() > 0.0);
    if let Some(best) = better_quality.max_by(|a, b| a.quality().total_cmp(&b.quality())) {
        let first =
            format!("For the media, choose `{}`: compared with `{baseline}` it is {}.", best.name, best.describe());
        return vec![first, others(table, best.index)];
    }
    // A higher mean that the runs do not confirm.
    let unclear =
        || candidates.iter().filter(|c| c.quality() == 0.0).filter_map(|c| Some((c, c.unclear_quality(table)?)));
    let gain = |(mean, base): (f64, f64)| mean - base;
    let most = unclear().max_by(|a, b| gain(a.1).total_cmp(&gain(b.1)));
    if let Some((other, quality)) = most.filter(|(_, quality)| gain(*quality) > 0.0) {
        return undecided(other.name, "better", quality, baseline, seeds);
    }
    let is_equal = |c: &&Candidate<'_>| c.quality() == 0.0 && c.unclear_quality(table).is_none();
    let equal = || candidates.iter().rev().filter(is_equal).filter(|c| !c.better.is_empty());
    if let Some(best) = equal().filter(|c| c.worse.is_empty()).max_by_key(|c| c.better.len()) {
        let (name, better) = (best.name, best.describe());
        let first = format!("For the media, choose `{name}`: quality equals that of `{baseline}`, and it is {better}.");
        return vec![first, others(table, best.index)];
    }
    if let Some(other) = equal().max_by_key(|c| c.better.len()) {
        let (name, index) = (other.name, other.index);
        return vec![
            format!("For the media, `{name}` and `{baseline}` give equal quality: choose by what matters to you."),
            format!(
                "`{name}` has {}; `{baseline}` has {}.",
                figures(&other.better, index, 0),
                figures(&other.worse, 0, index)
            ),
        ];
    }
    match (candidates.iter().find(|c| !c.worse.is_empty()), most) {
        (Some(other), _) => vec![
            format!("For the media, keep `{baseline}`: no other controller gives better quality."),
            format!("`{}` is {}.", other.name, other.describe()),
        ],
        (None, _) if seeds < SEEDS_MIN => vec![
            format!("{seeds} runs of each controller are too few for a significant difference."),
            "Use `--repeats 10`.".to_owned(),
        ],
        (None, Some((other, quality))) => undecided(other.name, "worse", quality, baseline, seeds),
        (None, None) => vec![
            format!("For the media, no controller differs from `{baseline}` by an amount that matters."),
            "More runs (`--repeats`) find smaller differences.".to_owned(),
        ],
    }
}

/// States that the runs do not tell whether a controller has better or worse quality, with its mean and that of the baseline.
fn undecided(name: &str, word: &str, (mean, base): (f64, f64), baseline: &str, seeds: usize) -> Vec<String> {
    vec![
        format!(
            "{seeds} runs do not tell whether `{name}` gives {word} quality than `{baseline}`: {mean:.2} instead of {base:.2} MOS in \
             the mean."
        ),
        format!("Use `--repeats {}`.", (2 * seeds).max(10)),
    ]
}

/// Returns the highest mean quality of a media flow under any controller; `None` if there is no estimate.
fn best_quality(table: &ComparisonTable) -> Option<f64> {
    let flows = table.rows.iter().filter(|row| row.metric == QUALITY && row.subject.stream.is_none());
    flows.flat_map(|row| &row.values).flatten().map(|value| value.mean).reduce(f64::max)
}

/// A controller, and the quantities of media in which it differs from the baseline, in [`ORDER`].
struct Candidate<'a> {
    index: usize,
    name: &'a str,
    better: Vec<&'a ComparisonRow>,
    worse: Vec<&'a ComparisonRow>,
}

impl<'a> Candidate<'a> {
    fn of(table: &'a ComparisonTable, index: usize) -> Self {
        let rows = |better: bool| {
            let media = || table.rows.iter().filter(|row| row.subject.role == Role::Media);
            let differs = |row: &&ComparisonRow| improves(row, index) == Some(better);
            let first = |metric: &&str| media().filter(|row| row.metric == **metric).find(differs);
            let mut rows: Vec<&ComparisonRow> = ORDER.iter().filter_map(first).collect();
            // The delay of packets is part of that of frames.
            if rows.iter().any(|row| row.metric == "frame_delay_p95_ms") {
                rows.retain(|row| row.metric != "owd_p95_ms");
            }
            rows
        };
        Self { index, name: &table.controllers[index], better: rows(true), worse: rows(false) }
    }

    /// Describes where it is better and where it is worse; it is one of both.
    fn describe(&self) -> String {
        let parts = [("better", &self.better), ("worse", &self.worse)];
        let parts = parts.iter().filter(|(_, rows)| !rows.is_empty());
        let described = parts.map(|(word, rows)| format!("{word} in {}", figures(rows, self.index, 0)));
        described.collect::<Vec<_>>().join(", but ")
    }

    /// Returns the mean difference of the media flows' quality if it counts; 0 if not.
    fn quality(&self) -> f64 {
        let rows = self.better.iter().chain(&self.worse).filter(|row| row.metric == QUALITY);
        rows.filter_map(|row| Some((*row.differences.get(self.index)?)?.mean)).sum()
    }

    /// Returns its mean quality and that of the baseline for the first media flow in which they differ by an amount that matters,
    /// but not significantly.
    fn unclear_quality(&self, table: &ComparisonTable) -> Option<(f64, f64)> {
        let rows = table.rows.iter().filter(|row| row.metric == QUALITY && row.subject.role == Role::Media);
        let is_unclear = |d: &ComparedDifference| d.judgement.verdict == Verdict::Undecided && d.mean.abs() >= d.margin;
        let row = rows.into_iter().find(|row| row.differences[self.index].as_ref().is_some_and(is_unclear))?;
        Some((row.values[self.index]?.mean, row.values[0]?.mean))
    }
}

/// Returns whether a controller improves a quantity; `None` if it does not differ by an amount that matters.
fn improves(row: &ComparisonRow, controller: usize) -> Option<bool> {
    row.differences.get(controller)?.as_ref()?.improves()
}

fn kind(metric: &str) -> MetricKind {
    metrics::find(metric).map_or(MetricKind::Number, |metric| metric.kind)
}

/// Describes what a controller does to other traffic and to the queue, compared with the baseline.
fn others(table: &ComparisonTable, controller: usize) -> String {
    let changed = |row: &&ComparisonRow| improves(row, controller).is_some();
    let describe = |row: &ComparisonRow| {
        let mean = |of: usize| row.values[of].map_or_else(String::new, |value| kind(&row.metric).show(value.mean));
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
        true => "It changes neither other traffic nor the bottleneck by an amount that matters.".to_owned(),
        false => format!("With it, {}.", joined(&rows)),
    }
}

fn named(row: &ComparisonRow) -> String {
    format!("{} of {}", row.label, row.subject.name())
}

/// Lists the first quantities with their means under two controllers: `loss of call (0.1 % instead of 2.0 %)`.
fn figures(rows: &[&ComparisonRow], controller: usize, other: usize) -> String {
    let mean =
        |row: &ComparisonRow, of: usize| row.values[of].map_or_else(String::new, |v| kind(&row.metric).show(v.mean));
    let describe =
        |row: &ComparisonRow| format!("{} ({} instead of {})", named(row), mean(row, controller), mean(row, other));
    let mut names: Vec<String> = rows.iter().take(NAMED).map(|row| describe(row)).collect();
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
    use crate::results::{Judgement, Subject};
    use paceline_netsim::records::{Better as Direction, Label, Summary};

    /// Whether a significant difference is an improvement.
    type Significant = Option<bool>;
    const BETTER: Significant = Some(true);
    const WORSE: Significant = Some(false);
    const UNDECIDED: Significant = None;

    /// The role, the metric, the means under three controllers, and the differences of the second and third one.
    type Row = (Role, &'static str, [f64; 3], Significant, Significant);

    fn table(rows: &[Row], seeds: u64) -> ComparisonTable {
        let row = |(role, metric, means, second, third): &Row| ComparisonRow {
            subject: Subject { role: *role, flow: Some("call".to_owned()), stream: None },
            metric: (*metric).to_owned(),
            label: metric.split('_').next().unwrap().to_owned(),
            better: Direction::Higher,
            values: means.map(|mean| Some(Summary { mean, std: 0.0, ci95: 0.0, n: seeds as usize })).into(),
            best: vec![false; 3],
            differences: [(None, 0), (Some(*second), 1), (Some(*third), 2)]
                .map(|(significant, at)| {
                    let (mean, margin) = (means[at] - means[0], relevant(metric, means[0]));
                    let verdict = match significant? {
                        None => Verdict::Undecided,
                        Some(_) if mean.abs() >= margin => Verdict::Holds,
                        Some(_) => Verdict::Fails,
                    };
                    let judgement = Judgement { verdict, further_runs: None };
                    Some(ComparedDifference { mean, interval: 0.0, margin, better: significant?, judgement })
                })
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

    const RATE: Row = (Role::Media, "throughput_bps", [1e6, 2e6, 3e6], BETTER, BETTER);
    const LOSS: Row = (Role::Media, "loss_ratio", [0.02, 0.03, 0.01], WORSE, BETTER);
    const DELAY: Row = (Role::Media, "frame_delay_p95_ms", [50.0, 90.0, 60.0], WORSE, WORSE);

    fn quality(means: [f64; 3], second: Significant, third: Significant) -> Row {
        (Role::Media, QUALITY, means, second, third)
    }

    #[test]
    fn quality_decides() {
        let traffic = (Role::Traffic, "throughput_bps", [3e6, 2e6, 1e6], WORSE, WORSE);
        let found = sentences(&table(&[quality([3.0, 3.5, 3.2], BETTER, BETTER), RATE, LOSS, traffic], 5));
        assert_eq!(
            found[0],
            "For the media, choose `b`: compared with `a` it is better in quality of call (3.50 MOS instead of 3.00 MOS) and \
             throughput of call (2.000 Mbit/s instead of 1.000 Mbit/s), but worse in loss of call (3.000 % instead of 2.000 %)."
        );
        assert_eq!(found[1], "With it, the throughput of call is 2.000 Mbit/s instead of 3.000 Mbit/s.");
        let found = sentences(&table(&[quality([3.0, 2.5, 2.8], WORSE, WORSE), RATE], 5));
        assert_eq!(found[0], "For the media, keep `a`: no other controller gives better quality.");
    }

    /// At equal quality a controller without disadvantage is chosen: the delay of c is worse by less than 20 ms.
    #[test]
    fn small_differences_do_not_count() {
        let same = quality([3.0, 3.05, 2.95], BETTER, WORSE);
        let found = sentences(&table(&[same, RATE, LOSS, DELAY], 5));
        assert!(
            found[0].starts_with("For the media, choose `c`: quality equals that of `a`, and it is better in"),
            "{found:?}"
        );
        assert_eq!(found[1], "It changes neither other traffic nor the bottleneck by an amount that matters.");
        let found = sentences(&table(&[same], 5));
        assert_eq!(found[0], "For the media, no controller differs from `a` by an amount that matters.");
    }

    /// 3.4 MOS are not equal to 3.0, although the runs do not tell them apart; the order of the controllers does not matter.
    #[test]
    fn a_higher_mean_that_is_not_significant_is_not_equal() {
        for (means, name, other) in [([3.0, 3.0, 3.4], 'c', 2), ([3.0, 3.4, 3.0], 'b', 1)] {
            let found = sentences(&table(&[quality(means, UNDECIDED, UNDECIDED), RATE], 10));
            let first = format!(
                "10 runs do not tell whether `{name}` gives better quality than `a`: 3.40 instead of 3.00 MOS in the mean."
            );
            assert_eq!(found, [first, "Use `--repeats 20`.".to_owned()], "{other}");
        }
        // One of lower quality, perhaps, is not chosen as an equal one.
        let found = sentences(&table(&[quality([3.0, 2.6, 3.0], UNDECIDED, UNDECIDED), RATE], 10));
        assert!(found[0].starts_with("For the media, choose `c`: quality equals that of `a`"), "{found:?}");
        // Nor is a mean that is lower by 0.4 MOS no difference.
        let found = sentences(&table(&[quality([3.0, 2.6, 2.6], UNDECIDED, UNDECIDED)], 10));
        assert!(found[0].starts_with("10 runs do not tell whether `c` gives worse quality than `a`"), "{found:?}");
    }

    #[test]
    fn a_trade_off_is_named_with_its_figures() {
        let found = sentences(&table(
            &[RATE, LOSS, DELAY].map(|(role, metric, means, b, _)| (role, metric, means, b, UNDECIDED)),
            5,
        ));
        assert_eq!(found[0], "For the media, `b` and `a` give equal quality: choose by what matters to you.");
        assert_eq!(
            found[1],
            "`b` has throughput of call (2.000 Mbit/s instead of 1.000 Mbit/s); `a` has frame of call (50.0 ms instead of \
             90.0 ms) and loss of call (2.000 % instead of 3.000 %)."
        );
    }

    #[test]
    fn too_little_data_and_unusable_calls_give_no_choice() {
        assert!(sentences(&table(&[RATE], 1))[0].starts_with("One seed gives no confidence interval"));
        let unclear = (Role::Media, "throughput_bps", [1e6, 2e6, 3e6], UNDECIDED, UNDECIDED);
        assert!(sentences(&table(&[unclear], 3))[0].starts_with("3 runs of each controller are too few"));
        let dead = sentences(&table(&[quality([1.0, 1.4, 1.0], BETTER, BETTER), RATE], 5));
        assert!(dead[0].ends_with("at most 1.40 of 5."), "{dead:?}");
    }
}
