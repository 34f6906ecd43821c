// SPDX-License-Identifier: MIT OR Apache-2.0
//! `send` and `recv` over the loopback.

use super::{paceline, stderr};
use paceline_lab::results::Store;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

/// A command that ends with the test, and the address of its first line on stderr.
pub struct Background {
    pub child: Child,
    pub address: String,
    messages: BufReader<ChildStderr>,
}

impl Background {
    /// Starts a command, and waits until its first line on stderr names the address after `before`.
    pub fn start(arguments: &[&str], before: &str) -> Self {
        Self::try_start(arguments, before).unwrap_or_else(|(_, line)| panic!("{line}"))
    }

    /// Does the same. Returns the exit code and the first line of a command that starts with another one.
    pub fn try_start(arguments: &[&str], before: &str) -> Result<Self, (Option<i32>, String)> {
        let mut command = paceline(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut line, mut messages) = (String::new(), BufReader::new(child.stderr.take().unwrap()));
        messages.read_line(&mut line).unwrap();
        let Some(rest) = line.split(before).nth(1) else { return Err((child.wait().unwrap().code(), line)) };
        let address = rest.trim_end().split([' ', ';']).next().unwrap().to_owned();
        Ok(Self { child, address, messages })
    }

    /// Waits until a session has started: for the message of this receiver, and for its answer to reach the sender.
    fn session(&mut self) {
        let line = self.message();
        assert!(line.starts_with("session: googcc, encoder"), "{line}");
        std::thread::sleep(std::time::Duration::from_millis(500));
    }

    /// Waits for its next message.
    fn message(&mut self) -> String {
        let mut line = String::new();
        self.messages.read_line(&mut line).unwrap();
        line
    }

    /// Waits for its end, and returns its stdout.
    pub fn output(mut self) -> String {
        let mut text = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(self.child.wait().unwrap().success());
        text
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn signal(name: &str, process: u32) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

pub fn receiver() -> Background {
    receiver_with(&[])
}

/// Starts a receiver of one session, with more options.
fn receiver_with(more: &[&str]) -> Background {
    Background::start(&[&["recv", "--once", "--json", "--bind", "127.0.0.1:0"], more].concat(), "listening at ")
}

/// Starts a receiver of many sessions.
fn server() -> Background {
    Background::start(&["recv", "--json", "--bind", "127.0.0.1:0"], "listening at ")
}

/// Makes a session with these options of its receiver and its sender. Returns what the sender and the receiver print.
fn session(of_receiver: &[&str], of_sender: &[&str]) -> (Value, Value) {
    let receiver = receiver_with(of_receiver);
    let sent = send(&receiver.address, of_sender);
    (sent, json(&receiver.output()))
}

/// Returns a number of each flow.
fn counts(flows: &Value, key: &str) -> Vec<u64> {
    json_list(flows).iter().map(|flow| count(&flow[key])).collect()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value:#} is no count"))
}

pub fn json(text: &str) -> Value {
    serde_json::Deserializer::from_str(text).into_iter().next().unwrap().unwrap()
}

pub fn send(address: &str, more: &[&str]) -> Value {
    let output = paceline(&[&["send", address, "--json"], more].concat()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    json(&String::from_utf8(output.stdout).unwrap())
}

/// Checks that `send` with these options ends with exit code 2 and this text on stderr.
fn refuses(address: &str, more: &[&str], text: &str) {
    let output = paceline(&["send", address]).args(more).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{more:?}: {}", stderr(&output));
    assert!(stderr(&output).contains(text), "{more:?}: {}", stderr(&output));
}

/// Checks that a report can be made of stored results.
fn draw(out: &Path) {
    let report = paceline(&["report", out.to_str().unwrap()]).output().unwrap();
    assert!(report.status.success() && out.join("report.html").exists(), "{}", stderr(&report));
}

#[test]
fn both_ends_count_the_same_packets_and_the_result_can_be_drawn() {
    let out = folder("hosts-out");
    let folder = out.to_str().unwrap();
    let pcap = out.with_extension("pcapng");
    let more = ["--duration", "3s", "--out", folder, "--pcap", pcap.to_str().unwrap(), "--timing", "precise"];
    let (sent, received) = session(&[], &more);
    assert_eq!(sent["end"], "complete");
    assert!(sent["confirmed"].as_bool().unwrap() && sent["sent_packets"].as_u64().unwrap() > 100);
    for key in ["received_packets", "marked_packets", "frames", "frames_dropped"] {
        assert_eq!(sent[key], received[key], "{key}");
    }
    assert_eq!((&sent["unknown_arrivals"], &sent["stranger_datagrams"]), (&0.into(), &0.into()));
    let stored = Store::read(&out).unwrap().runs.remove(0).result;
    assert_eq!((&stored["duration_s"], &stored["session"]), (&sent["lasted_s"], &without_environment(&sent)));
    let stream = &stored["flows"][0]["streams"][0];
    // The last ones may be rendered after the end.
    let (stored_frames, frames) = (count(&stream["frames"]), count(&sent["frames"]));
    assert!((frames - 3..=frames).contains(&stored_frames), "{stored_frames} of {frames}");
    assert_eq!(stream["freeze_ratio"], sent["freeze_ratio"]);
    assert!(sent["freeze_ratio"].as_f64().is_some_and(|frozen| frozen < 0.2), "{stream:#}");
    let rate = stored["flows"][0]["throughput_bps"].as_f64().unwrap() / sent["received_bps"].as_f64().unwrap();
    assert!((rate - 1.0).abs() < 0.01, "events give {rate} of the rate of the totals");
    let explained = paceline(&["explain", pcap.to_str().unwrap(), "--json"]).output().unwrap();
    assert!(explained.status.success(), "{}", stderr(&explained));
    let explained = json(&String::from_utf8(explained.stdout).unwrap());
    assert_eq!(explained["inputs"][0]["flows"].as_array().map(Vec::len), Some(1), "{explained:#}");
    draw(&out);
}

fn without_environment(document: &Value) -> Value {
    let mut document = document.clone();
    document.as_object_mut().unwrap().remove("made_with");
    document
}

#[test]
fn several_flows_go_both_ways_and_each_is_counted() {
    let (sent, received) = session(&[], &["--duration", "3s", "--flows", "2", "--both"]);
    assert!(sent["confirmed"].as_bool().unwrap());
    let flows = counts(&sent["flows"], "sent_packets");
    assert_eq!(flows, counts(&received["flows"], "received_packets"), "the loopback loses nothing");
    assert!(flows.len() == 2 && flows.iter().all(|packets| *packets > 100), "{flows:?}");
    assert_eq!(flows.iter().sum::<u64>(), count(&sent["sent_packets"]));
    // The other direction: counted here, sent there.
    let (here, there) = (&sent["back"], &received["back"]);
    assert_eq!(here["measured"]["sent_packets"], there["sent_packets"]);
    assert_eq!(json_list(&here["flows"]).len(), 2);
    assert!(count(&here["received_packets"]) > 200 && count(&here["frames"]) > 100, "{here:#}");
    let missing = count(&there["sent_packets"]) - count(&here["received_packets"]);
    assert!(missing < 20, "packets under way at the end: {missing}");
    assert_eq!(here["measured"]["loss_ratio"], 0.0, "the loopback loses nothing");
    assert_eq!((&sent["unknown_arrivals"], &sent["stranger_datagrams"]), (&0.into(), &0.into()));
    assert!(counts(&received["flows"], "frames").iter().all(|frames| *frames > 50));
}

#[test]
fn both_ends_count_the_same_bytes_of_a_tcp_flow_beside_the_media() {
    let secret = folder("hosts-tcp-secret");
    write_secret(&secret, "the secret of both ends\n");
    for more in [vec![], vec!["--secret-file", secret.to_str().unwrap()]] {
        let (sent, received) = session(&more, &[&["--duration", "2s", "--with", "tcp"], &more[..]].concat());
        assert_eq!((&sent["end"], &sent["sent_packets"]), (&"complete".into(), &received["received_packets"]));
        let (here, there) = (&sent["tcp"], &received["tcp"]);
        assert_eq!(here["received_bytes"], there["received_bytes"]);
        assert_eq!((&here["problem"], &there["refused_connections"]), (&Value::Null, &0.into()));
        let (written, read) = (count(&here["sent_bytes"]), count(&here["received_bytes"]));
        assert!(0 < read && read <= written, "{read} of {written} bytes");
        assert_eq!(sent["evidence"]["tcp_bps"], here["received_bps"]);
        assert!(sent["why"].as_str().unwrap().contains("TCP flow beside it"), "{sent:#}");
        assert!(here["congestion"].as_str().is_some_and(|name| !name.is_empty()));
    }
}

#[test]
fn media_are_sent_without_a_tcp_connection_and_the_result_says_so() {
    let receiver = receiver();
    // UDP crosses the relay; TCP to its address finds no listener.
    let relay = format!("127.0.0.2:0={}", receiver.address);
    let link = Background::start(&["link", "--relay", &relay, "--json"], "from ");
    let arguments = ["send", &link.address, "--json", "--duration", "1s", "--with", "tcp"];
    let output = paceline(&arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let (sent, received) = (json(&String::from_utf8(output.stdout).unwrap()), json(&receiver.output()));
    assert_eq!((&sent["end"], &sent["sent_packets"]), (&"complete".into(), &received["received_packets"]));
    let problem = sent["tcp"]["problem"].as_str().unwrap_or_else(|| panic!("{sent:#}"));
    assert!(problem.contains("cannot connect to TCP 127.0.0.2:"), "{problem}");
    for value in [&sent["tcp"]["received_bytes"], &sent["evidence"]["tcp_bps"], &received["tcp"]["received_bytes"]] {
        assert!(value.is_null(), "{sent:#}");
    }
    signal("-INT", link.child.id());
}

#[test]
fn without_request_no_tcp_port_is_open() {
    let mut receiver = receiver();
    let mut sender = paceline(&["send", &receiver.address, "--json", "--duration", "60s"]);
    let sender = sender.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    receiver.session();
    let error = std::net::TcpStream::connect(&receiver.address).expect_err("nothing listens");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    signal("-INT", sender.id());
    let sent = json(&String::from_utf8(sender.wait_with_output().unwrap().stdout).unwrap());
    assert_eq!((&sent["tcp"], &sent["evidence"]["tcp_bps"]), (&Value::Null, &Value::Null));
    assert_eq!(json(&receiver.output())["tcp"], Value::Null);
}

#[test]
fn both_ends_count_the_packets_of_each_of_two_hundred_flows() {
    let rates = ["--max-rate", "50kbps", "--start-rate", "50kbps", "--min-rate", "30kbps"];
    let (sent, received) = session(&[], &[&["--flows", "200", "--duration", "3s"], &rates[..]].concat());
    assert!(sent["confirmed"].as_bool().unwrap());
    assert_eq!(sent["received_packets"], received["received_packets"]);
    assert_eq!((&sent["unknown_arrivals"], &sent["stranger_datagrams"]), (&0.into(), &0.into()));
    let (here, there) = (counts(&sent["flows"], "sent_packets"), counts(&received["flows"], "received_packets"));
    assert_eq!((here.len(), there.len()), (200, 200));
    assert_eq!(here.iter().sum::<u64>(), count(&sent["sent_packets"]));
    assert_eq!(there.iter().sum::<u64>(), count(&received["received_packets"]));
    // A busy receiver with a small buffer may lose some.
    let lost: Vec<u64> = here.iter().zip(&there).map(|(here, there)| here - there).collect();
    assert!(there.iter().all(|count| *count > 0), "{there:?}");
    assert!(lost.iter().sum::<u64>() * 10 < here.iter().sum::<u64>(), "{lost:?}");
}

const SCENARIO: &str = r#"
id = "mine/two-kinds"
title = "Two kinds of flows, one of them back, beside TCP"
duration = "60 s"
[path]
preset = "lte-drive-up"
[[flow]]
id = "video"
controller = "googcc"
count = 2
start_rate = "500 kbps"
encoder = { max = "600 kbps", fps = 25, reaction_delay = "100 ms" }
[[flow]]
id = "screen"
controller = "fixed"
access_delay = "20 ms"
retransmit = false
protection = { fec = "ulpfec" }
start = "500 ms"
stop = "1500 ms"
encoder = { source = "screenshare", max = "400 kbps" }
[[flow]]
id = "back"
controller = "scream-v2"
direction = "reverse"
encoder = { max = "300 kbps", fps = 25, reaction_delay = "100 ms" }
audio = {}
[[flow]]
id = "bulk"
kind = "tcp"
[[assert]]
id = "arrives"
metric = "throughput_bps"
flow = "screen"
bounds = [1e3, 1e9]
[[assert]]
id = "lossless"
metric = "loss_ratio"
flow = "video-1"
bounds = [0, 0]
[[assert]]
id = "impossible"
metric = "sending_rate_bps"
flow = "video-2"
bounds = [1e9, 2e9]
[[assert]]
id = "smooth"
metric = "freeze_ratio"
flow = "video-1"
bounds = [0, 0.1]
[[assert]]
id = "returns"
metric = "throughput_bps"
flow = "back"
bounds = [1, 1e9]
[[assert]]
id = "full"
metric = "utilization"
bounds = [0, 1]
"#;

#[test]
fn both_ends_count_the_same_packets_of_the_flows_of_a_scenario() {
    let (out, file) = (folder("hosts-scenario-out"), folder("hosts-scenario.toml"));
    fs::write(&file, SCENARIO).unwrap();
    let (receiver, file) = (receiver(), file.to_str().unwrap());
    let arguments = ["send", &receiver.address, "--json", "--scenario", file, "--duration", "2s", "--seed", "7"];
    let output = paceline(&arguments).args(["--out", out.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "a bound does not hold: {}", stderr(&output));
    assert_eq!(stderr(&output).matches("mine/two-kinds: the real path").count(), 1, "{}", stderr(&output));
    let (sent, received) = (json(&String::from_utf8(output.stdout).unwrap()), json(&receiver.output()));
    assert_eq!(sent["terms"], received["terms"]);
    let terms = &sent["terms"];
    assert_eq!((&terms["duration_ms"], &terms["seed"], &terms["tcp"]), (&2000.into(), &7.into(), &true.into()));
    let config = |flow: usize| &terms["flows"][flow]["streams"][0]["config"];
    // Only the end that sends a stream needs the parameters of its source.
    assert_eq!((config(0), config(2)), (&Value::Null, &serde_json::json!({"fps": 25.0, "reaction_delay": 0.1})));
    assert_eq!(terms["flows"][2]["streams"][1]["source"], "audio");
    assert_eq!((&terms["flows"][1]["retransmit"], &terms["flows"][1]["fec"]), (&false.into(), &"ulpfec".into()));
    assert_eq!((&terms["flows"][1]["start_ms"], &terms["flows"][1]["stop_ms"]), (&500.into(), &1500.into()));
    assert_eq!((&terms["flows"][0]["count"], &terms["flows"][2]["back"]), (&2.into(), &true.into()));
    assert_eq!(counts(&sent["flows"], "sent_packets"), counts(&received["flows"], "received_packets"));
    assert!(counts(&sent["flows"], "sent_packets").iter().all(|count| *count > 5), "{sent:#}");
    let ids: Vec<&str> = json_list(&sent["flows"]).iter().filter_map(|flow| flow["id"].as_str()).collect();
    assert_eq!((&*ids, &sent["scenario"]), (&["video-1", "video-2", "screen"][..], &"mine/two-kinds".into()));
    assert_eq!(counts(&sent["back"]["flows"], "received_packets").len(), 1);
    assert_eq!(sent["tcp"]["received_bytes"], received["tcp"]["received_bytes"]);
    let names = |key: &str| -> Vec<String> {
        json_list(&sent[key]).iter().map(|bound| bound["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("assertions"), ["arrives", "lossless", "impossible", "smooth"]);
    assert_eq!(names("unmeasured"), ["returns", "full"]);
    let holds: Vec<&Value> = json_list(&sent["assertions"]).iter().map(|bound| &bound["holds"]).collect();
    assert_eq!(holds, [true, true, false, true]);
    assert_eq!(sent["assertions"][1]["flow"], "video-1");
    let runs = Store::read(&out).unwrap().runs;
    assert_eq!(runs.len(), 1);
    let (stored, about) = (&runs[0].result, serde_json::to_value(&runs[0].about).unwrap());
    let hash = stored["trace_hash"].as_str().unwrap();
    assert!(hash.len() == 16 && hash.bytes().any(|digit| digit != b'0'), "{hash}");
    // A packet is sent, and then it arrives or is lost.
    let events = count(&stored["events"]);
    assert!(events > 2 * counts(&sent["flows"], "sent_packets").iter().sum::<u64>(), "{events}");
    assert_eq!((&stored["world"], &stored["machine"]["attempts"]), (&"hosts".into(), &1.into()));
    assert_eq!(stored["session"]["received_packets"], sent["received_packets"]);
    assert_eq!(about["inputs"]["scenario_text"], SCENARIO);
    assert_eq!(about["inputs"]["changes"], serde_json::json!(["duration=2 s"]));
    draw(&out);
}

#[test]
fn a_receiver_stores_the_flows_that_it_sends() {
    let out = folder("hosts-recv-out");
    let dir = out.to_str().unwrap();
    let (sent, received) = session(&["--out", dir], &["--duration", "3s", "--both", "--flows", "2"]);
    let runs = Store::read(&out).unwrap().runs;
    assert_eq!(runs.len(), 1);
    let stored = &runs[0].result;
    assert_eq!(json_list(&stored["flows"]).len(), 2);
    assert_eq!((&stored["duration_s"], &stored["session"]["peer"]), (&3.0.into(), &received["peer"]));
    let back = &received["back"];
    let bytes: u64 = counts(&stored["flows"], "received_bytes").iter().sum();
    assert_eq!(back["received_packets"], back["sent_packets"]);
    assert_eq!(back["received_bytes"], bytes);
    // The last frames may be rendered after the end.
    let frames = |flow: &Value| count(&flow["streams"][0]["frames"]);
    let stored_frames: Vec<u64> = json_list(&stored["flows"]).iter().map(frames).collect();
    let all = count(&sent["back"]["frames"]);
    assert!(stored_frames.iter().all(|frames| *frames > 60), "{stored_frames:?}");
    assert!((all - 6..=all).contains(&stored_frames.iter().sum::<u64>()), "{stored_frames:?}, {all}");
    assert!(json_list(&stored["flows"]).iter().all(|flow| flow["target_bps"].as_f64() > Some(100e3)), "{stored:#}");
    draw(&out);
}

#[test]
fn layers_audio_recorded_frames_and_schedules_of_streams_are_sent() {
    let file = folder("hosts-streams.toml");
    let frames = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/real/frames");
    let text = format!(
        r#"
id = "mine/streams"
title = "Streams"
duration = "4 s"
[path]
rtt = "20 ms"
[[flow]]
id = "call"
controller = "googcc"
start_rate = "1 Mbps"
available = [["0 s", true], ["3 s", false]]
[[flow.stream]]
id = "camera"
encoder = {{ frames = "{frames}", max = "400 kbps" }}
muted = [["0 s", false], ["1 s", true]]
[[flow.stream]]
id = "speech"
encoder = {{ source = "audio" }}
[[flow]]
id = "layers"
controller = "nada"
start_rate = "2 Mbps"
encoder = {{ source = "simulcast-720p" }}
[[flow]]
id = "stage"
controller = "scream-v2"
direction = "reverse"
start_rate = "2 Mbps"
encoder = {{ source = "simulcast-720p" }}
audio = {{ source = "audio-32k" }}
"#
    );
    fs::write(&file, text).unwrap();
    let out = folder("hosts-streams-out");
    let (sent, received) = session(&[], &["--scenario", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert_eq!((&sent["terms"], &sent["stranger_datagrams"]), (&received["terms"], &0.into()));
    let streams = |flow: usize| json_list(&sent["terms"]["flows"][flow]["streams"]).len();
    assert_eq!([streams(0), streams(1), streams(2)], [2, 3, 4]);
    assert_eq!(counts(&sent["flows"], "sent_packets"), counts(&received["flows"], "received_packets"));
    // 3 s of audio in packets of 20 ms, and of 30 frames per second; then 4 s of three layers, which may pause and begin again.
    let frames = counts(&received["flows"], "frames");
    assert!((200..=242).contains(&frames[0]), "{frames:?}");
    assert!((250..=380).contains(&frames[1]), "{frames:?}");
    assert!(counts(&sent["back"]["flows"], "received_packets")[0] > 300, "{sent:#}");
    let stored = Store::read(&out).unwrap().runs.remove(0).result;
    let of_flow = |flow: &Value| -> Vec<(String, u64)> {
        let stream = |s: &Value| (s["id"].as_str().unwrap().to_owned(), count(&s["frames"]));
        json_list(&flow["streams"]).iter().map(stream).collect()
    };
    let stored: Vec<_> = json_list(&stored["flows"]).iter().map(of_flow).collect();
    let [call, layers] = &*stored else { panic!("two flows: {stored:?}") };
    let [(camera, pictures), (speech, sounds)] = &**call else { panic!("two streams: {call:?}") };
    assert_eq!((&**camera, &**speech, layers.len()), ("camera", "speech", 3));
    assert!((80..=91).contains(pictures) && (140..=151).contains(sounds), "{call:?}");
    for (flow, frames) in stored.iter().zip(&frames) {
        let all: u64 = flow.iter().map(|(_, frames)| frames).sum();
        assert!((frames - 9..=*frames).contains(&all), "{all} of {frames}");
    }
}

#[test]
fn scenarios_that_two_hosts_cannot_run_are_refused_with_place_and_hint() {
    let file = folder("hosts-wrong-scenario.toml");
    let video = "id = \"video\"\ncontroller = \"googcc\"\n";
    let tcp = "id = \"bulk\"\nkind = \"tcp\"\n";
    let all = |keys: &str| format!("[[flow]]\n{video}{keys}\n");
    let beside = |keys: &str| format!("[[flow]]\n{tcp}{keys}\n[[flow]]\n{video}");
    let back = |keys: &str| {
        let back = video.replace("video", "back");
        format!("[[flow]]\n{video}[[flow]]\n{back}direction = \"reverse\"\n{keys}\n")
    };
    let paused =
        "[[flow.stream]]\nid = \"pause\"\nencoder = {}\nmax_rate = [[\"0 s\", \"1 Mbps\"], [\"3 s\", \"0 bps\"]]"
            .to_owned();
    let frames = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/real/frames");
    for (flows, underlined, hint) in [
        (back(&format!("encoder = {{ frames = \"{frames}\" }}")), "`frames` of `back`", "needs no files"),
        (back("encoder = { key_frames = 9000, key_ratio = 2000 }"), "2000", "up to 1000"),
        (back("available = [[\"0 s\", true], [\"3 s\", false]]"), "false", "stay as they are"),
        (back(&paused), "pause", "a stream that the receiver sends"),
        (all(&paused), "more than 5", "another stream"),
        (all("available = [[\"0 s\", true], [\"3 s\", false]]"), "more than 5", "another stream"),
        (all("encoder = { max = \"20 Gbps\" }"), "\"20 Gbps\"", "lower `max`"),
        (all("encoder = { max = \"6 Gbps\" }\ncount = 2"), "\"6 Gbps\"", "lower `max`"),
        (all("start = \"6 s\""), "\"6 s\"", "or the duration"),
        (all("stop = \"3 s\""), "at most 5 s", "or the duration"),
        (beside("start = \"1 s\""), "\"1 s\"", "leave out `start`"),
        (all("dscp = \"EF\""), "\"EF\"", "default codepoint"),
        (all("max_rate = \"1 Mbps\""), "\"1 Mbps\"", "`max` of the encoder"),
        (all("min_rate = [[\"0 s\", \"50 kbps\"], [\"5 s\", \"80 kbps\"]]"), "80 kbps", "stay as they are"),
        (all("packet_size = \"1000 B\""), "\"1000 B\"", "leave it out"),
        (all("feedback_interval = \"50 ms\""), "\"50 ms\"", "leave it out"),
        (all("count = 300"), "300", "lower `count`"),
        (all("count = 100\nencoder = { source = \"simulcast-720p\" }"), "100", "fewer streams"),
        (all("direction = \"reverse\""), "\"reverse\"", "this host must send"),
        (all("controller = \"chromium\"").replacen("controller = \"googcc\"\n", "", 1), "\"chromium\"", "browser"),
        (
            all("controller = \"lib:./mine.so\"").replacen("controller = \"googcc\"\n", "", 1),
            "lib:./mine.so",
            "both have by name",
        ),
        (beside("count = 2"), "2", "two hosts have one"),
        (beside("direction = \"reverse\""), "\"reverse\"", "goes forward"),
        (beside("workload = { kind = \"on-off\", on = \"1 s\", off = \"1 s\" }"), "on-off", "leave `workload` out"),
    ] {
        let text = format!("id = \"wrong\"\ntitle = \"Wrong\"\nduration = \"9 s\"\n[path]\nrtt = \"50 ms\"\n{flows}");
        fs::write(&file, text).unwrap();
        // Nothing is sent, so no receiver is needed.
        let output = paceline(&["send", "127.0.0.1:9", "--scenario", file.to_str().unwrap()]).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{flows}: {message}");
        for part in ["hosts-wrong-scenario.toml:", underlined, "help: ", hint] {
            assert!(message.contains(part), "no {part} for {flows}: {message}");
        }
    }
    for (wrong, part) in [
        (&["--scenario", "mmsys16/table1", "--flows", "2"][..], "--flows"),
        (&["--set", "duration=9 s"], "add --scenario"),
        (&["--case", "a=1"], "add --scenario"),
        (&["--scenario", "l4s/dualpi2", "--case", "beside=cubi"], "beside"),
        (&["--scenario", "zoo/outage", "--controller", "nad"], "nada"),
        (&["--scenario", "zoo/outage", "--compare", "nada,googc"], "googcc"),
        (&["--scenario", "zoo/outage", "--compare", "nada,googcc", "--set", "flow.x.count=2"], "flow.x.count"),
    ] {
        refuses("127.0.0.1:9", wrong, part);
    }
    let long = ["--scenario", file.to_str().unwrap(), "--duration", "2h"];
    fs::write(&file, format!("id = \"long\"\ntitle = \"\"\nduration = \"9 s\"\n[path]\n{}", all(""))).unwrap();
    let output = paceline(&["send", "127.0.0.1:9"]).args(long).output().unwrap();
    assert!(stderr(&output).contains("from 1 s to 1 h"), "{}", stderr(&output));
}

#[test]
fn a_page_shows_the_session_while_it_runs() {
    let receiver = receiver();
    let arguments = ["send", &receiver.address, "--json", "--duration", "60s", "--watch"];
    let sender = Background::start(&arguments, "watch the session: http://");
    let url = sender.address.clone();
    let (host, path) = url.split_once('/').unwrap();
    assert!(host.starts_with("127.0.0.1:"), "{url}");
    let mut page = super::watch::socket(host, &format!("/{path}"));
    let point = super::watch::until(&mut page, |point| point["flows"][0]["received"].as_u64() > Some(0));
    assert!(point["capacity"].is_null() && point["flows"][0]["signals"].as_array().is_some_and(|all| !all.is_empty()));
    signal("-INT", sender.child.id());
    let over = super::watch::outcome(&mut page);
    let sent = json(&sender.output());
    assert!(over.ends_with(sent["why"].as_str().unwrap()), "{over}");
    assert_eq!(sent["end"], "interrupted");
    assert!(std::net::TcpStream::connect(host).is_err(), "the page ends with the session");
}

fn json_list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn a_comparison_has_every_controller_once_in_each_round() {
    let receiver = server();
    let more = ["--compare", "googcc,fixed", "--turns", "2", "--duration", "1s"];
    let found = send(&receiver.address, &more);
    assert_eq!((&found["rounds"], &found["controllers"]), (&2.into(), &serde_json::json!(["googcc", "fixed"])));
    let turns = json_list(&found["turns"]);
    assert_eq!(turns.len(), 4);
    for round in 0..2 {
        let mut names: Vec<&str> =
            turns.iter().filter(|turn| turn["round"] == round).filter_map(|turn| turn["controller"].as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["fixed", "googcc"], "round {round}");
    }
    let rates = &found["quantities"][0];
    assert_eq!(rates["name"], "received_bps");
    assert!(json_list(&rates["values"]).iter().all(|value| value["mean"].as_f64().is_some_and(|mean| mean > 100e3)));
    let verdict = rates["differences"][1]["verdict"].as_str();
    assert!(rates["differences"][0].is_null() && verdict.is_some(), "{rates:#}");
    assert_eq!(json_list(&found["quantities"]).len(), 5);
    let parts = ["score", "score_lost_to_rate", "score_lost_to_delay", "score_lost_to_freezes"];
    for turn in turns {
        let sum: f64 = parts.iter().map(|part| turn[part].as_f64().unwrap()).sum();
        assert!((sum - 100.0).abs() < 1e-9 && turn["score"].as_f64().unwrap() > 0.0, "{turn:#}");
    }
    let ranking = json_list(&found["ranking"]);
    for entry in ranking {
        let own = turns.iter().filter(|turn| turn["controller"] == entry["controller"]);
        let mean = own.map(|turn| turn["score"].as_f64().unwrap()).sum::<f64>() / 2.0;
        assert!((entry["score"]["mean"].as_f64().unwrap() - mean).abs() < 1e-9, "{entry:#}");
        assert!(entry["others_keep"].is_null(), "the fair share is not known: {entry:#}");
    }
    // A constant sender has no place.
    let places: Vec<_> = ranking.iter().map(|entry| (entry["controller"].as_str(), entry["place"].as_u64())).collect();
    assert_eq!(places, [(Some("googcc"), Some(1)), (Some("fixed"), None)]);
    let verdict = found["verdict"][0].as_str().unwrap();
    let is_known = |text: &str| verdict.starts_with(&format!("`googcc` {text}"));
    assert!(is_known("has ") || is_known("is poor, with "), "{verdict}");
    let beside = send(&receiver.address, &[&more[..], &["--with", "tcp"]].concat());
    let tcp = &beside["quantities"][5];
    assert_eq!(tcp["name"], "tcp_received_bps");
    assert!(json_list(&tcp["values"]).iter().all(|value| value["mean"].as_f64().is_some_and(|mean| mean > 0.0)));
    for wrong in ["googcc", "googcc,googcc", "googcc,nothing"] {
        refuses(&receiver.address, &["--compare", wrong], "");
    }
    signal("-INT", receiver.child.id());
}

/// A scenario with a case of other rates.
const CASES: &str = r#"
id = "mine/cases"
title = "Cases"
duration = "9 s"
[path]
[[flow]]
id = "video"
controller = "fixed"
start_rate = "200 kbps"
encoder = { source = "ideal", max = "200 kbps" }
[[case]]
label = { size = "large" }
set = { "flow.video.start_rate" = "600 kbps", "flow.video.encoder.max" = "6 Mbps" }
[[assert]]
id = "sends"
metric = "sending_rate_bps"
case = { size = "large" }
bounds = [4e5, 7e6]
flow = "video"
"#;

#[test]
fn a_case_under_another_controller_keeps_its_rates_and_bounds() {
    let (out, file) = (folder("hosts-cases-out"), folder("hosts-cases.toml"));
    fs::write(&file, CASES).unwrap();
    let receiver = server();
    let scenario = ["--scenario", file.to_str().unwrap(), "--set", "duration=2 s"];
    let sent = |more: &[&str]| send(&receiver.address, &[&scenario, more].concat());
    let plain = sent(&[]);
    assert_eq!(plain["terms"]["flows"][0]["streams"][0]["max_bps"], 200_000);
    assert!(plain["assertions"].is_null(), "the bound belongs to a case: {}", plain["assertions"]);
    let large = sent(&["--case", "size=large", "--out", out.to_str().unwrap()]);
    assert_eq!(large["assertions"][0]["id"], "sends");
    assert_eq!((&large["terms"]["flows"][0]["controller"], &large["case"]), (&"fixed".into(), &"size=large".into()));
    assert!(plain["case"].is_null());
    let about = serde_json::to_value(&Store::read(&out).unwrap().runs[0].about).unwrap();
    assert_eq!(about["run"]["changes"], serde_json::json!(["case.size=large", "duration=2 s"]));
    let other = sent(&["--case", "size=large", "--controller", "googcc"]);
    let flow = &other["terms"]["flows"][0];
    assert_eq!((&flow["controller"], &flow["streams"][0]["max_bps"]), (&"googcc".into(), &6_000_000.into()));
    assert_eq!(other["assertions"][0]["id"], "sends");
    // Both turns send the case, each under its controller: `fixed` has the highest rate, `gcc-2016` grows from the first one.
    let turns = sent(&["--case", "size=large", "--compare", "fixed,gcc-2016", "--turns", "2", "--duration", "2s"]);
    assert_eq!((&turns["rounds"], json_list(&turns["turns"]).len()), (&2.into(), 4));
    assert_eq!((&turns["scenario"], &turns["case"]), (&"mine/cases".into(), &"size=large".into()));
    let rate = |index: usize| turns["quantities"][0]["values"][index]["mean"].as_f64().unwrap();
    assert!((5.5e6..7e6).contains(&rate(0)) && (4e5..3e6).contains(&rate(1)), "{} and {}", rate(0), rate(1));
    signal("-INT", receiver.child.id());
}

#[test]
fn an_interrupt_at_either_end_ends_both_with_results() {
    for at_sender in [true, false] {
        let mut receiver = receiver();
        let mut command = paceline(&["send", &receiver.address, "--json", "--duration", "60s"]);
        let sender = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        receiver.session();
        let other = paceline(&["send", &receiver.address]).output().unwrap();
        assert!(!other.status.success() && stderr(&other).contains("another session"), "{}", stderr(&other));
        let interrupted = if at_sender { sender.id() } else { receiver.child.id() };
        signal(if at_sender { "-INT" } else { "-TERM" }, interrupted);
        let sent = sender.wait_with_output().unwrap();
        let (sent, received) = (json(&String::from_utf8(sent.stdout).unwrap()), json(&receiver.output()));
        let expected = if at_sender { ("interrupted", "peer-left") } else { ("peer-left", "interrupted") };
        assert_eq!((sent["end"].as_str(), received["end"].as_str()), (Some(expected.0), Some(expected.1)));
    }
}

#[test]
fn metrics_are_served_while_a_receiver_runs() {
    let arguments = ["recv", "--bind", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];
    let mut receiver = Background::start(&arguments, "http://");
    let metrics = receiver.address.trim_end_matches("/metrics").to_owned();
    let address = receiver.message();
    let address = address.split("listening at ").nth(1).unwrap().split(';').next().unwrap();
    let sent = send(address, &["--duration", "1s"]);
    // Metrics are those of the last half second.
    std::thread::sleep(std::time::Duration::from_millis(700));
    let text = super::watch::get(&metrics, "/metrics");
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("paceline_{name} ")));
        line.and_then(|line| line.parse::<f64>().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
    };
    assert_eq!(value("received_packets_total"), sent["received_packets"].as_f64().unwrap());
    assert_eq!((value("sessions_total"), value("running_sessions")), (1.0, 0.0));
    signal("-INT", receiver.child.id());
}

#[test]
fn a_secret_seals_the_session_and_another_one_is_refused() {
    let folder = folder("hosts-secret");
    fs::create_dir(&folder).unwrap();
    let file = |name: &str, text: &str| {
        write_secret(&folder.join(name), text);
        folder.join(name).to_str().unwrap().to_owned()
    };
    let secret = file("one", "the secret of both ends\n");
    let receiver = receiver_with(&["--secret-file", &secret]);
    let address = receiver.address.clone();
    for other in [vec![], vec!["--secret-file", &*file("other", "the secret of somebody else")]] {
        refuses(&address, &other, "the secrets differ");
    }
    let short = paceline(&["send", &address, "--secret-file", &file("short", "too short")]).output().unwrap();
    assert!(stderr(&short).contains("shorter than 16 bytes"), "{}", stderr(&short));
    // Somebody else on the path, who sees every datagram, repeats each and alters some.
    let (attacker, sniffed) = (UdpSocket::bind("127.0.0.1:0").unwrap(), std::sync::Arc::new(std::sync::Mutex::new(0)));
    let at = attacker.local_addr().unwrap();
    let server: std::net::SocketAddr = address.parse().unwrap();
    let seen = sniffed.clone();
    std::thread::spawn(move || {
        let (mut buffer, mut client) = ([0; 2000], None);
        while let Ok((len, from)) = attacker.recv_from(&mut buffer) {
            let bytes = &mut buffer[..len];
            let to = if from == server {
                client
            } else {
                client = Some(from);
                Some(server)
            };
            let Some(to) = to else { continue };
            let _ = attacker.send_to(bytes, to);
            if bytes[0] == 81 {
                *seen.lock().unwrap() += 1;
                let _ = attacker.send_to(bytes, to);
                bytes[len / 2] ^= 1;
                let _ = attacker.send_to(bytes, to);
                let bye = [&b"PLHO\x05\x07"[..], &[0; 8]].concat();
                let _ = attacker.send_to(&bye, to);
            } else {
                assert_eq!(&bytes[..4], b"PLHO", "nothing but the handshake is readable");
            }
        }
    });
    let sent = send(&at.to_string(), &["--duration", "2s", "--secret-file", &secret]);
    let text = receiver.output();
    let mut documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let (received, counted) = (documents.next().unwrap().unwrap(), documents.next().unwrap().unwrap());
    assert_eq!((&sent["end"], &sent["sent_packets"]), (&"complete".into(), &received["received_packets"]));
    assert_eq!(sent["unknown_arrivals"], 0, "a repeated packet is not counted twice");
    let datagrams = &counted["datagrams"];
    assert_eq!(datagrams["other_secrets"], 2);
    // Of each datagram to the receiver a copy, an altered one and a forged bye.
    let (packets, unauthentic) = (count(&received["received_packets"]), count(&datagrams["unauthentic"]));
    assert!((3 * packets..4 * packets).contains(&unauthentic), "{unauthentic} for {packets} packets");
    assert!(*sniffed.lock().unwrap() > packets);
}

#[test]
fn a_receiver_gives_up_the_rights_of_root() {
    let arguments = ["recv", "--once", "--json", "--bind", "127.0.0.1:0", "--user", "nobody"];
    if !super::track::is_root() {
        let output = paceline(&arguments).output().unwrap();
        assert!(stderr(&output).contains("as root"), "{}", stderr(&output));
        return;
    }
    let receiver = Background::start(&arguments, "listening at ");
    let status = fs::read_to_string(format!("/proc/{}/status", receiver.child.id())).unwrap();
    let value = |key: &str| {
        let line =
            status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_else(|| panic!("{key} in {status}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    for key in ["Uid:", "Gid:", "Groups:"] {
        let ids = value(key);
        assert!(!ids.is_empty() && ids.iter().all(|id| id != "0"), "{status}");
    }
    for key in ["CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(value(key), ["0000000000000000"], "{key}");
    }
    let unknown = paceline(&["send", &receiver.address, "--user", "no such user"]).output().unwrap();
    assert!(stderr(&unknown).contains("no user"), "{}", stderr(&unknown));
    let sent = send(&receiver.address, &["--duration", "1s", "--with", "tcp", "--user", "nobody"]);
    assert_eq!((&sent["end"], &sent["tcp"]["problem"]), (&"complete".into(), &Value::Null));
    assert_eq!(sent["received_packets"], json(&receiver.output())["received_packets"]);
}

#[test]
fn without_answer_nothing_but_hellos_is_sent() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    refuses(&silent.local_addr().unwrap().to_string(), &[], "no answer");
    silent.set_nonblocking(true).unwrap();
    let mut buffer = [0; 2000];
    let mut count = 0;
    while let Ok(len) = silent.recv(&mut buffer) {
        assert_eq!((len, &buffer[..4]), (64, &b"PLHO"[..]));
        count += 1;
    }
    assert!((1..=20).contains(&count), "{count} hellos");
}

/// Writes a file that others may not read, of which there is no warning.
fn write_secret(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

#[test]
fn a_receiver_sends_no_more_than_it_allows() {
    let receiver = receiver_with(&["--max-back-rate", "3Mbps"]);
    let session = ["send", &receiver.address, "--both", "--flows", "2", "--duration", "1s", "--max-rate"];
    let refused = paceline(&[&session[..], &["1600kbps"]].concat()).output().unwrap();
    assert!(!refused.status.success() && stderr(&refused).contains("--max-back-rate"), "{}", stderr(&refused));
    let accepted = paceline(&[&session[..], &["1500kbps"]].concat()).output().unwrap();
    assert!(accepted.status.success(), "{}", stderr(&accepted));
}
