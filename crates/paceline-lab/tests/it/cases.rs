// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cases of an experiment and assumed constants: which layer holds, and the errors of wrong ones.

use crate::fixtures::{check_errors, registry};
use paceline_lab::judge::Experiment;
use paceline_netsim::plan::SourcePlan;
use paceline_netsim::records::Statistic;
use paceline_scenario::{
    Catalogue, Changes, Label, Origin, Reference, Scenario, ScenarioError, is_scenario, load, load_cases,
};
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
reproduced_with = ["flow.video.encoder.size_noise=0"]

[[expect]]
metric = "utilization"
published = 0.9

[[assert]]
id = "adaptive-cuts-the-tail"
metric = "rtt_p95_ms"
case = { threshold = "adaptive" }
relative_to = { case = { threshold = "static" } }
bounds = [0, 0.8]
"#;

const CONSTANTS: &str = r#"paper = "test"
seed = ["frame sizes"]

[[constant]]
id = "noise"
key = "media.encoder.size_noise"
value = 0.05
range = [0.0, 0.2]
why = "the paper gives no value"

[[constant]]
id = "limit"
key = "path.forward.queue.limit"
value = "300ms"
range = ["200ms", "400ms"]
why = "the paper gives no value"

[[constant]]
id = "delay"
key = "path.forward.delay"
value = "25ms"
range = ["20ms", "30ms"]
why = "the paper gives no value"

[[constant]]
id = "gain"
key = "media.config.k_u"
value = 0.02
range = [0.01, 0.03]
why = "the paper gives no value"

[[constant]]
id = "window"
key = "tcp.receive_window"
value = "4 MB"
range = ["1 MB", "6 MB"]
why = "the paper gives no value"
"#;

/// Writes both files into a folder, and returns the path of the scenario.
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
fn plan(origin: &Origin, changes: &Changes) -> Scenario {
    load(origin, changes, paceline_lab::registries(registry())).unwrap_or_else(|p| panic!("{p}: {:?}", p.offending()))
}

/// Returns the noise on frame sizes of an encoder, from the text of its configuration.
fn size_noise(source: &SourcePlan) -> f64 {
    let text = format!("{:?}", source.config);
    let (_, rest) = text.split_once("size_noise: ").unwrap_or_else(|| panic!("{text}"));
    rest.split(',').next().unwrap().parse().unwrap()
}

fn noise(plan: &Scenario) -> f64 {
    size_noise(&plan.plan.flows[0].media().unwrap().streams[0].source)
}

fn config(plan: &Scenario) -> &[(String, f64)] {
    &plan.plan.flows[0].media().unwrap().controller.config
}

#[test]
fn a_case_has_its_own_values_and_expectations() {
    let origin = origin("own", SCENARIO, CONSTANTS);
    let plans = load_cases(&origin, &Changes::default(), paceline_lab::registries(registry())).unwrap();
    let [fixed, adaptive] = plans.as_slice() else { panic!("two cases") };
    assert_eq!(fixed.plan.case, label(&["threshold=static", "rtt=50ms"]));
    assert_eq!(fixed.plan.flows[0].control(), "gcc-2016-static");
    assert!(config(fixed).contains(&("gamma_0".to_owned(), 30.0)));
    assert_eq!(adaptive.plan.flows[0].control(), "gcc-2016");
    // The first value belongs to the static case alone, the second to both; the bound is a ratio of the other to this.
    assert_eq!((fixed.expects.len(), fixed.asserts.len(), fixed.references.len()), (2, 0, 1));
    assert_eq!((adaptive.expects.len(), adaptive.asserts.len(), adaptive.references.len()), (1, 1, 0));
    let expect = &fixed.expects[0];
    assert_eq!((expect.published, expect.tolerance), (187.0, Some(10.0)));
    assert_eq!(expect.claim.as_deref(), Some("adaptive-cuts-the-tail"));
    assert_eq!(expect.remark.reproduced_with, ["flow.video.encoder.size_noise=0"]);
    let Some(Reference::OtherCase { case, key }) = &adaptive.asserts[0].relative_to else {
        panic!("relative to the other case")
    };
    assert_eq!((case, fixed.references[key].metric.as_str()), (&fixed.plan.case, "rtt_p95_ms"));
    // Without a label the case that sets nothing is chosen.
    assert_eq!(plan(&origin, &Changes::default()).plan.case, adaptive.plan.case);
    assert_eq!(plan(&origin, &changes(&["threshold=static"], &[], None)).plan.case, fixed.plan.case);
    assert!(plans.iter().all(|p| p.notes.iter().any(|n| n.contains("paceline reproduce"))));
}

#[test]
fn a_shortened_run_skips_windows_beyond_its_end() {
    let windows = SCENARIO.replace("bounds = [0, 0.8]", "bounds = [0, 0.8]\nwindow = [\"0s\", \"60s\"]");
    let origin = origin("shorter", &windows, CONSTANTS);
    let of = |duration: &str| plan(&origin, &changes(&[], &[duration], None));
    assert_eq!((of("duration=60s").asserts.len(), of("duration=60s").expects.len()), (1, 1));
    let short = of("duration=59s");
    assert_eq!((short.asserts.len(), short.expects.len()), (0, 1));
    assert!(short.notes.iter().any(|n| n.starts_with("1 of its published values and bounds lie beyond")));
    // The reference of a skipped value is skipped too.
    assert!(plan(&origin, &changes(&["threshold=static"], &["duration=59s"], None)).references.is_empty());
    // Without --set the window must be within the run.
    let error = load(
        &self::origin("short", &windows.replace("duration = \"60s\"", "duration = \"59s\""), CONSTANTS),
        &Changes::default(),
        registry(),
    );
    assert!(error.unwrap_err().to_string().contains("within the run"));
}

#[test]
fn constants_apply_to_keys_that_no_other_layer_sets() {
    let origin = origin("apply", SCENARIO, CONSTANTS);
    let plan_of = |case: &[&str], settings: &[&str], controller| plan(&origin, &changes(case, settings, controller));
    let plain = plan_of(&[], &[], None);
    assert_eq!(noise(&plain), 0.05);
    assert_eq!(*plain.plan.hops[0].delay.at(Time::ZERO), TimeDelta::from_millis(25));
    assert_eq!(config(&plain), [("k_u".to_owned(), 0.02)]);
    // The scenario writes the limit itself, and it has no TCP flow.
    let limit = format!("{:?}", plain.plan.hops[0].queue);
    assert!(limit.contains(&format!("{:?}", TimeDelta::from_millis(150))), "{limit}");
    let applied: Vec<(&str, bool)> = plain.constants.iter().map(|c| (c.id.as_str(), c.applied)).collect();
    assert_eq!(applied, [("noise", true), ("limit", false), ("delay", true), ("gain", true), ("window", false)]);
    assert!(
        plain
            .notes
            .iter()
            .any(|n| n.starts_with("assumed, as test does not give them: media.encoder.size_noise = 0.05"))
    );
    // --set overrides constants, and so does a case.
    assert_eq!(noise(&plan_of(&[], &["flow.video.encoder.size_noise=0.3"], None)), 0.3);
    let sets = SCENARIO.replace("gamma_0\" = 30", "k_u\" = 0.005");
    let origin = self::origin("sets", &sets, CONSTANTS);
    assert_eq!(config(&plan(&origin, &changes(&["threshold=static"], &[], None))), [("k_u".to_owned(), 0.005)]);
    // A constant of `config` applies only to a controller that has this number.
    assert!(config(&plan(&origin, &changes(&[], &[], Some("fixed")))).is_empty());
    let other = plan(&origin, &changes(&[], &[], Some("gcc-2016-guarded")));
    assert_eq!(config(&other), [("k_u".to_owned(), 0.02)]);
    // `media.` is expanded after the overrides before it: only the second controller has this number.
    let sets = ["flow.video.controller=gcc-2016-guarded", "media.config.k_u=0.03"];
    let fixed = self::origin("fixed", &SCENARIO.replace("\"gcc-2016\"", "\"fixed\""), CONSTANTS);
    assert_eq!(config(&plan(&fixed, &changes(&[], &sets, None))), [("k_u".to_owned(), 0.03)]);
    let swapped = load(&fixed, &changes(&[], &[sets[1], sets[0]], None), paceline_lab::registries(registry()));
    assert!(swapped.unwrap_err().to_string().contains("no flow reads"));
    // The end of a range replaces the value.
    let end = Changes { constants: vec![("noise".to_owned(), "0.2".to_owned())], ..Changes::default() };
    assert_eq!(noise(&plan(&origin, &end)), 0.2);
    let end = Changes { constants: vec![("delay".to_owned(), "\"30ms\"".to_owned())], ..Changes::default() };
    assert_eq!(*plan(&origin, &end).plan.hops[0].delay.at(Time::ZERO), TimeDelta::from_millis(30));
}

#[test]
fn constant_of_one_case_precedes_that_of_all() {
    let limited = CONSTANTS.to_owned()
        + "\n[[constant]]\nid = \"noise-of-static\"\nkey = \"media.encoder.size_noise\"\nexperiment = \"NAME\"\n\
           case = { threshold = \"static\" }\nvalue = 0.1\nrange = [0.0, 0.2]\nwhy = \"fitted\"\n";
    let own = SCENARIO.split_once("id = \"").and_then(|(_, rest)| rest.split_once('"')).unwrap().0;
    let own = own.rsplit('/').next().unwrap();
    let origin = origin("limited", SCENARIO, &limited.replace("NAME", own));
    let of = |case: &str, constants: &[(&str, &str)]| {
        let constants = constants.iter().map(|(id, value)| ((*id).to_owned(), (*value).to_owned())).collect();
        let plan = plan(&origin, &Changes { constants, ..changes(&[case], &[], None) });
        let applied = |id: &str| plan.constants.iter().any(|c| c.id == id && c.applied);
        (noise(&plan), applied("noise"), applied("noise-of-static"))
    };
    assert_eq!(of("threshold=static", &[]), (0.1, false, true));
    assert_eq!(of("threshold=adaptive", &[]), (0.05, true, false));
    assert_eq!(of("threshold=static", &[("noise-of-static", "0.2"), ("noise", "0.0")]).0, 0.2);
    // The file of another experiment must be there; it may have other cases.
    let other = self::origin("limited", SCENARIO, &limited.replace("NAME", "scenario"));
    assert_eq!(noise(&plan(&other, &changes(&["threshold=static"], &[], None))), 0.05);
    let missing = error_of("limited", SCENARIO, &limited.replace("NAME", "fig99"), &Changes::default());
    assert!(missing.to_string().contains("no experiment `fig99`"), "{missing}");
}

#[test]
fn constants_skip_sources_that_do_not_read_them() {
    let streams = "[[flow.stream]]\nid = \"a\"\nencoder = { source = \"ideal\" }\n[[flow.stream]]\nid = \"b\"\nencoder = {}\n\n[[case]]";
    let text = SCENARIO.replacen("[[case]]", streams, 1);
    let plan = plan(&origin("streams", &text, CONSTANTS), &Changes::default());
    let streams = &plan.plan.flows[0].media().unwrap().streams;
    assert_eq!(streams[0].source.entry.name, "ideal");
    assert_eq!(size_noise(&streams[1].source), 0.05);
    // A way with `hops` takes no other key.
    let hops = "[path.forward]\nhops = [{ id = \"a\", capacity = \"1Mbps\" }]\n";
    let text = SCENARIO.replace("[path.forward]\ncapacity = \"1Mbps\"\nqueue = { limit = \"150ms\" }\n", hops);
    let plan = self::plan(&origin("hops", &text, CONSTANTS), &Changes::default());
    assert!(plan.constants.iter().all(|c| c.applied == (c.id == "noise" || c.id == "gain")));
}

#[test]
fn a_bound_applies_to_the_mean_the_lowest_or_the_highest_run() {
    let bound = |runs: &str| {
        format!("{SCENARIO}\n[[assert]]\nid = \"all\"\nmetric = \"jain\"\nbounds = [0, 1]\nruns = \"{runs}\"\n")
    };
    for (name, statistic) in Statistic::NAMES {
        let plan = plan(&origin("runs", &bound(name), CONSTANTS), &Changes::default());
        assert_eq!(plan.asserts.iter().find(|a| a.id == "all").map(|a| a.runs), Some(statistic));
    }
    let error = error_of("runs", &bound("lowst"), CONSTANTS, &Changes::default());
    assert_eq!(error.offending(), Some("\"lowst\""));
    assert!(error.hint().is_some_and(|hint| hint.contains("`lowest`")), "{:?}", error.hint());
}

#[test]
fn every_shipped_case_loads_with_its_changes_and_at_both_ends_of_its_constants() {
    for id in Catalogue.ids() {
        let origin = Catalogue.find(id).unwrap();
        let experiment = Experiment::load(&origin, &[], registry()).and_then(|e| e.with_changes(&origin, registry()));
        let experiment = experiment.unwrap_or_else(|p| panic!("{id}: {p}: {:?}", p.offending()));
        for constant in &experiment.cases[0].constants {
            for end in [&constant.range.0, &constant.range.1] {
                let other = Experiment::load(&origin, &[(constant.id.clone(), end.clone())], registry());
                other.unwrap_or_else(|p| panic!("{id} with {} = {end}: {p}", constant.id));
            }
        }
    }
}

#[test]
fn constants_sweeps_and_formulas_are_not_scenarios() {
    assert!(is_scenario("mmsys16/table1.toml") && !is_scenario("mmsys16/constants.toml"));
    assert!(!is_scenario("mmsys16/conclusions.toml"));
    assert!(!is_scenario("mmsys16/fig8.sweep.toml") && !is_scenario("uottawa15/table2.formula.toml"));
    assert!(Catalogue.ids().all(|id| !id.ends_with("constants")));
}

fn error_of(name: &str, scenario: &str, constants: &str, changes: &Changes) -> ScenarioError {
    match load_cases(&origin(name, scenario, constants), changes, paceline_lab::registries(registry())) {
        Err(error) => error,
        Ok(_) => panic!("{name} was accepted"),
    }
}

// Each line of a table is a case: its name, the text that is replaced, the text in its place (`⏎` starts a new line), the
// underlined text, a part of the message, and a part of the hint.

const SCENARIOS: &str = r#"
no such case | case = { threshold = "static" }⏎published | case = { threshold = "fixed" }⏎published | { threshold = "fixed" } | no case matches `threshold=fixed` | `rtt=50ms threshold=static`
no such reference | relative_to = { case = { threshold = "static" } } | relative_to = { case = { queue = "1" } } | { queue = "1" } | no case matches `queue=1` | cases:
reference to itself | relative_to = { case = { threshold = "static" } } | relative_to = { case = { threshold = "adaptive" } } | { threshold = "adaptive" } | divided by itself | cases:
empty reference | relative_to = { case = { threshold = "static" } } | relative_to = {} | {} | the reference is the value itself | `metric`
unknown claim | claim = "adaptive-cuts-the-tail" | claim = "cuts-the-tail" | "cuts-the-tail" | no [[assert]] has the id `cuts-the-tail` | `adaptive-cuts-the-tail`
tolerance without why | why = "read off a figure"⏎ | | 10 | needs a reason | add why
why without tolerance | tolerance = 10⏎ | | "read off a figure" | there is none | `note`
tolerance of zero | tolerance = 10 | tolerance = 0 | 0 | above 0 | unit
malformed change | reproduced_with = ["flow.video.encoder.size_noise=0"] | reproduced_with = ["less noise"] | "less noise" | not KEY=VALUE | --set
renamed key for changes | reproduced_with = | moved_by = | moved_by | unknown key `moved_by` | `moved_by` is called `reproduced_with` now
renamed key for references | relative_to = | over = | over | unknown key `over` | `over` is called `relative_to` now
renamed metric | metric = "utilization" | metric = "converge_s" | "converge_s" | no metric `converge_s` | `converge_s` is called `convergence_time_s` now
two cases with one label | label = { threshold = "adaptive", rtt | label = { threshold = "static", rtt | { threshold = "static", rtt = "50ms" } | two cases have the label | its own
empty label | label = { threshold = "adaptive", rtt = "50ms" } | label = {} | {} | differs from those of the other cases | threshold
label with numbers | rtt = "50ms" }⏎set | rtt = 50 }⏎set | 50 | text in quotes | "50"
case without a label | label = { threshold = "adaptive", rtt = "50ms" } | | [[case]] | missing key `label` | threshold
key without quotes | "flow.video.config.gamma_0" = 30 | flow.video.config.gamma_0 = 30 | flow | whole table | in quotes
unknown flow | "flow.video.controller" | "flow.vido.controller" | vido | no element `vido` | `video`
unknown controller | gcc-2016-static | gcc-2016-statik | "gcc-2016-statik" | no controller | set by the case rtt=50ms threshold=static
unknown key of a case | "flow.video.controller" | "flow.video.controler" | controler | unknown key `controler` | `controller`
unknown key of a reference | relative_to = { case | relative_to = { cases | cases | unknown key `cases` | `case`
unknown metric of a reference | relative_to = { case | relative_to = { metric = "rtt", case | "rtt" | no metric `rtt` | rtt_p95_ms
"#;

const CONSTANTS_FILES: &str = r#"
no seeds | seed = ["frame sizes"] | | | what a seed randomises | add seed
two constants with one id | id = "limit" | id = "noise" | "noise" | two constants have the id `noise` | its own
two constants with one key | key = "path.forward.delay" | key = "path.forward.queue.limit" | "path.forward.queue.limit" | already sets | one constant
two spellings of one key | key = "path.forward.delay" | key = "flow.video.encoder.size_noise" | "flow.video.encoder.size_noise" | sets the same key as `noise` | one constant
value outside its range | value = 0.05 | value = 0.5 | [0.0, 0.2] | around the value | 0.5
range of another type | range = ["200ms", "400ms"] | range = [0.2, 0.4] | [0.2, 0.4] | around the value | 300ms
no reason | why = "the paper gives no value" | why = "" | "" | needs a reason | source
case without its experiment | key = "media.encoder.size_noise" | key = "media.encoder.size_noise"⏎case = { threshold = "static" } | { threshold = "static" } | needs the experiment | add experiment
no range | range = [0.0, 0.2]⏎ | | [[constant]] | missing key `range` | add `range
empty part of a key | media.encoder.size_noise | media..size_noise | "media..size_noise" | empty | media.encoder.size_noise
unknown key | paper = "test" | paper = "test"⏎papers = 1 | papers | unknown key `papers` | `paper`
unknown key of scenarios | media.encoder.size_noise | media.encodr.size_noise | "media.encodr.size_noise" | unknown key `encodr` | names this file under `constants`
wrong unit | value = "25ms" | value = "25 msec" | "25 msec" | is not a time | names this file under `constants`
"#;

fn check(table: &str, text: &str, error_of: impl Fn(&str) -> ScenarioError) {
    check_errors(table, |given| {
        let [name, written, instead] = given else { panic!("{given:?}") };
        assert!(text.contains(written), "{name}: {written}");
        Some(error_of(&text.replacen(written, instead, 1)))
    });
}

#[test]
fn rejects_wrong_cases_and_expectations() {
    check(SCENARIOS, SCENARIO, |text| error_of("broken", text, CONSTANTS, &Changes::default()));
    let select = |case: &str| error_of("which", SCENARIO, CONSTANTS, &changes(&[case], &[], None)).to_string();
    assert!(select("threshold=fixed").contains("no case `threshold=fixed`"));
    assert!(select("rtt=50ms").contains("several cases"));
}

#[test]
fn rejects_wrong_constants() {
    check(CONSTANTS_FILES, CONSTANTS, |text| error_of("constants", SCENARIO, text, &Changes::default()));
    let error =
        error_of("file", &SCENARIO.replace("constants.toml", "none.constants.toml"), CONSTANTS, &Changes::default());
    assert!(
        error.to_string().contains("cannot read") && error.offending() == Some("\"none.constants.toml\""),
        "{error}"
    );
    // An error of the file is shown there although constants apply.
    let error = error_of("line", &SCENARIO.replace("\"60s\"", "\"0s\""), CONSTANTS, &Changes::default());
    assert_eq!((error.line(), error.offending()), (Some(3), Some("\"0s\"")));
}
