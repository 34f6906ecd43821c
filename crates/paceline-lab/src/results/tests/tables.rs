// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of a run.

use super::*;
use crate::results::tables::RunTables;
use parquet::column::reader::ColumnReader;
use parquet::data_type::{BoolType, ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use std::sync::Arc;

/// One event of each kind, with several classes and each reason.
pub(super) fn one_of_each() -> Vec<EventRecord> {
    let (flow, stream) = (FlowId(0), StreamId(2));
    let mut rows = vec![
        EventRecord::Sent { at: at(1), packet: packet(0, PacketClass::Media) },
        EventRecord::Sent { at: at(2), packet: packet(1, PacketClass::Retransmission) },
        EventRecord::Sent { at: at(3), packet: packet(2, PacketClass::Padding) },
        EventRecord::Sent { at: at(4), packet: packet(3, PacketClass::SenderControl) },
        EventRecord::Sent { at: at(4), packet: packet(4, PacketClass::Fec) },
        EventRecord::Sent {
            at: at(5),
            packet: PacketRecord { flow: FlowId(1), ..packet(u64::MAX, PacketClass::ReceiverControl) },
        },
        EventRecord::Crossed {
            at: at(9),
            hop: 1,
            packet: packet(0, PacketClass::Media),
            waited: TimeDelta::from_nanos(3),
            left: at(7),
            marked: true,
        },
        EventRecord::Arrived {
            at: at(10),
            packet: packet(0, PacketClass::Media),
            delay: TimeDelta::from_nanos(9),
            ecn: Ecn::Ce,
        },
        EventRecord::RoundTrip { at: at(11), flow, rtt: TimeDelta::from_micros(52_500) },
        EventRecord::FractionLost { at: at(12), flow, fraction: 0.25 },
        EventRecord::Decision { at: at(13), flow, target: Rate::from_kbps(300), pacing: Rate::from_kbps(750) },
        EventRecord::Remb { at: at(14), flow, rate: Rate::from_bps(123_456) },
        EventRecord::Frame { at: at(15), flow, stream, captured: at(6), size: DataSize::from_bytes(5000), dropped: 1 },
        EventRecord::FrameDropped { at: at(16), flow: FlowId(1), stream },
        EventRecord::Signal { at: at(17), flow, half: HalfName::Send, signal: 1, value: 0.5 },
        EventRecord::Signal { at: at(18), flow, half: HalfName::Receive, signal: 0, value: 12.5 },
    ];
    for reason in DropReason::ALL {
        let left = (reason == DropReason::Loss).then(|| at(19));
        rows.push(EventRecord::Dropped { at: at(20), hop: 0, packet: packet(1, PacketClass::Media), reason, left });
    }
    rows
}

#[test]
fn stores_every_kind_of_event() {
    let (scratch, store) = Scratch::with_store();
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
            "time_ns=20 event=dropped packet=1 flow=video class=media size_bytes=1228 hop=forward reason=aqm",
            "time_ns=20 event=dropped packet=1 flow=video class=media size_bytes=1228 hop=forward reason=mtu",
            "time_ns=20 event=dropped packet=1 flow=video class=media size_bytes=1228 hop=forward reason=purge",
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
    let result = Store::read_run(&place).unwrap().result;
    assert_eq!(result, json!({"trace_hash": "f00d", "jain": 1.0}));
    let about = about(&place);
    assert_eq!((&about.inputs, &about.hops, about.flows.len()), (&inputs(), &header("", 0).hops, 2));
    assert_eq!(scratch.stored(), std::slice::from_ref(&about.run));

    let mut rows = Vec::new();
    let tables = RunTables::new(&place, &about);
    tables.signals(|batch| rows.extend(batch.iter().map(|r| format!("{} {} {}", r.receive, r.name, r.unit)))).unwrap();
    assert_eq!(rows, ["false f_l ", "true gamma ms"]);
}

#[test]
fn replays_the_events_that_were_stored() {
    #[derive(Default)]
    struct Events(Vec<EventRecord>);
    impl EventObserver for Events {
        fn on_event(&mut self, event: &EventRecord) {
            self.0.push(*event);
        }
    }
    let (_scratch, store) = Scratch::with_store();
    let header = header("mmsys16/table1", 1);
    // A number that does not fit the table is stored as the largest that does.
    let fits = |event: &EventRecord| match event {
        EventRecord::Sent { packet, .. } => packet.packet < u64::MAX,
        _ => true,
    };
    let stored: Vec<EventRecord> = one_of_each().into_iter().filter(fits).collect();
    let place = write(&store, &header, &stored, "f00d");
    let about = about(&place);
    let mut replayed = Events::default();
    RunTables::new(&place, &about).replay(&header, &mut replayed).unwrap();
    assert_eq!(replayed.0.len(), stored.len());
    for event in &stored {
        assert_eq!(
            replayed.0.iter().filter(|other| *other == event).count(),
            1,
            "{event:?} in {replayed:#?}",
            replayed = replayed.0
        );
    }
    let unnamed = RunHeader { signals: Vec::new(), ..header };
    let mut without = Events::default();
    RunTables::new(&place, &about).replay(&unnamed, &mut without).unwrap();
    assert_eq!(without.0.len(), stored.len() - 2, "the two signals are left out");
    assert_eq!((about.header().flows, about.header().hops), (unnamed.flows, unnamed.hops));
}

/// Writes a table again, as the library writes it with these properties.
fn rewrite(path: &Path, properties: WriterProperties) {
    let reader = open(path);
    let schema = reader.metadata().file_metadata().schema_descr().root_schema_ptr();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).unwrap();
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index).unwrap();
        let rows = usize::try_from(group.metadata().num_rows()).unwrap();
        let mut written = writer.next_row_group().unwrap();
        for column in 0..group.num_columns() {
            let mut to = written.next_column().unwrap().unwrap();
            macro_rules! copy {
                ($($reader:ident $type:ty;)*) => { match group.get_column_reader(column).unwrap() {
                    $(ColumnReader::$reader(mut from) => {
                        let (mut values, mut levels) = (Vec::new(), Vec::new());
                        from.read_records(rows, Some(&mut levels), None, &mut values).unwrap();
                        let levels = (!levels.is_empty()).then_some(&levels[..]);
                        to.typed::<$type>().write_batch(&values, levels, None).unwrap();
                    })*
                    _ => panic!("column {column}"),
                } };
            }
            copy! {
                Int64ColumnReader Int64Type;
                Int32ColumnReader Int32Type;
                BoolColumnReader BoolType;
                ByteArrayColumnReader ByteArrayType;
            }
            to.close().unwrap();
        }
        written.close().unwrap();
    }
    writer.close().unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn reads_tables_with_other_encodings() {
    let (_scratch, store) = Scratch::with_store();
    // Of one row group, the names of all rows are equal.
    for events in [one_of_each(), vec![sent(1), sent(2), sent(3)]] {
        let place = write(&store, &header("a", 1), &events, "");
        let mut about = about(&place);
        about.run.files.clear(); // another program has no checksums
        let rows = || {
            let mut rows = Vec::new();
            RunTables::new(&place, &about).packets(|batch| rows.extend_from_slice(batch)).unwrap();
            rows
        };
        let (wanted, text) = (rows(), read(&place.join("packets.parquet")));
        assert!(wanted.len() >= 3);
        let properties = || WriterProperties::builder();
        for properties in [
            // As older versions wrote them.
            properties().build(),
            properties().set_data_page_row_count_limit(2).set_write_batch_size(2).build(),
            properties().set_dictionary_enabled(false).build(),
            properties().set_writer_version(WriterVersion::PARQUET_2_0).build(),
        ] {
            rewrite(&place.join("packets.parquet"), properties);
            assert_eq!(read(&place.join("packets.parquet")), text);
            assert_eq!(rows(), wanted);
        }
    }
}

#[test]
fn metadata_names_the_run() {
    let scratch = Scratch::new();
    let place = write(&scratch.open(), &header("a", 3), &[], "");
    for table in ["packets", "flows", "frames", "signals"] {
        let reader = open(&place.join(format!("{table}.parquet")));
        let file = reader.metadata().file_metadata();
        assert_eq!(file.num_rows(), 0, "an empty table is valid");
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
fn writes_rows_in_groups() {
    let (scratch, store) = Scratch::with_store();
    let mut run = store.run(&header("a", 1), inputs()).unwrap();
    let count = 300_000_i64;
    for n in 0..count {
        let packet = packet(n.unsigned_abs(), PacketClass::Media);
        if n % 3 == 0 {
            run.on_event(&EventRecord::Sent { at: at(n), packet });
        } else {
            let delay = TimeDelta::from_nanos(n * 7);
            run.on_event(&EventRecord::Arrived { at: at(n), packet, delay, ecn: Ecn::Ect0 });
        }
    }
    let place = run.finish(&json!({}), Vec::new()).unwrap();
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
    assert_eq!(packet_counts(&scratch), [300_000]);
}

#[test]
fn an_undeclared_index_fails_the_run_and_keeps_the_earlier_one() {
    let at = at(0);
    let signal = |flow, half, signal| EventRecord::Signal { at, flow, half, signal, value: 0.0 };
    let packet = packet(0, PacketClass::Media);
    for (event, expected) in [
        (EventRecord::Remb { at, flow: FlowId(2), rate: Rate::ZERO }, "flow 2"),
        (EventRecord::Dropped { at, hop: 2, packet, reason: DropReason::Loss, left: None }, "hop 2"),
        (signal(FlowId(0), HalfName::Receive, 1), "signal 1"),
        (signal(FlowId(1), HalfName::Send, 0), "signal 0"),
    ] {
        let (scratch, store) = Scratch::with_store();
        write(&store, &header("a", 1), &[], "before");
        let mut run = store.run(&header("a", 1), inputs()).unwrap();
        for event in [&sent(0), &event, &EventRecord::Remb { at, flow: FlowId(7), rate: Rate::ZERO }, &sent(0)] {
            run.on_event(event);
        }
        assert!(run.failed().is_some());
        let error = run.finish(&json!({}), Vec::new()).unwrap_err().to_string();
        assert!(error.contains(expected), "the first failure: {error}");
        assert_eq!(
            (scratch.hashes(), scratch.runs()),
            (vec!["before".to_owned()], vec!["a-gcc-2016-seed1".to_owned()])
        );
    }
}
