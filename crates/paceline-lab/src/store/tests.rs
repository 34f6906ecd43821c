mod parts;

use super::*;
use crate::rows::{DropReason, HalfName, PacketClass, PacketRow};
use paceline_units::{DataSize, Ecn, FlowId, Rate, StreamId, Time, TimeDelta};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::json;
use std::fs::File;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that goes when the test does.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::SeqCst);
        let path = std::env::temp_dir().join(format!("paceline-store-{}-{n}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
    fn dir(&self) -> PathBuf {
        self.0.join("out")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn header(scenario: &str, seed: u64) -> RunHeader {
    let signals = |names: &[(&str, &str)]| names.iter().map(|(n, u)| ((*n).to_owned(), (*u).to_owned())).collect();
    RunHeader {
        scenario: scenario.to_owned(),
        world: "sim".to_owned(),
        seed,
        hops: vec!["forward".to_owned(), "back".to_owned()],
        flows: vec!["video".to_owned(), "tcp".to_owned()],
        controllers: vec![Some("gcc-2016".to_owned()), None],
        signals: vec![
            [signals(&[("A_s", "bit/s"), ("f_l", "")]), signals(&[("gamma", "ms")])],
            [Vec::new(), Vec::new()],
        ],
    }
}

fn about() -> RunManifest {
    RunManifest {
        version: "1.2.3".to_owned(),
        created: Some("2026-11-20T12:00:00Z".to_owned()),
        scenario_text: "id = \"x\"\n".to_owned(),
        changes: vec!["path.rtt=80ms".to_owned()],
        more: [("revision".to_owned(), json!("abc"))].into(),
        setting: None,
    }
}

fn packet(packet: u64, class: PacketClass) -> PacketRow {
    PacketRow { packet, flow: FlowId(0), class, size: DataSize::from_bytes(1228) }
}

fn at(ns: i64) -> Time {
    Time::from_nanos(ns)
}

/// One row of each kind, and of each class and reason.
fn one_of_each() -> Vec<Row> {
    let (flow, stream) = (FlowId(0), StreamId(2));
    let mut rows = vec![
        Row::Sent { at: at(1), packet: packet(0, PacketClass::Media) },
        Row::Sent { at: at(2), packet: packet(1, PacketClass::Retransmission) },
        Row::Sent { at: at(3), packet: packet(2, PacketClass::Padding) },
        Row::Sent { at: at(4), packet: packet(3, PacketClass::SenderControl) },
        Row::Sent { at: at(4), packet: packet(4, PacketClass::Fec) },
        Row::Sent {
            at: at(5),
            packet: PacketRow { flow: FlowId(1), ..packet(u64::MAX, PacketClass::ReceiverControl) },
        },
        Row::Crossed {
            at: at(9),
            hop: 1,
            packet: packet(0, PacketClass::Media),
            waited: TimeDelta::from_nanos(3),
            left: at(7),
            marked: true,
        },
        Row::Arrived {
            at: at(10),
            packet: packet(0, PacketClass::Media),
            delay: TimeDelta::from_nanos(9),
            ecn: Ecn::Ce,
        },
        Row::RoundTrip { at: at(11), flow, rtt: TimeDelta::from_micros(52_500) },
        Row::FractionLost { at: at(12), flow, fraction: 0.25 },
        Row::Decision { at: at(13), flow, target: Rate::from_kbps(300), pacing: Rate::from_kbps(750) },
        Row::Remb { at: at(14), flow, rate: Rate::from_bps(123_456) },
        Row::Frame { at: at(15), flow, stream, captured: at(6), size: DataSize::from_bytes(5000), dropped: 1 },
        Row::FrameRefused { at: at(16), flow: FlowId(1), stream },
        Row::Signal { at: at(17), flow, half: HalfName::Send, signal: 1, value: 0.5 },
        Row::Signal { at: at(18), flow, half: HalfName::Receive, signal: 0, value: 12.5 },
    ];
    for reason in [DropReason::Overflow, DropReason::Loss, DropReason::Early] {
        let left = (reason == DropReason::Loss).then(|| at(19));
        rows.push(Row::Dropped { at: at(20), hop: 0, packet: packet(1, PacketClass::Media), reason, left });
    }
    rows
}

fn open(path: &Path) -> SerializedFileReader<File> {
    SerializedFileReader::new(File::open(path).unwrap()).unwrap()
}

/// Each row as `column=value` of the columns that are not null.
fn read(path: &Path) -> Vec<String> {
    open(path)
        .get_row_iter(None)
        .unwrap()
        .map(|row| {
            let row = row.unwrap();
            let told = row.get_column_iter().filter(|(_, field)| !matches!(field, Field::Null));
            told.map(|(name, field)| format!("{name}={}", field.to_string().trim_matches('"')))
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect()
}

fn write(store: &Store, header: &RunHeader, rows: &[Row], hash: &str) -> PathBuf {
    let mut run = store.run(header, about()).unwrap();
    assert!(run.wants_signals());
    for row in rows {
        run.row(row);
    }
    assert!(run.failed().is_none());
    run.finish(&json!({"trace_hash": hash, "jain": 1.0})).unwrap()
}

#[test]
fn each_kind_of_row_comes_back() {
    let scratch = Scratch::new();
    let store = Store::create(&scratch.dir()).unwrap();
    let place = write(&store, &header("mmsys16/table1", u64::MAX), &one_of_each(), "f00d");
    assert_eq!(place, scratch.dir().join(format!("runs/mmsys16_table1-gcc-2016-seed{}", u64::MAX)));

    assert_eq!(
        read(&place.join("packets.parquet")),
        [
            "time_ns=1 event=sent packet=0 flow=video class=media size_bytes=1228",
            "time_ns=2 event=sent packet=1 flow=video class=retransmission size_bytes=1228",
            "time_ns=3 event=sent packet=2 flow=video class=padding size_bytes=1228",
            "time_ns=4 event=sent packet=3 flow=video class=sender_control size_bytes=1228",
            "time_ns=4 event=sent packet=4 flow=video class=fec size_bytes=1228",
            "time_ns=5 event=sent packet=9223372036854775807 flow=tcp class=receiver_control size_bytes=1228",
            "time_ns=9 event=crossed packet=0 flow=video class=media size_bytes=1228 hop=back waited_ns=3 left_ns=7 marked=true",
            "time_ns=10 event=arrived packet=0 flow=video class=media size_bytes=1228 delay_ns=9 ecn=ce",
            "time_ns=20 event=dropped packet=1 flow=video class=media size_bytes=1228 hop=forward reason=overflow",
            "time_ns=20 event=dropped packet=1 flow=video class=media size_bytes=1228 hop=forward left_ns=19 reason=loss",
            "time_ns=20 event=dropped packet=1 flow=video class=media size_bytes=1228 hop=forward reason=early",
        ]
    );
    assert_eq!(
        read(&place.join("flows.parquet")),
        [
            "time_ns=11 flow=video kind=rtt value=52.5 unit=ms",
            "time_ns=12 flow=video kind=fraction_lost value=0.25 unit=",
            "time_ns=13 flow=video kind=target value=300000.0 unit=bit/s",
            "time_ns=13 flow=video kind=pacing value=750000.0 unit=bit/s",
            "time_ns=14 flow=video kind=remb value=123456.0 unit=bit/s",
        ]
    );
    assert_eq!(
        read(&place.join("frames.parquet")),
        [
            "time_ns=15 flow=video stream=2 captured_ns=6 size_bytes=5000 dropped=1 refused=false",
            "time_ns=16 flow=tcp stream=2 refused=true",
        ]
    );
    assert_eq!(
        read(&place.join("signals.parquet")),
        [
            "time_ns=17 flow=video half=send signal=f_l unit= value=0.5",
            "time_ns=18 flow=video half=receive signal=gamma unit=ms value=12.5",
        ]
    );
    let result: serde_json::Value = serde_json::from_slice(&fs::read(place.join("run.json")).unwrap()).unwrap();
    assert_eq!(result, json!({"trace_hash": "f00d", "jain": 1.0}));
    let told: About = serde_json::from_slice(&fs::read(place.join("about.json")).unwrap()).unwrap();
    assert_eq!((told.inputs, told.hops, told.flows.len()), (about(), header("", 0).hops, 2));
    assert_eq!(Manifest::read(&scratch.dir()).unwrap().runs, [told.run]);
}

#[test]
fn files_say_where_they_come_from() {
    let scratch = Scratch::new();
    let place = write(&Store::create(&scratch.dir()).unwrap(), &header("a", 3), &[], "");
    for table in ["packets", "flows", "frames", "signals"] {
        let reader = open(&place.join(format!("{table}.parquet")));
        let file = reader.metadata().file_metadata();
        assert_eq!(file.num_rows(), 0, "an empty table is a table");
        let values = file.key_value_metadata().unwrap();
        let get = |key: &str| values.iter().find(|pair| pair.key == key).unwrap().value.clone().unwrap();
        assert_eq!(
            ["scenario", "world", "seed", "controllers", "version", "table"].map(get),
            ["a", "sim", "3", "gcc-2016,none", "1.2.3", table]
        );
        assert!(get("units").contains("ns since the start of the run"));
    }
}

#[test]
fn many_rows_go_out_in_groups() {
    let scratch = Scratch::new();
    let store = Store::create(&scratch.dir()).unwrap();
    let mut run = store.run(&header("a", 1), about()).unwrap();
    let count = 300_000_i64;
    for n in 0..count {
        let packet = packet(n.unsigned_abs(), PacketClass::Media);
        if n % 3 == 0 {
            run.row(&Row::Sent { at: at(n), packet });
        } else {
            run.row(&Row::Arrived { at: at(n), packet, delay: TimeDelta::from_nanos(n * 7), ecn: Ecn::Ect0 });
        }
    }
    let place = run.finish(&json!({})).unwrap();
    let reader = open(&place.join("packets.parquet"));
    let groups: Vec<i64> = reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(groups, [65_536, 65_536, 65_536, 65_536, 300_000 - 4 * 65_536]);
    for (n, row) in reader.get_row_iter(None).unwrap().enumerate() {
        let row = row.unwrap();
        let fields: Vec<&Field> = row.get_column_iter().map(|(_, field)| field).collect();
        let n = i64::try_from(n).unwrap();
        let (event, delay) = if n % 3 == 0 { ("sent", Field::Null) } else { ("arrived", Field::Long(n * 7)) };
        assert_eq!(
            [fields[0], fields[1], fields[2], fields[9]],
            [&Field::Long(n), &Field::Str(event.to_owned()), &Field::Long(n), &delay]
        );
    }
    assert_eq!(store_rows(&scratch.dir(), "packets.parquet"), [300_000]);
}

fn store_rows(dir: &Path, table: &str) -> Vec<u64> {
    let runs = Manifest::read(dir).unwrap().runs;
    runs.iter().map(|run| run.files.iter().find(|file| file.name == table).unwrap().rows).collect()
}

#[test]
fn a_run_that_is_not_finished_leaves_nothing() {
    let scratch = Scratch::new();
    let store = Store::create(&scratch.dir()).unwrap();
    let mut run = store.run(&header("a", 1), about()).unwrap();
    run.row(&one_of_each()[0]);
    assert_eq!(files::names(&scratch.dir().join("runs")).unwrap().len(), 1);
    drop(run);
    assert!(files::names(&scratch.dir().join("runs")).unwrap().is_empty());
    assert_eq!(Manifest::read(&scratch.dir()).unwrap(), Manifest::default());
}

#[test]
fn a_run_replaces_the_one_like_it_and_no_other() {
    let scratch = Scratch::new();
    let store = Store::create(&scratch.dir()).unwrap();
    write(&store, &header("b", 10), &[], "first");
    write(&store, &header("b", 9), &[], "other seed");
    write(&store, &header("a/c", 1), &[], "other scenario");
    let two = RunHeader { controllers: vec![Some("nada".to_owned()), None], ..header("b", 9) };
    write(&store, &two, &[], "other controller");
    // Taken up anew, as by a second process.
    let store = Store::create(&scratch.dir()).unwrap();
    let place = write(&store, &header("b", 10), &one_of_each(), "second");
    let told: Vec<_> = Manifest::read(&scratch.dir()).unwrap().runs;
    let told: Vec<_> = told.iter().map(|r| (r.directory.as_str(), r.trace_hash.as_deref().unwrap())).collect();
    assert_eq!(
        told,
        [
            ("a_c-gcc-2016-seed1", "other scenario"),
            ("b-gcc-2016-seed9", "other seed"),
            ("b-gcc-2016-seed10", "second"),
            ("b-nada-seed9", "other controller"),
        ]
    );
    assert_eq!(read(&place.join("packets.parquet")).len(), 11);
    assert_eq!(files::names(&scratch.dir().join("runs")).unwrap().len(), 4, "nothing temporary is left");
}

#[test]
fn names_that_collide_are_kept_apart() {
    let scratch = Scratch::new();
    let store = Store::create(&scratch.dir()).unwrap();
    let mut places = Vec::new();
    for scenario in ["a/b", "a_b", "A_b", "a/b", "a_b"] {
        let place = write(&store, &header(scenario, 1), &[], scenario);
        places.push(place.file_name().unwrap().to_str().unwrap().to_owned());
    }
    let (first, second, third) = ("a_b-gcc-2016-seed1", "a_b-gcc-2016-seed1-2", "A_b-gcc-2016-seed1-2");
    assert_eq!(places[..2], [first, second]);
    assert!(places[2].starts_with("A_b-gcc-2016-seed1-") && places[2] != third, "{places:?}");
    assert_eq!(places[3..], [first, second], "each replaces its own");
    assert_eq!(Manifest::read(&scratch.dir()).unwrap().runs.len(), 3);
}

#[test]
fn two_runs_at_once_are_both_listed() {
    let scratch = Scratch::new();
    let store = Store::create(&scratch.dir()).unwrap();
    let mut one = store.run(&header("a", 1), about()).unwrap();
    let two = store.run(&header("a", 2), about()).unwrap();
    let again = store.run(&header("a", 1), about()).unwrap();
    one.row(&one_of_each()[0]);
    // Meanwhile somebody else takes the folder up: what is being written stays.
    Store::create(&scratch.dir()).unwrap();
    two.finish(&json!({})).unwrap();
    assert_eq!(store_rows(&scratch.dir(), "packets.parquet"), [0]);
    one.finish(&json!({})).unwrap();
    assert_eq!(store_rows(&scratch.dir(), "packets.parquet"), [1, 0]);
    again.finish(&json!({})).unwrap();
    assert_eq!(store_rows(&scratch.dir(), "packets.parquet"), [0, 0], "the last to finish stays");
}

#[test]
fn the_manifest_is_whole_while_threads_write() {
    let scratch = Scratch::new();
    let store = Store::create(&scratch.dir()).unwrap();
    let path = scratch.dir().join(MANIFEST_FILE);
    let watch = |_| {
        let value: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let runs = value["runs"].as_array().unwrap();
        for run in runs {
            assert!(scratch.dir().join("runs").join(run["directory"].as_str().unwrap()).is_dir());
        }
        runs.len()
    };
    let (_, seen) = rayon::join(
        || (0..24).for_each(|seed| drop(write(&store, &header("a", seed), &[], ""))),
        || (0..200).map(watch).collect::<Vec<_>>(),
    );
    assert!(seen.is_sorted());
    assert_eq!(watch(0), 24);
}

#[test]
fn other_folders_are_refused() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.dir()).unwrap();
    Store::create(&scratch.dir()).unwrap();

    let other = scratch.0.join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("thesis.tex"), "").unwrap();
    let error = Store::create(&other).unwrap_err();
    assert!(matches!(&error, StoreError::NotAResult { path } if *path == other));
    assert!(error.to_string().contains(other.to_str().unwrap()), "{error}");
    assert_eq!(files::names(&other).unwrap(), ["thesis.tex"], "untouched");

    for (text, expected) in [
        ("{\"name\": \"an extension\"}", "holds no Paceline result"),
        ("[]", "holds no Paceline result"),
        ("{", "is damaged: EOF"),
        ("{\"format\": \"paceline-results\", \"format_version\": 2}", "has format 2, and this version knows up to 1"),
        ("{\"format\": \"paceline-results\"}", "`format_version` is not a number"),
        ("{\"format\": \"paceline-results\", \"format_version\": 1}", "missing field `runs`"),
    ] {
        fs::write(other.join(MANIFEST_FILE), text).unwrap();
        let error = Store::create(&other).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(fs::read_to_string(other.join(MANIFEST_FILE)).unwrap(), text);
    }
    let error = Store::create(&other.join("thesis.tex")).unwrap_err();
    assert!(matches!(error, StoreError::Io { action: "create the folder", .. }), "{error}");
}

#[test]
fn a_manifest_cannot_point_outside() {
    let scratch = Scratch::new();
    write(&Store::create(&scratch.dir()).unwrap(), &header("a", 1), &[], "");
    let path = scratch.dir().join(MANIFEST_FILE);
    let text = fs::read_to_string(&path).unwrap().replace("a-gcc-2016-seed1", "../../other");
    fs::write(&path, text).unwrap();
    let error = Store::create(&scratch.dir()).unwrap_err();
    assert!(error.to_string().contains("`../../other` is not the name of a folder"), "{error}");
}

#[test]
fn what_killed_processes_left_is_put_right() {
    let scratch = Scratch::new();
    let store = Store::create(&scratch.dir()).unwrap();
    let runs = scratch.dir().join("runs");
    for (seed, hash) in [(1, "one"), (2, "two"), (3, "three"), (4, "four")] {
        write(&store, &header("a", seed), &[], hash);
    }
    let place = |seed: u64| runs.join(format!("a-gcc-2016-seed{seed}"));
    let gone = format!("{}-0", u32::MAX);
    // Killed while writing a run, and while writing the manifest.
    fs::create_dir(runs.join(format!("a-gcc-2016-seed9.tmp-{gone}"))).unwrap();
    fs::write(scratch.dir().join(format!("manifest.json.tmp-{gone}")), "{").unwrap();
    // Killed between the two renames of a replacement, and before the old run was removed.
    fs::rename(place(1), runs.join(format!("a-gcc-2016-seed1.old-{gone}"))).unwrap();
    fs::create_dir(runs.join(format!("a-gcc-2016-seed2.old-{gone}"))).unwrap();
    // Killed before the manifest was written.
    let mut manifest = Manifest::read(&scratch.dir()).unwrap();
    manifest.runs.remove(2);
    manifest.prepare(&scratch.dir()).unwrap().commit().unwrap();
    // Removed by hand, and put there by hand.
    fs::remove_dir_all(place(4)).unwrap();
    fs::create_dir(runs.join("notes")).unwrap();

    Store::create(&scratch.dir()).unwrap();
    let told: Vec<_> = Manifest::read(&scratch.dir()).unwrap().runs.into_iter().map(|run| run.trace_hash).collect();
    assert_eq!(told, ["one", "two", "three"].map(|hash| Some(hash.to_owned())));
    assert_eq!(files::names(&runs).unwrap(), ["a-gcc-2016-seed1", "a-gcc-2016-seed2", "a-gcc-2016-seed3", "notes"]);
    assert_eq!(files::names(&scratch.dir()).unwrap(), ["manifest.json", "runs"]);

    // Killed before the first manifest.
    let other = scratch.0.join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join(format!("manifest.json.tmp-{gone}")), "").unwrap();
    Store::create(&other).unwrap();
}

#[test]
fn rows_that_name_what_is_not_there_fail_the_run() {
    let packet = packet(0, PacketClass::Media);
    let sent = Row::Sent { at: at(0), packet };
    for (row, expected) in [
        (Row::Remb { at: at(0), flow: FlowId(2), rate: Rate::ZERO }, "flow 2"),
        (Row::Dropped { at: at(0), hop: 2, packet, reason: DropReason::Loss, left: None }, "hop 2"),
        (Row::Signal { at: at(0), flow: FlowId(0), half: HalfName::Receive, signal: 1, value: 0.0 }, "signal 1"),
        (Row::Signal { at: at(0), flow: FlowId(1), half: HalfName::Send, signal: 0, value: 0.0 }, "signal 0"),
    ] {
        let scratch = Scratch::new();
        let store = Store::create(&scratch.dir()).unwrap();
        write(&store, &header("a", 1), &[], "before");
        let mut run = store.run(&header("a", 1), about()).unwrap();
        for row in [&sent, &row, &Row::Remb { at: at(0), flow: FlowId(7), rate: Rate::ZERO }, &sent] {
            run.row(row);
        }
        assert!(run.failed().is_some());
        let error = run.finish(&json!({})).unwrap_err().to_string();
        assert!(error.contains(expected), "the first failure: {error}");
        assert_eq!(Manifest::read(&scratch.dir()).unwrap().runs[0].trace_hash.as_deref(), Some("before"));
        assert_eq!(files::names(&scratch.dir().join("runs")).unwrap(), ["a-gcc-2016-seed1"]);
    }
}

#[test]
fn failures_of_the_disk_name_the_file() {
    let scratch = Scratch::new();
    let store = Store::create(&scratch.dir()).unwrap();
    let run = store.run(&header("a", 1), about()).unwrap();
    fs::remove_dir_all(scratch.dir()).unwrap();
    let error = run.finish(&json!({})).unwrap_err();
    assert!(matches!(&error, StoreError::Io { path, .. } if path.ends_with("run.json")), "{error}");
    assert!(std::error::Error::source(&error).is_some());
    assert!(matches!(store.run(&header("a", 1), about()), Err(StoreError::Io { .. })));
}

fn group(scenario: &str, case: &str, changes: &[&str], mean: f64) -> Group {
    let case = if case.is_empty() { crate::label::Label::default() } else { case.parse().unwrap() };
    let summary = crate::stats::Summary { mean, std: 0.0, ci95: f64::INFINITY, n: 1 };
    let assertion = crate::run::Assertion {
        id: "little".to_owned(),
        metric: "loss_ratio".to_owned(),
        flow: None,
        window_s: (0.0, 10.0),
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
        per_run: vec![crate::group::RunMetrics {
            seed: 1,
            trace_hash: "f00d".to_owned(),
            metrics: [("loss_ratio".to_owned(), mean)].into(),
        }],
    }
}

#[test]
fn a_group_comes_back_as_it_was_and_replaces_the_one_like_it() {
    let scratch = Scratch::new();
    let store = Store::create(&scratch.dir()).unwrap();
    let mean = 0.1 + 0.2;
    let kept = [
        group("a", "", &[], mean),
        group("a", "", &["path.rtt=80ms"], 1.0 / 3.0),
        group("a", "threshold=static", &[], 0.0),
        group("a/b", "", &[], 0.5),
    ];
    // In another order, and the first twice.
    store.group(&group("a", "", &[], 9.0)).unwrap();
    let places: Vec<PathBuf> = [3, 2, 1, 0].map(|i: usize| store.group(&kept[i]).unwrap()).into();
    let names: Vec<&str> = places.iter().map(|p| p.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(
        names,
        ["a_b-gcc-2016.json", "a_threshold_static-gcc-2016.json", "a-gcc-2016-2.json", "a-gcc-2016.json"]
    );
    // An infinite interval and an open bound are null in JSON, and come back all the same.
    assert_eq!(Store::groups(&scratch.dir()).unwrap(), kept);
    let listed = &Manifest::read(&scratch.dir()).unwrap().groups[0];
    assert_eq!((listed.file.as_str(), &listed.seeds, &listed.runs), ("a-gcc-2016.json", &vec![1], &kept[0].runs));
    assert_eq!(files::names(&scratch.dir().join("results")).unwrap().len(), 4, "nothing temporary is left");
}

#[test]
fn groups_and_their_list_are_made_to_agree() {
    let scratch = Scratch::new();
    let store = Store::create(&scratch.dir()).unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|scenario| group(scenario, "", &[], 0.5));
    for group in [&a, &b, &c] {
        store.group(group).unwrap();
    }
    let results = scratch.dir().join("results");
    // Killed while a file was written, killed before the manifest was, removed by hand, put there by hand.
    fs::write(results.join(format!("x.json.tmp-{}-0", u32::MAX)), "{").unwrap();
    let mut manifest = Manifest::read(&scratch.dir()).unwrap();
    manifest.groups.remove(0);
    manifest.prepare(&scratch.dir()).unwrap().commit().unwrap();
    fs::remove_file(results.join("b-gcc-2016.json")).unwrap();
    fs::write(results.join("notes.txt"), "mine").unwrap();
    Store::create(&scratch.dir()).unwrap();
    assert_eq!(Store::groups(&scratch.dir()).unwrap(), [a, c]);
    assert_eq!(files::names(&results).unwrap(), ["a-gcc-2016.json", "c-gcc-2016.json", "notes.txt"]);

    // A folder from before there were groups has none.
    let path = scratch.dir().join(MANIFEST_FILE);
    let mut old: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    old.as_object_mut().unwrap().remove("groups");
    fs::remove_dir_all(&results).unwrap();
    fs::write(&path, old.to_string()).unwrap();
    assert_eq!(Store::groups(&scratch.dir()).unwrap(), []);
    Store::create(&scratch.dir()).unwrap().group(&group("a", "", &[], 0.5)).unwrap();

    // A damaged file is named; a name that leads elsewhere is refused.
    fs::write(results.join("a-gcc-2016.json"), "{\"scenario\": \"a\"}").unwrap();
    let error = Store::groups(&scratch.dir()).unwrap_err().to_string();
    assert!(error.contains("a-gcc-2016.json` is damaged: missing field"), "{error}");
    let text = fs::read_to_string(&path).unwrap().replace("a-gcc-2016.json", "../other.json");
    fs::write(&path, text).unwrap();
    let error = Store::groups(&scratch.dir()).unwrap_err().to_string();
    assert!(error.contains("`../other.json` is not the name of a file"), "{error}");
}
