// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every format becomes the same model, and broken inputs become errors with a place and a hint.

use crate::generator::formats::Made;
use crate::generator::generate;
use crate::samples::{self, SECONDS};
use paceline_explain::ReadError;
use paceline_explain::diagnosis::of_flow;
use paceline_explain::document::explain;
use paceline_explain::episodes::EpisodeKind;
use paceline_explain::model::{Flow, MarkKind, Quantity};
use paceline_explain::readers::{Format, read_bytes, recognise};
use paceline_units::Time;

/// Checks what all statistics of the samples say: a drop at 20 s, from 1.7 to 0.6 Mbit/s.
fn check_drop(flow: &Flow, tolerance_s: f64) {
    let drops: Vec<_> = of_flow(flow).into_iter().filter(|finding| finding.episode.kind == EpisodeKind::Drop).collect();
    assert_eq!(drops.len(), 1, "{drops:?}");
    let drop = &drops[0].episode;
    assert!(((drop.end - flow.span.0).as_secs_f64() - 20.0).abs() <= tolerance_s, "{drop:?}");
    assert_eq!((drop.from, drop.to), (1.7e6, 6e5));
}

#[test]
fn reads_a_dump_of_webrtc_internals() {
    let call = read_bytes(samples::internals().as_bytes()).unwrap();
    assert_eq!((call.format.as_str(), call.flows.len()), ("webrtc-internals", 1));
    let flow = &call.flows[0];
    check_drop(flow, 1.0);
    let rtt = flow.get(Quantity::RoundTrip).unwrap();
    assert_eq!((rtt.min(Time::ZERO, Time::MAX), rtt.max(Time::ZERO, Time::MAX)), (Some(0.05), Some(0.4)));
    assert!(flow.marks.iter().any(|mark| mark.kind == MarkKind::CapSet(5e6)), "{:?}", flow.marks);
    // The rate follows from the counter: no computed series is needed.
    let sent = flow.get(Quantity::SentRate).unwrap();
    assert!((sent.mean(Time::from_secs(5), Time::from_secs(15)).unwrap() - 1.7e6).abs() < 2e4);
}

#[test]
fn reads_a_packed_dump_and_a_cut_one() {
    use std::io::Write;
    let text = samples::internals();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    assert_eq!(read_bytes(&packed.finish().unwrap()).unwrap(), read_bytes(text.as_bytes()).unwrap());
    let cut = read_bytes(&text.as_bytes()[..text.len() - 30]).unwrap();
    assert!(cut.notes.iter().any(|note| note.contains("cut or damaged at line")), "{:?}", cut.notes);
}

#[test]
fn a_byte_order_mark_changes_nothing() {
    for text in [samples::internals(), samples::lines()] {
        assert_eq!(read_bytes(format!("\u{FEFF}{text}").as_bytes()).unwrap(), read_bytes(text.as_bytes()).unwrap());
    }
}

#[test]
fn connections_of_a_dump_are_numbered_if_they_have_flows() {
    let mut dump: serde_json::Value = serde_json::from_str(&samples::internals()).unwrap();
    let connection = dump["PeerConnections"]["9-1"].clone();
    let connections = dump["PeerConnections"].as_object_mut().unwrap();
    connections.insert("9-0".to_owned(), serde_json::json!({"stats": {}}));
    connections.insert("9-2".to_owned(), connection);
    let call = read_bytes(dump.to_string().as_bytes()).unwrap();
    let names: Vec<&str> = call.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["connection 1 sent", "connection 2 sent"]);
    let mut notes = call.notes.clone();
    notes.dedup();
    assert_eq!(notes, call.notes);
}

/// States have `on` and quotes in some versions.
#[test]
fn states_of_the_connection_are_read_from_dumps_and_from_events() {
    let began = 1_767_225_600_000u64;
    for (event, lost) in [("iceconnectionstatechange", "disconnected"), ("onconnectionstatechange", "\"failed\"")] {
        let mut dump: serde_json::Value = serde_json::from_str(&samples::internals()).unwrap();
        let log = dump["PeerConnections"]["9-1"]["updateLog"].as_array_mut().unwrap();
        let state = |state: &str, second: u64| serde_json::json!({"type": event, "value": state, "timestamp": began + 1000 * second});
        log.extend([state("checking", 0), state(lost, 12), state("connected", 15)]);
        let expected = [(Time::from_secs(12), Time::from_secs(15))];
        assert_eq!(read_bytes(dump.to_string().as_bytes()).unwrap().flows[0].disconnections(), expected);
        // As old versions write times.
        let log = dump["PeerConnections"]["9-1"]["updateLog"].as_array_mut().unwrap();
        log.iter_mut().for_each(|entry| entry["timestamp"] = "14/11/2023, 22:13:19".into());
        let call = read_bytes(dump.to_string().as_bytes()).unwrap();
        assert_eq!(call.flows[0].disconnections(), []);
        assert!(
            call.notes.iter().any(|note| note.contains("was lost or failed: when is not known")),
            "{:?}",
            call.notes
        );
        let event =
            |state: &str, second: u64| serde_json::json!([event, "9-1", state, began + 1000 * second]).to_string();
        let text = format!("{}{}\n{}\n", samples::rtcstats(), event(lost, 12), event("completed", 15));
        assert_eq!(read_bytes(text.as_bytes()).unwrap().flows[0].disconnections(), expected);
    }
}

#[test]
fn reads_lines_of_getstats_and_of_rtcstats() {
    let call = read_bytes(samples::lines().as_bytes()).unwrap();
    check_drop(&call.flows[0], 1.0);
    assert_eq!(call.flows[0].get(Quantity::Target).unwrap().points.len(), SECONDS - 1);
    let call = read_bytes(samples::rtcstats().as_bytes()).unwrap();
    check_drop(&call.flows[0], 1.0);
    // The same as a list of objects, one report a line.
    let lines = samples::lines();
    let list = lines.lines().map(|line| {
        let report: serde_json::Value = serde_json::from_str(line).unwrap();
        let objects: Vec<_> = report.as_object().unwrap().values().collect();
        serde_json::to_string(&objects).unwrap() + "\n"
    });
    let list: String = list.collect();
    assert_eq!(read_bytes(list.as_bytes()).unwrap().flows, read_bytes(samples::lines().as_bytes()).unwrap().flows);
}

#[test]
fn reads_an_event_log() {
    let call = read_bytes(&samples::event_log()).unwrap();
    assert_eq!((call.format.as_str(), call.flows.len()), ("rtc-event-log", 1));
    let flow = &call.flows[0];
    // 100 packets of 1020 B a second.
    let sent = flow.get(Quantity::SentRate).unwrap();
    let mean = sent.mean(Time::from_secs(5), Time::from_secs(15)).unwrap();
    assert!((mean - 816e3).abs() < 5e3, "{mean}");
    let marks: Vec<&MarkKind> = flow.marks.iter().map(|mark| &mark.kind).collect();
    assert_eq!(marks, [&MarkKind::OverUse, &MarkKind::ProbeFailed]);
    let target = flow.get(Quantity::Target).unwrap();
    assert_eq!((target.points.len(), target.points[0].1), (30, 900e3));
    // A cut last record is tolerated.
    let mut cut = samples::event_log();
    cut.pop();
    assert!(read_bytes(&cut).unwrap().notes.iter().any(|note| note.contains("cut or damaged at byte")));
}

/// The numbers of a capture with both ends are those of the endpoints' own events; one at the sender has them from the reports.
#[test]
fn captures_agree_with_the_events_of_the_endpoints() {
    let made = Made::new(&generate(0));
    let events = made.events();
    let (events, both, sender) =
        (&events.flows[0], &read_bytes(&made.capture(false)).unwrap(), &read_bytes(&made.capture(true)).unwrap());
    let (both, sender) = (&both.flows[0], &sender.flows[0]);
    let total = |flow: &Flow, quantity| flow.get(quantity).unwrap().sum(Time::ZERO, Time::MAX);
    for quantity in [Quantity::SentRate, Quantity::ReceivedRate, Quantity::PacketsSent, Quantity::PacketsLost] {
        let (expected, found) = (total(events, quantity), total(both, quantity));
        assert!((found - expected).abs() <= 0.01 * expected + 3.0, "{quantity:?}: {found}, expected {expected}");
    }
    let high = |flow: &Flow| flow.get(Quantity::DelayHigh).unwrap().max(Time::ZERO, Time::MAX).unwrap();
    assert!((high(both) - high(events)).abs() < 0.002, "{} {}", high(both), high(events));
    assert!((high(sender) - high(events)).abs() < 0.01, "{} {}", high(sender), high(events));
    let (expected, found) = (total(events, Quantity::SentRate), total(sender, Quantity::SentRate));
    assert!((found - expected).abs() <= 0.01 * expected, "{found} {expected}");
}

#[test]
fn broken_inputs_are_errors_with_a_place_and_a_hint() {
    let error = |bytes: &[u8]| read_bytes(bytes).unwrap_err();
    for (bytes, part) in [
        (&b""[..], "empty"),
        (b"hello, world", "unknown format: it begins with `hello, world`"),
        (b"{\"PeerConnections\": {\"9-1\": {\"stats\": 5}}}", "line 1, column"),
        (b"PK\x03\x04abc", "unknown format: it is a zip archive: unpack it"),
        (b"\xFF\xFE[\0", "UTF-16"),
        (b"\x34\xCD\xB2\xA1\x02\0", "a modified pcap"),
        (b"{\"a\": 1}\n", "no report has outbound-rtp"),
        (b"{\"type\": \n", "line 1: no JSON"),
        (b"{\"getUserMedia\": [], \"PeerConnections\": {}}", "no connection in it"),
        (b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00", "pcapng"),
        (b"\x82\x01\x02\x08\x05", "no RTP packet in it"),
    ] {
        let error = error(bytes);
        assert!(error.to_string().contains(part), "{error}: expected {part}");
        assert!(!error.help().is_empty());
    }
    assert!(matches!(error(b"hello"), ReadError::UnknownFormat { .. }));
    assert_eq!(recognise(b"12:30 INFO [{\"type\":\"outbound-rtp\"}]"), Some(Format::Lines));
    assert_eq!(recognise(b"12:30 INFO [{\"type\":\"other\"}]"), None);
    assert!(error(b"hello").help().contains("pcapng"));
}

#[test]
fn explanations_contain_no_identity() {
    for input in [samples::internals().into_bytes(), samples::capture()] {
        let text = serde_json::to_string(&explain(&read_bytes(&input).unwrap())).unwrap();
        for secret in ["secret", "Mozilla", "10.1.0", "10.2.0"] {
            assert!(!text.contains(secret), "{secret} is in {text}");
        }
    }
}
