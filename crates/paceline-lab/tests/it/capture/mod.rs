// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures, read with other libraries and with tshark.

mod read;
mod tshark;

use etherparse::{IpNumber, Ipv4Header, TcpHeader, TcpHeaderSlice, UdpHeader};
use paceline::{
    Config, Controller, Decision, Entry, Event, FeedbackRequirement, Parameters, Registry, SendHalf, Setup, Signals,
};
use paceline_lab::capture::{Capture, CaptureError};
use paceline_lab::run::Runner;
use paceline_netsim::records::{EventObserver, EventRecord, PacketClass, PacketRecord};
use paceline_scenario::{Catalogue, Changes, Origin, Scenario, load};
use paceline_units::{Ecn, Rate, Time, TimeDelta};
use paceline_wire::{AbsSendTime, ExtensionIds, Rtcp, RtpHeader, is_rtcp, padding_len, parse_compound};
use read::{File, Packet};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Media with retransmissions, audio, padding and transport-wide feedback, over a hop in each direction.
const WIDE: &str = r#"
id = "test/wide"
title = "Transport-wide feedback"
duration = "10s"
[path]
rtt = "50ms"
[path.forward]
capacity = "1 Mbps"
loss = "2 %"
[[flow]]
id = "call"
controller = "wide"
access_delay = "3 ms"
audio = {}
"#;

/// A controller that sends at its start rate with padding and receives per-packet feedback.
#[derive(Clone)]
struct Wide(FeedbackRequirement);
#[derive(Clone, Debug)]
struct WideHalf(Rate);

impl Parameters for Wide {}

impl Config for Wide {
    fn halves(&self, setup: &Setup) -> Controller {
        Controller::from_sender(WideHalf(setup.start)).with_feedback(Some(self.0))
    }
}

impl SendHalf for WideHalf {
    fn handle_event(&mut self, _: Time, _: &Event<'_>, _: &mut Signals) {}

    fn decision(&self) -> Decision {
        Decision::new(self.0).with_pacing(self.0.scale(1.5)).with_padding(self.0.scale(1.2)).with_ecn(Ecn::Ect0)
    }
}

fn registry() -> Registry {
    let mut registry = Registry::standard();
    let interval = TimeDelta::from_millis(50);
    let wide = FeedbackRequirement::new(interval, interval);
    let by_stream = wide.with_ecn(true);
    registry.add(Entry::new("wide", "transport-wide feedback", "a test", Wide(wide)));
    registry.add(Entry::new("by-stream", "feedback of RFC 8888", "a test", Wide(by_stream)));
    registry
}

struct Events(Vec<EventRecord>);

impl EventObserver for Events {
    fn on_event(&mut self, event: &EventRecord) {
        self.0.push(*event);
    }
}

struct Run {
    scenario: Scenario,
    events: Vec<EventRecord>,
    path: PathBuf,
}

impl Run {
    fn count(&self, of: fn(&EventRecord) -> bool) -> usize {
        self.events.iter().filter(|event| of(event)).count()
    }
}

fn scenario(origin: &Origin, settings: &[&str]) -> Scenario {
    let settings = settings.iter().map(|s| s.parse().expect("KEY=VALUE")).collect();
    load(origin, &Changes { settings, ..Changes::default() }, &registry()).unwrap_or_else(|p| panic!("{p}"))
}

fn run(name: &str, origin: &Origin, settings: &[&str]) -> Run {
    let (registry, scenario) = (registry(), scenario(origin, settings));
    let runner = Runner::simulator(&registry);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pcapng"));
    let header = scenario.plan.header(&registry, "sim", 1);
    let mut observers = (Events(Vec::new()), Capture::create(&path, &scenario.plan, &header).unwrap());
    let observed = runner.run(&scenario, 1, Some(&mut observers)).unwrap();
    observers.1.finish().unwrap();
    assert_eq!(observed, runner.run(&scenario, 1, None).unwrap(), "observers do not change a run");
    Run { scenario, events: observers.0.0, path }
}

fn table1(name: &str) -> Run {
    run(name, &Catalogue.find("mmsys16/table1").unwrap(), &["duration=60s"])
}

fn table5(name: &str) -> Run {
    run(name, &Catalogue.find("mmsys16/table5").unwrap(), &["duration=20s"])
}

fn wide(name: &str) -> Run {
    run(name, &Origin::from_text("wide.toml", WIDE), &[])
}

/// The same with feedback of RFC 8888, over a full queue that marks.
fn by_stream(name: &str) -> Run {
    let settings = [
        "id=test/by-stream",
        "flow.call.controller=by-stream",
        "path.forward.capacity=250kbps",
        "path.forward.queue={ limit = \"300 ms\", mark = \"40 ms\" }",
    ];
    run(name, &Origin::from_text("wide.toml", WIDE), &settings)
}

/// Returns the packets that each interface must show according to the events: time, packet and, at the far end of a
/// hop, queuing delay. Events do not cover the entries of hops.
fn expected(run: &Run) -> BTreeMap<String, Vec<(Time, PacketRecord, Option<TimeDelta>)>> {
    let mut expected: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for event in &run.events {
        let (tap, seen) = match *event {
            EventRecord::Sent { at, packet } => {
                (if packet.class.is_from_receiver() { "receiver" } else { "sender" }, (at, packet, None))
            }
            EventRecord::Arrived { at, packet, .. } => {
                (if packet.class.is_from_receiver() { "sender" } else { "receiver" }, (at, packet, None))
            }
            EventRecord::Crossed { at, hop, packet, waited, .. } => {
                let tap = format!("{} out", run.scenario.plan.hops[hop as usize].id);
                expected.entry(tap).or_default().push((at, packet, Some(waited)));
                continue;
            }
            _ => continue,
        };
        expected.entry(tap.to_owned()).or_default().push(seen);
    }
    expected
}

fn assert_agrees(run: &Run) {
    let file = File::read(&run.path);
    assert!(file.packets.is_sorted_by_key(|p| p.at), "in order of time");
    let expected = expected(run);
    assert_eq!(expected.len(), 2 + run.scenario.plan.hops.len());
    for (tap, expected) in &expected {
        let seen: Vec<&Packet> = file.at(tap).collect();
        assert!(seen.len() > 50, "{tap}: {}", seen.len());
        assert_eq!(seen.len(), expected.len(), "{tap}");
        for (seen, (at, packet, waited)) in seen.iter().zip(expected) {
            assert_eq!((seen.at, seen.number(), seen.size as u64), (*at, packet.packet, packet.size.as_bytes()));
            assert_eq!(seen.comment["class"], packet.class.name());
            assert_eq!(seen.comment["flow"], run.scenario.plan.flows[packet.flow.0 as usize].id);
            let queued = waited.map(|w| format!("{:.3}", w.as_nanos() as f64 / 1e6));
            assert_eq!(seen.comment.get("queued_ms"), queued.as_ref());
        }
    }
    for (index, hop) in run.scenario.plan.hops.iter().enumerate() {
        assert_entries_agree(run, &file, index as u16, &hop.id);
    }
    for packet in file.packets.iter().filter(|p| p.interface != "session") {
        assert_valid(packet);
    }
}

/// A packet that enters a hop leaves it, is dropped there, or is still inside at the end of the run.
fn assert_entries_agree(run: &Run, file: &File, hop: u16, id: &str) {
    let (mut crossed, mut dropped) = (BTreeMap::new(), BTreeMap::new());
    for event in &run.events {
        match *event {
            EventRecord::Crossed { hop: h, packet, at, .. } if h == hop => {
                crossed.insert(packet.packet, at);
            }
            EventRecord::Dropped { hop: h, packet, at, reason, .. } if h == hop => {
                dropped.insert(packet.packet, (at, reason.name()));
            }
            _ => {}
        }
    }
    let (mut through, mut lost, mut inside) = (0, 0, 0);
    for packet in file.at(&format!("{id} in")) {
        match (packet.comment.get("queued_ms"), packet.comment.get("dropped")) {
            (Some(_), None) => {
                assert!(crossed[&packet.number()] >= packet.at);
                through += 1;
            }
            (None, Some(reason)) => {
                let (at, why) = dropped[&packet.number()];
                assert!(at >= packet.at && why == reason);
                assert!(why != "overflow" || at == packet.at, "overflow drops on arrival");
                lost += 1;
            }
            (None, None) => inside += 1,
            both => panic!("{both:?}"),
        }
    }
    assert_eq!((through, lost), (crossed.len(), dropped.len()), "{id}");
    assert!(inside <= 100, "{id}: {inside} still inside");
}

/// Checks lengths and checksums of a packet, and its RTP, RTCP or TCP header.
fn assert_valid(packet: &Packet) {
    let (ip, rest) = Ipv4Header::from_slice(&packet.bytes).unwrap();
    assert_eq!(u32::from(ip.total_len), packet.size);
    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
    assert_eq!((ip.identification, ip.time_to_live), (packet.number() as u16, 64));
    match ip.protocol {
        IpNumber::UDP => {
            let (udp, payload) = UdpHeader::from_slice(rest).unwrap();
            assert_eq!((udp.source_port, udp.destination_port, udp.checksum), (5004, 5004, 0));
            assert_eq!(u32::from(udp.length) + 20, packet.size);
            if is_rtcp(payload) {
                assert!(packet.comment["class"].ends_with("_control"));
                assert_eq!(packet.bytes.len(), packet.size as usize, "RTCP is complete");
                assert!(parse_compound(payload).unwrap().into_iter().count() > 0);
            } else {
                let (rtp, offset) = RtpHeader::parse(payload, &ExtensionIds::default()).unwrap();
                // A probe may be filled with earlier packets, which have no padding.
                assert!(!rtp.padding || packet.comment["class"] == "padding");
                if rtp.padding {
                    assert_eq!(padding_len(payload, offset), Ok(payload.len() - offset), "complete padding");
                } else if packet.comment["class"] != "padding" {
                    assert!(packet.bytes.len() < packet.size as usize, "payload has a length only");
                }
            }
        }
        IpNumber::TCP => {
            let (tcp, payload) = TcpHeader::from_slice(rest).unwrap();
            assert!(payload.is_empty());
            let zeros = vec![0; packet.size as usize - packet.bytes.len()];
            assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, &zeros).unwrap());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn captures_agree_with_events() {
    assert_agrees(&table1("table1"));
    assert_agrees(&table5("table5"));
    let wide = wide("wide");
    assert_agrees(&wide);
    let classes: BTreeSet<&str> = File::read(&wide.path)
        .packets
        .iter()
        .filter_map(|p| p.comment.get("class"))
        .map(|c| PacketClass::NAMES.into_iter().find(|n| n == c).unwrap())
        .collect();
    let media = ["media", "padding", "receiver_control", "retransmission", "sender_control"];
    assert_eq!(classes, BTreeSet::from(media), "every class of media occurs");
}

#[test]
fn rtp_carries_send_times_and_sequence_numbers() {
    let run = wide("rtp");
    let file = File::read(&run.path);
    let mut next: BTreeMap<u32, u16> = BTreeMap::new();
    let (mut transport, mut capable) = (0, 0);
    for packet in file.at("sender") {
        let (ip, rest) = Ipv4Header::from_slice(&packet.bytes).unwrap();
        let payload = &rest[UdpHeader::LEN..];
        if is_rtcp(payload) {
            let own = ip.source == [10, 1, 0, 1];
            let report = parse_compound(payload).unwrap().into_iter().any(|p| matches!(p, Rtcp::SenderReport { .. }));
            assert_eq!(own, report);
            continue;
        }
        let (rtp, _) = RtpHeader::parse(payload, &ExtensionIds::default()).unwrap();
        assert_eq!(rtp.abs_send_time, Some(AbsSendTime::from_time(packet.at)));
        assert_eq!(rtp.transport_sequence, Some(transport));
        transport = transport.wrapping_add(1);
        let next = next.entry(rtp.ssrc).or_insert(rtp.sequence);
        assert_eq!(rtp.sequence, *next, "packets leave in order of sequence numbers");
        *next = next.wrapping_add(1);
        capable += u16::from(ip.ecn == etherparse::IpEcn::Ect0);
        assert!(capable == transport || ip.ecn == etherparse::IpEcn::NotEct);
        assert_eq!((ip.source, ip.destination), ([10, 1, 0, 1], [10, 1, 0, 2]));
    }
    assert_eq!(next.len(), 3, "video, its retransmissions, audio");
    assert!(transport > 1000, "{transport}");
    assert!((5..100).contains(&capable), "until the first report, which has no ECN: {capable}");
}

fn marked(run: &Run) -> BTreeSet<u64> {
    let marked = |event: &EventRecord| match event {
        EventRecord::Arrived { packet, ecn: Ecn::Ce, .. } => Some(packet.packet),
        _ => None,
    };
    run.events.iter().filter_map(marked).collect()
}

#[test]
fn ecn_marks_appear_after_the_queue_and_in_feedback() {
    let run = by_stream("marks");
    let marked = marked(&run);
    let (mut arrived, mut reported) = (0, BTreeSet::new());
    for packet in File::read(&run.path).packets {
        let Ok((ip, rest)) = Ipv4Header::from_slice(&packet.bytes) else { continue };
        let is_marked = ip.ecn == etherparse::IpEcn::CongestionExperienced;
        match packet.interface.as_str() {
            "sender" => assert!(!is_marked, "nothing is marked before the queue"),
            "receiver" => {
                assert_eq!(is_marked, marked.contains(&packet.number()));
                arrived += u32::from(ip.ecn != etherparse::IpEcn::NotEct);
                if let Ok(compound) = parse_compound(&rest[UdpHeader::LEN..]) {
                    for message in compound {
                        let Rtcp::CongestionFeedback(f) = message else { continue };
                        let packets = f.blocks().flat_map(|b| b.packets().map(move |(n, p)| (b.ssrc, n, p)));
                        let marked = packets.filter(|(.., p)| p.is_some_and(|p| p.ecn == Ecn::Ce));
                        reported.extend(marked.map(|(ssrc, number, _)| (ssrc, number)));
                    }
                }
            }
            _ => {}
        }
    }
    // All packets are marked except those before the queue exceeded the threshold.
    assert!(marked.len() > 100 && arrived as usize > marked.len(), "{} of {arrived}", marked.len());
    // Packets of the last 50 ms are not reported.
    let (reported, marked) = (reported.len(), marked.len());
    assert!(reported <= marked && reported + 10 > marked, "{reported} of {marked}");
}

#[test]
fn packets_differ_between_taps_only_in_addresses() {
    for run in [table5("same"), wide("same-wide")] {
        let file = File::read(&run.path);
        let mut seen: BTreeMap<u64, (Vec<u8>, usize)> = BTreeMap::new();
        for packet in file.packets.iter().filter(|p| p.interface != "session") {
            let mut bytes = packet.bytes.clone();
            let interface = file.interfaces.iter().position(|i| *i == packet.interface).unwrap() as u8;
            assert_eq!((bytes[12], bytes[13], bytes[16], bytes[17]), (10, interface + 1, 10, interface + 1));
            let tcp = bytes[9] == 6;
            // IP checksum, addresses, TCP checksum.
            for at in (10..20).chain(if tcp { 36..38 } else { 0..0 }) {
                bytes[at] = 0;
            }
            let (first, taps) = seen.entry(packet.number()).or_insert((bytes.clone(), 0));
            assert_eq!(*first, bytes, "packet {}", packet.number());
            *taps += 1;
        }
        let whole = seen.values().filter(|(_, taps)| *taps == 4).count();
        assert!(whole * 10 > seen.len() * 8, "{whole} of {} crossed one hop from end to end", seen.len());
    }
}

#[test]
fn tcp_has_handshake_timestamps_and_window() {
    let run = table5("tcp");
    let file = File::read(&run.path);
    let mut ports = BTreeSet::new();
    let mut times: BTreeMap<u16, u32> = BTreeMap::new();
    let (mut sacks, mut echoed) = (0, 0);
    for packet in file.at("sender").filter(|p| p.bytes[9] == 6) {
        let tcp = TcpHeaderSlice::from_slice(&packet.bytes[20..]).unwrap();
        let to_receiver = packet.bytes[19] == 2;
        let port = if to_receiver { tcp.source_port() } else { tcp.destination_port() };
        if ports.insert(port) {
            assert!(
                tcp.syn() && !tcp.ack() && tcp.sequence_number() == 0 && to_receiver,
                "a connection starts with a SYN"
            );
        }
        use etherparse::TcpOptionElement as Option;
        let options: Vec<Option> = tcp.options_iterator().map(|o| o.unwrap()).collect();
        // 3 MiB are 49,152 units of 64 bytes, and more than 65,535 of 32.
        assert_eq!(tcp.syn(), options.contains(&Option::WindowScale(6)));
        assert_eq!(tcp.syn(), options.contains(&Option::MaximumSegmentSize(1460)));
        let Some(Option::Timestamp(value, echo)) = options.iter().find(|o| matches!(o, Option::Timestamp(..))).cloned()
        else {
            panic!("every segment has timestamps")
        };
        sacks += options.iter().filter(|o| matches!(o, Option::SelectiveAcknowledgement(..))).count();
        let now = 1 + ((packet.at - Time::ZERO).as_nanos() / 1_000_000) as u32;
        if to_receiver {
            assert_eq!(value, now);
            assert!(echo <= *times.get(&port).unwrap_or(&0), "echoes a received timestamp");
        } else {
            assert!(value + 25 <= now && value + 400 >= now, "sent one one-way delay ago: {value} at {now}");
            assert!(echo + 50 <= now && echo + 1000 >= now, "sent at least one round trip ago: {echo} at {now}");
            times.insert(port, value);
            echoed += 1;
        }
    }
    assert_eq!(ports.len(), 2, "on periods from 5 s and from 17 s");
    assert!(sacks > 10 && echoed > 100, "{sacks} {echoed}");
}

#[test]
fn every_flow_has_unique_addresses_or_ports() {
    let text =
        WIDE.replace("controller = \"wide\"\naccess_delay = \"3 ms\"\naudio = {}", "kind = \"tcp\"\ncount = 600");
    let run = run("many", &Origin::from_text("many.toml", &text), &["duration=1s"]);
    let mut flow_of = BTreeMap::new();
    for packet in File::read(&run.path).packets {
        let mut ends = [(&packet.bytes[12..16], &packet.bytes[20..22]), (&packet.bytes[16..20], &packet.bytes[22..24])];
        ends.sort();
        let key: Vec<u8> = ends.iter().flat_map(|(host, port)| [*host, *port].concat()).collect();
        let flow = flow_of.entry(key).or_insert(packet.comment["flow"].clone());
        assert_eq!(*flow, packet.comment["flow"]);
    }
    let flows: BTreeSet<String> = flow_of.into_values().collect();
    assert_eq!(flows.len(), 600);
}

#[test]
fn captures_are_complete_or_absent() {
    let registry = registry();
    let plan = scenario(&Origin::from_text("wide.toml", WIDE), &[]).plan;
    let header = plan.header(&registry, "sim", 1);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("captures-whole");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let names = || std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect::<Vec<_>>();

    let path = folder.join("run.pcapng");
    std::fs::write(&path, "an earlier file").unwrap();
    drop(Capture::create(&path, &plan, &header).unwrap());
    assert_eq!(std::fs::read(&path).unwrap(), b"an earlier file");
    assert_eq!(names(), ["run.pcapng"], "no temporary file remains");
    Capture::create(&path, &plan, &header).unwrap().finish().unwrap();
    assert_eq!(names(), ["run.pcapng"]);
    assert_eq!(File::read(&path).packets.len(), 6, "an announcement at each tap");

    for bad in [folder.clone(), folder.join("no/such/folder.pcapng")] {
        let Err(error) = Capture::create(&bad, &plan, &header) else { panic!("{}", bad.display()) };
        assert!(error.to_string().contains(&format!("`{}`", bad.display())), "{error}");
    }
    let mut long = plan.clone();
    long.hops = vec![plan.hops[0].clone(); 127];
    let error = Capture::create(&path, &long, &header).err().unwrap();
    assert!(matches!(error, CaptureError::TooManyHops { hops: 127 }), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_error_names_the_path() {
    let registry = registry();
    let scenario = scenario(&Catalogue.find("mmsys16/table1").unwrap(), &["duration=10s"]);
    let header = scenario.plan.header(&registry, "sim", 1);
    let mut capture = Capture::create(Path::new("/dev/full"), &scenario.plan, &header).unwrap();
    Runner::simulator(&registry).run(&scenario, 1, Some(&mut capture)).unwrap();
    let error = capture.finish().unwrap_err();
    assert!(error.to_string().contains("cannot write `/dev/full`"), "{error}");
    assert!(Path::new("/dev/full").metadata().is_ok_and(|m| !m.is_file()), "the device is not replaced");
}
