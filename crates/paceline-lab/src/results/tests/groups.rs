// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of runs.

use super::*;

fn group(scenario: &str, case: &str, changes: &[&str], mean: f64) -> Group {
    let case = if case.is_empty() { paceline_netsim::records::Label::default() } else { case.parse().unwrap() };
    let summary = paceline_netsim::records::Summary { mean, std: 0.0, ci95: f64::INFINITY, n: 1 };
    let assertion = Assertion {
        id: "little".to_owned(),
        metric: "loss_ratio".to_owned(),
        flow: None,
        stream: None,
        window_s: (0.0, 10.0),
        each: None,
        ratio: false,
        runs: Default::default(),
        bounds: (f64::NEG_INFINITY, 0.1),
        measured: Some(mean),
        ci95: None,
        holds: true,
        judgement: Judgement { verdict: Verdict::Holds, further_runs: None },
    };
    Group {
        scenario: scenario.to_owned(),
        title: "Some runs".to_owned(),
        source: String::new(),
        world: "sim".to_owned(),
        case,
        controllers: vec![Some("gcc-2016".to_owned()), None],
        changes: changes.iter().map(|c| (*c).to_owned()).collect(),
        version: "1.2.3".to_owned(),
        command: format!("paceline run {scenario}"),
        seeds: vec![1],
        runs: vec!["a-gcc-2016-seed1".to_owned()],
        summary: [("loss_ratio".to_owned(), summary)].into(),
        cells: Vec::new(),
        assertions: vec![assertion],
        assumed: Vec::new(),
        notes: vec!["a note".to_owned()],
        per_run: vec![RunMetrics {
            seed: 1,
            trace_hash: "f00d".to_owned(),
            metrics: [("loss_ratio".to_owned(), mean)].into(),
        }],
    }
}

pub(super) fn group_of_run(scenario: &str, controller: &str, folder: &str) -> Group {
    let controllers = vec![Some(controller.to_owned()), None];
    let changes = inputs().changes;
    Group { controllers, changes, runs: vec![folder.to_owned()], ..group(scenario, "", &[], 0.5) }
}

/// Returns a comparison of these controllers on seed 1.
pub(super) fn comparison(scenario: &str, controllers: &[&str]) -> ComparisonTable {
    ComparisonTable {
        scenario: scenario.to_owned(),
        title: String::new(),
        case: Default::default(),
        changes: inputs().changes,
        world: "sim".to_owned(),
        controllers: controllers.iter().map(|name| (*name).to_owned()).collect(),
        seeds: vec![1],
        command: String::new(),
        judged: 0,
        rows: Vec::new(),
        ranking: Vec::new(),
        verdict: Vec::new(),
    }
}

#[test]
fn a_group_is_restored_and_replaces_only_the_group_with_the_same_key() {
    let (scratch, store) = Scratch::with_store();
    let mean = 0.1 + 0.2;
    let groups = [
        group("a", "", &[], mean),
        group("a", "", &["path.rtt=80ms"], 1.0 / 3.0),
        group("a", "threshold=static", &[], 0.0),
        group("a/b", "", &[], 0.5),
    ];
    // In another order, and the first twice.
    store.group(&group("a", "", &[], 9.0)).unwrap();
    for i in [3, 2, 1, 0] {
        store.group(&groups[i]).unwrap();
    }
    // An infinite interval and an open bound are null in JSON.
    assert_eq!(Store::read(&scratch.dir()).unwrap().groups, groups);
}
