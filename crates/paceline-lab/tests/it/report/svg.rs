// SPDX-License-Identifier: MIT OR Apache-2.0
//! SVG figures are well-formed, keep lines within their panels, and are reproducible.

use crate::fixtures::{registry, simulator};
use crate::report::results::store;
use paceline_lab::report::figure::{Axis, Figure, Panel, Role, Series, SeriesKind, Subject};
use paceline_lab::report::{figure_groups, svg, sweeps};
use paceline_lab::sweep::Sweep;
use paceline_scenario::{self, Catalogue, Changes, Label, Origin};
use roxmltree::{Document, Node};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Runs ten seconds of a scenario into the folder.
fn run_into(dir: &Path, scenario: &str, case: Option<&str>) {
    let settings = vec!["duration=10s".parse().unwrap()];
    let case = case.map(|case| case.parse().unwrap()).unwrap_or_default();
    store(dir, &Catalogue.find(scenario).unwrap(), &Changes { settings, case, ..Changes::default() }, &[1], false);
}

fn names(files: &[PathBuf]) -> BTreeSet<String> {
    files.iter().map(|file| file.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

fn points(node: Node<'_, '_>) -> Vec<(i32, i32)> {
    let pair = |text: &str| {
        let (x, y) = text.split_once(',').unwrap();
        (x.parse().unwrap(), y.parse().unwrap())
    };
    node.attribute("points").unwrap().split_whitespace().map(pair).collect()
}

/// The borders of the panels, as corners: closed paths of four sides.
fn borders(document: &Document<'_>) -> Vec<((i32, i32), (i32, i32))> {
    let lines = document.descendants().filter(|node| node.has_tag_name("polyline")).map(points);
    lines.filter(|line| line.len() == 5 && line[0] == line[4]).map(|line| (line[0], line[2])).collect()
}

#[test]
fn lines_stay_within_their_panels() {
    let scratch = tempfile::tempdir().unwrap();
    run_into(scratch.path(), "mmsys16/table1", None);
    let files = svg::write(scratch.path(), &scratch.path().join("figures")).unwrap();
    let known = names(&files);
    for name in ["network", "control", "frames", "distribution"] {
        assert!(known.contains(&format!("mmsys16-table1-{name}.svg")), "{known:?}");
    }
    assert!(known.contains("mmsys16-fig13.svg") && !known.contains("mmsys16-fig14.svg"), "{known:?}");
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let document = Document::parse(&text).unwrap();
        let root = document.root_element();
        assert_eq!((root.tag_name().name(), root.attribute("width")), ("svg", Some("90mm")), "{}", file.display());
        assert!((2_000..300_000).contains(&text.len()), "{}: {} bytes", file.display(), text.len());
        let borders = borders(&document);
        assert!(!borders.is_empty(), "{}", file.display());
        // Lines of many points are data; ticks, grid and samples have two, borders five.
        let data: Vec<_> = document.descendants().filter(|n| n.has_tag_name("polyline")).map(points).collect();
        let data: Vec<_> = data.into_iter().filter(|line| line.len() > 5).collect();
        for line in &data {
            let holds = |((left, top), (right, bottom)): &((i32, i32), (i32, i32))| {
                line.iter().all(|(x, y)| (left..=right).contains(&x) && (top..=bottom).contains(&y))
            };
            assert!(borders.iter().any(holds), "{}: {line:?} leaves {borders:?}", file.display());
        }
    }
    let network = fs::read_to_string(scratch.path().join("figures/mmsys16-table1-network.svg")).unwrap();
    let document = Document::parse(&network).unwrap();
    assert_eq!(borders(&document).len(), 3, "rate, queue, loss");
    let words: Vec<&str> =
        document.descendants().filter(|n| n.is_text()).filter_map(|n| n.text()).map(str::trim).collect();
    for word in ["rate (Mbit/s)", "queuing delay (ms)", "lost (%)", "time (s)", "received rate", "target"] {
        assert!(words.contains(&word), "{word}: {words:?}");
    }
    assert_eq!(words.iter().filter(|word| **word == "time (s)").count(), 1, "panels share the axis");
}

#[test]
fn equal_runs_give_equal_files() {
    let drawn = |case: &str| -> Vec<Vec<u8>> {
        let scratch = tempfile::tempdir().unwrap();
        run_into(scratch.path(), "mmsys16/fig9", Some(case));
        let files = svg::write(scratch.path(), &scratch.path().join("figures")).unwrap();
        files.iter().map(|file| fs::read(file).unwrap()).collect()
    };
    let first = drawn("threshold=static");
    assert_eq!(first, drawn("threshold=static"));
    assert_ne!(first, drawn("threshold=adaptive"));
}

#[test]
fn paper_figure_requires_all_its_cases() {
    let scratch = tempfile::tempdir().unwrap();
    run_into(scratch.path(), "mmsys16/fig9", Some("threshold=static"));
    let before = names(&svg::write(scratch.path(), &scratch.path().join("before")).unwrap());
    assert!(!before.contains("mmsys16-fig9.svg") && before.contains("mmsys16-fig9-network.svg"), "{before:?}");
    run_into(scratch.path(), "mmsys16/fig9", Some("threshold=adaptive"));
    let after = names(&svg::write(scratch.path(), &scratch.path().join("after")).unwrap());
    assert!(after.contains("mmsys16-fig9.svg") && after.contains("mmsys16-fig10.svg"), "{after:?}");
    // Side by side: two columns of four panels, alike in height and scale.
    let text = fs::read_to_string(scratch.path().join("after/mmsys16-fig9.svg")).unwrap();
    let document = Document::parse(&text).unwrap();
    assert_eq!(document.root_element().attribute("width"), Some("180mm"));
    let heights = |left: bool| -> Vec<(i32, i32)> {
        let borders = borders(&document).into_iter().filter(|((x, _), _)| (*x < svg::WIDTH) == left);
        borders.map(|((_, top), (_, bottom))| (top, bottom)).collect()
    };
    assert_eq!((heights(true).len(), heights(true)), (4, heights(false)));
}

#[test]
fn paper_figures_refer_to_existing_scenarios_and_cases() {
    for choice in figure_groups::papers() {
        let text = Catalogue.find(&choice.scenario).unwrap_or_else(|_| panic!("{}: no such scenario", choice.id));
        for case in &choice.cases {
            let case = case.split(' ').fold(Label::default(), |case, label| case.with(&label.parse().unwrap()));
            let changes = Changes { case, ..Changes::default() };
            paceline_scenario::load(&text, &changes, registry()).unwrap_or_else(|e| panic!("{}: {e}", choice.id));
        }
    }
}

/// Returns a figure with lines, a capacity far above them, and states.
fn example_figure() -> Figure {
    let subject = |flow: &str| Subject {
        run: "run".to_owned(),
        seed: 1,
        flow: flow.to_owned(),
        controller: "gcc-2016".to_owned(),
        ..Subject::named(&format!("<{flow}>"))
    };
    let series = |id: &str, subject, role, kind, points: &[(f64, f64)]| {
        let mut series = Series::new(id, id, subject, role, kind);
        points.iter().for_each(|(x, y)| series.push(*x, *y));
        series
    };
    let panel = |id: &str, series| Panel {
        id: id.to_owned(),
        title: String::new(),
        caption: String::new(),
        x: Axis::time(10.0),
        y: Axis::new(id, "u"),
        series,
    };
    let mut limit = series("capacity", 0, Role::Limit, SeriesKind::Steps, &[(0.0, 100.0), (10.0, 100.0)]);
    limit.subject = None;
    let mut states = series("state", 0, Role::Main, SeriesKind::Band, &[(0.0, 0.0), (5.0, 1.0), (10.0, 1.0)]);
    states.states = vec!["up".to_owned(), "down".to_owned()];
    let line =
        |s| series("line", s, Role::Main, SeriesKind::Line, &[(0.0, 1.0), (5.0, f64::NAN), (6.0, 2.0), (10.0, 2.0)]);
    let dashed = series("goal", 0, Role::Second, SeriesKind::Steps, &[(0.0, 1.0), (4.0, 2.0), (10.0, 2.0)]);
    Figure {
        id: "hand".to_owned(),
        scenario: "test".to_owned(),
        title: String::new(),
        subjects: vec![subject("a"), subject("b")],
        panels: vec![panel("rate", vec![limit, line(0), line(1), dashed]), panel("states", vec![states])],
    }
}

#[test]
fn styles_follow_role_and_kind() {
    let text = svg::draw(&example_figure());
    let document = Document::parse(&text).unwrap();
    let words: Vec<&str> =
        document.descendants().filter(|n| n.is_text()).filter_map(|n| n.text()).map(str::trim).collect();
    assert!(words.contains(&"<a>") && words.contains(&"<b>"), "labels are escaped, not lost: {words:?}");
    assert!(words.contains(&"up") && words.contains(&"down"), "{words:?}");
    assert!(!words.contains(&"capacity"), "a limit far above the values is not drawn: {words:?}");
    let of_colour = |colour: &str| -> Vec<Node<'_, '_>> {
        document.descendants().filter(|node| node.attribute("stroke") == Some(colour)).collect()
    };
    // The legend sample, and the lines before and after the missing value.
    assert_eq!((of_colour("#0072B2").len(), of_colour("#D55E00").len()), (3, 3));
    let dashed = document.descendants().filter(|node| node.has_attribute("stroke-dasharray")).count();
    assert_eq!(dashed, 2, "the goal and its legend sample");
    let bars: Vec<Node<'_, '_>> =
        document.descendants().filter(|node| node.attribute("fill") == Some("#0072B2")).collect();
    let [up, down] = &bars[..] else { panic!("two bars, {bars:?}") };
    let number = |node: &Node<'_, '_>, name| node.attribute(name).unwrap().parse::<i32>().unwrap();
    assert_eq!(number(up, "x") + number(up, "width"), number(down, "x"));
    assert!(number(up, "y") < number(down, "y"));
}

/// A sweep of one measure over two integer axes, with runs of 2 s.
const SWEEP: &str = r#"
id = "test/map"
title = "A map"
[[axis]]
key = "media.config.overuse_ms"
values = [50, 100, 200]
[[axis]]
key = "media.config.window_ms"
values = [250, 500]
[[measure]]
name = "rate"
scenario = "mmsys16/table1"
set = { duration = "2s" }
metric = "throughput_bps"
[sum]
normalised = false
[published]
"media.config.overuse_ms" = 75
"media.config.window_ms" = 300
"#;

#[test]
fn map_has_title_unit_and_published_mark() {
    let runner = simulator();
    let drawn = |text: &str| {
        let sweep = Sweep::load(&Origin::from_text("map.sweep.toml", text), registry()).unwrap();
        let [sum, rate] =
            &sweeps::pictures(&sweep.run(&runner, &|| ()).unwrap(), paceline_lab::metrics::catalogue())[..2]
        else {
            panic!("a sum, a measure")
        };
        (sum.1.clone(), rate.1.clone())
    };
    let (sum, rate) = drawn(SWEEP);
    assert!(sum.contains("sum of the measures\n") && !sum.contains("each from 0 to 1"), "{sum}");
    assert!(rate.contains("rate: throughput_bps (bit/s)\n") && !rate.contains("<circle"), "{rate}");
    // Each sign is drawn on the map and in the legend. The cross lies between the points: 1/6 across, 1/5 up.
    let crosses = |text: &str| text.matches("stroke=\"#d00\"").count();
    assert_eq!((sum.matches("<circle").count(), crosses(&sum)), (2, 2));
    assert!(sum.contains("M479 1154L507 1182"), "{sum}");
    let normalised = drawn(&SWEEP.replace("normalised = false", "normalised = true")).0;
    assert!(normalised.contains("sum of the measures, each from 0 to 1\n"), "{normalised}");
    // A published point outside the map is not drawn.
    let outside = drawn(&SWEEP.replace("overuse_ms\" = 75", "overuse_ms\" = 20")).0;
    assert_eq!((outside.matches("<circle").count(), crosses(&outside)), (2, 0));
}
