// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suites in a folder of the user: verdicts computed by hand, expected verdicts, and errors.

use super::*;
use crate::results::{Scale, SuiteReport, SuiteTest, SuitesReport, Verdict};
use crate::run::Runner;
use paceline::Registry;
use paceline_scenario::{Changes, ScenarioError};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use tempfile::TempDir;

/// A call of 600 kbit/s over 1 Mbit/s.
const SCENARIO: &str = r#"id = "own/rate"
title = "A constant rate"
duration = "5 s"

[path.forward]
capacity = "1 Mbps"

[[flow]]
id = "call"
controller = "fixed"
encoder = { source = "ideal", max = "1 Mbps" }
config = { rate_bps = 600e3 }

[[assert]]
id = "rate"
metric = "throughput_bps"
flow = "call"
window = ["1 s", "5 s"]
bounds = [580e3, 620e3]
why = "the rate of the controller"

[[assert]]
id = "queue"
metric = "queue_p95_ms"
bounds = [50, inf]
why = "a rate below the capacity has no queue: this bound fails"
"#;

const MANIFEST: &str = "id = \"own\"\ntitle = \"Own\"\nrepeats = 2\nscenarios = [\"rate\"]\n";

/// A folder with a suite, removed at the end.
struct Folder(TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(file, text)| fs::write(folder.path().join(file), text).unwrap());
        Self(folder)
    }

    fn load(&self) -> Result<Suite, ScenarioError> {
        Suite::find(self.0.path().join("own.suite.toml").to_str().unwrap())
    }

    fn run(&self, repeats: Option<u64>) -> Result<SuitesReport, ScenarioError> {
        let registry = Registry::standard();
        let runner = Runner::simulator(&registry);
        run(&runner, &[self.load()?], &[Subject::controller("fixed", &registry)], repeats, None, &|_| ())
            .map(Result::unwrap)
    }
}

#[track_caller]
fn fails<T>(result: Result<T, ScenarioError>, message: &str, hint: &str) {
    let Err(error) = result else { panic!("was accepted") };
    assert!(error.to_string().contains(message), "{error}");
    assert!(error.hint().is_some_and(|help| help.contains(hint)), "{:?}", error.hint());
}

#[test]
fn judges_each_bound_over_all_runs() {
    let folder = Folder::new(&[("own.suite.toml", MANIFEST), ("rate.toml", SCENARIO)]);
    let report = &folder.run(None).unwrap().suites[0];
    assert_eq!((report.id.as_str(), report.repeats, report.tests.len(), report.rows.len()), ("own", 2, 1, 1));
    let [rate, queue] = &report.rows[0].results[0].bounds[..] else { panic!("{report:?}") };
    assert!(rate.pass && !queue.pass);
    let rate = rate.measured.unwrap();
    assert!((595e3..605e3).contains(&rate), "{rate}");
    assert_eq!(report.failed(&report.rows[0]).collect::<Vec<_>>(), ["own/rate: queue"]);
    let passed = report.passed(&report.rows[0]);
    assert_eq!((passed.passed, passed.made, passed.share()), (0, 1, Some(0.0)));
    let utilization = report.rows[0].results[0].utilization.unwrap();
    assert!((0.59..0.61).contains(&utilization), "{utilization}");
}

/// The first case is decided at the first look. In the second one the loss of the link is on the bound: after five seeds more are futile.
#[test]
fn each_test_has_the_seeds_that_its_bounds_need() {
    let path = SCENARIO.split("[[flow]]").next().unwrap();
    let cases = "[[case]]\nlabel = { loss = \"none\" }\n\n[[case]]\nlabel = { loss = \"some\" }\nset = { \"path.forward.loss\" = \"2 %\" }\n\n";
    let bound = "[[assert]]\nid = \"loss\"\nmetric = \"loss_ratio\"\nbounds = [0, 0.02]\nwhy = \"that of the link\"\n";
    let flow = &SCENARIO[path.len()..SCENARIO.find("[[assert]]").unwrap()];
    let scenario = format!("{path}{flow}{cases}{bound}");
    let manifest = MANIFEST.replace("repeats = 2", "repeats = 8");
    let folder = Folder::new(&[("own.suite.toml", &manifest), ("rate.toml", &scenario)]);
    let report = &folder.run(None).unwrap().suites[0];
    let results = &report.rows[0].results;
    let counts: Vec<_> = results.iter().map(|result| (result.runs, result.scores.len())).collect();
    assert_eq!((counts, report.repeats, report.sequential), (vec![(3, 3), (5, 5)], 8, true));
    let verdicts: Vec<_> = report.verdicts(&report.rows[0]).map(|(_, verdict)| verdict).collect();
    assert_eq!((verdicts, report.undecided()), (vec![Verdict::Holds, Verdict::Undecided], 1));
    let fixed = &folder.run(Some(2)).unwrap().suites[0];
    assert_eq!((fixed.rows[0].results[1].runs, fixed.repeats, fixed.sequential), (2, 2, false));

    // Rounds of jobs make the same runs: both cases on three seeds, then one case up to five.
    let registry = Registry::standard();
    let runner = Runner::simulator(&registry);
    let subject = Subject::controller("fixed", &registry);
    let mut runs = SuiteRuns::load(vec![folder.load().unwrap()], vec![subject.clone()], None, &registry).unwrap();
    let mut rounds = Vec::new();
    while let [job] = &runs.jobs(1, Some(9))[..] {
        rounds.push((job.cases.clone(), job.seeds.clone()));
        let made = SuiteRuns::run_job(&runner, &runs.suites()[0], &subject, job).unwrap().unwrap();
        runs.add(job, made, ("sim", None)).unwrap();
    }
    assert_eq!(rounds, [(vec![0, 1], vec![1, 2, 3]), (vec![1], vec![4, 5])]);
    assert_eq!(runs.report("sim").suites[0], *report);

    // Expected verdicts are of the same rule.
    let expected = Expected::of(report, None);
    assert!(expected.is_of(report) && !expected.is_of(&SuiteReport { sequential: false, ..report.clone() }));
    fs::write(folder.0.path().join("own.expected.toml"), expected.text("own")).unwrap();
    assert_eq!(folder.load().unwrap().expected, Some(expected));
}

/// In the first case a bound fails at the first look, though the loss is undecided. The second one needs more seeds: so does the third, to
/// which it refers, but not the first.
#[test]
fn a_test_that_fails_takes_no_more_seeds() {
    let path = SCENARIO.split("[[flow]]").next().unwrap();
    let flow = &SCENARIO[path.len()..SCENARIO.find("[[assert]]").unwrap()];
    let case =
        |is: &str| format!("[[case]]\nlabel = {{ is = \"{is}\" }}\nset = {{ \"path.forward.loss\" = \"2 %\" }}\n\n");
    let bound = |case: &str, id: &str, rest: &str| {
        format!("[[assert]]\nid = \"{id}\"\ncase = {{ is = \"{case}\" }}\nwhy = \"for the test\"\n{rest}\n\n")
    };
    let loss = "metric = \"loss_ratio\"\nbounds = [0, 0.02]";
    let rate = |least: &str| format!("metric = \"throughput_bps\"\nflow = \"call\"\nbounds = [{least}, inf]");
    let beside = "metric = \"loss_ratio\"\nrelative_to = { case = { is = \"beside\" } }\nbounds = [0, 1.01]";
    let scenario = format!("{path}{flow}")
        + &["fails", "open", "beside"].map(case).concat()
        + &bound("fails", "loss", loss)
        + &bound("fails", "rate", &rate("1e6"))
        + &bound("open", "less-loss", beside)
        + &bound("open", "loss", loss)
        + &bound("beside", "rate", &rate("0"));
    let manifest = MANIFEST.replace("repeats = 2", "repeats = 8");
    let folder = Folder::new(&[("own.suite.toml", &manifest), ("rate.toml", &scenario)]);
    let report = &folder.run(None).unwrap().suites[0];
    let runs: Vec<u64> = report.rows[0].results.iter().map(|result| result.runs).collect();
    assert_eq!(runs, [3, 5, 5]);
    let verdicts: Vec<_> = report.verdicts(&report.rows[0]).map(|(_, verdict)| verdict).collect();
    assert_eq!(verdicts[..2], [Verdict::Undecided, Verdict::Fails]);
}

/// Jobs of workers give the report and the rows of one process, and a job has one scenario under one controller.
#[test]
fn jobs_give_the_report_of_one_process() {
    let other = SCENARIO.replace("own/rate", "own/other").replace("5 s\"\n\n[path", "6 s\"\n\n[path");
    let manifest = MANIFEST.replace("[\"rate\"]", "[\"rate\", \"other\"]");
    let files = [("own.suite.toml", &*manifest), ("rate.toml", SCENARIO), ("other.toml", &other)];
    let folder = Folder::new(&files);
    let registry = Registry::standard();
    let runner = Runner::simulator(&registry);
    let subjects = ["fixed", "googcc"].map(|name| Subject::controller(name, &registry)).to_vec();
    let load = || SuiteRuns::load(vec![folder.load().unwrap()], subjects.clone(), Some(&[1, 4, 9]), &registry).unwrap();
    let (mut whole, mut parts) = (load(), load());
    whole.run(&runner, None, &|_| ()).unwrap();
    let jobs = parts.jobs(2, Some(2));
    let seeds: Vec<&[u64]> = jobs.iter().map(|job| &*job.seeds).collect();
    assert_eq!(seeds, [&[1, 4][..], &[1, 4], &[1, 4], &[1, 4], &[9], &[9], &[9], &[9]]);
    assert_eq!(jobs[0].scenario, 1, "the longest job is the first");
    for job in jobs.iter().rev() {
        let runs = SuiteRuns::run_job(&runner, &parts.suites()[0], &subjects[job.subject], job).unwrap().unwrap();
        assert_eq!(runs.len(), job.seeds.len());
        parts.add(job, runs, ("sim", None)).unwrap();
    }
    assert_eq!((parts.jobs(2, None), parts.report("sim")), (vec![], whole.report("sim")));
    assert_eq!(parts.report("sim").suites[0].seeds, [1, 4, 9]);
    let rows = |runs: &SuiteRuns| runs.measured("sim").map(|(_, subject, run)| (subject.name.clone(), run)).collect();
    let (some, all): (Vec<_>, Vec<_>) = (rows(&parts), rows(&whole));
    assert_eq!((some == all, all.len()), (true, 12));
    assert!(all.iter().all(|(_, run)| run.values.len() >= 4 && run.seed != 2));
}

/// Verdicts are compared only with those of as many runs, and both ways.
#[test]
fn compares_verdicts_with_the_expected_ones() {
    let folder = Folder::new(&[("own.suite.toml", MANIFEST), ("rate.toml", SCENARIO)]);
    let report = folder.run(None).unwrap();
    let expected = Expected::of(&report.suites[0], None);
    assert_eq!(expected.changes(&report.suites[0]), []);
    let file = folder.load().unwrap().expected_file.unwrap();
    fs::write(&file, expected.text("own")).unwrap();
    assert_eq!(folder.load().unwrap().expected, Some(expected));
    assert_eq!(folder.run(None).unwrap().suites[0].changed, []);

    fs::write(&file, "repeats = 2\nsequential = true\n[fails]\nfixed = [\"own/rate: rate\"]\n").unwrap();
    let changed = &folder.run(None).unwrap().suites[0].changed;
    let changed: Vec<_> = changed.iter().map(|c| (c.controller.as_str(), c.bound.as_str(), c.verdict)).collect();
    assert_eq!(
        changed,
        [("fixed", "own/rate: queue", Some(Verdict::Fails)), ("fixed", "own/rate: rate", Some(Verdict::Holds))]
    );
    assert_eq!(folder.run(Some(3)).unwrap().suites[0].changed, []);
}

/// Verdicts of controllers that were not judged stay.
#[test]
fn keeps_the_verdicts_of_other_controllers() {
    let folder = Folder::new(&[("own.suite.toml", MANIFEST), ("rate.toml", SCENARIO)]);
    let before = Expected {
        repeats: 2,
        sequential: true,
        fails: [("nada".to_owned(), ["x".to_owned()].into())].into(),
        scale: [("own/rate".to_owned(), (1.5, 7.25))].into(),
    };
    fs::write(folder.0.path().join("own.expected.toml"), before.text("own")).unwrap();
    let report = folder.run(None).unwrap();
    // Points are written with one decimal.
    assert_eq!(report.suites[0].tests[0].scale, Some(Scale { zero: 1.5, hundred: 7.2 }));
    let kept = Expected::of(&report.suites[0], Some(&before));
    assert_eq!(kept.fails.keys().collect::<Vec<_>>(), ["fixed", "nada"]);
    assert_eq!(kept.scale["own/rate"], (1.5, 7.2));
    let other = Expected { repeats: 5, ..before };
    assert_eq!(Expected::of(&report.suites[0], Some(&other)).fails.len(), 1);
}

#[test]
fn rejects_wrong_suites() {
    let load = |manifest: &str| Folder::new(&[("own.suite.toml", manifest), ("rate.toml", SCENARIO)]).load();
    fails(load(&MANIFEST.replace("\"own\"", "\"other\"")), "differs from the name", "id = \"own\"");
    for repeats in ["= 0", "= 41"] {
        fails(load(&MANIFEST.replace("= 2", repeats)), "repeats must be from 1 to 40", "suite --repeats");
        let short = format!("{MANIFEST}short_repeats {repeats}\n");
        fails(load(&short), "short_repeats must be from 1 to 40", "suite --repeats");
    }
    let short = load(&format!("{MANIFEST}short_tests = [\"own/rate\"]\n"));
    fails(short, "`own/rate`, which has no score that counts", "5 points or more");
    assert_eq!(load(&MANIFEST.replace("repeats = 2", "")).unwrap().repeats, 40);
    fails(load(&MANIFEST.replace("\"rate\"", "")), "needs scenarios", "beside the manifest");
    fails(load(&MANIFEST.replace("\"rate\"", "\"rates\"")), "no scenario `rates`", "list scenarios");
    fails(load(&format!("{MANIFEST}seeds = 3\n")), "unknown", "repeats");
}

#[test]
fn rejects_scenarios_without_bounds_or_reasons() {
    let run = |scenario: &str| Folder::new(&[("own.suite.toml", MANIFEST), ("rate.toml", scenario)]).run(Some(1));
    let without = SCENARIO.split("\n[[assert]]").next().unwrap();
    fails(run(without), "needs bounds", "[[assert]]");
    fails(run(&SCENARIO.replace("why = \"the rate of the controller\"", "")), "`rate` has no reason", "why =");
    fails(run(&SCENARIO.replace("the rate of the controller", " ")), "`rate` has no reason", "why =");
}

/// Every suite of the catalogue expects verdicts of as many runs as it makes, and the scale of its scores. Its short form has up to three
/// runs of each test, and the same scale.
#[test]
fn suites_of_the_catalogue_expect_verdicts_and_a_scale() {
    let [all, short] = [ALL, SHORT].map(|name| Suite::find_all(&[name.to_owned()]).unwrap());
    assert!(!all.is_empty() && all.len() == short.len());
    for (all, short) in all.iter().zip(&short) {
        let (expected, of_short) = (all.expected.as_ref().unwrap(), short.expected.as_ref().unwrap());
        assert_eq!((expected.repeats, expected.sequential), (all.repeats, true), "{}", all.id);
        assert!(!expected.fails.is_empty() && !expected.scale.is_empty(), "{}", all.id);
        assert!(
            expected
                .scale
                .values()
                .all(|(zero, hundred)| [zero, hundred].iter().all(|end| (0.0..=100.0).contains(*end)))
        );
        assert!(of_short.fails.is_empty() && of_short.scale == expected.scale && short.repeats <= 3, "{}", all.id);
        let again = Suite::find(&short.own_name(SHORT)).unwrap();
        assert_eq!((again.repeats, &again.tests), (short.repeats, &short.tests));
        assert!(all.tests.is_none() && short.tests.as_ref().is_some_and(|tests| tests.len() >= 4), "{}", all.id);
    }
    assert!(short.iter().any(|suite| suite.repeats == 1) && short.iter().any(|suite| suite.repeats == 3));
}

/// With the committed mean scores, each controller has about the same score of the possible over the tests of a short suite as over all. The
/// numbers of runs of short suites are such that the rest of the error is smaller.
#[test]
fn short_suites_have_about_the_means_of_all_tests() {
    let mut worst = 0.0_f64;
    for suite in Suite::find_all(&[ALL.to_owned()]).unwrap() {
        let table = format!("{}/../../scoreboard/suites/{}.txt", env!("CARGO_MANIFEST_DIR"), suite.id);
        let table = fs::read_to_string(table).unwrap();
        let mut sums: BTreeMap<&str, [[f64; 2]; 2]> = BTreeMap::new();
        for line in table.lines() {
            let [controller, test, _, _, score, _, _] = line.split('\t').collect::<Vec<_>>()[..] else { continue };
            let Some(ends) = suite.expected.as_ref().unwrap().scale.get(test) else { continue };
            let (Scale { zero, hundred }, Ok(score)) = (Scale::from(*ends), score.parse::<f64>()) else { continue };
            let is_in = [hundred - zero >= 5.0, suite.short_tests.contains(test)];
            for (sums, _) in sums.entry(controller).or_default().iter_mut().zip(is_in).filter(|(_, is_in)| *is_in) {
                *sums = [sums[0] + score.min(hundred) - zero, sums[1] + hundred - zero];
            }
        }
        assert!(sums.len() >= 25, "{}", suite.id);
        for (controller, [all, short]) in sums {
            let difference = 100.0 * (short[0] / short[1] - all[0] / all[1]);
            assert!(difference.abs() <= 3.5, "{controller} in {}: {difference}", suite.id);
            worst = worst.max(difference.abs());
        }
    }
    assert!(worst > 0.5, "tests are left out: {worst}");
}

/// A short suite has its tests alone, also in jobs for other processes.
#[test]
fn tests_of_a_short_suite_are_run_alone() {
    let registry = Registry::standard();
    let (suite, subject) = (Suite::find("rfc8867:short").unwrap(), Subject::controller("fixed", &registry));
    let mut runs = SuiteRuns::load(vec![suite.clone()], vec![subject.clone()], None, &registry).unwrap();
    let tests = |runs: &SuiteRuns| runs.report("sim").suites[0].tests.iter().map(SuiteTest::name).collect::<Vec<_>>();
    let names = tests(&runs);
    assert!(
        names.iter().collect::<BTreeSet<_>>() == suite.short_tests.iter().collect() && names.len() == 35,
        "{names:?}"
    );
    let jobs = runs.jobs(1, None);
    assert_eq!(jobs.iter().map(|job| job.cases.len() * job.seeds.len()).sum::<usize>(), 35);
    let job = jobs.iter().find(|job| suite.scenarios[job.scenario].argument() == "rfc8867/5.3-udp").unwrap();
    let runner = Runner::simulator(&registry);
    let made = SuiteRuns::run_job(&runner, &suite, &subject, job).unwrap().unwrap();
    let [SuiteRun { case: 0, seed: 1, trace_hash, .. }] = &made[..] else { panic!("{made:?}") };
    let case = "queue=drop-tail".parse().unwrap();
    let scenario = subject.scenario(&suite.scenarios[job.scenario], &Changes { case, ..Changes::default() }, &registry);
    assert_eq!(runner.run(&scenario.unwrap().unwrap(), 1, None).unwrap().trace_hash, *trace_hash);
    runs.add(job, made, ("sim", None)).unwrap();
    assert_eq!(runs.jobs(1, None).len(), jobs.len() - 1);
}
