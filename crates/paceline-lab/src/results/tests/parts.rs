// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs in real time whose process is killed.

use super::*;

/// One event for each table in each of these seconds.
fn events_in(seconds: impl IntoIterator<Item = i64>) -> Vec<EventRecord> {
    let (flow, stream) = (FlowId(0), StreamId(0));
    let of = |second| {
        let (at, packet) = (Time::from_secs(second), packet(second.unsigned_abs(), PacketClass::Media));
        let (size, captured) = (DataSize::from_bytes(5000), Time::from_secs(second - 1));
        [
            EventRecord::Sent { at, packet },
            EventRecord::Remb { at, flow, rate: Rate::from_kbps(second.unsigned_abs()) },
            EventRecord::Frame { at, flow, stream, captured, size, dropped: 0 },
            EventRecord::Signal { at, flow, half: HalfName::Send, signal: 1, value: second as f64 },
        ]
    };
    seconds.into_iter().flat_map(of).collect()
}

fn begun(store: &Store, seed: u64, inputs: RunInputs, events: &[EventRecord]) -> RunStore {
    let mut run = store.run(&header("a", seed), inputs).unwrap().in_parts(true);
    events.iter().for_each(|event| run.on_event(event));
    run
}

/// Leaves the files that a kill at this time would leave.
fn killed(run: RunStore) {
    run.abandon();
}

/// Folder of each listed run, and the time at which it was cut.
fn listed(scratch: &Scratch) -> Vec<(String, Option<f64>)> {
    scratch.stored().into_iter().map(|run| (run.directory, run.cut_at_s)).collect()
}

#[test]
fn a_killed_run_is_recovered_up_to_its_last_closed_part() {
    let (scratch, store) = Scratch::with_store();
    let run = begun(&store, 1, inputs(), &events_in((0..=25).chain([47])));
    // During the run: closed parts are complete.
    let parts = scratch.runs().into_iter().find(|name| name.contains(".parts-")).unwrap();
    let parts = scratch.dir().join(RUNS).join(parts).join("data");
    assert_eq!(files::names(&parts).unwrap(), ["about.json", "until-000010s", "until-000020s", "until-000040s"]);
    let rows_in = |part: &str| TABLES.map(|table| read(&parts.join(part).join(table)).len());
    assert_eq!((rows_in("until-000010s"), rows_in("until-000040s")), ([10; 4], [6; 4]));
    // Other processes do not touch it.
    Store::recover(&scratch.dir()).unwrap();
    scratch.open();
    assert_eq!((listed(&scratch), parts.is_dir(), scratch.runs().len()), (Vec::new(), true, 2));

    killed(run);
    Store::recover(&scratch.dir()).unwrap();
    assert_eq!(listed(&scratch), [("a-gcc-2016-seed1-cut".to_owned(), Some(40.0))]);
    let store = scratch.open();
    assert_eq!(listed(&scratch), [("a-gcc-2016-seed1-cut".to_owned(), Some(40.0))]);
    assert_eq!(scratch.runs(), ["a-gcc-2016-seed1-cut"], "nothing else is left");
    let cut = scratch.dir().join("runs/a-gcc-2016-seed1-cut");
    assert_eq!(files::names(&cut).unwrap().len(), 4, "four tables");
    let whole = write(&store, &header("b", 1), &events_in(0..=25), "");
    for table in TABLES {
        assert_eq!(read(&cut.join(table)), read(&whole.join(table)), "{table}");
    }
    let about = about(&cut);
    assert_eq!((&about.inputs, &about.run), (&inputs(), &scratch.stored()[0]));
    assert_eq!(about.run.files.iter().map(|file| file.rows).collect::<Vec<_>>(), [26; 4]);
    assert_eq!(store.result(&header("a", 1), &inputs()).unwrap(), None, "a cut run is not a result");
}

#[test]
fn a_complete_run_removes_the_cut_one() {
    let scratch = Scratch::new();
    for last in [15, 35] {
        let store = scratch.open();
        killed(begun(&store, 1, inputs(), &events_in(0..=last)));
    }
    let store = scratch.open();
    killed(begun(&store, 2, inputs(), &events_in(0..=15)));
    let store = scratch.open();
    let of = |seed: u64, cut: &str| format!("a-gcc-2016-seed{seed}{cut}");
    assert_eq!(listed(&scratch), [(of(1, "-cut"), Some(30.0)), (of(2, "-cut"), Some(10.0))], "the later one stays");

    begun(&store, 1, inputs(), &events_in(0..=40)).finish(&json!({}), Vec::new()).unwrap();
    assert_eq!(listed(&scratch), [(of(1, ""), None), (of(2, "-cut"), Some(10.0))]);
    assert_eq!(scratch.runs(), [of(1, ""), of(2, "-cut")]);
    assert_eq!(store.result(&header("a", 1), &inputs()).unwrap(), Some(json!({})));

    // Killed between the final rename and the removal of the parts.
    killed(begun(&store, 1, inputs(), &events_in(0..=40)));
    scratch.open();
    assert_eq!(scratch.runs(), [of(1, ""), of(2, "-cut")]);
    // A cut run of another scenario text stays.
    let other = RunInputs { scenario_text: "id = \"y\"\n".to_owned(), ..inputs() };
    killed(begun(&store, 1, other, &events_in(0..=40)));
    let store = scratch.open();
    let seed_1 = [(of(1, ""), None), (of(1, "-cut"), Some(40.0))];
    assert_eq!(listed(&scratch)[..2], seed_1);
    assert_eq!(
        store.result(&header("a", 1), &inputs()).unwrap(),
        Some(json!({})),
        "the complete run is found beside it"
    );
}

#[test]
fn a_run_in_parts_equals_an_undivided_run() {
    let (scratch, store) = Scratch::with_store();
    for last in [9, 95] {
        let rows = events_in(0..=last);
        let one = write(&store, &header("a", 1), &rows, "hash");
        let kept = TABLES.map(|table| fs::read(one.join(table)).unwrap());
        let (about_one, rows_one) =
            (about(&one), TABLES.map(|table| (read(&one.join(table)), metadata(&one.join(table)))));
        let several = begun(&store, 1, inputs(), &rows).finish(&json!({"trace_hash": "hash"}), Vec::new()).unwrap();
        let mut about = about(&several);
        // The tables have other row groups.
        for (file, one) in about.run.files.iter_mut().zip(&about_one.run.files) {
            file.checksum.clone_from(&one.checksum);
        }
        assert_eq!((&several, about), (&one, about_one));
        assert_eq!(TABLES.map(|table| (read(&several.join(table)), metadata(&several.join(table)))), rows_one);
        assert_eq!(scratch.runs(), ["a-gcc-2016-seed1"], "no parts are left");
        let groups = open(&several.join("packets.parquet")).metadata().num_row_groups();
        let same = TABLES.map(|table| fs::read(several.join(table)).unwrap()) == kept;
        // A run that ends within its first part is written directly.
        assert_eq!((groups, same), if last < 10 { (1, true) } else { (10, false) });
    }
}

/// The key-value metadata of a file, and whether it has page indices.
fn metadata(path: &Path) -> (Vec<(String, Option<String>)>, bool) {
    let reader = open(path);
    let values = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let pages = reader.metadata().row_groups().iter().flat_map(|group| group.columns());
    let pages = pages.map(|chunk| chunk.offset_index_offset().is_some() && chunk.column_index_offset().is_some());
    (values.iter().map(|pair| (pair.key.clone(), pair.value.clone())).collect(), pages.min().unwrap_or(true))
}

#[test]
fn parts_stay_if_a_run_fails_and_not_if_it_is_dropped() {
    let (scratch, store) = Scratch::with_store();
    let mut run = begun(&store, 1, inputs(), &events_in(0..=15));
    run.on_event(&EventRecord::Remb { at: Time::from_secs(16), flow: FlowId(7), rate: Rate::ZERO });
    let error = run.finish(&json!({}), Vec::new()).unwrap_err().to_string();
    assert!(error.contains("flow 7"), "{error}");
    drop(begun(&store, 2, inputs(), &events_in(0..=15)));
    scratch.open();
    assert_eq!(listed(&scratch), [("a-gcc-2016-seed1-cut".to_owned(), Some(10.0))]);
    assert_eq!(scratch.runs(), ["a-gcc-2016-seed1-cut"]);
}

#[test]
fn incomplete_parts_are_removed() {
    let (scratch, store) = Scratch::with_store();
    let runs = scratch.dir().join(RUNS);
    // Killed before the first part was closed, and while parts were removed.
    killed(begun(&store, 1, inputs(), &events_in(0..=5)));
    let parts = runs.join("a-gcc-2016-seed3.parts-1-0");
    fs::create_dir_all(parts.join("data")).unwrap();
    fs::write(parts.join("lock"), "").unwrap();
    scratch.open();
    assert_eq!((listed(&scratch), scratch.runs()), (Vec::new(), Vec::new()));
}
