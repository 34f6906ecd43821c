//! Runs in real time whose process is killed.

use super::*;

const TABLES: [&str; 4] = ["packets.parquet", "flows.parquet", "frames.parquet", "signals.parquet"];

/// One row of each kind in each of these seconds.
fn rows_of(seconds: impl IntoIterator<Item = i64>) -> Vec<Row> {
    let (flow, stream) = (FlowId(0), StreamId(0));
    let of = |second| {
        let (at, packet) = (Time::from_secs(second), packet(second.unsigned_abs(), PacketClass::Media));
        let (size, captured) = (DataSize::from_bytes(5000), Time::from_secs(second - 1));
        [
            Row::Sent { at, packet },
            Row::Remb { at, flow, rate: Rate::from_kbps(second.unsigned_abs()) },
            Row::Frame { at, flow, stream, captured, size, dropped: 0 },
            Row::Signal { at, flow, half: HalfName::Send, signal: 1, value: second as f64 },
        ]
    };
    seconds.into_iter().flat_map(of).collect()
}

fn begun(store: &Store, seed: u64, inputs: RunManifest, rows: &[Row]) -> RunStore {
    let mut run = store.run(&header("a", seed), inputs).unwrap().in_parts(true);
    rows.iter().for_each(|row| run.row(row));
    run
}

/// Leaves what a kill at this moment leaves.
fn killed(scratch: &Scratch, run: RunStore) {
    let RunStore { tables, temporary, parts, .. } = run;
    drop(tables);
    temporary.leave();
    parts.leave();
    // Nobody is at it any more.
    let runs = scratch.dir().join(RUNS);
    let (here, gone) = (format!(".tmp-{}-", std::process::id()), format!(".tmp-{}-", u32::MAX));
    for name in files::names(&runs).unwrap() {
        fs::rename(runs.join(&name), runs.join(name.replace(&here, &gone))).unwrap();
    }
}

/// Each run's folder, and where it was cut.
fn listed(scratch: &Scratch) -> Vec<(String, Option<f64>)> {
    Manifest::read(&scratch.dir()).unwrap().runs.into_iter().map(|run| (run.directory, run.cut_at_s)).collect()
}

fn names(scratch: &Scratch) -> Vec<String> {
    files::names(&scratch.dir().join(RUNS)).unwrap()
}

#[test]
fn a_killed_run_is_there_up_to_its_last_whole_part() {
    let scratch = Scratch::new();
    let store = Store::create(&scratch.dir()).unwrap();
    let run = begun(&store, 1, about(), &rows_of((0..=25).chain([47])));
    // While it goes on: what is closed is whole where it lies.
    let parts = names(&scratch).into_iter().find(|name| name.contains(".parts-")).unwrap();
    let parts = scratch.dir().join(RUNS).join(parts);
    assert_eq!(files::names(&parts).unwrap(), ["about.json", "until-000010s", "until-000020s", "until-000040s"]);
    let rows_in = |part: &str| TABLES.map(|table| read(&parts.join(part).join(table)).len());
    assert_eq!((rows_in("until-000010s"), rows_in("until-000040s")), ([10; 4], [6; 4]));
    // Whoever looks in meanwhile leaves it alone.
    Store::take_up(&scratch.dir()).unwrap();
    Store::create(&scratch.dir()).unwrap();
    assert_eq!((listed(&scratch), parts.is_dir(), names(&scratch).len()), (Vec::new(), true, 2));

    killed(&scratch, run);
    Store::take_up(&scratch.dir()).unwrap();
    assert_eq!(listed(&scratch), [("a-gcc-2016-seed1-cut".to_owned(), Some(40.0))]);
    let store = Store::create(&scratch.dir()).unwrap();
    assert_eq!(listed(&scratch), [("a-gcc-2016-seed1-cut".to_owned(), Some(40.0))]);
    assert_eq!(names(&scratch), ["a-gcc-2016-seed1-cut"], "nothing else is left");
    let cut = scratch.dir().join("runs/a-gcc-2016-seed1-cut");
    assert_eq!(files::names(&cut).unwrap().len(), 5, "four tables, about.json and no result");
    let whole = write(&store, &header("b", 1), &rows_of(0..=25), "");
    for table in TABLES {
        assert_eq!(read(&cut.join(table)), read(&whole.join(table)), "{table}");
    }
    let told = About::read(&cut).unwrap();
    assert_eq!((&told.inputs, &told.run), (&about(), &Manifest::read(&scratch.dir()).unwrap().runs[0]));
    assert_eq!(told.run.files.iter().map(|file| file.rows).collect::<Vec<_>>(), [26; 4]);
    assert_eq!(store.result(&header("a", 1), &about()).unwrap(), None, "it is no run to go on with");
}

#[test]
fn a_cut_run_goes_when_the_whole_is_there() {
    let scratch = Scratch::new();
    for last in [15, 35] {
        let store = Store::create(&scratch.dir()).unwrap();
        killed(&scratch, begun(&store, 1, about(), &rows_of(0..=last)));
    }
    let store = Store::create(&scratch.dir()).unwrap();
    killed(&scratch, begun(&store, 2, about(), &rows_of(0..=15)));
    let store = Store::create(&scratch.dir()).unwrap();
    let of = |seed: u64, cut: &str| format!("a-gcc-2016-seed{seed}{cut}");
    assert_eq!(listed(&scratch), [(of(1, "-cut"), Some(30.0)), (of(2, "-cut"), Some(10.0))], "the later one stays");

    begun(&store, 1, about(), &rows_of(0..=40)).finish(&json!({})).unwrap();
    assert_eq!(listed(&scratch), [(of(1, ""), None), (of(2, "-cut"), Some(10.0))]);
    assert_eq!(names(&scratch), [of(1, ""), of(2, "-cut")]);
    assert_eq!(store.result(&header("a", 1), &about()).unwrap(), Some(json!({})));

    // Killed between the rename of the whole and the end of its parts: they are in the whole.
    killed(&scratch, begun(&store, 1, about(), &rows_of(0..=40)));
    Store::create(&scratch.dir()).unwrap();
    assert_eq!(names(&scratch), [of(1, ""), of(2, "-cut")]);
    // Of another scenario text under the same name they are not.
    let other = RunManifest { scenario_text: "id = \"y\"\n".to_owned(), ..about() };
    killed(&scratch, begun(&store, 1, other, &rows_of(0..=40)));
    let store = Store::create(&scratch.dir()).unwrap();
    let seed_1 = [(of(1, ""), None), (of(1, "-cut"), Some(40.0))];
    assert_eq!(listed(&scratch)[..2], seed_1);
    assert_eq!(store.result(&header("a", 1), &about()).unwrap(), Some(json!({})), "the whole is found beside it");
}

#[test]
fn a_run_in_parts_is_the_run_in_one() {
    let scratch = Scratch::new();
    let store = Store::create(&scratch.dir()).unwrap();
    for last in [9, 95] {
        let rows = rows_of(0..=last);
        let one = write(&store, &header("a", 1), &rows, "hash");
        let kept = TABLES.map(|table| fs::read(one.join(table)).unwrap());
        let (about_one, rows_one) =
            (About::read(&one).unwrap(), TABLES.map(|table| (read(&one.join(table)), metadata(&one.join(table)))));
        let several = begun(&store, 1, about(), &rows).finish(&json!({"trace_hash": "hash"})).unwrap();
        assert_eq!((&several, About::read(&several).unwrap()), (&one, about_one));
        assert_eq!(TABLES.map(|table| (read(&several.join(table)), metadata(&several.join(table)))), rows_one);
        assert_eq!(names(&scratch), ["a-gcc-2016-seed1"], "no parts are left");
        let groups = open(&several.join("packets.parquet")).metadata().num_row_groups();
        let same = TABLES.map(|table| fs::read(several.join(table)).unwrap()) == kept;
        // A run that is over before its first part is written as any other.
        assert_eq!((groups, same), if last < 10 { (1, true) } else { (10, false) });
    }
}

/// What a file says of itself, and whether it says where its pages are.
fn metadata(path: &Path) -> (Vec<(String, Option<String>)>, bool) {
    let reader = open(path);
    let values = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let pages = reader.metadata().row_groups().iter().flat_map(|group| group.columns());
    let pages = pages.map(|chunk| chunk.offset_index_offset().is_some() && chunk.column_index_offset().is_some());
    (values.iter().map(|pair| (pair.key.clone(), pair.value.clone())).collect(), pages.min().unwrap_or(true))
}

#[test]
fn parts_outlive_a_run_that_fails_and_no_run_that_is_given_up() {
    let scratch = Scratch::new();
    let store = Store::create(&scratch.dir()).unwrap();
    let mut run = begun(&store, 1, about(), &rows_of(0..=15));
    run.row(&Row::Remb { at: Time::from_secs(16), flow: FlowId(7), rate: Rate::ZERO });
    let error = run.finish(&json!({})).unwrap_err().to_string();
    assert!(error.contains("flow 7"), "{error}");
    drop(begun(&store, 2, about(), &rows_of(0..=15)));
    Store::create(&scratch.dir()).unwrap();
    assert_eq!(listed(&scratch), [("a-gcc-2016-seed1-cut".to_owned(), Some(10.0))]);
    assert_eq!(names(&scratch), ["a-gcc-2016-seed1-cut"]);
}

#[test]
fn parts_that_were_killed_on_their_way_are_none() {
    let scratch = Scratch::new();
    let store = Store::create(&scratch.dir()).unwrap();
    let runs = scratch.dir().join(RUNS);
    let gone = format!("{}-0", u32::MAX);
    // Before the first part was there; while the parts were removed.
    killed(&scratch, begun(&store, 1, about(), &rows_of(0..=5)));
    fs::create_dir_all(runs.join(format!("a-gcc-2016-seed3.parts-{gone}.tmp-{gone}/until-000020s"))).unwrap();
    Store::create(&scratch.dir()).unwrap();
    assert_eq!((listed(&scratch), names(&scratch)), (Vec::new(), Vec::new()));
}
