// SPDX-License-Identifier: MIT OR Apache-2.0
//! The difference of two results: of two versions of the program, or of two configurations.
//!
//! ```text
//! folder or scoreboard, twice --read--> entries --pair--> different inputs, hashes, metrics, verdicts
//! ```
//!
//! Different inputs (version, changes, constants) alone do not count as a difference of the results. Only different hashes,
//! numbers and verdicts do, and runs that only one of the two has.

mod results;

use crate::results::{Cell, CellVerdict, ChangeResult, Denominator, RunMetrics};
use paceline_netsim::records::{Label, Paired, Statistic};
pub use results::DiffError;
use results::{Entry, read};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    pub moved: bool,
    pub runs: usize,
    /// Number of common runs with equal trace hashes.
    pub hashes_equal: usize,
    /// Every common group whose results or inputs differ.
    pub groups: Vec<GroupDiff>,
    /// Groups that only the first has.
    pub only_before: Vec<GroupName>,
    /// Groups that only the second has.
    pub only_after: Vec<GroupName>,
}

/// Identity of a group: scenario, case, controllers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupName {
    pub scenario: String,
    pub world: String,
    pub case: Label,
    /// Controller of each flow; empty for a case of a scoreboard.
    pub controllers: Vec<String>,
    pub changes: Vec<String>,
    pub runs: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupDiff {
    #[serde(flatten)]
    pub name: GroupName,
    pub moved: bool,
    pub asked: Vec<InputDifference>,
    /// Number of common runs with equal trace hashes; `None` if the hash of a scoreboard over all runs differs, or covers
    /// another number of runs.
    pub hashes_equal: Option<usize>,
    /// Seeds whose trace hashes differ; empty for a scoreboard, which has one hash for all.
    pub moved_seeds: Vec<u64>,
    /// Runs that only the first has.
    pub runs_only_before: usize,
    /// Runs that only the second has.
    pub runs_only_after: usize,
    /// Every metric that differs in a common run.
    pub metrics: Vec<MetricDiff>,
    /// Every published value and bound whose measured value or verdict differs.
    pub cells: Vec<CellDiff>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InputDifference {
    /// `version`, `change` or `constant`.
    pub what: &'static str,
    /// Key of the change or constant.
    pub key: Option<String>,
    /// Value in the first result.
    pub before: Option<String>,
    /// Value in the second result.
    pub after: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricDiff {
    pub metric: String,
    pub seeds_moved: usize,
    /// Number of seeds in which only the first result has a value.
    pub lost: usize,
    /// Number of seeds in which only the second result has a value.
    pub gained: usize,
    /// Mean in the first result, over the seeds with both values.
    pub before: Option<f64>,
    /// Mean in the second result, over the same seeds.
    pub after: Option<f64>,
    pub difference: Option<Paired>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellDiff {
    pub metric: String,
    pub flow: Option<String>,
    pub window_s: (f64, f64),
    pub claim: Option<String>,
    pub ratio: bool,
    /// In the first result.
    pub before: Option<CellResult>,
    /// In the second result.
    pub after: Option<CellResult>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellResult {
    pub published: Option<f64>,
    /// Lowest and highest allowed mean.
    pub bounds: Option<(f64, f64)>,
    /// Largest allowed distance of the mean to the published value.
    pub tolerance: Option<f64>,
    pub measured: Option<f64>,
    /// Half-width of its interval.
    pub ci95: Option<f64>,
    pub n: usize,
    pub null_sender: Option<f64>,
    pub null_reproduces: bool,
    pub verdict: CellVerdict,
    pub moved: Option<ChangeResult>,
}

/// Compares the results at two paths: folders of results, or scoreboards.
pub fn diff(before: &Path, after: &Path) -> Result<Diff, DiffError> {
    Ok(between(&read(before)?, &read(after)?))
}

fn between(before: &[Entry], after: &[Entry]) -> Diff {
    let pairs = pair(before, after);
    let all: Vec<GroupDiff> = pairs.iter().map(|(b, a)| group(&before[*b], &after[*a])).collect();
    let only = |entries: &[Entry], paired: &BTreeSet<usize>| {
        let left = entries.iter().enumerate().filter(|(index, _)| !paired.contains(index));
        left.map(|(_, entry)| name(entry)).collect::<Vec<_>>()
    };
    let only_before = only(before, &pairs.iter().map(|(b, _)| *b).collect());
    let only_after = only(after, &pairs.iter().map(|(_, a)| *a).collect());
    Diff {
        moved: all.iter().any(|g| g.moved) || !only_before.is_empty() || !only_after.is_empty(),
        runs: all.iter().map(|g| g.name.runs - g.runs_only_before).sum(),
        hashes_equal: all.iter().filter_map(|g| g.hashes_equal).sum(),
        groups: all.into_iter().filter(|g| g.moved || !g.asked.is_empty()).collect(),
        only_before,
        only_after,
    }
}

/// Pairs the entries with the same scenario, world, case and controllers: first those with the same changes, then in order.
fn pair(before: &[Entry], after: &[Entry]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let mut free: BTreeSet<usize> = (0..after.len()).collect();
    let mut left: Vec<usize> = (0..before.len()).collect();
    for same_changes in [true, false] {
        left.retain(|b| {
            let of = &before[*b];
            let fits = |a: &usize| after[*a].key() == of.key() && (!same_changes || after[*a].changes == of.changes);
            let found = free.iter().copied().find(fits);
            if let Some(a) = found {
                free.remove(&a);
                pairs.push((*b, a));
            }
            found.is_none()
        });
    }
    pairs.sort_unstable();
    pairs
}

fn name(entry: &Entry) -> GroupName {
    let Entry { scenario, world, case, controllers, changes, .. } = entry.clone();
    GroupName { scenario, world, case, controllers, changes, runs: entry.count() }
}

fn group(before: &Entry, after: &Entry) -> GroupDiff {
    let partner = |run: &RunMetrics| after.runs.iter().find(|other| other.seed == run.seed);
    let shared: Vec<(&RunMetrics, &RunMetrics)> =
        before.runs.iter().filter_map(|run| Some((run, partner(run)?))).collect();
    let moved_seeds: Vec<u64> =
        shared.iter().filter(|(b, a)| a.trace_hash != b.trace_hash).map(|(b, _)| b.seed).collect();
    let (both, hashes_equal) = match (&before.together, &after.together) {
        (Some(b), Some(a)) if a == b => (b.n, Some(b.n)),
        // One hash over all runs: the number of differing runs is unknown.
        (Some(b), Some(a)) => (b.n.min(a.n), None),
        _ => (shared.len(), Some(shared.len() - moved_seeds.len())),
    };
    let (runs_only_before, runs_only_after) = (before.count().saturating_sub(both), after.count().saturating_sub(both));
    let (metrics, cells) = (metrics(&shared), cells(&before.cells, &after.cells));
    let moved = hashes_equal.is_none_or(|equal| equal < both)
        || runs_only_before + runs_only_after > 0
        || !metrics.is_empty()
        || !cells.is_empty();
    let asked = input_differences(before, after);
    let name = name(before);
    GroupDiff { name, moved, asked, hashes_equal, moved_seeds, runs_only_before, runs_only_after, metrics, cells }
}

fn input_differences(before: &Entry, after: &Entry) -> Vec<InputDifference> {
    let changes = |entry: &Entry| {
        let pair = |change: &String| change.split_once('=').map(|(k, v)| (k.trim().to_owned(), v.trim().to_owned()));
        entry.changes.iter().filter_map(pair).collect::<BTreeMap<_, _>>()
    };
    let constants = |entry: &Entry| entry.assumed.iter().map(|c| (c.key.clone(), c.value.clone())).collect();
    let version = (before.version != after.version).then(|| InputDifference {
        what: "version",
        key: None,
        before: Some(before.version.clone()),
        after: Some(after.version.clone()),
    });
    let mut differences: Vec<InputDifference> = version.into_iter().collect();
    differences.extend(differing_values("change", &changes(before), &changes(after)));
    differences.extend(differing_values("constant", &constants(before), &constants(after)));
    differences
}

fn differing_values(
    what: &'static str,
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Vec<InputDifference> {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differ = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
    let difference = |key: &String| InputDifference {
        what,
        key: Some(key.clone()),
        before: before.get(key).cloned(),
        after: after.get(key).cloned(),
    };
    differ.map(difference).collect()
}

fn metrics(shared: &[(&RunMetrics, &RunMetrics)]) -> Vec<MetricDiff> {
    let ids: BTreeSet<&String> = shared.iter().flat_map(|(b, a)| b.metrics.keys().chain(a.metrics.keys())).collect();
    let diff = |id: &String| {
        let values: Vec<_> =
            shared.iter().map(|(b, a)| (b.metrics.get(id).copied(), a.metrics.get(id).copied())).collect();
        let pairs: Vec<(f64, f64)> = values.iter().filter_map(|(b, a)| Some(((*b)?, (*a)?))).collect();
        let mean = |of: fn(&(f64, f64)) -> f64| {
            (!pairs.is_empty()).then(|| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64)
        };
        MetricDiff {
            metric: id.clone(),
            seeds_moved: values.iter().filter(|(b, a)| b != a).count(),
            lost: values.iter().filter(|(b, a)| b.is_some() && a.is_none()).count(),
            gained: values.iter().filter(|(b, a)| b.is_none() && a.is_some()).count(),
            before: mean(|p| p.0),
            after: mean(|p| p.1),
            difference: Paired::from_pairs(&pairs),
        }
    };
    ids.into_iter().map(diff).filter(|m| m.seeds_moved > 0).collect()
}

type CellKey<'a> = (&'a str, Statistic, Option<&'a str>, Option<&'a str>, Option<&'a Denominator>, bool, (f64, f64));

fn cells(before: &[Cell], after: &[Cell]) -> Vec<CellDiff> {
    let mut left: Vec<&Cell> = after.iter().collect();
    let mut found = Vec::new();
    for cell in before {
        // If several have the same key, the first remaining one.
        let index = left.iter().position(|other| cell_key(other) == cell_key(cell));
        let other = index.map(|index| left.remove(index));
        found.push((Some(cell), other));
    }
    found.extend(left.into_iter().map(|cell| (None, Some(cell))));
    let diff = |(before, after): (Option<&Cell>, Option<&Cell>)| {
        let cell = before.or(after)?;
        let (before, after) = (before.map(CellResult::of), after.map(CellResult::of));
        (before != after).then(|| CellDiff {
            metric: cell.metric.clone(),
            flow: cell.flow.clone(),
            window_s: cell.window_s,
            claim: cell.claim.clone(),
            ratio: cell.over.is_some(),
            before,
            after,
        })
    };
    found.into_iter().filter_map(diff).collect()
}

fn cell_key(cell: &Cell) -> CellKey<'_> {
    let (flow, claim) = (cell.flow.as_deref(), cell.claim.as_deref());
    (&cell.metric, cell.runs, flow, claim, cell.over.as_ref(), cell.published.is_some(), cell.window_s)
}

impl CellResult {
    fn of(cell: &Cell) -> Self {
        let Cell { published, bounds, tolerance, measured, ci95, n, null_sender, null_reproduces, verdict, .. } = *cell;
        let moved = cell.moved.clone();
        Self { published, bounds, tolerance, measured, ci95, n, null_sender, null_reproduces, verdict, moved }
    }
}

impl CellDiff {
    pub fn verdict_moved(&self) -> bool {
        self.before.as_ref().zip(self.after.as_ref()).is_some_and(|(before, after)| before.verdict != after.verdict)
    }

    /// Returns whether only one of both has a published value. Runs with changes have none.
    pub fn is_published_once(&self) -> bool {
        let is_published = |side: &Option<CellResult>| side.as_ref().is_some_and(|s| s.published.is_some());
        (self.before.is_none() && is_published(&self.after)) || (self.after.is_none() && is_published(&self.before))
    }
}

#[cfg(test)]
mod tests;
