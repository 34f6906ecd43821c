// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choice of a controller for a call on several paths: the comparison on each, and one ranking over all. On one path it is the ranking
//! of `compare`.

use super::scores::Scored;
use super::{gaps, ranking, scores, table, verdict};
use crate::results::{ComparisonTable, RankedController, RowKind};
use crate::run::{Runner, RunsResult};
use crate::suite::Subject;
use crate::yardsticks::Oracle;
use paceline::Registry;
use paceline_netsim::world::WorldError;
use paceline_scenario::{CallPath, Changes, Override, Scenario, ScenarioError};
use serde::Serialize;

/// Runs of each candidate on each path if no number is given.
pub const RUNS: u32 = 10;

/// Which controller to choose for a call on these paths.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// What follows, in a few sentences.
    pub verdict: Vec<String>,
    /// The candidates by their mean score over the paths, with the oracle `causal` for reference.
    pub ranking: Vec<RankedController>,
    pub paths: Vec<ChosenPath>,
    pub limits: Vec<String>,
    pub command: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChosenPath {
    pub name: String,
    /// Length of a run.
    pub seconds: f64,
    /// How often it carries nothing for more than half a second in this time.
    pub gaps: usize,
    /// The comparison, with the ranking and the verdict of this path.
    pub table: ComparisonTable,
}

/// A call on a path, under each candidate and the oracle `causal`.
pub struct Candidates {
    path: CallPath,
    names: Vec<String>,
    scenarios: Vec<Scenario>,
}

/// Returns the candidates if none are named: those that suites judge, and `drc`.
pub fn usual(registry: &Registry) -> Vec<String> {
    let suites = Subject::named(&[], registry).into_iter().map(|subject| subject.name);
    suites.chain(["drc".to_owned()]).collect()
}

impl Candidates {
    /// Loads a call under these candidates. The registry has the oracles.
    pub fn load(
        path: CallPath,
        subjects: &[Subject],
        settings: &[Override],
        registry: &Registry,
    ) -> Result<Self, ScenarioError> {
        let changes = Changes { settings: settings.to_vec(), ..Changes::default() };
        let (mut names, mut scenarios) = (Vec::new(), Vec::new());
        let causal = subjects.iter().all(|s| s.oracle != Some(Oracle::Causal)).then(|| Subject::oracle(Oracle::Causal));
        for subject in subjects.iter().chain(&causal) {
            if let Some(scenario) = subject.scenario(&path.origin, &changes, registry)? {
                names.push(subject.name.clone());
                scenarios.push(scenario);
            }
        }
        Ok(Self { path, names, scenarios })
    }

    /// Returns the name of the path, and each candidate with its scenario.
    pub fn scenarios(&self) -> (&str, impl Iterator<Item = (&String, &Scenario)>) {
        (&self.path.name, self.names.iter().zip(&self.scenarios))
    }

    /// Returns the simulated seconds of one run of each.
    pub fn seconds(&self) -> f64 {
        self.scenarios.iter().map(|scenario| scenario.plan.duration.as_secs_f64()).sum()
    }

    /// Makes the runs of each.
    pub fn run(&self, runner: &Runner<'_>, seeds: &[u64]) -> Result<Vec<RunsResult>, WorldError> {
        self.scenarios.iter().map(|scenario| runner.run_all(scenario, seeds)).collect()
    }
}

/// Ranks the candidates by their runs on each path, which have the same seeds.
///
/// # Panics
/// There is no path, or one without candidates.
pub fn choose(runs: &[(Candidates, Vec<RunsResult>)], settings: &[Override], registry: &Registry) -> Choice {
    let changes: Vec<String> = settings.iter().map(Override::to_string).collect();
    let path = |(of, results): &(Candidates, Vec<RunsResult>)| {
        let plan = &of.scenarios[0].plan;
        let mut table = table::table(&of.names, &of.scenarios, results, registry);
        table.changes.clone_from(&changes);
        ChosenPath { name: of.path.name.clone(), seconds: plan.duration.as_secs_f64(), gaps: gaps::gaps(plan), table }
    };
    let paths: Vec<ChosenPath> = runs.iter().map(path).collect();
    let (ranking, verdict) = match &paths[..] {
        [path] => (path.table.ranking.clone(), path.table.verdict.clone()),
        paths => {
            let scored = |(of, results): &(Candidates, Vec<RunsResult>)| {
                scores::scored(&of.names, &of.scenarios, results, registry)
            };
            let mut scored = over_paths(runs.iter().map(scored).collect());
            let ranking = ranking::ranking(&mut scored);
            let mut verdict = verdict::sentences(&ranking, &scored, paths.len(), None, super::REPEATS);
            verdict.extend(each_path(&ranking, paths));
            (ranking, verdict)
        }
    };
    Choice { limits: limits(runs, &paths), verdict, ranking, paths, command: String::new() }
}

/// Returns the mean over the paths, seed by seed, of each candidate that has a score on each.
fn over_paths(paths: Vec<Vec<Scored>>) -> Vec<Scored> {
    let of = |first: &Scored| {
        let all: Option<Vec<&Scored>> =
            paths.iter().map(|scored| scored.iter().find(|of| of.name == first.name)).collect();
        let all = all?;
        let mean = |of: &[&[f64]]| -> Vec<f64> {
            (0..of[0].len()).map(|seed| of.iter().map(|path| path[seed]).sum::<f64>() / of.len() as f64).collect()
        };
        let others: Vec<&[f64]> = all.iter().filter_map(|of| of.others.as_deref()).collect();
        Some(Scored {
            name: first.name.clone(),
            kind: first.kind,
            scores: mean(&all.iter().map(|of| &of.scores[..]).collect::<Vec<_>>()),
            lost: [0, 1, 2].map(|cause| mean(&all.iter().map(|of| &of.lost[cause][..]).collect::<Vec<_>>())),
            others: (!others.is_empty()).then(|| mean(&others)),
        })
    };
    paths[0].iter().filter_map(of).collect()
}

/// States on which paths another candidate is better than the first one of all.
fn each_path(ranking: &[RankedController], paths: &[ChosenPath]) -> Vec<String> {
    let Some(best) = ranking.first().filter(|entry| entry.place.is_some()) else { return Vec::new() };
    let name = &best.controller;
    let worse = paths.iter().filter_map(|path| {
        let (first, own) = (path.table.ranking.first()?, path.table.ranking.iter().find(|e| e.controller == *name)?);
        let difference = own.difference.filter(|_| !own.tied)?;
        let interval =
            if difference.interval.is_finite() { format!(" ± {:.1}", difference.interval) } else { String::new() };
        let more = -difference.mean;
        Some(format!("On {}, `{}` is {more:.1}{interval} points better than `{name}`.", path.name, first.controller))
    });
    let worse: Vec<String> = worse.collect();
    match worse.is_empty() {
        true => vec![format!("On each path, `{name}` is first or not distinguishable from the first.")],
        false => worse,
    }
}

/// Returns what the choice does not say.
fn limits(runs: &[(Candidates, Vec<RunsResult>)], paths: &[ChosenPath]) -> Vec<String> {
    let several = paths.len() > 1;
    let mut limits = vec![format!(
        "It is simulated, and of {} alone: intervals are over {} seeds, whose runs have the same capacity; another {} may give another order.",
        if several { "these paths" } else { "this path" },
        paths[0].table.seeds.len(),
        if several { "path" } else { "drive or place" },
    )];
    if several {
        limits.push("Each path counts the same in the mean.".to_owned());
    }
    limits.extend(runs.iter().filter_map(|(of, _)| of.path.assumed.clone()));
    if runs.iter().any(|(of, _)| of.path.assumed.is_some()) {
        limits.push("Over presets and traces the call is one video without audio, and alone on its path.".to_owned());
    }
    for path in paths.iter().filter(|path| path.table.ranking.iter().all(|e| e.kind != RowKind::Oracle)) {
        limits.push(format!("{} has no known best: the oracle `causal` does not apply to it.", path.name));
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yardsticks;
    use paceline_scenario::Call;

    #[test]
    fn several_paths_are_ranked_by_the_mean_score() {
        let registry = Oracle::add_all(yardsticks::add(Registry::standard()));
        let subjects = Subject::named(&usual(&registry), &registry);
        let settings = ["duration=20s".parse().unwrap()];
        let run = |path: &str| {
            let path = CallPath::find(path, &Call::default()).unwrap();
            let candidates = Candidates::load(path, &subjects, &settings, &registry).unwrap();
            assert_eq!(candidates.seconds(), 100.0);
            let results = candidates.run(&Runner::simulator(&registry), &[1, 2, 3]).unwrap();
            (candidates, results)
        };
        let choice = choose(&["dsl", "wifi-fq-codel"].map(run), &settings, &registry);
        for entry in &choice.ranking {
            let on =
                |path: &ChosenPath| path.table.ranking.iter().find(|e| e.controller == entry.controller).unwrap().score;
            let [a, b] = [on(&choice.paths[0]), on(&choice.paths[1])];
            assert!((entry.score.mean - (a.mean + b.mean) / 2.0).abs() < 1e-9 && entry.score.n == 3, "{entry:?}");
        }
        assert_eq!(choice.paths[0].table.ranking.last().unwrap().controller, "causal");
        assert!(choice.ranking[..4].is_sorted_by(|a, b| a.score.mean >= b.score.mean));
        assert!(choice.verdict.last().unwrap().starts_with("On "), "{:?}", choice.verdict);
        assert_eq!(
            choice.paths.iter().map(|path| (path.name.as_str(), path.gaps)).collect::<Vec<_>>(),
            [("dsl", 0), ("wifi-fq-codel", 0)]
        );
        assert!(choice.limits.iter().any(|limit| limit.starts_with("dsl is a preset")), "{:?}", choice.limits);
    }
}
