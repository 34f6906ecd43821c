// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damaged tables, and tables of other programs: errors, and never a panic or much memory.

use super::tables::one_of_each;
use super::*;
use crate::results::tables::RunTables;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::panic::catch_unwind;
use std::sync::Arc;

/// A column of a hostile table: values, and levels if it is optional.
enum Values {
    Int64(Vec<i64>),
    Int32(Vec<i32>),
    Float64(Vec<f64>),
    Bool(Vec<bool>),
    Name(Vec<&'static str>),
}

type Columns = Vec<(Values, Option<Vec<i16>>)>;

/// Returns a stored run whose tables are read without a comparison of checksums.
fn stored() -> (Scratch, PathBuf, About) {
    let (scratch, store) = Scratch::with_store();
    let place = write(&store, &header("a", 1), &one_of_each(), "");
    let mut about = about(&place);
    about.run.files.iter_mut().for_each(|file| file.checksum.clear());
    (scratch, place, about)
}

fn replace(path: &Path, schema: &str, properties: WriterProperties, columns: Columns) {
    let schema = Arc::new(parse_message_type(&format!("message m {{ {schema} }}")).unwrap());
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for (values, levels) in columns {
        let mut column = group.next_column().unwrap().unwrap();
        let levels = levels.as_deref();
        match values {
            Values::Int64(values) => column.typed::<Int64Type>().write_batch(&values, levels, None),
            Values::Int32(values) => column.typed::<Int32Type>().write_batch(&values, levels, None),
            Values::Float64(values) => column.typed::<DoubleType>().write_batch(&values, levels, None),
            Values::Bool(values) => column.typed::<BoolType>().write_batch(&values, levels, None),
            Values::Name(names) => {
                let names: Vec<ByteArray> = names.into_iter().map(ByteArray::from).collect();
                column.typed::<ByteArrayType>().write_batch(&names, levels, None)
            }
        }
        .unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

/// The columns of `flows` that are read, with these types.
fn flows(time: &str, flow: &str) -> String {
    format!("{time} {flow} (UTF8); required binary kind (UTF8); required double value; required binary unit (UTF8);")
}

fn two_rows(time: (Values, Option<Vec<i16>>), flow: (Values, Option<Vec<i16>>)) -> Columns {
    let value = (Values::Float64(vec![0.5; 2]), None);
    vec![time, flow, (Values::Name(vec!["rtt"; 2]), None), value, (Values::Name(vec!["ms"; 2]), None)]
}

/// Reads `flows` with these first columns, and returns the number of rows or the error.
fn read_flows(schema: &str, columns: Columns) -> Result<usize, String> {
    let (_scratch, place, about) = stored();
    replace(&place.join("flows.parquet"), schema, WriterProperties::default(), columns);
    let mut rows = 0;
    let read = RunTables::new(&place, &about).flows(|batch| rows += batch.len());
    read.map(|()| rows).map_err(|error| error.to_string())
}

const TIME: &str = "required int64 time_ns;";
const FLOW: &str = "required binary flow";

fn times(ns: [i64; 2]) -> (Values, Option<Vec<i16>>) {
    (Values::Int64(ns.to_vec()), None)
}

#[test]
fn a_null_in_a_required_column_of_names_is_an_error() {
    let read = |names: &[&'static str], levels: [i16; 2]| {
        let flow = (Values::Name(names.to_vec()), Some(levels.to_vec()));
        read_flows(&flows(TIME, "optional binary flow"), two_rows(times([1, 2]), flow))
    };
    assert_eq!(read(&["video", "tcp"], [1, 1]), Ok(2));
    for (names, levels) in [(&["video"][..], [1, 0]), (&[], [0, 0])] {
        let error = read(names, levels).unwrap_err();
        assert!(error.contains("column `flow` lacks values"), "{error}");
    }
}

#[test]
fn nested_and_repeated_columns_are_errors() {
    let names = || (Values::Name(vec!["video"; 2]), None);
    let nested = "optional group g { optional int64 time_ns; }";
    let time = (Values::Int64(vec![7]), Some(vec![2, 1]));
    let error = read_flows(&flows(nested, FLOW), two_rows(time, names())).unwrap_err();
    assert!(error.contains("column `time_ns` is nested or repeated"), "{error}");
    let time = (Values::Int64(vec![7, 8]), None);
    let error = read_flows(&flows("required group g { required int64 time_ns; }", FLOW), two_rows(time, names()));
    assert!(error.unwrap_err().contains("column `time_ns` is nested"));
}

#[test]
fn times_beyond_any_run_are_errors() {
    let read = |ns| read_flows(&flows(TIME, FLOW), two_rows(times([1, ns]), (Values::Name(vec!["video"; 2]), None)));
    let day = 86_400_000_000_000;
    assert_eq!(read(30 * day), Ok(2));
    for ns in [30 * day + 1, i64::MAX, i64::MIN] {
        let error = read(ns).unwrap_err();
        assert!(error.contains("column `time_ns` contains"), "{error}");
    }
}

#[test]
fn streams_that_no_flow_has_are_errors() {
    let (_scratch, place, about) = stored();
    let read = |stream| {
        let schema = "required int64 time_ns; required binary flow (UTF8); required int32 stream;";
        let columns = [Values::Int64(vec![1]), Values::Name(vec!["video"]), Values::Int32(vec![stream])];
        let columns = columns.into_iter().map(|values| (values, None)).collect();
        replace(&place.join("frames.parquet"), schema, WriterProperties::default(), columns);
        RunTables::new(&place, &about).frames(|_| {}).unwrap_err().to_string()
    };
    for stream in [0, 255] {
        assert!(read(stream).contains("is missing"), "the next column, {}", read(stream));
    }
    for stream in [256, -1, i32::MAX] {
        assert!(read(stream).contains(&format!("column `stream` contains {stream},")), "{}", read(stream));
    }
}

#[test]
fn row_groups_with_too_many_rows_are_errors() {
    let (_scratch, place, about) = stored();
    let read = |rows: usize| {
        let times = vec![(Values::Int64(vec![1; rows]), None)];
        replace(&place.join("flows.parquet"), TIME, WriterProperties::default(), times);
        let error = RunTables::new(&place, &about).flows(|_| {}).unwrap_err();
        format!("{error}: {:?}", std::error::Error::source(&error).map(ToString::to_string))
    };
    assert!(read(64 * 65_536).contains("column `flow` is missing"));
    let error = read(64 * 65_536 + 1);
    assert!(error.contains("row group 0 has 4194305 rows"), "{error}");
}

#[test]
fn a_crossing_without_hop_is_an_error() {
    let (_scratch, place, about) = stored();
    let read = |event: &'static str, hops: &[String]| {
        let text = |text| (Values::Name(vec![text]), None);
        let null = || (Values::Int64(Vec::new()), Some(vec![0]));
        let no_name = || (Values::Name(Vec::new()), Some(vec![0]));
        let schema = "required int64 time_ns; required binary event (UTF8); required binary flow (UTF8); \
             required binary class (UTF8); required int32 size_bytes; optional binary hop (UTF8); \
             optional int64 waited_ns; optional int64 left_ns; optional int64 delay_ns; required int64 packet; \
             optional binary reason (UTF8); optional boolean marked; optional binary ecn (UTF8);";
        let columns = vec![
            (Values::Int64(vec![1]), None),
            text(event),
            text("video"),
            text(PacketClass::NAMES[0]),
            (Values::Int32(vec![1200]), None),
            no_name(),
            null(),
            null(),
            null(),
            (Values::Int64(vec![1]), None),
            no_name(),
            (Values::Bool(Vec::new()), Some(vec![0])),
            no_name(),
        ];
        replace(&place.join("packets.parquet"), schema, WriterProperties::default(), columns);
        let about = About { hops: hops.to_vec(), ..about.clone() };
        RunTables::new(&place, &about).packets(|_| {}).map_err(|error| error.to_string())
    };
    for hops in [&about.hops[..], &[]] {
        assert_eq!(read("sent", hops), Ok(()));
        let error = read("crossed", hops).unwrap_err();
        assert!(error.contains("column `hop` lacks values"), "{error}");
    }
}

#[test]
fn too_many_names_are_an_error() {
    let (_scratch, place, about) = stored();
    let read = |count: usize, dictionary: bool| {
        let names: Vec<&'static str> = (0..count).map(|n| &*n.to_string().leak()).collect();
        let texts = |text| (Values::Name(vec![text; count]), None);
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(dictionary)
            .set_dictionary_page_size_limit(1 << 30)
            .set_compression(parquet::basic::Compression::UNCOMPRESSED);
        let schema = format!(
            "{TIME} {FLOW} (UTF8); required binary half (UTF8); required binary signal (UTF8); \
             required binary unit (UTF8); required double value;"
        );
        let columns = vec![
            (Values::Int64(vec![1; count]), None),
            texts("video"),
            texts("send"),
            (Values::Name(names), None),
            texts("ms"),
            (Values::Float64(vec![0.0; count]), None),
        ];
        replace(&place.join("signals.parquet"), &schema, properties.build(), columns);
        let read = RunTables::new(&place, &about).signals(|_| {});
        read.map_err(|error| error.to_string())
    };
    for dictionary in [true, false] {
        assert_eq!(read(300, dictionary), Ok(()));
    }
    let error = read(65_537, true).unwrap_err();
    assert!(error.contains("column `signal` has more than 65536 names"), "{error}");
}

/// Returns a damaged copy: each variant changes another place, one bit in turn, removes a byte, or ends there.
fn damaged(whole: &[u8], variant: usize) -> (Vec<u8>, usize) {
    let mut bytes = whole.to_vec();
    let at = variant * 2_654_435_761_usize % whole.len();
    match variant % 10 {
        9 => bytes.truncate(at),
        8 => drop(bytes.remove(at)),
        bit => bytes[at] ^= 1 << bit,
    }
    (bytes, at)
}

fn read(place: &Path, about: &About, table: usize) -> Result<(), StoreError> {
    let tables = RunTables::new(place, about);
    match table {
        0 => tables.packets(|_| {}),
        1 => tables.flows(|_| {}),
        2 => tables.frames(|_| {}),
        _ => tables.signals(|_| {}),
    }
}

/// By the checksum, damage is an error before the library reads the table.
#[test]
fn every_damage_is_an_error() {
    let (_scratch, place, _) = stored();
    let about = about(&place);
    for (table, name) in TABLES.iter().enumerate() {
        let path = place.join(name);
        let whole = fs::read(&path).unwrap();
        assert!(read(&place, &about, table).is_ok());
        for variant in 0..1000 {
            let (bytes, at) = damaged(&whole, variant);
            fs::write(&path, &bytes).unwrap();
            let error = read(&place, &about, table).unwrap_err();
            assert!(matches!(error, StoreError::Damaged { .. }), "{name}: variant {variant}, byte {at}: {error}");
        }
        fs::write(&path, &whole).unwrap();
        assert!(read(&place, &about, table).is_ok());
    }
}

/// Without checksums the library's decoder of packed differences panics on some other damage:
/// of 16,000 variants, on four.
#[test]
fn damaged_tables_never_panic() {
    let (_scratch, place, about) = stored();
    for (table, name) in TABLES.iter().enumerate() {
        let path = place.join(name);
        let whole = fs::read(&path).unwrap();
        assert!(read(&place, &about, table).is_ok());
        let mut failed = 0;
        for variant in 0..300 {
            let (bytes, at) = damaged(&whole, variant);
            fs::write(&path, &bytes).unwrap();
            let read = catch_unwind(|| read(&place, &about, table).is_ok());
            assert!(read.is_ok(), "{name}: panic in variant {variant}, byte {at} of {}", whole.len());
            failed += usize::from(!read.unwrap());
        }
        assert!((30..300).contains(&failed), "{name}: {failed} errors");
        fs::write(&path, &whole).unwrap();
    }
}
