// SPDX-License-Identifier: MIT OR Apache-2.0
//! `send` and `recv` over emulated links, which know what they did with each packet.

use super::hosts::{Background, folder, json, receiver, send, signal};
use super::{paceline, stderr};
use paceline_lab::results::Store;
use paceline_lab::results::tables::RunTables;
use paceline_netsim::records::{EventObserver, EventRecord};
use paceline_units::{Time, TimeDelta};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Packets in order of their sending, and the times at which they left the path.
#[derive(Default)]
struct Packets {
    sent: Vec<(u64, Time, u64)>,
    crossed: BTreeMap<u64, (Time, bool)>,
}

/// What a link did with the media of a session.
#[derive(Default)]
struct Carried {
    bytes: u64,
    /// Sorted.
    delays: Vec<TimeDelta>,
    lost: u64,
    marked: u64,
}

impl EventObserver for Packets {
    fn on_event(&mut self, event: &EventRecord) {
        match event {
            EventRecord::Sent { at, packet } if !packet.class.is_from_receiver() => {
                self.sent.push((packet.packet, *at, packet.size.as_bytes()));
            }
            EventRecord::Crossed { at, packet, marked, .. } => drop(self.crossed.insert(packet.packet, (*at, *marked))),
            _ => {}
        }
    }
}

impl Packets {
    fn read(dir: &Path) -> Self {
        let run = Store::read(dir).unwrap().runs.remove(0);
        let about = &run.about;
        let mut packets = Self::default();
        RunTables::new(&run.dir, about).replay(&about.header(), &mut packets).unwrap();
        packets
    }

    /// Returns what the link did with those packets that are media, which a sender sent in this order. Control messages and RTCP between
    /// them have other sizes.
    fn of_media(&self, media: &Self) -> Carried {
        let (mut all, mut carried) = (self.sent.iter(), Carried::default());
        for (_, _, size) in &media.sent {
            let same = all.find(|(_, _, other)| other == size);
            let (number, entered, _) = same.expect("the link carries every packet, in order");
            match self.crossed.get(number) {
                Some((left, marked)) => {
                    carried.bytes += size;
                    carried.delays.push(*left - *entered);
                    carried.marked += u64::from(*marked);
                }
                None => carried.lost += 1,
            }
        }
        carried.delays.sort();
        carried
    }
}

/// Lateness of timers and of the link above which a comparison of delays says nothing, ms.
const DISTURBED_MS: f64 = 0.5;

/// How the delays that a sender measured compare with those of the link.
#[derive(Clone, Copy, PartialEq)]
enum Delays {
    Agree,
    Differ,
    /// Timers or the link were late, so the delays say nothing.
    Disturbed,
}

impl Delays {
    /// Runs a session up to three times, until its delays agree. A machine that wakes up a process late makes a difference that no end
    /// sees, so only three runs that differ without a known cause are a failure. Counts and rates are checked in every run. Returns
    /// `None` if the session lacks a privilege.
    fn must_agree(name: &str, session: impl Fn() -> Option<Self>) -> Option<()> {
        let mut found = vec![];
        while found.len() < 3 && found.last() != Some(&Self::Agree) {
            found.push(session()?);
        }
        assert!(found.iter().any(|delays| *delays != Self::Differ), "{name}: the delays differ in three runs");
        if !found.contains(&Self::Agree) {
            eprintln!("{name}: the machine was too busy to compare delays");
        }
        Some(())
    }
}

/// Returns whether timers of the sender or the link were late.
fn is_disturbed(name: &str, sent: &Value, link: &Value) -> bool {
    let late = [&sent["evidence"]["late_p99_ms"], &link["late_us"]["p99"]].map(|late| late.as_f64().unwrap());
    let late = [late[0], late[1] / 1e3];
    let disturbed = late.iter().any(|late| *late > DISTURBED_MS);
    if disturbed {
        eprintln!("{name}: disturbed: {late:?} ms late");
    }
    disturbed
}

/// Sends over an emulated link and compares the measured rate and delays with those of the link.
fn delays_over_link(capacity: &str, delay: &str, max_rate: &str) -> Delays {
    let receiver = receiver();
    let out = folder(&format!("hosts-link-{capacity}"));
    let relay = format!("127.0.0.1:0={}", receiver.address);
    let arguments = ["link", "--capacity", capacity, "--delay", delay, "--queue", "300ms", "--relay", &relay, "--json"];
    let link = Background::start(&[&arguments[..], &["--out", out.to_str().unwrap()]].concat(), "from ");
    let own = folder(&format!("hosts-{capacity}"));
    let sent = send(&link.address, &["--max-rate", max_rate, "--duration", "10s", "--out", own.to_str().unwrap()]);
    signal("-INT", link.child.id());
    let link = json(&link.output());
    let name = format!("{capacity}, {delay}");
    let disturbed = is_disturbed(&name, &sent, &link);
    check_against_link(&name, &sent, &Packets::read(&out).of_media(&Packets::read(&own)), disturbed)
}

/// Compares what a sender measured with what the link did: rate and counts always, delays unless the run was disturbed.
fn check_against_link(name: &str, sent: &Value, link: &Carried, disturbed: bool) -> Delays {
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{sent:#}"));
    let at = |quantile: f64| {
        (link.delays[(quantile * (link.delays.len() - 1) as f64) as usize] - link.delays[0]).as_millis_f64()
    };
    let rate = link.bytes as f64 * 8.0 / number(&sent["lasted_s"]);
    let received = number(&sent["received_bps"]);
    eprintln!("{name}: received {received:.0} bit/s, link {rate:.0} bit/s");
    assert!((received / rate - 1.0).abs() < 0.02, "{received} of {rate}");
    let count = |key: &str| sent[key].as_u64().unwrap();
    let (lost, marked) = (count("sent_packets") - count("received_packets"), count("marked_packets"));
    eprintln!("  lost {lost}, link {}; marked {marked}, link {}", link.lost, link.marked);
    assert_eq!((lost, marked), (link.lost, link.marked));
    let agrees = |(name, quantile): (&str, f64)| {
        let (measured, expected) = (number(&sent["delay_variation_ms"][name]), at(quantile));
        eprintln!("  {name}: measured {measured:.2} ms, link {expected:.2} ms");
        (measured - expected).abs() < 1.0
    };
    let [p50, p95, _] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)].map(agrees);
    match (disturbed, p50 && p95) {
        (true, _) => Delays::Disturbed,
        (false, true) => Delays::Agree,
        (false, false) => Delays::Differ,
    }
}

/// A session between two network namespaces: name, options of the link, options of the sender, nominal loss, and the capacity, bit/s, and
/// delay, ms, that a fit of the session must find.
type LinkCase = (&'static str, &'static [&'static str], &'static [&'static str], f64, Option<(f64, f64)>);

const LINK_CASES: [LinkCase; 6] = [
    (
        "1 Mbit/s, 100 ms",
        &["--capacity", "1Mbps", "--delay", "100ms"],
        &["--max-rate", "2Mbps"],
        0.0,
        Some((1e6, 100.0)),
    ),
    (
        "10 Mbit/s, 10 ms",
        &["--capacity", "10Mbps", "--delay", "10ms"],
        &["--max-rate", "12Mbps"],
        0.0,
        Some((10e6, 10.0)),
    ),
    ("100 Mbit/s, 10 ms", &["--capacity", "100Mbps", "--delay", "10ms"], &["--max-rate", "20Mbps"], 0.0, None),
    ("100 Mbit/s, 100 ms", &["--capacity", "100Mbps", "--delay", "100ms"], &["--max-rate", "20Mbps"], 0.0, None),
    ("loss", &["--capacity", "10Mbps", "--delay", "10ms", "--loss", "2%"], &["--max-rate", "4Mbps"], 0.02, None),
    (
        "FQ-CoDel, ECN",
        &["--capacity", "3Mbps", "--delay", "10ms", "--queue", "fq-codel"],
        &["--max-rate", "6Mbps", "--controller", "scream-v2"],
        0.0,
        None,
    ),
];

/// Sends from a network namespace over a link with these options to this one. Returns what sender, link and receiver print; `None` if there is no
/// privilege.
fn send_from_namespace(folder: &Path, link: &[&str], more: &[&str]) -> Option<[Value; 3]> {
    let receiver = Background::start(&["recv", "--once", "--json", "--bind", "0.0.0.0:0"], "listening at 0.0.0.0:");
    fs::create_dir(folder).unwrap();
    let (program, result) = (env!("CARGO_BIN_EXE_paceline"), folder.join("sent.json"));
    let (port, more, file) = (&receiver.address, more.join(" "), result.display());
    let script = format!("exec {program} send $PACELINE_FAR:{port} --json {more} > {file}");
    let behind = ["--user", "root", "--", "sh", "-c", &script];
    let output = paceline(&[&["link", "--json"], link, &behind].concat()).output().unwrap();
    if output.status.code() == Some(3) {
        assert!(!super::track::is_required(), "PACELINE_REQUIRE names `track`, but: {}", stderr(&output));
        eprintln!("SKIPPED: {}", stderr(&output));
        return None;
    }
    assert!(output.status.success(), "{link:?}: {}", stderr(&output));
    let texts = [fs::read_to_string(&result).unwrap(), String::from_utf8(output.stdout).unwrap(), receiver.output()];
    Some(texts.map(|text| json(&text)))
}

/// Measures a link between two network namespaces. Returns `None` if there is no privilege.
fn delays_between_namespaces((name, link, more, loss, path): &LinkCase) -> Option<Delays> {
    let folder = folder("hosts-namespaces");
    let [out, own] = ["link", "own"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    let link = [&["--out", &out], *link].concat();
    let [sent, link, _] =
        send_from_namespace(&folder, &link, &[&["--duration", "10s", "--out", &own], *more].concat())?;
    let carried = Packets::read(Path::new(&out)).of_media(&Packets::read(Path::new(&own)));
    let delays = check_against_link(name, &sent, &carried, is_disturbed(name, &sent, &link));
    let (low, high) = (sent["loss_interval"][0].as_f64().unwrap(), sent["loss_interval"][1].as_f64().unwrap());
    eprintln!("  loss from {:.2} to {:.2} %", low * 100.0, high * 100.0);
    if *loss > 0.0 {
        assert!(low <= *loss && *loss <= high, "{name}: {low} to {high}");
    }
    if let (Some((bps, delay_ms)), Delays::Agree) = (path, delays) {
        let fitted = paceline(&["fit", &own]).output().unwrap();
        assert!(fitted.status.success(), "{}", stderr(&fitted));
        let text = String::from_utf8(fitted.stdout).unwrap();
        let value = |key: &str, unit: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{key} = \"")));
            let number = line.and_then(|line| line.strip_suffix(&format!(" {unit}\"")));
            number.unwrap_or_else(|| panic!("{key} in {text}")).parse().unwrap()
        };
        let (capacity, delay) = (value("capacity", "bps"), value("delay", "ms"));
        eprintln!("  fitted: {capacity:.0} bit/s, {delay:.2} ms");
        assert!((capacity / bps - 1.0).abs() < 0.05 && (delay - delay_ms).abs() < 1.0, "{name}:\n{text}");
    }
    if name.contains("ECN") {
        assert!(carried.marked > 0, "{name}: nothing was marked");
    }
    Some(delays)
}

#[test]
fn sessions_between_namespaces_measure_what_the_link_does() {
    for case in &LINK_CASES {
        if Delays::must_agree(case.0, || delays_between_namespaces(case)).is_none() {
            return;
        }
    }
}

#[test]
fn media_and_tcp_share_a_link_between_namespaces() {
    let link = ["--capacity", "4Mbps", "--delay", "10ms", "--queue", "100ms"];
    let more = ["--duration", "5s", "--max-rate", "4Mbps", "--with", "tcp"];
    let Some([sent, _, received]) = send_from_namespace(&folder("hosts-tcp-namespaces"), &link, &more) else { return };
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{sent:#}"));
    assert_eq!(sent["tcp"]["received_bytes"], received["tcp"]["received_bytes"]);
    let (media, tcp) = (number(&sent["received_bps"]), number(&sent["tcp"]["received_bps"]));
    eprintln!("media {media:.0}, TCP {tcp:.0} bit/s");
    assert!(media > 0.0 && tcp > 0.0);
    // What a link of 4 Mbit/s carries in 5 s, and its queue.
    let bytes = (media + tcp) * number(&sent["lasted_s"]) / 8.0;
    assert!(bytes <= 4e6 * (5.0 + 0.1 + 0.1) / 8.0, "{bytes} bytes");
}

#[test]
fn rate_and_delay_variation_are_those_of_the_link() {
    for (capacity, delay, max_rate) in [("10Mbps", "10ms", "12Mbps"), ("1Mbps", "100ms", "2Mbps")] {
        let session = || Some(delays_over_link(capacity, delay, max_rate));
        Delays::must_agree(&format!("{capacity}, {delay}"), session).expect("needs no privilege");
    }
}
