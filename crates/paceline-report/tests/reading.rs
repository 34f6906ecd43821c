//! Folders that are damaged name the file; folders of older versions open.

use paceline::Registry;
use paceline_lab::run::{self, Runner};
use paceline_lab::scenario::{self, Catalogue, Changes, Origin};
use paceline_lab::sim::Simulator;
use paceline_lab::store::{RunManifest, Setting, Store};
use paceline_report::{ReportError, Results, page, panels};
use serde_json::Value;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A folder with one short run of table 1, and the run's own folder.
fn folder(name: &str) -> (Scratch, PathBuf) {
    folder_of(name, &Catalogue.find("mmsys16/table1").unwrap())
}

/// A folder with one run of 5 s, and the run's own folder.
fn folder_of(name: &str, origin: &Origin) -> (Scratch, PathBuf) {
    let scratch = Scratch(std::env::temp_dir().join(format!("paceline-reading-{name}-{}", std::process::id())));
    let _ = fs::remove_dir_all(&scratch.0);
    let registry = Registry::standard();
    let changes = Changes { settings: vec!["duration=5s".parse().unwrap()], ..Changes::default() };
    let plan = scenario::load(origin, &changes, &registry).unwrap();
    let store = Store::create(&scratch.0).unwrap();
    let setting = Some(Setting::of(&plan, &registry));
    let manifest = RunManifest { version: "0".to_owned(), setting, ..RunManifest::default() };
    let mut rows = store.run(&run::header(&plan, &registry, "sim", 1), manifest).unwrap();
    let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
    let result = runner.run(&plan, 1, Some(&mut rows)).unwrap();
    let place = rows.finish(&serde_json::to_value(&result).unwrap()).unwrap();
    (scratch, place)
}

fn complaint(dir: &Path) -> String {
    let error: ReportError = page::write(dir, &dir.join("page.html")).unwrap_err();
    assert!(!dir.join("page.html").exists(), "nothing is written");
    format!("{error}: {:?}", error.source().map(ToString::to_string))
}

/// Of many flows the media are shown, wherever the file names them, and the page says what is not.
#[test]
fn media_come_before_the_crowd() {
    let crowd = r#"id = "test/crowd"
title = "A call behind nine transfers"
duration = "10s"
[path.forward]
capacity = "5Mbps"
[[flow]]
id = "tcp"
kind = "tcp"
count = 9
[[flow]]
id = "video"
controller = "gcc-2016"
"#;
    let (scratch, _) = folder_of("crowd", &Origin::from_text("crowd.toml", crowd));
    let figures = panels::figures(&Results::open(&scratch.0).unwrap()).unwrap();
    let flows: Vec<&str> = figures[0].subjects.iter().map(|subject| subject.flow.as_str()).collect();
    assert_eq!(flows, ["tcp-1", "tcp-2", "tcp-3", "tcp-4", "tcp-5", "tcp-6", "tcp-7", "video", "2 more flows"]);
    let gradient = figures[0].panel("gradient").expect("the call has one");
    assert!(gradient.series.iter().all(|series| series.subject == Some(7)), "{:?}", gradient.series.len());
    page::write(&scratch.0, &scratch.0.join("page.html")).unwrap();
    let page = fs::read_to_string(scratch.0.join("page.html")).unwrap();
    assert!(page.contains("8 of a run&#39;s 10 flows have lines") || page.contains("8 of a run's 10 flows have lines"));
}

#[test]
fn damaged_folders_name_the_file() {
    let (scratch, place) = folder("damaged");
    let dir = &scratch.0;
    page::write(dir, &dir.join("whole.html")).unwrap();

    let packets = fs::read(place.join("packets.parquet")).unwrap();
    fs::write(place.join("packets.parquet"), &packets[..packets.len() / 2]).unwrap();
    let told = complaint(dir);
    assert!(told.contains("packets.parquet` cannot be read as a table"), "{told}");
    // Another table in its place.
    fs::copy(place.join("flows.parquet"), place.join("packets.parquet")).unwrap();
    let told = complaint(dir);
    assert!(told.contains("packets.parquet`: column `event` is missing"), "{told}");
    fs::remove_file(place.join("packets.parquet")).unwrap();
    let told = complaint(dir);
    assert!(told.contains("cannot open") && told.contains("packets.parquet"), "{told}");
    fs::write(place.join("packets.parquet"), packets).unwrap();

    fs::write(place.join("about.json"), "{").unwrap();
    let told = complaint(dir);
    assert!(told.contains("about.json` is damaged"), "{told}");
}

#[test]
fn folders_without_results_are_refused() {
    let (scratch, _) = folder("empty");
    let empty = scratch.0.join("other");
    Store::create(&empty).unwrap();
    let told = complaint(&empty);
    assert!(told.contains("holds no run") && told.contains("--out"), "{told}");
    let told = complaint(&scratch.0.join("runs"));
    assert!(told.contains("manifest.json"), "{told}");
}

/// A run that was cut is drawn beside the whole one, up to where it goes, and told from it.
#[test]
fn a_run_that_was_cut_is_drawn_and_says_so() {
    let (scratch, place) = folder("cut");
    let cut = place.with_file_name("cut");
    fs::create_dir(&cut).unwrap();
    for name in ["packets", "flows", "frames", "signals"].map(|table| format!("{table}.parquet")) {
        fs::copy(place.join(&name), cut.join(&name)).unwrap();
    }
    let mut about: Value = serde_json::from_slice(&fs::read(place.join("about.json")).unwrap()).unwrap();
    about["run"]["cut_at_s"] = 3.0.into();
    // Of the same text the whole run would have it removed.
    about["inputs"]["scenario_text"] = "an earlier text".into();
    fs::write(cut.join("about.json"), about.to_string()).unwrap();
    Store::create(&scratch.0).unwrap();

    let results = Results::open(&scratch.0).unwrap();
    assert_eq!(results.runs.iter().map(|run| run.duration_s()).collect::<Vec<_>>(), [5.0, 3.0]);
    let figures = panels::figures(&results).unwrap();
    let labels: Vec<&str> = figures[0].subjects.iter().map(|subject| subject.label.as_str()).collect();
    assert_eq!(labels, ["video", "video · cut at 3 s"]);
    let page = page::render(&results).unwrap();
    assert!(page.contains("cut was cut at 3 s: its process ended there."));
    let (whole, _) = folder("whole");
    assert!(!page::render(&Results::open(&whole.0).unwrap()).unwrap().contains("was cut at"));
}

#[test]
fn folders_of_older_versions_open() {
    let (scratch, place) = folder("older");
    let ids = |dir: &Path| -> Vec<String> {
        let figures = panels::figures(&Results::open(dir).unwrap()).unwrap();
        figures.iter().flat_map(|figure| &figure.panels).map(|panel| panel.id.clone()).collect()
    };
    let now = ids(&scratch.0);
    let path = place.join("about.json");
    let mut about: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert!(about["inputs"].as_object_mut().unwrap().remove("setting").is_some());
    fs::write(&path, about.to_string()).unwrap();
    let then = ids(&scratch.0);
    // What states are called is not known, so they are numbers; all else is as it was.
    let known = ["rate", "queue", "loss", "gradient", "control", "frames", "cdf-queue", "cdf-owd", "cdf-frames"];
    for id in known {
        assert!(now.iter().any(|n| n == id) && then.iter().any(|n| n == id), "{id}: {now:?}, {then:?}");
    }
    assert!(now.iter().any(|n| n == "states") && !then.iter().any(|n| n == "states"), "{now:?}, {then:?}");
    page::write(&scratch.0, &scratch.0.join("page.html")).unwrap();
}
