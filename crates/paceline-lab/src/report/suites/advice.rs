//! Which controller to choose for which paths, computed from the results of suites.
//!
//! For a family of paths it is the controller that keeps most bounds; among equals, that with the shorter queue. If the path is not
//! known, it is the controller whose worst family is best. Faulty controllers and oracles are left out.

use super::pareto::{Point, families};
use crate::results::{Held, RowKind, SuitesReport};

/// The choice for a family of paths.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The family.
    pub family: String,
    /// The controller that keeps most bounds.
    pub best: String,
    /// Its bounds.
    pub held: Held,
    /// The points of the front, from the shortest queue to the highest utilisation; empty for paths that share a medium.
    pub front: Vec<Point>,
}

/// Returns the choice for each family of paths; nothing for fewer than two controllers.
pub fn choices(report: &SuitesReport) -> Vec<Choice> {
    let names = controllers(report);
    if names.len() < 2 {
        return Vec::new();
    }
    let of_family = |(family, points): (String, Vec<Point>)| {
        let queue = |name: &str| points.iter().find(|p| p.name == name).map_or(f64::INFINITY, |p| p.queue_ms);
        let held = |name: &&str| held(report, name, &family);
        let share = |name: &&str| held(name).share().unwrap_or(0.0);
        let better = |a: &&&str, b: &&&str| share(a).total_cmp(&share(b)).then(queue(b).total_cmp(&queue(a)));
        let best = names.iter().max_by(better)?;
        let mut front: Vec<Point> = points.iter().filter(|p| p.on_front).cloned().collect();
        front.sort_by(|a, b| a.queue_ms.total_cmp(&b.queue_ms));
        Some(Choice { held: held(best), best: (*best).to_owned(), front, family })
    };
    families(report).into_iter().filter_map(of_family).collect()
}

/// Returns the controller whose lowest share over the families is highest, with that share. Among equals, that with the highest share
/// over all suites.
pub fn unknown_path(report: &SuitesReport) -> Option<(String, f64)> {
    let families: Vec<String> = families(report).into_iter().map(|(family, _)| family).collect();
    let shares =
        |name: &str| families.iter().filter_map(|family| held(report, name, family).share()).collect::<Vec<_>>();
    let lowest = |name: &str| shares(name).into_iter().fold(1.0, f64::min);
    let mean = |name: &str| shares(name).iter().sum::<f64>();
    let better = |a: &&str, b: &&str| lowest(a).total_cmp(&lowest(b)).then(mean(a).total_cmp(&mean(b)));
    let names = controllers(report);
    let best = names.into_iter().max_by(better).filter(|_| families.len() > 1)?;
    Some((best.to_owned(), lowest(best)))
}

/// Returns the choices as sentences, one for each family, and one for paths that are not known.
pub fn sentences(report: &SuitesReport) -> Vec<String> {
    let point = |p: &Point| format!("{} ({:.0} % at {:.0} ms)", p.name, p.utilization * 100.0, p.queue_ms);
    let of_family = |choice: &Choice| {
        let Choice { family, best, held, front } = choice;
        let mut text = format!("{family}: {best} keeps most bounds, {} of {}.", held.held, held.all);
        match front.as_slice() {
            [] => {}
            [only] => text += &format!(" The front is {} alone.", point(only)),
            [shortest, .., fullest] => {
                text += &format!(
                    " On the front, the shortest queue is that of {}, the highest utilisation that of {}.",
                    point(shortest),
                    point(fullest)
                );
            }
        }
        text
    };
    let choices = choices(report);
    let unknown = unknown_path(report).filter(|_| !choices.is_empty()).map(|(name, lowest)| {
        format!(
            "A path that is not known: {name}. It keeps at least {:.0} % of the bounds of each family.",
            lowest * 100.0
        )
    });
    choices.iter().map(of_family).chain(unknown).collect()
}

fn controllers(report: &SuitesReport) -> Vec<&str> {
    let rows = report.suites.first().map_or(&[][..], |suite| &suite.rows);
    rows.iter().filter(|row| row.kind == RowKind::Controller).map(|row| row.controller.as_str()).collect()
}

fn held(report: &SuitesReport, controller: &str, family: &str) -> Held {
    let suites = report.suites.iter().filter(|suite| suite.family == family);
    let rows = suites
        .flat_map(|suite| suite.rows.iter().filter(|row| row.controller == controller).map(move |row| (suite, row)));
    rows.map(|(suite, row)| suite.held(row)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{BoundResult, Judgement, SuiteBound, SuiteReport, SuiteRow, SuiteTest, TestResult, Verdict};

    fn result(pass: bool) -> BoundResult {
        let verdict = if pass { Verdict::Holds } else { Verdict::Fails };
        BoundResult { pass, judgement: Judgement { verdict, further_runs: None }, ..BoundResult::default() }
    }

    /// A controller: kind, how many of four bounds it keeps, utilisation and queue.
    type Row = (&'static str, RowKind, usize, f64, f64);

    fn suite(family: &str, rows: &[Row]) -> SuiteReport {
        let bounds = (0..4).map(|n| SuiteBound { id: n.to_string(), ..SuiteBound::default() }).collect();
        let row = |(name, kind, kept, utilization, queue): &Row| SuiteRow {
            controller: (*name).to_owned(),
            kind: *kind,
            results: vec![TestResult {
                utilization: Some(*utilization),
                queue_p95_ms: Some(*queue),
                bounds: (0..4).map(|n| result(n < *kept)).collect(),
                ..TestResult::default()
            }],
        };
        SuiteReport {
            family: family.to_owned(),
            tests: vec![SuiteTest { bounds, ..SuiteTest::default() }],
            rows: rows.iter().map(row).collect(),
            ..SuiteReport::default()
        }
    }

    /// `full` keeps most on wired paths, `short` on Wi-Fi. `both` is never best, but its worst family, 3 of 4, is better than those of the
    /// other two. Faulty controllers and oracles are no choice.
    #[test]
    fn a_family_has_its_best_and_an_unknown_path_the_best_worst() {
        let report = SuitesReport {
            suites: vec![
                suite(
                    "wired",
                    &[
                        ("full", RowKind::Controller, 4, 0.9, 50.0),
                        ("short", RowKind::Controller, 1, 0.5, 5.0),
                        ("both", RowKind::Controller, 3, 0.8, 60.0),
                        ("oracle", RowKind::Oracle, 4, 1.0, 0.0),
                    ],
                ),
                suite(
                    "wifi",
                    &[
                        ("full", RowKind::Controller, 1, 0.9, 50.0),
                        ("short", RowKind::Controller, 4, 0.5, 5.0),
                        ("both", RowKind::Controller, 3, 0.8, 30.0),
                        ("oracle", RowKind::Oracle, 4, 1.0, 0.0),
                    ],
                ),
            ],
        };
        let best: Vec<(String, String)> = choices(&report).into_iter().map(|c| (c.family, c.best)).collect();
        assert_eq!(best, [("wired".into(), "full".into()), ("wifi".into(), "short".into())]);
        assert_eq!(unknown_path(&report), Some(("both".to_owned(), 0.75)));
        let text = sentences(&report).join("\n");
        assert!(text.contains("wired: full keeps most bounds, 4 of 4."), "{text}");
        assert!(
            text.contains("shortest queue is that of short (50 % at 5 ms), the highest utilisation that of full (90 %"),
            "{text}"
        );
        assert!(text.ends_with("not known: both. It keeps at least 75 % of the bounds of each family."), "{text}");
    }

    #[test]
    fn among_equals_the_shorter_queue_is_chosen_and_one_controller_is_no_choice() {
        let rows: [Row; 2] = [("long", RowKind::Controller, 3, 0.9, 50.0), ("short", RowKind::Controller, 3, 0.9, 5.0)];
        let of = |rows: &[Row]| choices(&SuitesReport { suites: vec![suite("wired", rows)] });
        assert_eq!(of(&rows)[0].best, "short");
        assert!(of(&rows[..1]).is_empty());
    }
}
