// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same reports in each shape, abbreviated, of servers, and damaged.

use super::*;
use serde_json::json;

fn read(text: impl AsRef<[u8]>) -> Result<Call, ReadError> {
    super::read(text.as_ref(), &mut |_, _| ())
}

fn failed(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

fn report(second: u64) -> Value {
    let ms = 1_700_000_000_000 + 1000 * second;
    json!({"O": {"id": "O", "type": "outbound-rtp", "timestamp": ms, "bytesSent": 100_000 * second}})
}

#[test]
fn reports_with_line_breaks_are_read_like_lines() {
    let reports: Vec<Value> = (0..20).map(report).collect();
    let lines: String = reports.iter().map(|report| format!("{report}\n")).collect();
    let expected = read(lines).unwrap();
    let pretty: String = reports.iter().map(|report| format!("{report:#}\n")).collect();
    assert_eq!(read(&pretty).unwrap(), expected);
    assert_eq!(read(format!("{:#}", Value::from(reports))).unwrap(), expected);
    let cut = read(&pretty.as_bytes()[..pretty.len() - 40]).unwrap();
    assert!(cut.notes.iter().any(|note| note.contains("cut or damaged")), "{:?}", cut.notes);
    assert!(failed("{\n\"a\": 1").contains("one report per line"));
}

#[test]
fn the_order_within_a_report_changes_nothing() {
    let lines = |is_reversed: bool| {
        let line = |second: u64| {
            let ms = 1_700_000_000_000 + 1000 * second;
            let mut report = [
                json!({"id": "R", "type": "remote-inbound-rtp", "timestamp": ms - 300, "roundTripTime": 0.05, "packetsLost": second}),
                json!({"id": "C", "type": "candidate-pair", "timestamp": ms, "state": "succeeded", "currentRoundTripTime": 0.1}),
                json!({"id": "O", "type": "outbound-rtp", "timestamp": ms, "bytesSent": 100_000 * second, "packetsSent": 100 * second}),
            ];
            if is_reversed {
                report.reverse();
            }
            format!("{}\n", Value::from(report.to_vec()))
        };
        read((0..20).map(line).collect::<String>()).unwrap()
    };
    let lost = |call: &Call| call.flows[0].losses(call.flows[0].span.0, paceline_units::Time::MAX);
    assert_eq!(lines(false), lines(true));
    assert_eq!(lost(&lines(true)).map(|(lost, _)| lost.round()), Some(18.0));
}

/// Flutter, Android and iOS have the metrics one level deeper and times in µs; others write names with `_` or `-`.
#[test]
fn statistics_of_native_libraries_are_read_like_those_of_browsers() {
    let lines = |shape: &dyn Fn(u64, u64) -> Value| {
        let line = |second: u64| format!("{}\n", shape(1_700_000_000_000_000 + 1_000_000 * second, 100_000 * second));
        (0..20).map(line).collect::<String>()
    };
    let expected = read((0..20).map(|second| format!("{}\n", report(second))).collect::<String>()).unwrap();
    let nested = |time: &str, metrics: &str, us: u64, bytes: u64| json!({"id": "O", "type": "outbound-rtp", time: us, metrics: {"bytesSent": bytes}});
    let named =
        |name: &str, us: u64, bytes: u64| json!([{"id": "O", "type": "outbound-rtp", "timestamp": us, name: bytes}]);
    for text in [
        lines(&|us, bytes| json!([nested("timestamp", "values", us, bytes)])),
        lines(&|us, bytes| json!({"timestampUs": us, "stats": {"O": nested("timestampUs", "members", us, bytes)}})),
        lines(
            &|us, bytes| json!({"timestamp_us": us, "statistics": {"O": nested("timestamp_us", "values", us, bytes)}}),
        ),
        lines(&|us, bytes| named("bytes_sent", us, bytes)),
        lines(&|us, bytes| named("bytes-sent", us, bytes)),
    ] {
        assert_eq!(read(&text).unwrap(), expected, "{text}");
    }
    assert!(failed(&lines(&|us, bytes| named("octets_sent", us, bytes))).contains("no report has"));
}

#[test]
fn statistics_inside_of_others_are_noted() {
    let with = |inner: Value| {
        let line = |second: u64| {
            let mut report = report(second);
            report["O"]["gst-stats"] = inner.clone();
            format!("{report}\n")
        };
        read((0..20).map(line).collect::<String>()).unwrap().notes
    };
    let noted = |notes: &[String]| notes.iter().filter(|note| note.contains("20 objects with statistics")).count();
    assert_eq!(noted(&with(json!({"packets-sent": 3}))), 1);
    assert_eq!(noted(&with(json!({"none": 3, "cpu": 0}))), 0);
}

#[test]
fn messages_distinguish_legacy_reports_from_none() {
    for kind in ["ssrc", "googCandidatePair", "VideoBwe"] {
        let text = format!("[\"getStats\",\"PC_0\",{{\"a\":{{\"type\":\"{kind}\"}}}},1700000000000]\n");
        assert!(failed(&text).contains("legacy"), "{kind}: {}", failed(&text));
    }
    let none = "[39,null,{\"a\":1},1700000000000]\n[61,null,[[\"video\",\"a\",\"b\"]],\"60-0\",1040]\n[\"close\",null,1001,2353]\n";
    assert!(failed(none).contains("no report has"), "{}", failed(none));
}

#[test]
fn a_sequence_number_is_not_the_time() {
    let line = |second: u64| {
        format!("{}\n", json!(["getstats", "PC_0", report(second), 1_700_000_000_000 + 1000 * second, second]))
    };
    let text: String = (0..20).map(line).collect();
    let text = text.replace("\"timestamp\":17", "\"was\":17");
    let call = read(text).unwrap();
    assert_eq!(call.flows[0].span.1, paceline_units::Time::from_secs(19));
}

#[test]
fn connections_without_flows_have_no_number() {
    let line = |name: &str, second: u64| {
        let report = if name == "PC_1" { json!({}) } else { report(second) };
        format!("{}\n", json!(["getstats", name, report, 1_700_000_000_000 + 1000 * second]))
    };
    let all = (0..20).flat_map(|second| ["PC_0", "PC_1", "PC_2"].map(|name| line(name, second)));
    let call = read(all.collect::<String>()).unwrap();
    let names: Vec<&str> = call.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["connection 1 sent", "connection 2 sent"]);
}

/// 30 reports with a stream, the report about it, a transport and its pair: what they have but for times and ids.
fn objects(second: u64) -> Vec<Value> {
    let bytes = 250_000 * second.min(15) + 100_000 * second.saturating_sub(15);
    let (target, rtt) = if second < 15 { (2e6, 0.04) } else { (8e5, 0.09) };
    vec![
        json!({"id": "O", "type": "outbound-rtp", "bytesSent": bytes, "packetsSent": bytes / 1000, "targetBitrate": target, "ssrc": 5}),
        json!({"id": "R", "type": "remote-inbound-rtp", "roundTripTime": rtt, "packetsLost": second / 4, "fractionLost": 0, "jitter": 0.001}),
        json!({"id": "P", "type": "candidate-pair", "state": "succeeded", "availableOutgoingBitrate": target, "currentRoundTripTime": rtt}),
        json!({"id": "T", "type": "transport", "selectedCandidatePairId": "P"}),
        json!({"id": "C", "type": "codec", "mimeType": "video/VP8"}),
    ]
}

const SECONDS: u64 = 30;
const BEGAN: u64 = 1_700_000_000_000;

/// The reports with times made by `time`, as lists.
fn lists(time: &dyn Fn(u64) -> Value) -> Vec<Value> {
    let with_time = |second: u64| {
        let mut objects = objects(second);
        objects.iter_mut().for_each(|object| object["timestamp"] = time(second));
        Value::from(objects)
    };
    (0..SECONDS).map(with_time).collect()
}

fn ms(second: u64) -> Value {
    (BEGAN + 1000 * second).into()
}

fn entries(list: &Value) -> Value {
    list.as_array().unwrap().iter().map(|object| json!([object["id"], object])).collect()
}

fn map(list: &Value) -> Value {
    list.as_array().unwrap().iter().map(|object| (object["id"].as_str().unwrap().to_owned(), object.clone())).collect()
}

fn each_line(values: impl Iterator<Item = Value>) -> String {
    values.map(|value| format!("{value}\n")).collect()
}

#[test]
fn every_shape_gives_the_same_flows() {
    let lists = lists(&ms);
    let expected = read(each_line(lists.iter().cloned())).unwrap().flows;
    assert_eq!(expected.len(), 1);
    assert!(expected[0].series.len() >= 7, "{:?}", expected[0].series.keys());
    let each = |shape: &dyn Fn(&Value) -> Value| lists.iter().map(shape).collect::<Vec<Value>>();
    let timed =
        |shape: &dyn Fn(u64, &Value) -> Value| (0..).zip(&lists).map(|(n, list)| shape(n, list)).collect::<Vec<_>>();
    let without_times = |list: &Value| {
        let mut map = map(list);
        map.as_object_mut()
            .unwrap()
            .values_mut()
            .for_each(|object| drop(object.as_object_mut().unwrap().remove("timestamp")));
        map
    };
    let shapes: Vec<(&str, Vec<Value>)> = vec![
        ("lists", lists.clone()),
        ("maps", each(&map)),
        ("entries", each(&entries)),
        ("stats", each(&|list| json!({"stats": list, "user": "a"}))),
        ("entries in a map", each(&|list| json!({"dataType": "Map", "value": entries(list)}))),
        ("time beside", timed(&|n, list| json!({"timestamp": ms(n), "peer": {"report": without_times(list)}}))),
        (
            "ISO time beside",
            timed(
                &|n, list| json!({"createdAt": format!("2023-11-14T22:13:{:02}Z", 20 + n), "stats": without_times(list)}),
            ),
        ),
        (
            "messages",
            each(
                &|list| json!({"type": "stats-entry", "data": json!(["getstats", "a", map(list), ms(0)]).to_string()}),
            ),
        ),
        ("events", timed(&|n, list| json!(["getStats", "a", map(list), ms(n)]))),
        ("events of lists", timed(&|n, list| json!(["getStats", "a", list, ms(n)]))),
    ];
    for (name, values) in &shapes {
        let wrapped = json!({"meta": {"type": "log", "level": 3}, "samples": values});
        let texts = [
            each_line(values.iter().cloned()),
            values.iter().map(Value::to_string).collect(),
            values.iter().map(|value| format!("{value:#}\n")).collect(),
            Value::from(values.clone()).to_string(),
            format!("{:#}", Value::from(values.clone())),
            wrapped.to_string(),
        ];
        for text in texts {
            let flows = read(&text).unwrap_or_else(|error| panic!("{name}: {error}: {text:.300}")).flows;
            assert_eq!(flows, expected, "{name}: {text:.300}");
        }
    }
    let by_time: Map<String, Value> =
        timed(&|_, list| without_times(list)).into_iter().zip(0..).map(|(map, n)| (ms(n).to_string(), map)).collect();
    assert_eq!(read(Value::from(by_time).to_string()).unwrap().flows, expected);
}

#[test]
fn every_unit_of_time_gives_the_same_flows() {
    let times: [&dyn Fn(u64) -> Value; 7] = [
        &ms,
        &|second| json!(BEGAN as f64 + 1000.0 * second as f64),
        &|second| json!(1000 * (BEGAN + 1000 * second)),
        &|second| json!(1_700_000_000.0 + second as f64),
        &|second| json!(format!("2023-11-14T22:13:{:02}.000Z", 20 + second)),
        &|second| json!(format!("2023-11-14 23:13:{:02}.000000+01:00", 20 + second)),
        &|second| json!((5000 + 1000 * second).to_string()),
    ];
    let flows: Vec<_> = times.map(|time| read(each_line(lists(time).into_iter())).unwrap().flows).into();
    for other in &flows {
        assert_eq!(*other, flows[0]);
    }
}

/// Numbers are ids, too, unless they are times since 1970.
#[test]
fn reports_side_by_side_are_those_of_connections() {
    for [alice, bob] in [["alice", "bob"], ["1", "2"], ["1017", "bob"]] {
        let line = |list: Value| json!({"at": 1, alice: map(&list), bob: {"stats": list}});
        let call = read(each_line(lists(&ms).into_iter().map(line))).unwrap();
        let names: Vec<&str> = call.flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(names, ["connection 1 sent", "connection 2 sent"], "{alice} and {bob}");
        assert_eq!(call.flows[0].series, call.flows[1].series);
    }
}

/// Abbreviates as rtcstats-js 2 does: numbers for names, only what changed, one time for all.
fn abbreviated(second: u64) -> Value {
    let ids = ["O", "R", "P", "T", "C"];
    let number = |name: &str| (0..200).map(|n: u32| n.to_string()).find(|n| abbreviations::property(n) == Some(name));
    let mut report = Map::new();
    let before = second.checked_sub(1).map(objects);
    for (index, object) in objects(second).iter().enumerate() {
        let mut changed = Map::new();
        for (name, value) in object.as_object().unwrap().iter().filter(|(name, _)| *name != "id") {
            if before.as_ref().is_some_and(|before| before[index][name] == *value) {
                continue;
            }
            let value = match (name.as_str(), value.as_str()) {
                ("type", Some(kind)) => {
                    (1..15).find(|n| abbreviations::kind(f64::from(*n)) == Some(kind)).unwrap().into()
                }
                (_, Some("P")) => "2".into(),
                _ => value.clone(),
            };
            changed.insert(number(name).unwrap_or_else(|| name.clone()), value);
        }
        if !changed.is_empty() {
            report.insert(ids.iter().position(|id| object["id"] == *id).unwrap().to_string(), changed.into());
        }
    }
    report.insert("t".to_owned(), ms(second));
    report.into()
}

#[test]
fn abbreviated_reports_are_those_with_names() {
    let expected = read(each_line(lists(&ms).into_iter())).unwrap().flows;
    for method in [json!("g"), json!(1)] {
        let mut text = "RTCStatsDump\n{\"fileFormat\":3,\"clientProtocol\":\"rtcstats#5.0\"}\n".to_owned();
        text += &format!("{}\n", json!([39, "PC_0", {}, BEGAN]));
        text += &each_line((0..SECONDS).map(|second| json!([method, "PC_0", abbreviated(second), 1000])));
        text += "[\"close\",null,1001,2600]";
        let call = read(&text).unwrap();
        assert_eq!(call.flows, expected);
        // Two dumps, the first of them cut in a line.
        let other = text.replace("PC_0", "PC_1");
        let joined = read(format!("{}\n{other}", &text[..text.len() - 100])).unwrap();
        assert_eq!(joined.flows.len(), 2);
        assert!(joined.notes.iter().any(|note| note.contains("cut or damaged")), "{:?}", joined.notes);
    }
}

/// The examples of the format: null removes, an absent id did not change, unknown numbers are named once.
#[test]
fn changes_are_applied_to_the_last_report() {
    let mut seen = Vec::new();
    let text = r#"["g","PC_0",{"0":{"type":2,"11":"video","79":100,"777":3,"vendorX":"y"},"1":{"type":3,"11":"video","74":"0","t":1790000000400},"t":1790000001000},"connected-0",1020]
[1,"PC_0",{"0":{"79":250},"5":null,"t":1790000002000},1000]
["g","PC_0",{"1":null,"t":1790000003000},1000.5]"#;
    let result = super::read(text.as_bytes(), &mut |_, sample| {
        if let Sample::Object { id, at_ms, values, .. } = sample {
            seen.push((
                id.parse().unwrap(),
                *at_ms - 1.79e12,
                values.get("packetsSent").and_then(number),
                values["kind"].clone(),
            ));
        }
    });
    assert!(result.is_err(), "nothing counts bytes");
    let expected: Vec<(u8, f64, Option<f64>, Value)> = [
        (0, 1000.0, Some(100.0)),
        (1, 400.0, None),
        (0, 2000.0, Some(250.0)),
        (1, 2000.0, None),
        (0, 3000.0, Some(250.0)),
    ]
    .map(|(id, at, packets)| (id, at, packets, json!("video")))
    .into();
    assert_eq!(seen, expected);
    let text = each_line(
        (0..5)
            .map(|second| json!(["g", "a", {"0": {"type": 2, "80": 1000 * second, "777": 1}, "t": ms(second)}, 1000])),
    );
    let notes = read(text).unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("without a known name") && note.contains("777")), "{notes:?}");
}

/// What is absent did not change; a short line is no work for objects that nothing reads, nor at the time of the last report.
#[test]
fn only_what_is_read_is_repeated_and_only_later() {
    let first = json!({"O": {"type": "outbound-rtp", "80": 1000}, "C": {"type": "codec"}, "I": {"type": 2, "80": 1}});
    let repeated = |repeats_left: usize, steps: &[u64]| {
        let members = |step: u64| if step > 1_000_000_000 { json!({"t": step}) } else { json!({}) };
        let lines = steps.iter().map(|step| json!([1, "a", members(*step), step % 1_000_000_000]));
        // A call of its own, so that there is one.
        let other = (0..5).map(|second| json!(["getstats", "b", report(second), ms(second)]));
        let text = each_line([json!(["g", "a", first, BEGAN])].into_iter().chain(lines).chain(other));
        let mut seen = Vec::new();
        let call = read_up_to(repeats_left, text.as_bytes(), &mut |name, sample| {
            if let (Sample::Object { id, at_ms, .. }, "a") = (sample, name) {
                seen.push((id.to_string(), *at_ms as u64 - BEGAN));
            }
        });
        (seen.split_off(3), call.unwrap().notes)
    };
    let of = |ids: &[(&str, u64)]| ids.iter().map(|(id, at)| ((*id).to_owned(), *at)).collect::<Vec<_>>();
    assert_eq!(repeated(REPEATS_MAX, &[0; 9]).0, []);
    let (later, notes) = repeated(REPEATS_MAX, &[0, 1000, 0, 1000]);
    assert_eq!(later, of(&[("I", 1000), ("O", 1000), ("I", 2000), ("O", 2000)]));
    let in_seconds = BEGAN / 1000 + 7;
    assert_eq!(repeated(REPEATS_MAX, &[in_seconds, in_seconds]).0, of(&[("I", 7000), ("O", 7000)]));
    let is_short = |notes: &[String]| notes.iter().any(|note| note.contains("too many objects"));
    assert!(!is_short(&notes), "{notes:?}");
    let (later, notes) = repeated(3, &[1000; 5]);
    assert_eq!(later, of(&[("I", 1000), ("O", 1000), ("I", 2000)]));
    assert!(is_short(&notes), "{notes:?}");
}

#[test]
fn only_what_is_read_is_kept() {
    let nested = json!({"a": vec![0; 1000]});
    let longest = "s".repeat(TEXT_MAX);
    let report = |id: &str, second: u64| {
        json!({"type": "outbound-rtp", "id": id, "timestamp": ms(second), "bytesSent": 1000 * second, "mine": nested, "state": nested,
            "mediaSourceId": longest, "qualityLimitationReason": format!("{longest}s")})
    };
    let text = each_line((0..5).map(|second| json!([report("O", second), report(&format!("{longest}s"), second)])));
    let mut kept = Vec::new();
    let result = super::read(text.as_bytes(), &mut |_, sample| {
        if let Sample::Object { id, values, .. } = sample {
            kept.push((id.to_string(), (*values).clone()));
        }
    });
    assert_eq!(result.unwrap().flows.len(), 1);
    assert_eq!(kept.len(), 5, "the other id is too long");
    for ((id, values), second) in kept.into_iter().zip(0..) {
        let expected = json!({"type": "outbound-rtp", "timestamp": BEGAN as f64 + 1000.0 * f64::from(second), "bytesSent": 1000 * second,
            "state": null, "mediaSourceId": longest, "qualityLimitationReason": null});
        assert_eq!((id.as_str(), Value::from(values)), ("O", expected));
    }
}

#[test]
fn names_of_connections_are_bounded() {
    let lengths = [1, TEXT_MAX, TEXT_MAX + 1, 2 * TEXT_MAX];
    let text = each_line(lengths.iter().map(|length| json!(["getstats", "n".repeat(*length), report(0), ms(0)])));
    let mut seen = Vec::new();
    super::read(text.as_bytes(), &mut |name, _| seen.push(name.len())).unwrap_err();
    assert_eq!(seen, [1, TEXT_MAX, 1, 1]);
}

#[test]
fn states_and_limits_of_a_connection_are_bounded() {
    let marks = |count: usize| {
        let state = (0..count)
            .map(|n| json!(["onconnectionstatechange", "a", (if n % 2 == 0 { "connected" } else { "failed" }), ms(0)]));
        let limit = (0..count).map(|n| json!(["setRemoteDescription", "a", format!("b=AS:{}", n + 1), ms(0)]));
        let reports = (0..5).map(|second| json!(["getstats", "a", report(second), ms(second)]));
        read(each_line(reports.chain(state).chain(limit))).unwrap().flows[0].marks.len()
    };
    assert_eq!([OBJECTS_MAX, OBJECTS_MAX + 100].map(marks), [2 * OBJECTS_MAX; 2]);
}

#[test]
fn objects_that_jitsi_leaves_out_are_gone() {
    let removed = |lines: &[Value]| {
        let mut removed = 0;
        let text = each_line(lines.iter().cloned());
        super::read(text.as_bytes(), &mut |_, sample| removed += u32::from(matches!(sample, Sample::Removed { .. })))
            .ok();
        removed
    };
    let stats = |second: u64, ids: &[&str]| {
        let report: Map<String, Value> = ids
            .iter()
            .map(|id| ((*id).to_owned(), json!({"timestamp": 0, "type": "codec"})))
            .chain([("timestamp".to_owned(), ms(second))])
            .collect();
        report
    };
    let info =
        json!(["connectionInfo", null, {"clientProtocol": "3.1_STANDARD", "statsFormat": "chrome_standard"}, BEGAN]);
    let (first, second) =
        (json!(["getstats", "a", stats(1, &["A", "B"]), ms(1)]), json!(["getstats", "a", stats(2, &["A"]), ms(2)]));
    assert_eq!(removed(&[info, first.clone(), second.clone()]), 1);
    assert_eq!(removed(&[first, second]), 0);
}

#[test]
fn statistics_of_servers_are_read_under_their_names() {
    use crate::model::Quantity::{Estimate, PacketsLost, PacketsSent, RoundTrip, SentRate};
    let expected = read(each_line(lists(&|second| (5000 + 1000 * second).into()).into_iter())).unwrap().flows;
    let mediasoup = |kind: &'static str| {
        (0..SECONDS).map(move |second| {
        let objects = objects(second);
        let rtt = objects[1]["roundTripTime"].as_f64().unwrap() * 1e3;
        json!([
            {"type": kind, "timestamp": 5000 + 1000 * second, "sendBitrate": 1, "availableOutgoingBitrate": objects[2]["availableOutgoingBitrate"]},
            {"type": "outbound-rtp", "timestamp": 5000 + 1000 * second, "ssrc": 5, "byteCount": objects[0]["bytesSent"], "packetCount": objects[0]["packetsSent"], "packetsLost": objects[1]["packetsLost"], "roundTripTime": rtt},
        ])
    })
    };
    let of_mediasoup = &[Estimate, PacketsLost, PacketsSent, RoundTrip, SentRate][..];
    let janus = (0..SECONDS).map(|second| {
        let objects = objects(second);
        let rtt = objects[1]["roundTripTime"].as_f64().unwrap() * 1e3;
        json!([{"type": 32, "timestamp": 1000 * (BEGAN + 1000 * second), "session_id": 1, "handle_id": 2, "event": {"media": "video", "mid": "0",
            "rtt": rtt, "lost-by-remote": objects[1]["packetsLost"], "lost": 0, "bytes-sent": objects[0]["bytesSent"],
            "packets-sent": objects[0]["packetsSent"], "bytes-received": 0, "packets-received": 0}}])
    });
    for (text, quantities) in [
        (each_line(mediasoup("webrtc-transport")), of_mediasoup),
        (each_line(mediasoup("pipe-transport")), of_mediasoup),
        (each_line(mediasoup("transport")), of_mediasoup),
        (each_line(janus), &[PacketsLost, PacketsSent, RoundTrip, SentRate]),
    ] {
        let flows = read(text).unwrap().flows;
        assert_eq!(flows.len(), 1);
        for quantity in quantities {
            assert_eq!(flows[0].get(*quantity), expected[0].get(*quantity), "{quantity:?}");
        }
    }
}

#[test]
fn reports_out_of_order_are_named() {
    let lists = lists(&ms);
    let error = read(each_line(lists.iter().rev().cloned())).unwrap_err();
    assert!(error.to_string().contains("reverse order") && error.help().contains("tac"), "{error}");
    let notes = |text: String| read(text).unwrap().notes.join(" ");
    let joined = notes(each_line(lists[lists.len() / 2..].iter().chain(&lists).cloned()));
    assert!(joined.contains("earlier than those before them"), "{joined}");
    assert!(!notes(each_line(lists.iter().cloned())).contains("earlier"));
}

#[test]
fn cut_texts_are_read_up_to_the_cut() {
    let lists = lists(&ms);
    let texts = [
        Value::from(lists.clone()).to_string(),
        format!("{:#}", Value::from(lists.iter().map(entries).collect::<Vec<_>>())),
        json!({"samples": lists}).to_string(),
        each_line(lists.iter().map(map)),
    ];
    for text in &texts {
        for cut in (text.len() / 2..text.len() - 4).step_by(97) {
            let call = read(&text.as_bytes()[..cut]).unwrap();
            let until = call.flows[0].span.1.as_secs_f64();
            assert!(until + 2.0 >= (SECONDS as f64) * cut as f64 / text.len() as f64 - 1.0, "{cut}: {until}");
        }
    }
}

/// 100 packets a second leave with ECT(1); the receiver reports these shares of them as marked and as cleared.
fn ecn_dump(is_abbreviated: bool, marked: u64, cleared: u64) -> Call {
    let name = |number: &'static str, name: &'static str| if is_abbreviated { number } else { name };
    let mut text = "RTCStatsDump\n{\"fileFormat\":3}\n[39,\"PC_0\",{},1790000000000]\n".to_owned();
    for second in 1..=20u64 {
        let out = json!({"type": 2, "11": "video", "80": 100_000 * second, "79": 100 * second, name("174", "packetsSentWithEct1"): 100 * second});
        let remote = json!({"type": 3, "15": 0, "75": 0.05, "78": second,
            name("169", "packetsReceivedWithEct1"): (100 - marked - cleared) * second,
            name("170", "packetsReceivedWithCe"): marked * second,
            name("173", "packetsWithBleachedEct1Marking"): cleared * second});
        let at = 1_790_000_000_000 + 1000 * second;
        text += &format!("{}\n", json!(["g", "PC_0", {"0": out, "1": remote, "t": at}, 1000]));
    }
    read(text).unwrap()
}

#[test]
fn counts_of_ecn_are_read_by_number_and_by_name() {
    use crate::ecn::{EcnFinding, of_flow};
    let found = |call: &Call| of_flow(&call.flows[0]).map(|ecn| (ecn.finding, ecn.marked, ecn.cleared));
    let marked = ecn_dump(true, 10, 0);
    assert_eq!(found(&marked), Some((EcnFinding::Marked, Some(190.0), Some(0.0))));
    assert_eq!(marked, ecn_dump(false, 10, 0));
    assert_eq!(found(&ecn_dump(true, 0, 100)), Some((EcnFinding::Bleached, Some(0.0), Some(1900.0))));
    assert_eq!(found(&ecn_dump(true, 0, 0)), Some((EcnFinding::Unmarked, Some(0.0), Some(0.0))));
    let without: String = (0..20).map(|second| format!("{}\n", report(second))).collect();
    assert_eq!(found(&read(without).unwrap()), None);
}
