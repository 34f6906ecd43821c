//! Delivery-rate control in closed loop: which goals of its training set it reaches, and which it does not.

mod paths;

use crate::fixtures::within;
use std::collections::BTreeSet;

/// The goals that are missed with the seed below. One more is a step back; one less belongs on the page `docs/algorithms/drc.md`.
const MISSED: &[&str] = &[
    "50 Mbit/s, 1 s: queue",
    "beside cubic, 6 Mbit/s, limit = \"60 ms\": share",
    "beside bbr, 6 Mbit/s, limit = \"300 ms\": share",
    "steps with DualPI2: first",
    "lte-drive 1.7 seed 101: score",
    "lte-drive 1.7 seed 102: score",
];

/// The first of the seeds of the page.
const SEED: u64 = 1001;

/// Returns the measures that miss their goals.
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
    let found = missed(&paths::all(&paths::TRAINING));
    let expected: BTreeSet<String> = MISSED.iter().map(|&name| name.to_owned()).collect();
    let new: Vec<_> = found.difference(&expected).collect();
    let gone: Vec<_> = expected.difference(&found).collect();
    assert!(new.is_empty() && gone.is_empty(), "missed now: {new:?}; reached now: {gone:?}");
}

/// What each part of the design is for: a measure with it, and without it.
#[test]
fn each_part_has_its_effect() {
    for (without, path, measure, whole, part) in [
        ("additive_bps=0", "5 flows, 5 Mbit/s, limit", "jain 30-60 s", (0.95, 1.0), (0.2, 0.6)),
        ("growth=0", "start 5", "rate after 3 s", (0.85, 1.0), (0.05, 0.3)),
        ("compete=0", "beside cubic, 6 Mbit/s, limit = \"300", "share", (0.3, 0.667), (0.0, 0.05)),
        ("loss=0", "policer", "loss", (0.0, 0.08), (0.4, 0.7)),
        ("window_ms=10000", "3g-drive 1.7 seed 101", "score", (0.6, 1.0), (0.05, 0.45)),
    ] {
        let paths: Vec<_> = paths::all(&paths::TRAINING).into_iter().filter(|of| of.name.starts_with(path)).collect();
        assert_eq!(paths.len(), 1, "{path}");
        let value = |config: &[String]| {
            let measures = paths[0].run("drc", config, SEED);
            measures.iter().find(|of| of.name == measure).expect("a measure").value
        };
        within(&format!("{measure} of {path}"), value(&[]), whole.0, whole.1);
        within(&format!("{measure} of {path} with {without}"), value(&[without.to_owned()]), part.0, part.1);
    }
}
