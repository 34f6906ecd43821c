//! What moved between two results: of two versions of the program, or of two settings.
//!
//! ```text
//! folder or scoreboard, twice --read--> entries --pair--> asked differently, hashes, metrics, verdicts that moved
//! ```
//!
//! What was asked (version, changes, constants) may differ without anything having moved: only hashes, numbers, verdicts,
//! and runs that one of the two does not have, move.

mod results;

use crate::group::RunMetrics;
use crate::label::Label;
use crate::reproduce::{Cell, Moved, OverCell, Verdict};
use crate::stats::{Paired, Statistic};
pub use results::DiffError;
use results::{Entry, read};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What moved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// Whether anything did.
    pub moved: bool,
    /// Runs that both have.
    pub runs: usize,
    /// Those of them whose trace hashes are known to be equal.
    pub hashes_equal: usize,
    /// Every group that both have and that moved, or of which something else was asked.
    pub groups: Vec<GroupDiff>,
    /// Groups that only the first has.
    pub only_before: Vec<Name>,
    /// Groups that only the second has.
    pub only_after: Vec<Name>,
}

/// Which runs: a scenario, one of its cases, controllers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Name {
    /// Scenario id.
    pub scenario: String,
    /// World.
    pub world: String,
    /// Case of the scenario.
    pub case: Label,
    /// Controller of each flow; nothing for a case of a scoreboard.
    pub controllers: Vec<String>,
    /// What `--set` changed.
    pub changes: Vec<String>,
    /// How many runs.
    pub runs: usize,
}

/// Runs of one plan, in two results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupDiff {
    /// Which, as the first has it.
    #[serde(flatten)]
    pub name: Name,
    /// Whether anything of it moved.
    pub moved: bool,
    /// What was asked differently.
    pub asked: Vec<Asked>,
    /// Those of the shared runs whose trace hashes are equal; none: a scoreboard's one hash over all differs, or is over
    /// another number of runs.
    pub hashes_equal: Option<usize>,
    /// Seeds whose trace hashes differ; nothing where a scoreboard has one hash for all.
    pub moved_seeds: Vec<u64>,
    /// Runs that only the first has.
    pub runs_only_before: usize,
    /// Runs that only the second has.
    pub runs_only_after: usize,
    /// Every metric that differs in any shared run.
    pub metrics: Vec<MetricDiff>,
    /// Every published value and bound whose measured value or verdict differs.
    pub cells: Vec<CellDiff>,
}

/// Something that was asked differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// `version`, `change` or `constant`.
    pub what: &'static str,
    /// Which change or constant, by its key.
    pub key: Option<String>,
    /// What the first says.
    pub before: Option<String>,
    /// What the second says.
    pub after: Option<String>,
}

/// A metric over the runs that both have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricDiff {
    /// Its id.
    pub metric: String,
    /// Seeds in which it differs.
    pub seeds_moved: usize,
    /// Seeds in which only the first has a value.
    pub lost: usize,
    /// Seeds in which only the second has a value.
    pub gained: usize,
    /// Its mean over the seeds in which both have a value.
    pub before: Option<f64>,
    /// The same, of the second.
    pub after: Option<f64>,
    /// The differences, over these seeds.
    pub difference: Option<Paired>,
}

/// A published value or a bound in two results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellDiff {
    /// Metric id.
    pub metric: String,
    /// The flow it is taken of.
    pub flow: Option<String>,
    /// The span it is taken over, s.
    pub window_s: (f64, f64),
    /// The claim that it supports or is.
    pub claim: Option<String>,
    /// Whether it is a ratio.
    pub ratio: bool,
    /// What the first says of it.
    pub before: Option<CellSide>,
    /// What the second says of it.
    pub after: Option<CellSide>,
}

/// What a result says of a published value or a bound.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellSide {
    /// What was published.
    pub published: Option<f64>,
    /// Lowest and highest mean allowed.
    pub bounds: Option<(f64, f64)>,
    /// How far the mean may lie from the published value.
    pub tolerance: Option<f64>,
    /// The mean over runs.
    pub measured: Option<f64>,
    /// Half-width of its interval.
    pub ci95: Option<f64>,
    /// How many runs.
    pub n: usize,
    /// The mean under the null sender.
    pub null_sender: Option<f64>,
    /// Whether the null sender reproduces it too.
    pub null_reproduces: bool,
    /// What became of it.
    pub verdict: Verdict,
    /// What it comes to under the changes that are said to move it.
    pub moved: Option<Moved>,
}

/// What moved from the results at one path to those at another: folders of results, or scoreboards.
///
/// # Errors
/// There are no results at a path, or they are damaged.
pub fn diff(before: &Path, after: &Path) -> Result<Diff, DiffError> {
    Ok(between(&read(before)?, &read(after)?))
}

fn between(before: &[Entry], after: &[Entry]) -> Diff {
    let pairs = pair(before, after);
    let all: Vec<GroupDiff> = pairs.iter().map(|(b, a)| group(&before[*b], &after[*a])).collect();
    let name = |entry: &Entry| entry.name();
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

/// Which entries belong together: those of the same scenario, world, case and controllers. Of several the ones with the
/// same changes first, then in order.
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

impl Entry {
    fn key(&self) -> (&str, &str, &Label, &[String]) {
        (&self.scenario, &self.world, &self.case, &self.controllers)
    }

    fn count(&self) -> usize {
        self.together.as_ref().map_or(self.runs.len(), |runs| runs.n)
    }

    fn name(&self) -> Name {
        let Self { scenario, world, case, controllers, changes, .. } = self.clone();
        Name { scenario, world, case, controllers, changes, runs: self.count() }
    }
}

fn group(before: &Entry, after: &Entry) -> GroupDiff {
    let partner = |run: &RunMetrics| after.runs.iter().find(|other| other.seed == run.seed);
    let shared: Vec<(&RunMetrics, &RunMetrics)> =
        before.runs.iter().filter_map(|run| Some((run, partner(run)?))).collect();
    let moved_seeds: Vec<u64> =
        shared.iter().filter(|(b, a)| a.trace_hash != b.trace_hash).map(|(b, _)| b.seed).collect();
    let (both, hashes_equal) = match (&before.together, &after.together) {
        (Some(b), Some(a)) if a == b => (b.n, Some(b.n)),
        // One hash over all runs: that it differs does not say of how many.
        (Some(b), Some(a)) => (b.n.min(a.n), None),
        _ => (shared.len(), Some(shared.len() - moved_seeds.len())),
    };
    let (runs_only_before, runs_only_after) = (before.count().saturating_sub(both), after.count().saturating_sub(both));
    let (metrics, cells) = (metrics(&shared), cells(&before.cells, &after.cells));
    let moved = hashes_equal.is_none_or(|equal| equal < both)
        || runs_only_before + runs_only_after > 0
        || !metrics.is_empty()
        || !cells.is_empty();
    let asked = asked(before, after);
    let name = before.name();
    GroupDiff { name, moved, asked, hashes_equal, moved_seeds, runs_only_before, runs_only_after, metrics, cells }
}

fn asked(before: &Entry, after: &Entry) -> Vec<Asked> {
    let changes = |entry: &Entry| {
        let pair = |change: &String| change.split_once('=').map(|(k, v)| (k.trim().to_owned(), v.trim().to_owned()));
        entry.changes.iter().filter_map(pair).collect::<BTreeMap<_, _>>()
    };
    let constants = |entry: &Entry| entry.assumed.iter().map(|c| (c.key.clone(), c.value.clone())).collect();
    let version = (before.version != after.version).then(|| Asked {
        what: "version",
        key: None,
        before: Some(before.version.clone()),
        after: Some(after.version.clone()),
    });
    let mut asked: Vec<Asked> = version.into_iter().collect();
    asked.extend(that_differ("change", &changes(before), &changes(after)));
    asked.extend(that_differ("constant", &constants(before), &constants(after)));
    asked
}

fn that_differ(what: &'static str, before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<Asked> {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differ = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
    let asked = |key: &String| Asked {
        what,
        key: Some(key.clone()),
        before: before.get(key).cloned(),
        after: after.get(key).cloned(),
    };
    differ.map(asked).collect()
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
            difference: Paired::of(&pairs),
        }
    };
    ids.into_iter().map(diff).filter(|m| m.seeds_moved > 0).collect()
}

/// What tells cells of one case apart.
type What<'a> = (&'a str, Statistic, Option<&'a str>, Option<&'a str>, Option<&'a OverCell>, bool, (f64, f64));

fn cells(before: &[Cell], after: &[Cell]) -> Vec<CellDiff> {
    let mut left: Vec<&Cell> = after.iter().collect();
    let mut found = Vec::new();
    for cell in before {
        // Of several alike, the first that is left.
        let index = left.iter().position(|other| what(other) == what(cell));
        let other = index.map(|index| left.remove(index));
        found.push((Some(cell), other));
    }
    found.extend(left.into_iter().map(|cell| (None, Some(cell))));
    let diff = |(before, after): (Option<&Cell>, Option<&Cell>)| {
        let cell = before.or(after)?;
        let (before, after) = (before.map(CellSide::of), after.map(CellSide::of));
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

fn what(cell: &Cell) -> What<'_> {
    let (flow, claim) = (cell.flow.as_deref(), cell.claim.as_deref());
    (&cell.metric, cell.runs, flow, claim, cell.over.as_ref(), cell.published.is_some(), cell.window_s)
}

impl CellSide {
    fn of(cell: &Cell) -> Self {
        let Cell { published, bounds, tolerance, measured, ci95, n, null_sender, null_reproduces, verdict, .. } = *cell;
        let moved = cell.moved.clone();
        Self { published, bounds, tolerance, measured, ci95, n, null_sender, null_reproduces, verdict, moved }
    }
}

impl CellDiff {
    /// Whether the two give different verdicts.
    pub fn verdict_moved(&self) -> bool {
        let verdict = |side: &Option<CellSide>| side.as_ref().map(|s| s.verdict);
        verdict(&self.before) != verdict(&self.after)
    }
}

#[cfg(test)]
mod tests;
