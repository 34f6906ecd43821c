//! Variants of one experiment, and what a paper leaves open: what applies where, which of two holds, what is refused.

use paceline::Registry;
use paceline_lab::plan::{Plan, Reference, SourcePlan};
use paceline_lab::reproduce::Experiment;
use paceline_lab::scenario::{Catalogue, Changes, Label, Origin, Problem, is_scenario, load, load_cases};
use paceline_lab::stats::Statistic;
use paceline_units::{Time, TimeDelta};
use std::fs;
use std::path::{Path, PathBuf};

const SCENARIO: &str = r#"id = "test/cases"
title = "Two thresholds"
duration = "60s"
constants = "constants.toml"

[path.forward]
capacity = "1Mbps"
queue = { limit = "150ms" }

[[flow]]
id = "video"
controller = "gcc-2016"

[[case]]
label = { threshold = "static", rtt = "50ms" }
set = { "flow.video.controller" = "gcc-2016-static", "flow.video.config.gamma_0" = 30 }

[[case]]
label = { threshold = "adaptive", rtt = "50ms" }

[[expect]]
metric = "rtt_p95_ms"
case = { threshold = "static" }
published = 187
tolerance = 10
why = "read off a figure"
claim = "adaptive-cuts-the-tail"
note = "the encoder"
moved_by = ["flow.video.encoder.size_noise=0"]

[[expect]]
metric = "utilization"
published = 0.9

[[assert]]
id = "adaptive-cuts-the-tail"
metric = "rtt_p95_ms"
case = { threshold = "adaptive" }
over = { case = { threshold = "static" } }
bounds = [0, 0.8]
"#;

const CONSTANTS: &str = r#"paper = "test"
seed = ["frame sizes"]

[[constant]]
id = "noise"
key = "media.encoder.size_noise"
value = 0.05
range = [0.0, 0.2]
why = "the paper says nothing"

[[constant]]
id = "limit"
key = "path.forward.queue.limit"
value = "300ms"
range = ["200ms", "400ms"]
why = "the paper says nothing"

[[constant]]
id = "delay"
key = "path.forward.delay"
value = "25ms"
range = ["20ms", "30ms"]
why = "the paper says nothing"

[[constant]]
id = "gain"
key = "media.config.k_u"
value = 0.02
range = [0.01, 0.03]
why = "the paper says nothing"

[[constant]]
id = "window"
key = "tcp.receive_window"
value = "4 MB"
range = ["1 MB", "6 MB"]
why = "the paper says nothing"
"#;

/// A folder with these two files, and the scenario's path.
fn folder(name: &str, scenario: &str, constants: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cases-{name}"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("constants.toml"), constants).unwrap();
    let path = folder.join("scenario.toml");
    fs::write(&path, scenario).unwrap();
    path
}

fn origin(name: &str, scenario: &str, constants: &str) -> Origin {
    Catalogue.find(folder(name, scenario, constants).to_str().unwrap()).unwrap()
}

fn label(pairs: &[&str]) -> Label {
    pairs.iter().fold(Label::default(), |l, p| l.with(&p.parse().unwrap()))
}

fn changes(case: &[&str], settings: &[&str], controller: Option<&str>) -> Changes {
    let settings = settings.iter().map(|s| s.parse().unwrap()).collect();
    Changes { case: label(case), settings, controller: controller.map(str::to_owned), constants: Vec::new() }
}

#[track_caller]
fn plan(origin: &Origin, changes: &Changes) -> Plan {
    load(origin, changes, &Registry::standard()).unwrap_or_else(|p| panic!("{p}: {:?}", p.offending()))
}

fn noise(plan: &Plan) -> f64 {
    match &plan.flows[0].media().unwrap().streams[0].source {
        SourcePlan::Encoder(c) => c.size_scale,
        other => panic!("{other:?}"),
    }
}

fn config(plan: &Plan) -> &[(String, f64)] {
    &plan.flows[0].media().unwrap().controller.config
}

#[test]
fn a_case_sets_what_it_says_and_carries_its_own_values() {
    let origin = origin("own", SCENARIO, CONSTANTS);
    let plans = load_cases(&origin, &Changes::default(), &Registry::standard()).unwrap();
    let [fixed, adaptive] = plans.as_slice() else { panic!("two cases") };
    assert_eq!(fixed.case, label(&["threshold=static", "rtt=50ms"]));
    assert_eq!(fixed.flows[0].control(), "gcc-2016-static");
    assert!(config(fixed).contains(&("gamma_0".to_owned(), 30.0)));
    assert_eq!(adaptive.flows[0].control(), "gcc-2016");
    // The first value is of the static case alone, the second of both; the bound is of the other, over this.
    assert_eq!((fixed.expects.len(), fixed.asserts.len(), fixed.references.len()), (2, 0, 1));
    assert_eq!((adaptive.expects.len(), adaptive.asserts.len(), adaptive.references.len()), (1, 1, 0));
    let expect = &fixed.expects[0];
    assert_eq!((expect.published, expect.tolerance), (187.0, Some(10.0)));
    assert_eq!(expect.claim.as_deref(), Some("adaptive-cuts-the-tail"));
    assert_eq!(expect.remark.moved_by, ["flow.video.encoder.size_noise=0"]);
    let Some(Reference::Elsewhere { case, key }) = &adaptive.asserts[0].over else { panic!("over the other case") };
    assert_eq!((case, fixed.references[key].metric.as_str()), (&fixed.case, "rtt_p95_ms"));
    // As written is the case that sets nothing.
    assert_eq!(plan(&origin, &Changes::default()).case, adaptive.case);
    assert_eq!(plan(&origin, &changes(&["threshold=static"], &[], None)).case, fixed.case);
    assert!(plans.iter().all(|p| p.notes.iter().any(|n| n.contains("paceline reproduce"))));
}

#[test]
fn a_run_that_is_set_shorter_leaves_out_what_lies_beyond() {
    let windows = SCENARIO.replace("bounds = [0, 0.8]", "bounds = [0, 0.8]\nwindow = [\"0s\", \"60s\"]");
    let origin = origin("shorter", &windows, CONSTANTS);
    let of = |duration: &str| plan(&origin, &changes(&[], &[duration], None));
    assert_eq!((of("duration=60s").asserts.len(), of("duration=60s").expects.len()), (1, 1));
    let short = of("duration=59s");
    assert_eq!((short.asserts.len(), short.expects.len()), (0, 1));
    assert!(short.notes.iter().any(|n| n.starts_with("1 of its published values and bounds lie beyond")));
    // The reference of what was left out is left out too.
    assert!(plan(&origin, &changes(&["threshold=static"], &["duration=59s"], None)).references.is_empty());
    // As written it must fit.
    let complaint = load(
        &self::origin("short", &windows.replace("duration = \"60s\"", "duration = \"59s\""), CONSTANTS),
        &Changes::default(),
        &Registry::standard(),
    );
    assert!(complaint.unwrap_err().to_string().contains("within the run"));
}

#[test]
fn constants_apply_where_nothing_is_written() {
    let origin = origin("apply", SCENARIO, CONSTANTS);
    let plan_of = |case: &[&str], settings: &[&str], controller| plan(&origin, &changes(case, settings, controller));
    let plain = plan_of(&[], &[], None);
    assert_eq!(noise(&plain), 0.05);
    assert_eq!(*plain.hops[0].delay.at(Time::ZERO), TimeDelta::from_millis(25));
    assert_eq!(config(&plain), [("k_u".to_owned(), 0.02)]);
    // The scenario writes the limit itself; there is no TCP flow.
    let limit = format!("{:?}", plain.hops[0].queue);
    assert!(limit.contains(&format!("{:?}", TimeDelta::from_millis(150))), "{limit}");
    let applied: Vec<(&str, bool)> = plain.constants.iter().map(|c| (c.id.as_str(), c.applied)).collect();
    assert_eq!(applied, [("noise", true), ("limit", false), ("delay", true), ("gain", true), ("window", false)]);
    assert!(
        plain.notes.iter().any(|n| n.starts_with("assumed, as test does not say: media.encoder.size_noise = 0.05"))
    );
    // --set comes after constants, and so does a case.
    assert_eq!(noise(&plan_of(&[], &["flow.video.encoder.size_noise=0.3"], None)), 0.3);
    let sets = SCENARIO.replace("gamma_0\" = 30", "k_u\" = 0.005");
    let origin = self::origin("sets", &sets, CONSTANTS);
    assert_eq!(config(&plan(&origin, &changes(&["threshold=static"], &[], None))), [("k_u".to_owned(), 0.005)]);
    // Another controller that does not know the number does without; one that does has it.
    assert!(config(&plan(&origin, &changes(&[], &[], Some("fixed")))).is_empty());
    let other = plan(&origin, &changes(&[], &[], Some("gcc-2016-guarded")));
    assert_eq!(config(&other), [("k_u".to_owned(), 0.02)]);
    // What `media.` means is found after the settings before it: only the second controller knows the number.
    let sets = ["flow.video.controller=gcc-2016-guarded", "media.config.k_u=0.03"];
    let fixed = self::origin("fixed", &SCENARIO.replace("\"gcc-2016\"", "\"fixed\""), CONSTANTS);
    assert_eq!(config(&plan(&fixed, &changes(&[], &sets, None))), [("k_u".to_owned(), 0.03)]);
    let swapped = load(&fixed, &changes(&[], &[sets[1], sets[0]], None), &Registry::standard());
    assert!(swapped.unwrap_err().to_string().contains("no flow reads"));
    // The end of a range instead.
    let end = Changes { constants: vec![("noise".to_owned(), "0.2".to_owned())], ..Changes::default() };
    assert_eq!(noise(&plan(&origin, &end)), 0.2);
    let end = Changes { constants: vec![("delay".to_owned(), "\"30ms\"".to_owned())], ..Changes::default() };
    assert_eq!(*plan(&origin, &end).hops[0].delay.at(Time::ZERO), TimeDelta::from_millis(30));
}

#[test]
fn constants_keep_off_what_does_not_read_them() {
    let streams = "[[flow.stream]]\nid = \"a\"\nencoder = { source = \"ideal\" }\n[[flow.stream]]\nid = \"b\"\nencoder = {}\n\n[[case]]";
    let text = SCENARIO.replacen("[[case]]", streams, 1);
    let plan = plan(&origin("streams", &text, CONSTANTS), &Changes::default());
    assert!(matches!(&plan.flows[0].media().unwrap().streams[0].source, SourcePlan::Ideal(_)));
    let SourcePlan::Encoder(b) = &plan.flows[0].media().unwrap().streams[1].source else { panic!("an encoder") };
    assert_eq!(b.size_scale, 0.05);
    // A way at length has no short form beside it.
    let hops = "[path.forward]\nhops = [{ id = \"a\", capacity = \"1Mbps\" }]\n";
    let text = SCENARIO.replace("[path.forward]\ncapacity = \"1Mbps\"\nqueue = { limit = \"150ms\" }\n", hops);
    let plan = self::plan(&origin("hops", &text, CONSTANTS), &Changes::default());
    assert!(plan.constants.iter().all(|c| c.applied == (c.id == "noise" || c.id == "gain")));
}

#[test]
fn a_bound_may_be_on_the_lowest_or_the_highest_of_the_runs() {
    let bound = |runs: &str| {
        format!("{SCENARIO}\n[[assert]]\nid = \"all\"\nmetric = \"jain\"\nbounds = [0, 1]\nruns = \"{runs}\"\n")
    };
    for (name, statistic) in Statistic::NAMES {
        let plan = plan(&origin("runs", &bound(name), CONSTANTS), &Changes::default());
        assert_eq!(plan.asserts.iter().find(|a| a.id == "all").map(|a| a.runs), Some(statistic));
    }
    let problem = complaint("runs", &bound("lowst"), CONSTANTS, &Changes::default());
    assert_eq!(problem.offending(), Some("\"lowst\""));
    assert!(problem.hint().is_some_and(|hint| hint.contains("`lowest`")), "{:?}", problem.hint());
}

#[test]
fn every_shipped_case_and_every_change_that_moves_a_value_can_be_run() {
    let registry = Registry::standard();
    for id in Catalogue.ids() {
        let origin = Catalogue.find(id).unwrap();
        let experiment = Experiment::load(&origin, &[], &registry).and_then(|e| e.with_changes(&origin, &registry));
        let experiment = experiment.unwrap_or_else(|p| panic!("{id}: {p}: {:?}", p.offending()));
        // At both ends of what is assumed, too.
        for constant in &experiment.cases[0].constants {
            for end in [&constant.range.0, &constant.range.1] {
                let other = Experiment::load(&origin, &[(constant.id.clone(), end.clone())], &registry);
                other.unwrap_or_else(|p| panic!("{id} with {} = {end}: {p}", constant.id));
            }
        }
    }
}

#[test]
fn constants_sweeps_and_formulas_are_no_scenarios() {
    assert!(is_scenario("mmsys16/table1.toml") && !is_scenario("mmsys16/constants.toml"));
    assert!(!is_scenario("mmsys16/fig8.sweep.toml") && !is_scenario("uottawa15/table2.formula.toml"));
    assert!(Catalogue.ids().all(|id| !id.ends_with("constants")));
}

fn complaint(name: &str, scenario: &str, constants: &str, changes: &Changes) -> Problem {
    match load_cases(&origin(name, scenario, constants), changes, &Registry::standard()) {
        Err(problem) => problem,
        Ok(_) => panic!("{name} was accepted"),
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    // What is written instead of what, what is underlined, and parts of message and hint.
    for (name, written, instead, offending, message, hint) in [
        (
            "no such case",
            "case = { threshold = \"static\" }\npublished",
            "case = { threshold = \"fixed\" }\npublished",
            "{ threshold = \"fixed\" }",
            "no case is `threshold=fixed`",
            "`rtt=50ms threshold=static`",
        ),
        (
            "no such reference",
            "over = { case = { threshold = \"static\" } }",
            "over = { case = { queue = \"1\" } }",
            "{ queue = \"1\" }",
            "no case is `queue=1`",
            "cases: ",
        ),
        (
            "over itself",
            "over = { case = { threshold = \"static\" } }",
            "over = { case = { threshold = \"adaptive\" } }",
            "{ threshold = \"adaptive\" }",
            "divided by itself",
            "cases: ",
        ),
        (
            "over nothing",
            "over = { case = { threshold = \"static\" } }",
            "over = {}",
            "{}",
            "the reference is the value itself",
            "`metric`",
        ),
        (
            "unknown claim",
            "claim = \"adaptive-cuts-the-tail\"",
            "claim = \"cuts-the-tail\"",
            "\"cuts-the-tail\"",
            "no [[assert]] has the id `cuts-the-tail`",
            "`adaptive-cuts-the-tail`",
        ),
        ("tolerance without why", "why = \"read off a figure\"\n", "", "10", "is argued", "add why"),
        ("why without tolerance", "tolerance = 10\n", "", "\"read off a figure\"", "there is none", "`note`"),
        ("tolerance of nothing", "tolerance = 10", "tolerance = 0", "0", "above 0", "unit"),
        (
            "no change",
            "moved_by = [\"flow.video.encoder.size_noise=0\"]",
            "moved_by = [\"less noise\"]",
            "\"less noise\"",
            "not KEY=VALUE",
            "--set",
        ),
        (
            "two cases of one label",
            "label = { threshold = \"adaptive\", rtt",
            "label = { threshold = \"static\", rtt",
            "{ threshold = \"static\", rtt = \"50ms\" }",
            "two cases are called",
            "one of its own",
        ),
        (
            "a case of no label",
            "label = { threshold = \"adaptive\", rtt = \"50ms\" }",
            "label = {}",
            "{}",
            "tells it from the others",
            "threshold",
        ),
        ("a label of numbers", "rtt = \"50ms\" }\nset", "rtt = 50 }\nset", "50", "a string", "\"50\""),
        (
            "a case without a label",
            "label = { threshold = \"adaptive\", rtt = \"50ms\" }",
            "",
            "[[case]]",
            "missing field `label`",
            "threshold",
        ),
        (
            "a key without quotes",
            "\"flow.video.config.gamma_0\" = 30",
            "flow.video.config.gamma_0 = 30",
            "",
            "whole table",
            "in quotes",
        ),
        (
            "a flow that is not there",
            "\"flow.video.controller\"",
            "\"flow.vido.controller\"",
            "\"gcc-2016-static\"",
            "no element `vido`",
            "`video`",
        ),
        (
            "a controller that is not there",
            "gcc-2016-static",
            "gcc-2016-statik",
            "\"gcc-2016-statik\"",
            "no controller",
            "includes the case",
        ),
        ("unknown key of a reference", "over = { case", "over = { cases", "cases", "unknown key `cases`", "`case`"),
        (
            "unknown metric of a reference",
            "over = { case",
            "over = { metric = \"rtt\", case",
            "\"rtt\"",
            "no metric `rtt`",
            "rtt_p95_ms",
        ),
    ] {
        assert!(SCENARIO.contains(written), "{name}: {written}");
        let problem = complaint("broken", &SCENARIO.replacen(written, instead, 1), CONSTANTS, &Changes::default());
        let (said, help) = (problem.to_string(), problem.hint().unwrap_or_default());
        assert!(said.contains(message) && help.contains(hint), "{name}: {said} / {help}");
        let underlined = problem.offending().unwrap_or_default();
        assert!(offending.is_empty() || underlined == offending, "{name}: {underlined}");
    }
    for (name, written, instead, message, hint) in [
        ("no seeds", "seed = [\"frame sizes\"]", "", "what a seed randomises", "add seed"),
        ("two of one name", "id = \"limit\"", "id = \"noise\"", "two constants are called `noise`", "of its own"),
        (
            "two of one key",
            "key = \"path.forward.delay\"",
            "key = \"path.forward.queue.limit\"",
            "already stands",
            "one constant",
        ),
        (
            "one key in other words",
            "key = \"path.forward.delay\"",
            "key = \"flow.video.encoder.size_noise\"",
            "says what `noise` says in other words",
            "one constant",
        ),
        ("a value outside its range", "value = 0.05", "value = 0.5", "around the value", "0.5"),
        (
            "a range of another type",
            "range = [\"200ms\", \"400ms\"]",
            "range = [0.2, 0.4]",
            "around the value",
            "300ms",
        ),
        ("no reason", "why = \"the paper says nothing\"", "why = \"\"", "is argued", "source"),
        ("no range", "range = [0.0, 0.2]\n", "", "missing field `range`", "add `range"),
        ("an empty part", "media.encoder.size_noise", "media..size_noise", "empty", "media.encoder.size_noise"),
        ("an unknown key", "paper = \"test\"", "paper = \"test\"\npapers = 1", "unknown key `papers`", "`paper`"),
        (
            "an unknown key of scenarios",
            "media.encoder.size_noise",
            "media.encodr.size_noise",
            "unknown key `encodr`",
            "includes the constant flow.0.encodr.size_noise=0.05",
        ),
        ("a wrong unit", "value = \"25ms\"", "value = \"25 msec\"", "is not a time", "includes the constant"),
    ] {
        assert!(CONSTANTS.contains(written), "{name}: {written}");
        let problem = complaint("constants", SCENARIO, &CONSTANTS.replacen(written, instead, 1), &Changes::default());
        let (said, help) = (problem.to_string(), problem.hint().unwrap_or_default());
        assert!(said.contains(message) && help.contains(hint), "{name}: {said} / {help}");
    }
    let problem = complaint("file", &SCENARIO.replace("constants.toml", "none.toml"), CONSTANTS, &Changes::default());
    assert!(problem.to_string().contains("cannot read") && problem.offending() == Some("\"none.toml\""), "{problem}");
    // What is wrong without the constants too is shown at the line where it was written.
    let problem = complaint("line", &SCENARIO.replace("\"60s\"", "\"0s\""), CONSTANTS, &Changes::default());
    assert_eq!((problem.line(), problem.offending()), (Some(3), Some("\"0s\"")));
    let refuse = |case: &[&str]| {
        let problem = load(&origin("which", SCENARIO, CONSTANTS), &changes(case, &[], None), &Registry::standard());
        problem.map(|_| ()).unwrap_err().to_string()
    };
    assert!(refuse(&["threshold=fixed"]).contains("no case `threshold=fixed`"));
    assert!(refuse(&["rtt=50ms"]).contains("several cases"));
}
