// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delivery-rate control in closed loop: which goals of its training set it reaches, and which it does not.

mod paths;

use crate::fixtures::within;
use std::collections::BTreeSet;

/// The goals that are missed with the seed below. One more is a step back; one less belongs on the page `docs/algorithms/drc.md`.
const MISSED: &[&str] = &[
    "slow feedback: before",
    "beside cubic, 6 Mbit/s, limit = \"60 ms\": share",
    "beside cubic, 6 Mbit/s, limit = \"300 ms\": share",
    "beside bbr, 6 Mbit/s, limit = \"60 ms\": share",
    "5 flows, 5 Mbit/s, limit = \"300 ms\": use",
    "12 flows, 6 Mbit/s, limit = \"300 ms\": jain 30-60 s",
    "12 flows, 6 Mbit/s, limit = \"300 ms\": use",
    "12 flows, 6 Mbit/s, limit = \"300 ms\": queue",
    "12 flows, 6 Mbit/s, limit = \"300 ms\": first",
    "12 flows, 6 Mbit/s, limit = \"300 ms\": last",
    "lte-drive 1.7 seed 101: score",
    "lte-drive 1.7 seed 102: score",
    "steady 1: variation",
    "steady 1: swing",
    "steady 1: reversals",
    "steady 1: frame",
    "steady 2.5: variation",
    "steady 2.5: swing",
    "steady 2.5: reversals",
    "steady 6: swing",
    "steady 6: reversals",
    "steady 15: swing",
    "steady 15: reversals",
    "steady 50: swing",
    "steady 50: reversals",
    "3g-drive 101 1.7: score_f",
    "3g-drive 102 1.7: score_f",
    "route +37 ms: use",
    "beside googcc, 3: part",
    "beside googcc, 3, 30 s later: part",
    "beside googcc, 10: part",
    "beside googcc, 10, 30 s later: part",
    "beside bbr, 60 ms, 6: share",
    "jitter 40 keep: use",
];

/// The first of the seeds of the page.
const SEED: u64 = 1001;

fn all() -> Vec<paths::Path> {
    paths::training(&paths::TRAINING).into_iter().chain(paths::goals(&paths::TRAINING)).collect()
}

fn missed(paths: &[paths::Path]) -> BTreeSet<String> {
    let missed = |path: &paths::Path| {
        let measures = path.run("drc", &[], SEED);
        assert!(!measures.is_empty() && measures.iter().all(|measure| measure.value.is_finite()), "{}", path.name);
        let of = |measure: &paths::Measure| format!("{}: {}", path.name, measure.name);
        measures.iter().filter(|measure| measure.is_goal() && !measure.reached()).map(of).collect::<Vec<_>>()
    };
    paths.iter().flat_map(missed).collect()
}

#[test]
fn goals_that_are_missed_are_known() {
    let found = missed(&all());
    let expected: BTreeSet<String> = MISSED.iter().map(|&name| name.to_owned()).collect();
    let new: Vec<_> = found.difference(&expected).collect();
    let gone: Vec<_> = expected.difference(&found).collect();
    assert!(new.is_empty() && gone.is_empty(), "missed now: {new:?}; reached now: {gone:?}");
}

/// What each part of the design is for: a measure with it, and without it.
#[test]
fn each_part_has_its_effect() {
    for (without, path, measure, whole, part) in [
        ("additive_bps=0", "5 flows, 5 Mbit/s, limit", "jain 30-60 s", (0.93, 1.0), (0.2, 0.6)),
        ("growth=0", "lte-drive 101 8", "share", (0.8, 0.9), (0.3, 0.5)),
        ("compete=0", "beside cubic, 300 ms, 6", "share", (0.25, 0.6), (0.0, 0.05)),
        ("loss=0", "policer", "loss", (0.0, 0.05), (0.4, 0.7)),
        ("window_ms=10000", "3g-drive 1.7 seed 101", "score", (0.8, 1.0), (0.05, 0.3)),
        ("jitter_factor=0", "jitter 40 keep", "use", (0.6, 1.0), (0.0, 0.25)),
        ("backlog_ms=100000", "lte-drive 101 8", "score_f", (0.35, 0.6), (0.1, 0.25)),
        ("ecn=0", "steps with DualPI2", "again", (0.8, 1.0), (0.3, 0.6)),
    ] {
        let paths: Vec<_> = all().into_iter().filter(|of| of.name.starts_with(path)).collect();
        assert_eq!(paths.len(), 1, "{path}");
        let value = |config: &[String]| {
            let measures = paths[0].run("drc", config, SEED);
            measures.iter().find(|of| of.name == measure).expect("a measure").value
        };
        within(&format!("{measure} of {path}"), value(&[]), whole.0, whole.1);
        within(&format!("{measure} of {path} with {without}"), value(&[without.to_owned()]), part.0, part.1);
    }
}
