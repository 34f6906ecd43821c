// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::results::{Assumed, CaseRuns};

fn run(seed: u64, trace_hash: &str, metrics: &[(&str, f64)]) -> RunMetrics {
    let metrics = metrics.iter().map(|(id, value)| ((*id).to_owned(), *value)).collect();
    RunMetrics { seed, trace_hash: trace_hash.to_owned(), metrics }
}

fn entry(scenario: &str, changes: &[&str], runs: &[RunMetrics]) -> Entry {
    Entry {
        scenario: scenario.to_owned(),
        world: "sim".to_owned(),
        case: Label::default(),
        controllers: vec!["gcc-2016".to_owned()],
        changes: changes.iter().map(|c| (*c).to_owned()).collect(),
        version: "1".to_owned(),
        assumed: Vec::new(),
        runs: runs.to_vec(),
        together: None,
        cells: Vec::new(),
    }
}

fn assumed(key: &str, value: &str) -> Assumed {
    let [id, why] = ["id", "why"].map(str::to_owned);
    Assumed { id, key: key.to_owned(), value: value.to_owned(), why, only: None }
}

#[test]
fn equal_results_have_no_difference() {
    let runs = [run(1, "a", &[("jain", 0.5)]), run(2, "b", &[("jain", 0.7)])];
    let results = [entry("x", &[], &runs), entry("x", &["path.rtt=80ms"], &runs[..1])];
    let found = between(&results, &results);
    assert_eq!((found.moved, found.runs, found.hashes_equal), (false, 3, 3));
    assert_eq!((found.groups.len(), found.only_before.len(), found.only_after.len()), (0, 0, 0));
}

#[test]
fn hashes_and_metrics_are_compared_seed_by_seed() {
    let before = [
        run(1, "a", &[("jain", 0.5), ("freeze_duration_s", 1.0), ("bottleneck_drops", 3.0)]),
        run(2, "b", &[("jain", 0.7), ("bottleneck_drops", 3.0)]),
        run(3, "c", &[("jain", 0.1), ("bottleneck_drops", 3.0)]),
    ];
    let after = [
        run(2, "b", &[("jain", 0.7), ("bottleneck_drops", 3.0)]),
        run(1, "x", &[("jain", 0.6), ("bottleneck_drops", 3.0)]),
        run(4, "d", &[("jain", 0.0)]),
    ];
    let found = between(&[entry("x", &[], &before)], &[entry("x", &[], &after)]);
    let [group] = found.groups.as_slice() else { panic!("{found:?}") };
    assert!(found.moved && group.moved && group.asked.is_empty());
    assert_eq!((found.runs, found.hashes_equal, &group.moved_seeds), (2, 1, &vec![1]));
    assert_eq!((group.runs_only_before, group.runs_only_after), (1, 1));
    let [freeze, jain] = group.metrics.as_slice() else { panic!("{:?}", group.metrics) };
    assert_eq!(
        (freeze.metric.as_str(), freeze.lost, freeze.gained, freeze.seeds_moved),
        ("freeze_duration_s", 1, 0, 1)
    );
    assert_eq!((freeze.before, freeze.difference), (None, None));
    // 0.1 in one seed and 0 in the other: mean 0.05, t(1) = 12.706 times 0.0707 over root 2.
    let difference = jain.difference.unwrap();
    assert_eq!((jain.metric.as_str(), jain.seeds_moved, difference.n), ("jain", 1, 2));
    assert!((difference.mean - 0.05).abs() < 1e-12 && (difference.ci95 - 0.6353).abs() < 1e-3);
    assert!((jain.before.unwrap() - 0.6).abs() < 1e-12 && (jain.after.unwrap() - 0.65).abs() < 1e-12);
}

#[test]
fn entries_with_equal_changes_are_paired_first() {
    let runs = [run(1, "a", &[])];
    let before = [entry("x", &[], &runs), entry("x", &["alpha=0.85", "rtt=50ms"], &runs), entry("y", &[], &runs)];
    let mut after = [entry("x", &["alpha=0.8"], &runs), entry("x", &[], &runs), entry("z", &[], &runs)];
    let found = between(&before, &after);
    let names = |names: &[GroupName]| names.iter().map(|n| n.scenario.clone()).collect::<Vec<_>>();
    assert_eq!((names(&found.only_before), names(&found.only_after)), (vec!["y".to_owned()], vec!["z".to_owned()]));
    let [changed] = found.groups.as_slice() else { panic!("the other group is equal: {found:?}") };
    let asked: Vec<_> =
        changed.asked.iter().map(|a| (a.what, a.key.as_deref(), a.before.as_deref(), a.after.as_deref())).collect();
    let alpha = ("change", Some("alpha"), Some("0.85"), Some("0.8"));
    assert_eq!(asked, [alpha, ("change", Some("rtt"), Some("50ms"), None)]);
    assert!(!changed.moved && found.moved, "only unpaired entries differ");

    // Different versions and constants alone are no difference of the results.
    let mut before = [before[0].clone()];
    before[0].assumed = vec![assumed("path.rtt", "50ms"), assumed("path.burst", "5 KB")];
    after = [before[0].clone(), before[0].clone(), before[0].clone()];
    (after[0].version, after[0].assumed[0].value) = ("2".to_owned(), "40ms".to_owned());
    let found = between(&before, &after[..1]);
    let asked: Vec<_> = found.groups[0].asked.iter().map(|a| (a.what, a.key.as_deref())).collect();
    assert_eq!(asked, [("version", None), ("constant", Some("path.rtt"))]);
    assert!(!found.moved);
}

#[test]
fn verdicts_and_values_of_cells_are_compared() {
    let cell = Cell {
        metric: "utilization".to_owned(),
        window_s: (0.0, 10.0),
        published: Some(0.84),
        measured: Some(0.85),
        verdict: CellVerdict::Reproduced,
        ..Cell::default()
    };
    let mut before = entry("x", &[], &[]);
    let runs = |n, hash: &str| Some(CaseRuns { case: Label::default(), n, trace_hash: hash.to_owned() });
    let mut other = cell.clone();
    other.window_s = (0.0, 5.0);
    (before.cells, before.together) = (vec![cell.clone(), cell, other], runs(2, "a"));
    let mut after = before.clone();
    assert!(!between(&[before.clone()], &[after.clone()]).moved);

    // A note does not matter; a measured value, a verdict, and a missing cell do.
    after.cells[0].note = Some("a word".to_owned());
    assert!(!between(&[before.clone()], &[after.clone()]).moved);
    let moved = |verdict| Some(ChangeResult { by: vec!["a=1".to_owned()], measured: Some(0.8), ci95: None, verdict });
    (before.cells[0].moved, after.cells[0].moved) =
        (moved(Some(CellVerdict::Reproduced)), moved(Some(CellVerdict::Not)));
    assert_eq!(between(&[before.clone()], &[after.clone()]).groups[0].cells.len(), 1);
    after.cells[0].moved = before.cells[0].moved.clone();
    assert!(!between(&[before.clone()], &[after.clone()]).moved);
    (after.cells[1].measured, after.cells[1].verdict) = (Some(0.75), CellVerdict::Not);
    after.cells.remove(2);
    (after.cells[0].n, after.together) = (3, runs(3, "b"));
    let found = between(&[before], &[after]);
    let [group] = found.groups.as_slice() else { panic!("{found:?}") };
    let verdicts = |c: &CellDiff| [&c.before, &c.after].map(|side| side.as_ref().map(|s| s.verdict));
    let all: Vec<_> = group.cells.iter().map(verdicts).collect();
    let reproduced = Some(CellVerdict::Reproduced);
    assert_eq!(all, [[reproduced, reproduced], [reproduced, Some(CellVerdict::Not)], [reproduced, None]]);
    assert_eq!(group.cells.iter().map(CellDiff::verdict_moved).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!((found.runs, found.hashes_equal, group.runs_only_after), (2, 0, 1));
}
