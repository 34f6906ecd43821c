//! Captures, read back: by other libraries here, by tshark where there is one.

mod read;
mod tshark;

use etherparse::{IpNumber, Ipv4Header, TcpHeader, TcpHeaderSlice, UdpHeader};
use paceline::{Config, Controller, Decision, Entry, FeedbackKind, Field, Registry, SendHalf, Setup, SignalSpec};
use paceline_lab::capture::{Capture, CaptureError};
use paceline_lab::plan::Plan;
use paceline_lab::rows::{PacketClass, PacketRow, Row, RowSink};
use paceline_lab::run::{Runner, header};
use paceline_lab::scenario::{Catalogue, Changes, Origin, load};
use paceline_lab::sim::Simulator;
use paceline_units::{Ecn, Rate, Time, TimeDelta};
use paceline_wire::{AbsSendTime, ExtensionIds, Rtcp, RtpHeader, is_rtcp, padding_len, parse_compound};
use read::{File, Packet};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Media with losses to repair, audio, padding and transport-wide feedback, both ways over two hops.
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

/// A controller that sends at its start rate, pads, and hears per-packet feedback.
#[derive(Clone)]
struct Wide(FeedbackKind);
struct WideHalf(Rate);

impl Config for Wide {
    const FIELDS: &'static [Field<Self>] = &[];
    const SIGNALS: (&'static [SignalSpec], &'static [SignalSpec]) = (&[], &[]);
    fn build(&self, setup: &Setup) -> Controller {
        Controller { send: Some(Box::new(WideHalf(setup.start))), receive: None, feedback: self.0, ecn: Ecn::Ect0 }
    }
}

impl SendHalf for WideHalf {
    fn decision(&self) -> Decision {
        Decision { target: self.0, pacing: self.0.scale(1.5), window: None, padding: self.0.scale(1.2) }
    }
}

fn registry() -> Registry {
    let mut registry = Registry::standard();
    let (interval, longest) = (TimeDelta::from_millis(50), TimeDelta::from_millis(50));
    let (wide, by_stream) =
        (FeedbackKind::TransportWide { interval, longest }, FeedbackKind::Rfc8888 { interval, longest });
    registry.add(Entry::new("wide", "transport-wide feedback", "a test", Wide(wide)));
    registry.add(Entry::new("by-stream", "feedback of RFC 8888", "a test", Wide(by_stream)));
    registry
}

struct Rows(Vec<Row>);

impl RowSink for Rows {
    fn row(&mut self, row: &Row) {
        self.0.push(*row);
    }
}

/// A run, its rows and its capture.
struct Run {
    plan: Plan,
    rows: Vec<Row>,
    path: PathBuf,
}

fn plan(origin: &Origin, settings: &[&str]) -> Plan {
    let settings = settings.iter().map(|s| s.parse().expect("KEY=VALUE")).collect();
    load(origin, &Changes { settings, ..Changes::default() }, &registry()).unwrap_or_else(|p| panic!("{p}"))
}

fn run(name: &str, origin: &Origin, settings: &[&str]) -> Run {
    let (registry, plan) = (registry(), plan(origin, settings));
    let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pcapng"));
    let mut sinks = (Rows(Vec::new()), Capture::create(&path, &plan, &header(&plan, &registry, "sim", 1)).unwrap());
    let watched = runner.run(&plan, 1, Some(&mut sinks)).unwrap();
    sinks.1.finish().unwrap();
    assert_eq!(watched, runner.run(&plan, 1, None).unwrap(), "watching changes nothing");
    Run { plan, rows: sinks.0.0, path }
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

/// The same with feedback of RFC 8888, over a queue that is full and marks.
fn by_stream(name: &str) -> Run {
    let settings = [
        "id=test/by-stream",
        "flow.call.controller=by-stream",
        "path.forward.capacity=250kbps",
        "path.forward.queue={ limit = \"300 ms\", mark = \"40 ms\" }",
    ];
    run(name, &Origin::from_text("wide.toml", WIDE), &settings)
}

/// What rows say is seen at each interface: when, which packet, and how long it waited, at the far end of a hop. Of the
/// near ends they say nothing.
fn told(run: &Run) -> BTreeMap<String, Vec<(Time, PacketRow, Option<TimeDelta>)>> {
    let mut told: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for row in &run.rows {
        let (place, seen) = match *row {
            Row::Sent { at, packet } => {
                (if packet.class.goes_back() { "receiver" } else { "sender" }, (at, packet, None))
            }
            Row::Arrived { at, packet, .. } => {
                (if packet.class.goes_back() { "sender" } else { "receiver" }, (at, packet, None))
            }
            Row::Crossed { at, hop, packet, waited, .. } => {
                let place = format!("{} out", run.plan.hops[hop as usize].id);
                told.entry(place).or_default().push((at, packet, Some(waited)));
                continue;
            }
            _ => continue,
        };
        told.entry(place.to_owned()).or_default().push(seen);
    }
    told
}

fn agrees(run: &Run) {
    let file = File::read(&run.path);
    assert!(file.packets.is_sorted_by_key(|p| p.at), "in order of time");
    let told = told(run);
    assert_eq!(told.len(), 2 + run.plan.hops.len());
    for (place, told) in &told {
        let seen: Vec<&Packet> = file.at(place).collect();
        assert!(seen.len() > 50, "{place}: {}", seen.len());
        assert_eq!(seen.len(), told.len(), "{place}");
        for (seen, (at, packet, waited)) in seen.iter().zip(told) {
            assert_eq!((seen.at, seen.number(), seen.size as u64), (*at, packet.packet, packet.size.as_bytes()));
            assert_eq!(seen.comment["class"], packet.class.name());
            assert_eq!(seen.comment["flow"], run.plan.flows[packet.flow.0 as usize].id);
            let queued = waited.map(|w| format!("{:.3}", w.as_nanos() as f64 / 1e6));
            assert_eq!(seen.comment.get("queued_ms"), queued.as_ref());
        }
    }
    for (index, hop) in run.plan.hops.iter().enumerate() {
        entries_agree(run, &file, index as u16, &hop.id);
    }
    for packet in file.packets.iter().filter(|p| p.interface != "session") {
        whole(packet);
    }
}

/// What comes to a hop leaves it, is dropped there, or is still inside at the end.
fn entries_agree(run: &Run, file: &File, hop: u16, id: &str) {
    let (mut crossed, mut dropped) = (BTreeMap::new(), BTreeMap::new());
    for row in &run.rows {
        match *row {
            Row::Crossed { hop: h, packet, at, .. } if h == hop => {
                crossed.insert(packet.packet, at);
            }
            Row::Dropped { hop: h, packet, at, reason, .. } if h == hop => {
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
                assert!(why != "overflow" || at == packet.at, "a full queue is noticed at once");
                lost += 1;
            }
            (None, None) => inside += 1,
            both => panic!("{both:?}"),
        }
    }
    assert_eq!((through, lost), (crossed.len(), dropped.len()), "{id}");
    assert!(inside <= 100, "{id}: {inside} still inside");
}

/// Lengths and checksums of a packet, and its RTP, RTCP or TCP.
fn whole(packet: &Packet) {
    let (ip, rest) = Ipv4Header::from_slice(&packet.bytes).unwrap();
    assert_eq!(u32::from(ip.total_len), packet.size);
    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
    assert_eq!(ip.identification, packet.number() as u16);
    match ip.protocol {
        IpNumber::UDP => {
            let (udp, payload) = UdpHeader::from_slice(rest).unwrap();
            assert_eq!((udp.source_port, udp.destination_port, udp.checksum), (5004, 5004, 0));
            assert_eq!(u32::from(udp.length) + 20, packet.size);
            if is_rtcp(payload) {
                assert!(packet.comment["class"].ends_with("_control"));
                assert_eq!(packet.bytes.len(), packet.size as usize, "RTCP is whole");
                assert!(parse_compound(payload).unwrap().into_iter().count() > 0);
            } else {
                let (rtp, offset) = RtpHeader::parse(payload, &ExtensionIds::default()).unwrap();
                assert_eq!(rtp.padding, packet.comment["class"] == "padding");
                if rtp.padding {
                    assert_eq!(padding_len(payload, offset), Ok(payload.len() - offset), "nothing but padding, whole");
                } else {
                    assert!(packet.bytes.len() < packet.size as usize, "payload is a length");
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
fn a_capture_shows_what_rows_tell() {
    agrees(&table1("table1"));
    agrees(&table5("table5"));
    let wide = wide("wide");
    agrees(&wide);
    let classes: BTreeSet<&str> = File::read(&wide.path)
        .packets
        .iter()
        .filter_map(|p| p.comment.get("class"))
        .map(|c| PacketClass::NAMES.into_iter().find(|n| n == c).unwrap())
        .collect();
    let media = ["media", "padding", "receiver_control", "retransmission", "sender_control"];
    assert_eq!(classes, BTreeSet::from(media), "all that media sends was there to be looked at");
}

#[test]
fn rtp_says_when_and_in_which_order_it_was_sent() {
    let run = wide("rtp");
    let file = File::read(&run.path);
    let mut next: BTreeMap<u32, u16> = BTreeMap::new();
    let mut transport = 0;
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
        assert_eq!(rtp.sequence, *next, "packets leave in order of their stream");
        *next = next.wrapping_add(1);
        assert_eq!(ip.ecn, etherparse::IpEcn::Ect0);
        assert_eq!((ip.source, ip.destination), ([10, 1, 0, 1], [10, 1, 0, 2]));
    }
    assert_eq!(next.len(), 3, "video, its retransmissions, audio");
    assert!(transport > 1000, "{transport}");
}

/// The packets that arrived marked.
fn marked(run: &Run) -> BTreeSet<u64> {
    let marked = |row: &Row| match row {
        Row::Arrived { packet, ecn: Ecn::Ce, .. } => Some(packet.packet),
        _ => None,
    };
    run.rows.iter().filter_map(marked).collect()
}

#[test]
fn marks_are_seen_behind_the_queue_and_in_what_is_said_of_it() {
    let run = by_stream("marks");
    let marked = marked(&run);
    let (mut arrived, mut told) = (0, BTreeSet::new());
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
                        told.extend(
                            packets.filter(|(.., p)| p.is_some_and(|p| p.ecn == Ecn::Ce)).map(|(s, n, _)| (s, n)),
                        );
                    }
                }
            }
            _ => {}
        }
    }
    // All but those that came before the queue stood above the mark.
    assert!(marked.len() > 100 && arrived as usize > marked.len(), "{} of {arrived}", marked.len());
    // What came in the last 50 ms is not told of.
    assert!(told.len() <= marked.len() && told.len() + 10 > marked.len(), "{} of {}", told.len(), marked.len());
}

#[test]
fn a_packet_is_the_same_at_every_place_but_for_its_addresses() {
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
            let (first, places) = seen.entry(packet.number()).or_insert((bytes.clone(), 0));
            assert_eq!(*first, bytes, "packet {}", packet.number());
            *places += 1;
        }
        let whole = seen.values().filter(|(_, places)| *places == 4).count();
        assert!(whole * 10 > seen.len() * 8, "{whole} of {} crossed one hop from end to end", seen.len());
    }
}

#[test]
fn tcp_has_a_handshake_stamps_and_a_window() {
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
            assert!(tcp.syn() && !tcp.ack() && tcp.sequence_number() == 0 && to_receiver, "opens a connection");
        }
        use etherparse::TcpOptionElement as Option;
        let options: Vec<Option> = tcp.options_iterator().map(|o| o.unwrap()).collect();
        assert_eq!(tcp.syn(), options.contains(&Option::WindowScale(14)));
        assert_eq!(tcp.syn(), options.contains(&Option::MaximumSegmentSize(1460)));
        let Some(Option::Timestamp(value, echo)) = options.iter().find(|o| matches!(o, Option::Timestamp(..))).cloned()
        else {
            panic!("every segment has timestamps")
        };
        sacks += options.iter().filter(|o| matches!(o, Option::SelectiveAcknowledgement(..))).count();
        let now = 1 + ((packet.at - Time::ZERO).as_nanos() / 1_000_000) as u32;
        if to_receiver {
            assert_eq!(value, now);
            assert!(echo <= *times.get(&port).unwrap_or(&0), "echoes what came");
        } else {
            assert!(value + 25 <= now && value + 400 >= now, "sent a one-way delay ago: {value} at {now}");
            assert!(echo + 50 <= now && echo + 1000 >= now, "a round trip ago at least: {echo} at {now}");
            times.insert(port, value);
            echoed += 1;
        }
    }
    assert_eq!(ports.len(), 2, "on-periods from 5 s and 17 s on");
    assert!(sacks > 10 && echoed > 100, "{sacks} {echoed}");
}

#[test]
fn flows_have_addresses_or_ports_of_their_own() {
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
fn a_capture_is_whole_or_not_there() {
    let registry = registry();
    let plan = plan(&Origin::from_text("wide.toml", WIDE), &[]);
    let header = header(&plan, &registry, "sim", 1);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("captures-whole");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let names = || std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect::<Vec<_>>();

    let path = folder.join("run.pcapng");
    std::fs::write(&path, "an earlier file").unwrap();
    drop(Capture::create(&path, &plan, &header).unwrap());
    assert_eq!(std::fs::read(&path).unwrap(), b"an earlier file");
    assert_eq!(names(), ["run.pcapng"], "nothing is left behind");
    Capture::create(&path, &plan, &header).unwrap().finish().unwrap();
    assert_eq!(names(), ["run.pcapng"]);
    assert_eq!(File::read(&path).packets.len(), 6, "a description for each place");

    for bad in [folder.clone(), folder.join("no/such/folder.pcapng")] {
        let Err(error) = Capture::create(&bad, &plan, &header) else { panic!("{}", bad.display()) };
        assert!(error.to_string().contains(&format!("`{}`", bad.display())), "{error}");
    }
    let mut long = plan.clone();
    long.hops = vec![plan.hops[0].clone(); 127];
    let refused = Capture::create(&path, &long, &header).err().unwrap();
    assert!(matches!(refused, CaptureError::TooManyHops { hops: 127 }), "{refused}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_with_the_path() {
    let registry = registry();
    let plan = plan(&Catalogue.find("mmsys16/table1").unwrap(), &["duration=10s"]);
    let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
    let mut capture = Capture::create(Path::new("/dev/full"), &plan, &header(&plan, &registry, "sim", 1)).unwrap();
    runner.run(&plan, 1, Some(&mut capture)).unwrap();
    let error = capture.finish().unwrap_err();
    assert!(error.to_string().contains("cannot write `/dev/full`"), "{error}");
    assert!(Path::new("/dev/full").metadata().is_ok_and(|m| !m.is_file()), "the device is still one");
}
