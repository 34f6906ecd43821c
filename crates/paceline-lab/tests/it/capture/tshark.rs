// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dissection of captures by tshark with default settings. Without tshark these tests are skipped, unless the
//! environment variable `PACELINE_REQUIRE` contains `tshark`.

use crate::capture::{Run, by_stream, marked, run, table1, table5, wide};
use paceline_netsim::records::{EventRecord, PacketClass};
use paceline_scenario::Catalogue;
use paceline_units::{Time, TimeDelta};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Returns the lines that tshark prints for a capture; `None` without tshark.
fn tshark(run: &Run, arguments: &[&str]) -> Option<Vec<String>> {
    // Do not read the user's preferences.
    let home = env!("CARGO_TARGET_TMPDIR");
    let output = Command::new("tshark")
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home)
        .args(["-n", "-r"])
        .arg(&run.path)
        .args(arguments)
        .output();
    let Ok(output) = output else {
        let required = std::env::var("PACELINE_REQUIRE").is_ok_and(|all| all.contains("tshark"));
        assert!(!required, "PACELINE_REQUIRE contains tshark, which is not installed");
        eprintln!("SKIPPED: tshark is not installed");
        return None;
    };
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

fn fields(run: &Run, filter: &str, names: &[&str]) -> Option<Vec<(u64, Vec<String>)>> {
    let mut arguments = vec!["-Y", filter, "-T", "fields", "-e", "frame.comment"];
    arguments.extend(names.iter().flat_map(|name| ["-e", name]));
    let numbered = |line: String| {
        let mut columns = line.split('\t').map(str::to_owned);
        let comment = columns.next().unwrap();
        let number = comment.split(' ').find_map(|word| word.strip_prefix("packet="));
        (number.expect(&comment).parse().unwrap(), columns.collect())
    };
    Some(tshark(run, &arguments)?.into_iter().map(numbered).collect())
}

fn found(run: &Run, filter: &str) -> Option<BTreeSet<u64>> {
    Some(fields(run, filter, &[])?.into_iter().map(|(number, _)| number).collect())
}

fn at_sender(run: &Run, classes: &[PacketClass]) -> BTreeSet<u64> {
    let of = |event: &EventRecord| match event {
        EventRecord::Sent { packet, .. } if !packet.class.is_from_receiver() => Some(*packet),
        EventRecord::Arrived { packet, .. } if packet.class.is_from_receiver() => Some(*packet),
        _ => None,
    };
    run.events.iter().filter_map(of).filter(|p| classes.contains(&p.class)).map(|p| p.packet).collect()
}

#[test]
fn tshark_dissects_every_packet_as_its_class() {
    for run in [table1("tshark-table1"), table5("tshark-table5"), wide("tshark-wide"), by_stream("tshark-rfc8888")] {
        // 0x800000 is the severity "error".
        let Some(bad) = tshark(&run, &["-Y", "_ws.malformed || _ws.expert.severity >= 0x800000"]) else { return };
        assert_eq!(bad, [""; 0], "{}", run.scenario.plan.id);
        let sender = |protocol| found(&run, &format!("frame.interface_name == \"sender\" && {protocol}")).unwrap();
        let rtp = at_sender(&run, &[PacketClass::Media, PacketClass::Retransmission, PacketClass::Padding]);
        let rtcp = at_sender(&run, &[PacketClass::SenderControl, PacketClass::ReceiverControl]);
        assert!(rtp.len() > 500 && rtcp.len() > 20, "{} {}", rtp.len(), rtcp.len());
        assert_eq!(sender("rtp"), rtp, "{}", run.scenario.plan.id);
        assert_eq!(sender("rtcp"), rtcp, "{}", run.scenario.plan.id);
        let tcp = at_sender(&run, &[PacketClass::TcpData, PacketClass::TcpRetransmission, PacketClass::TcpAck]);
        assert_eq!(sender("tcp"), tcp, "{}", run.scenario.plan.id);
    }
}

#[test]
fn tshark_reads_transport_feedback_and_remb() {
    let run = wide("tshark-feedback");
    let filter = "frame.interface_name == \"receiver\" && rtcp.rtpfb.transportcc.baseseq";
    let names = ["rtcp.rtpfb.transportcc.baseseq", "rtcp.rtpfb.transportcc.statuscount"];
    let Some(feedback) = fields(&run, filter, &names) else { return };
    // Messages are contiguous and, except for late packets, do not overlap.
    let (mut next, mut covered) = (0u16, 0u64);
    for (_, columns) in &feedback {
        let numbers = |column: &str| column.split(',').map(|n| n.parse::<u16>().unwrap()).collect::<Vec<_>>();
        for (base, count) in numbers(&columns[0]).into_iter().zip(numbers(&columns[1])) {
            assert_eq!(base, next);
            next = base.wrapping_add(count);
            covered += u64::from(count);
        }
    }
    let sent = at_sender(&run, &[PacketClass::Media, PacketClass::Retransmission, PacketClass::Padding]).len() as u64;
    assert!(feedback.len() > 100, "{} messages", feedback.len());
    assert!(covered <= sent && covered + 50 > sent, "{covered} of {sent}");

    let run = table1("tshark-remb");
    let rembs = found(&run, "frame.interface_name == \"receiver\" && rtcp.psfb.remb.fci.bitrate").unwrap();
    let sent = run.count(|event| matches!(event, EventRecord::Remb { .. }));
    assert!(sent > 10);
    assert_eq!(rembs.len(), sent);
}

/// tshark 4.0 recognises feedback of RFC 8888 by its type and does not dissect it.
#[test]
fn tshark_finds_ecn_marks_and_rfc8888_feedback() {
    let run = by_stream("tshark-marks");
    let at = |filter: &str| found(&run, &format!("frame.interface_name == \"receiver\" && {filter}"));
    let Some(seen) = at("ip.dsfield.ecn == 3") else { return };
    assert_eq!(seen, marked(&run));
    assert!(seen.len() > 100, "{}", seen.len());
    let feedback = at("rtcp.pt == 205 && rtcp.rtpfb.fmt == 11").unwrap();
    assert!((180..=260).contains(&feedback.len()), "{} reports in 10 s", feedback.len());
}

#[test]
fn tshark_counts_rtp_losses() {
    let lossy = ["duration=60s", "path.forward.loss=2 %"];
    let run = run("tshark-losses", &Catalogue.find("mmsys16/table1").unwrap(), &lossy);
    let Some(lines) = tshark(&run, &["-q", "-z", "rtp,streams"]) else { return };
    // Start, end, address, port, address, port, SSRC, payload, packets, lost, (per cent), ...
    let lines: Vec<Vec<&str>> = lines.iter().map(|l| l.split_whitespace().collect()).collect();
    // Packets and losses of the flow's media at a tap; retransmissions are a separate stream.
    let at = |source: &str| {
        let line = lines.iter().find(|l| l.get(2) == Some(&source) && l[7] == "VP8").expect("one stream at each tap");
        (line[8].parse::<usize>().unwrap(), line[9].parse::<usize>().unwrap())
    };
    let (mut sent, mut arrived, mut lost, mut pending) = (0, 0, 0, 0);
    for event in &run.events {
        match event {
            EventRecord::Sent { packet, .. } if packet.class == PacketClass::Media => sent += 1,
            // A loss counts only when a later packet arrives.
            EventRecord::Arrived { packet, .. } if packet.class == PacketClass::Media => {
                (arrived, lost, pending) = (arrived + 1, lost + pending, 0);
            }
            EventRecord::Dropped { packet, .. } if packet.class == PacketClass::Media => pending += 1,
            _ => {}
        }
    }
    assert!(lost > 50, "{lost}");
    assert_eq!(at("10.1.0.1"), (sent, 0));
    assert_eq!(at("10.2.0.1"), (arrived, lost));
}

#[test]
fn tshark_round_trip_times_agree_with_events() {
    let run = table1("tshark-rtcp");
    let filter = "frame.interface_name == \"sender\" && rtcp.roundtrip-delay";
    let mut arguments = vec!["-o", "rtcp.show_roundtrip_calculation:TRUE", "-Y", filter, "-T", "fields"];
    arguments.extend(["-e", "frame.time_relative", "-e", "rtcp.roundtrip-delay"]);
    let Some(lines) = tshark(&run, &arguments) else { return };
    let theirs = lines.iter().map(|line| {
        let (at, rtt) = line.split_once('\t').unwrap();
        // One value per report block, from the same timestamps.
        (nanos(at), rtt.split(',').next().unwrap().parse::<f64>().unwrap())
    });
    let theirs: BTreeMap<i64, f64> = theirs.collect();
    let mut compared = 0;
    for event in &run.events {
        let EventRecord::RoundTrip { at, rtt, .. } = event else { continue };
        let ours = rtt.as_nanos() as f64 / 1e6;
        let Some(theirs) = theirs.get(&(*at - Time::ZERO).as_nanos()) else { continue };
        // tshark truncates the time between two frames, whose nanoseconds may be negative, and the receiver's delay to
        // milliseconds.
        assert!((-1.1..2.1).contains(&(theirs - ours)), "{ours} {theirs}");
        compared += 1;
    }
    assert!(compared > 20, "{compared} of {} samples", theirs.len());
}

#[test]
fn tshark_agrees_on_retransmissions_and_ack_times() {
    for (name, profile, losses) in [("tshark-rfc", "rfc", "0 %"), ("tshark-linux", "linux", "1 %")] {
        let settings = ["duration=60s", &format!("flow.tcp.profile={profile}"), &format!("path.forward.loss={losses}")];
        retransmissions_and_acks_agree(&run(name, &Catalogue.find("mmsys16/table5").unwrap(), &settings));
    }
}

fn retransmissions_and_acks_agree(run: &Run) {
    let again = "tcp.analysis.retransmission || tcp.analysis.fast_retransmission || \
                 tcp.analysis.spurious_retransmission || tcp.analysis.out_of_order";
    let Some(theirs) = found(run, &format!("frame.interface_name == \"sender\" && ({again})")) else { return };
    let ours = at_sender(run, &[PacketClass::TcpRetransmission]);
    assert!(ours.len() > 10, "{}", ours.len());
    assert_eq!(theirs, ours);

    let frames: BTreeMap<u64, u64> = fields(run, "tcp", &["frame.number"])
        .unwrap()
        .into_iter()
        .map(|(packet, columns)| (columns[0].parse().unwrap(), packet))
        .collect();
    let (mut sent, mut arrived) = (BTreeMap::new(), BTreeMap::new());
    for event in &run.events {
        match event {
            EventRecord::Sent { at, packet } => {
                sent.insert(packet.packet, *at);
            }
            EventRecord::Arrived { at, packet, .. } => {
                arrived.insert(packet.packet, *at);
            }
            _ => {}
        }
    }
    let filter = "frame.interface_name == \"sender\" && tcp.analysis.ack_rtt && ip.src == 10.1.2.2";
    let samples = fields(run, filter, &["tcp.analysis.acks_frame", "tcp.analysis.ack_rtt"]).unwrap();
    assert!(samples.len() > 100, "{}", samples.len());
    for (ack, columns) in &samples {
        let data = frames[&columns[0].parse::<u64>().unwrap()];
        let rtt = arrived[ack] - sent[&data];
        assert_eq!(nanos(&columns[1]), rtt.as_nanos(), "packet {ack} acknowledges {data}");
        assert!(rtt >= TimeDelta::from_millis(50), "the path's round trip is 50 ms: {rtt}");
    }
}

/// Every command of the guide works on a run with losses, media and TCP.
#[test]
fn commands_of_the_guide_work() {
    let lossy = ["duration=20s", "path.forward.loss=1 %"];
    let run = run("run", &Catalogue.find("mmsys16/table5").unwrap(), &lossy);
    if tshark(&run, &["-c", "1"]).is_none() {
        return;
    }
    let guide = include_str!("../../../../../docs/how-to/captures.md");
    let lines: Vec<&str> = guide.lines().filter(|line| line.starts_with("tshark -r run.pcapng")).collect();
    let [dropped, streams, again, place] = lines[..] else { panic!("{lines:?}") };
    let output = |line: &str| {
        let output = Command::new("sh").args(["-c", line]).current_dir(run.path.parent().unwrap()).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(output(dropped).lines().count(), run.count(|event| matches!(event, EventRecord::Dropped { .. })));
    assert!(output(streams).contains(" VP8 "));
    let resent =
        run.count(|e| matches!(e, EventRecord::Sent { packet, .. } if packet.class == PacketClass::TcpRetransmission));
    assert!((1..=resent).contains(&output(again).lines().count()), "tshark classifies some as out of order");
    output(place);
    let count = output("tshark -r receiver.pcapng -d udp.port==5004,rtp -Y rtp").lines().count();
    assert!(count > 1000, "{count}");
}

/// Parses seconds with nine digits after the point as nanoseconds.
fn nanos(text: &str) -> i64 {
    let (seconds, fraction) = text.split_once('.').unwrap();
    assert_eq!(fraction.len(), 9, "{text}");
    seconds.parse::<i64>().unwrap() * 1_000_000_000 + fraction.parse::<i64>().unwrap()
}
