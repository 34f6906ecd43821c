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
        holds: true,
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
    let places: Vec<PathBuf> = [3, 2, 1, 0].map(|i: usize| store.group(&groups[i]).unwrap()).into();
    let names: Vec<&str> = places.iter().map(|p| p.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(
        names,
        ["a_b-gcc-2016.json", "a_threshold_static-gcc-2016.json", "a-gcc-2016-2.json", "a-gcc-2016.json"]
    );
    // An infinite interval and an open bound are null in JSON.
    assert_eq!(Store::groups(&scratch.dir()).unwrap(), groups);
    let listed = &scratch.manifest().groups[0];
    assert_eq!((listed.file.as_str(), &listed.seeds, &listed.runs), ("a-gcc-2016.json", &vec![1], &groups[0].runs));
    assert_eq!(files::names(&scratch.dir().join("results")).unwrap().len(), 4, "nothing temporary is left");
}

#[test]
fn repairs_the_list_of_groups() {
    let (scratch, store) = Scratch::with_store();
    let [a, b, c] = ["a", "b", "c"].map(|scenario| group(scenario, "", &[], 0.5));
    for group in [&a, &b, &c] {
        store.group(group).unwrap();
    }
    let results = scratch.dir().join("results");
    // Killed while a file was written, killed before the manifest was, removed by hand, put there by hand.
    fs::write(results.join(format!("x.json.tmp-{}-0", u32::MAX)), "{").unwrap();
    let mut manifest = scratch.manifest();
    manifest.groups.remove(0);
    manifest.prepare(&scratch.dir()).unwrap().commit().unwrap();
    fs::remove_file(results.join("b-gcc-2016.json")).unwrap();
    fs::write(results.join("notes.txt"), "mine").unwrap();
    scratch.open();
    assert_eq!(Store::groups(&scratch.dir()).unwrap(), [a, c]);
    assert_eq!(files::names(&results).unwrap(), ["a-gcc-2016.json", "c-gcc-2016.json", "notes.txt"]);

    // A folder of a version without groups.
    let path = scratch.dir().join(MANIFEST_FILE);
    let mut old: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    old.as_object_mut().unwrap().remove("groups");
    fs::remove_dir_all(&results).unwrap();
    fs::write(&path, old.to_string()).unwrap();
    assert_eq!(Store::groups(&scratch.dir()).unwrap(), []);
    scratch.open().group(&group("a", "", &[], 0.5)).unwrap();

    // A damaged file; a path instead of a name.
    fs::write(results.join("a-gcc-2016.json"), "{\"scenario\": \"a\"}").unwrap();
    let error = Store::groups(&scratch.dir()).unwrap_err().to_string();
    assert!(error.contains("a-gcc-2016.json` is damaged: missing field"), "{error}");
    let text = fs::read_to_string(&path).unwrap().replace("a-gcc-2016.json", "../other.json");
    fs::write(&path, text).unwrap();
    let error = Store::groups(&scratch.dir()).unwrap_err().to_string();
    assert!(error.contains("`../other.json` is not the name of a file"), "{error}");
}
