// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls with a real browser, twenty seconds each: events, statistics, and the removal of all processes and files.

use super::remb_steps;
use paceline::Registry;
use paceline_browser::call::{BrowserWorld, registry};
use paceline_netsim::flow::IP_UDP_HEADERS;
use paceline_netsim::records::{EventObserver, EventRecord, HalfName, PacketClass, Program};
use paceline_netsim::world::{World, WorldError};
use paceline_scenario::{Changes, Origin, load};
#[cfg(feature = "video")]
use paceline_units::Ecn;
use paceline_units::{Rate, Time, TimeDelta};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A call over a link of 1 Mbit/s without random loss.
const CALL: &str = r#"
id = "test/call"
title = "A call"
duration = "20s"
[path.forward]
capacity = "1Mbps"
queue = { discipline = "drop-tail", limit = "200ms" }
delay = "25ms"
[path.reverse]
capacity = "10Mbps"
delay = "25ms"
[[flow]]
id = "video"
controller = "chromium"
encoder = { max = "2Mbps" }
"#;

/// Returns `None` if this machine cannot run calls, and prints a note.
///
/// # Panics
/// Calls are not available although `PACELINE_REQUIRE` lists `chromium` and `track`.
fn possible() -> Option<()> {
    let required = std::env::var("PACELINE_REQUIRE").unwrap_or_default();
    let required = ["chromium", "track"].iter().all(|one| required.split([',', ' ']).any(|r| r == *one));
    let missing = BrowserWorld::missing();
    if let Some((cause, hint)) = &missing {
        assert!(!required, "PACELINE_REQUIRE requires calls: {cause}: {hint}");
        eprintln!("NOT TESTED: {cause}: {hint}");
    }
    missing.is_none().then_some(())
}

/// The events and attachments of a run.
#[derive(Default)]
struct Recording {
    events: Vec<EventRecord>,
    files: BTreeMap<String, usize>,
    /// Versions and command lines of the browsers.
    programs: Vec<Program>,
}

impl EventObserver for Recording {
    fn on_event(&mut self, event: &EventRecord) {
        self.events.push(*event);
    }
    fn wants_signals(&self) -> bool {
        true
    }
    fn wants_attachments(&self) -> bool {
        true
    }
    fn on_attachment(&mut self, name: &str, bytes: &[u8]) {
        self.files.insert(name.to_owned(), bytes.len());
    }
}

/// Runs a call with this controller; `None` if this machine cannot run calls.
fn call(controller: &str, duration: &str) -> Option<Recording> {
    call_of(Registry::standard(), controller, duration, &[])
}

/// Runs a call with a controller of this registry and with these overrides.
fn call_of(controllers: Registry, controller: &str, duration: &str, settings: &[&str]) -> Option<Recording> {
    let registry = registry(controllers);
    let changes = Changes {
        controller: Some(controller.to_owned()),
        settings: [format!("duration={duration}").as_str()]
            .iter()
            .chain(settings)
            .map(|s| s.parse().unwrap())
            .collect(),
        ..Changes::default()
    };
    let (recording, result) = run(CALL, &changes, &registry)?;
    result.unwrap();
    Some(recording)
}

/// Runs a scenario text and returns the events together with the outcome; `None` if this machine cannot run calls.
fn run(text: &str, changes: &Changes, registry: &Registry) -> Option<(Recording, Result<(), WorldError>)> {
    possible()?;
    let scenario = load(&Origin::from_text("call", text), changes, registry).unwrap();
    let mut recording = Recording::default();
    let result = BrowserWorld::default().run(&scenario.plan, registry, 1, &mut recording);
    let result = result.map(|outcome| recording.programs = outcome.programs);
    Some((recording, result))
}

impl Recording {
    /// Returns the mean received rate from this second on, kbit/s.
    fn rate(&self, from: i64) -> f64 {
        let arrived = self.events.iter().filter_map(|row| match row {
            EventRecord::Arrived { at, packet, .. }
                if *at >= Time::from_secs(from) && !packet.class.is_from_receiver() =>
            {
                Some(packet.size.as_bits())
            }
            _ => None,
        });
        arrived.sum::<u64>() as f64 / 1e3 / (20 - from) as f64
    }

    fn count(&self, of: impl Fn(&EventRecord) -> bool) -> usize {
        self.events.iter().filter(|row| of(row)).count()
    }

    fn signal(&self, half: HalfName, index: u8) -> Vec<f64> {
        self.signal_between(half, index, Time::ZERO, Time::MAX)
    }

    /// Returns the values of a signal between two times.
    fn signal_between(&self, half: HalfName, index: u8, from: Time, to: Time) -> Vec<f64> {
        let value = |row: &EventRecord| match row {
            EventRecord::Signal { at, half: of, signal, value, .. } if (*of, *signal) == (half, index) => {
                (from..to).contains(at).then_some(*value)
            }
            _ => None,
        };
        self.events.iter().filter_map(value).collect()
    }

    /// Checks the properties of every call of 20 s.
    fn assert_valid_call(&self) {
        assert!(self.events.is_sorted_by_key(|row| row.at()));
        let sent = PacketClass::ALL.map(|class| {
            let of_class = |row: &EventRecord| matches!(row, EventRecord::Sent { packet, .. } if packet.class == class);
            (class.name(), self.count(of_class))
        });
        let rate = self.rate(8);
        assert!((300.0..=1010.0).contains(&rate), "{rate} kbit/s of 1000; packets: {sent:?}");
        let frames: Vec<Time> =
            self.events.iter().filter(|row| matches!(row, EventRecord::Frame { .. })).map(EventRecord::at).collect();
        assert!((250..=600).contains(&frames.len()), "{} frames in 20 s", frames.len());
        // Frames arrive until the end: the last gap is not a freeze.
        let last = &frames[frames.len() - 31..];
        let (mean, gap) = ((last[30] - last[0]) / 30, Time::from_secs(20) - last[30]);
        let most = mean + TimeDelta::from_millis(150);
        assert!((TimeDelta::ZERO..=most).contains(&gap), "last gap {gap}, mean {mean}");
    }
}

#[test]
fn call_between_two_chromiums_is_recorded() {
    let Some(recording) = call("chromium", "20s") else { return };
    recording.assert_valid_call();
    let decisions =
        recording.count(|row| matches!(row, EventRecord::Decision { target, .. } if *target > Rate::from_kbps(50)));
    let (rtts, losses) = (
        recording.count(|row| matches!(row, EventRecord::RoundTrip { .. })),
        recording.count(|row| matches!(row, EventRecord::FractionLost { .. })),
    );
    assert!(
        (14..=20).contains(&decisions) && (10..=20).contains(&rtts) && (10..=20).contains(&losses),
        "{decisions} decisions, {rtts} round trips, {losses} losses"
    );
    // Both ends were started in the same way.
    let [Program { version, command }] = &recording.programs[..] else { panic!("{:?}", recording.programs) };
    assert!(version.contains("Chrome/"), "{version}");
    assert!(command.iter().any(|word| word == "--use-file-for-fake-video-capture={folder}/camera.y4m"), "{command:?}");
    // An event log and a dump of each end.
    let names: Vec<&str> = recording.files.keys().map(String::as_str).collect();
    let logs = ["chromium-1-near-1.rtc-event-log", "chromium-2-far-1.rtc-event-log"];
    let dumps = ["video-receiver.webrtc-internals.txt", "video-sender.webrtc-internals.txt"];
    assert_eq!(names, [logs, dumps].concat());
    assert!(recording.files.values().all(|len| *len > 1000), "{:?}", recording.files);
    for row in &recording.events {
        match row {
            EventRecord::RoundTrip { rtt, .. } => assert!((45.0..=600.0).contains(&rtt.as_millis_f64()), "{row:?}"),
            EventRecord::Frame { at, captured, .. } => {
                assert!((20.0..=2000.0).contains(&(*at - *captured).as_millis_f64()), "{row:?}")
            }
            _ => {}
        }
    }
}

/// A link that loses every packet.
#[test]
fn run_fails_if_a_call_does_not_connect() {
    let text = CALL.replace("[path.reverse]", "loss = \"100%\"\n[path.reverse]");
    let registry = registry(Registry::standard());
    let Some((recording, result)) = run(&text, &Changes::default(), &registry) else { return };
    let error = result.unwrap_err();
    assert!(error.to_string().contains("call `video`: the endpoints did not connect"), "{error}");
    let control = |row: &EventRecord| matches!(row, EventRecord::Dropped { packet, .. } if packet.class == PacketClass::SenderControl);
    let (lost, last) = (recording.count(control), recording.events.last().unwrap().at());
    assert!((10..=1000).contains(&lost), "{lost} checks were sent and lost");
    assert!(recording.events.is_sorted_by_key(|row| row.at()), "drops are sorted by time");
    assert!((Time::from_secs(9)..Time::from_secs(16)).contains(&last), "timeout after 10 s: {last}");
}

/// A child process that runs `child_process_sequential_calls` with its own folder for temporary files.
struct CallProcess {
    child: Child,
    folder: PathBuf,
}

impl CallProcess {
    fn start(name: &str, calls: u32) -> Option<Self> {
        possible()?;
        let folder = std::env::temp_dir().join(format!("calls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "browser::call::child_process_sequential_calls", "--ignored", "--nocapture"])
            .env("TMPDIR", &folder)
            .env("CALLS", calls.to_string())
            .spawn()
            .unwrap();
        Some(Self { child, folder })
    }

    /// Returns its temporary files and its processes except zombies.
    fn left(&self) -> (Vec<PathBuf>, Vec<String>) {
        let files = std::fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        let folder = self.folder.to_str().unwrap().to_owned();
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let process = entry.ok()?.path();
            let command = std::fs::read_to_string(process.join("cmdline")).ok()?;
            let environment = std::fs::read(process.join("environ")).unwrap_or_default();
            let ours = command.contains(&folder) || String::from_utf8_lossy(&environment).contains(&folder);
            (ours && !command.is_empty()).then(|| command.replace('\0', " "))
        });
        (files, processes.collect())
    }

    /// Waits until its processes have ended and its folder is empty.
    fn assert_cleaned_up(self) {
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(30) {
            if self.left() == (Vec::new(), Vec::new()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("left: {:?}", self.left());
    }
}

/// Cleans up after a failed test.
impl Drop for CallProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Its browsers may still write for a moment.
        for _ in 0..50 {
            if std::fs::remove_dir_all(&self.folder).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Returns the open files, threads and resident memory (MB) of this process.
fn resources() -> [usize; 3] {
    let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
    [count("fd"), count("task"), pages * 4 / 1024]
}

/// Run by the tests below in a child process.
#[test]
#[ignore = "part of other tests"]
fn child_process_sequential_calls() {
    let calls: usize = std::env::var("CALLS").unwrap().parse().unwrap();
    let mut all = Vec::new();
    for _ in 0..calls {
        let recording = call("chromium", "4s").unwrap();
        let frames = recording.count(|row| matches!(row, EventRecord::Frame { .. }));
        assert!((10..=125).contains(&frames), "{frames} frames in 4 s");
        // Threads that read from a browser end after the browser.
        std::thread::sleep(Duration::from_millis(500));
        all.push(resources());
    }
    let ([files, threads, memory], [files_then, threads_then, memory_then]) = (all[calls - 1], all[0]);
    assert!(
        files <= files_then && threads <= threads_then && memory <= memory_then + 30,
        "files, threads, MB: {all:?}"
    );
}

/// `PACELINE_CALLS` sets the number of calls; thirty take four minutes. `cargo xtask full` makes them.
#[test]
fn calls_remove_their_processes_and_files() {
    let calls = std::env::var("PACELINE_CALLS").map_or(2, |calls| calls.parse().unwrap());
    let Some(mut process) = CallProcess::start("in-turn", calls) else { return };
    assert!(process.child.wait().unwrap().success());
    process.assert_cleaned_up();
}

#[test]
fn killed_call_is_cleaned_up() {
    let Some(mut process) = CallProcess::start("killed", 1) else { return };
    let since = Instant::now();
    let in_a_call = |process: &CallProcess| {
        let (_, processes) = process.left();
        processes.iter().filter(|command| command.contains("--type=renderer")).count() >= 2
    };
    while !in_a_call(&process) && since.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(in_a_call(&process), "{:?}", process.left());
    std::thread::sleep(Duration::from_millis(1500));
    process.child.kill().unwrap();
    process.child.wait().unwrap();
    process.assert_cleaned_up();
}

/// Two calls with different controllers, one in each direction, with kernel CUBIC as cross traffic.
#[test]
fn calls_share_the_link_with_tcp() {
    let text = CALL.replace("20s", "12s").replace("1Mbps", "3Mbps").replace("10Mbps", "2Mbps")
        + r#"
[[flow]]
id = "back"
direction = "reverse"
controller = "gcc-2016"
start = "1s"
encoder = { max = "1Mbps" }
[[flow]]
id = "tcp"
kind = "tcp"
start = "2s"
"#;
    let registry = registry(Registry::standard());
    let Some((recording, result)) = run(&text, &Changes::default(), &registry) else { return };
    result.unwrap();
    for (flow, name, least) in [(0, "video", 150), (1, "back", 150)] {
        let of = |row: &&EventRecord| matches!(row, EventRecord::Frame { flow: id, .. } if id.0 == flow);
        let frames: Vec<&EventRecord> = recording.events.iter().filter(of).collect();
        assert!((least..=360).contains(&frames.len()), "{name}: {} frames", frames.len());
        let begins = Time::from_secs(flow as i64);
        assert!(
            frames[0].at() > begins && frames[0].at() < begins + TimeDelta::from_secs(5),
            "{name}: {:?}",
            frames[0]
        );
    }
    let read = |row: &EventRecord| match row {
        EventRecord::Read { flow, size, .. } if flow.0 == 2 => size.as_bytes(),
        _ => 0,
    };
    let read: u64 = recording.events.iter().map(read).sum();
    assert!((300_000..4_000_000).contains(&read), "TCP read {read} bytes of 3 Mbit/s");
}

#[test]
fn chromium_follows_remb_of_a_local_receiver() {
    let Some(recording) = call("gcc-2016", "20s") else { return };
    recording.assert_valid_call();
    let rembs = recording.count(|row| matches!(row, EventRecord::Remb { .. }));
    let available = recording.signal(HalfName::Send, 0);
    assert!((15..=200).contains(&rembs), "{rembs} REMBs");
    let followed = available.iter().filter(|bps| (100e3..=1.5e6).contains(*bps)).count();
    assert!((14..=20).contains(&available.len()) && followed + 2 >= available.len(), "{available:?}");
    let gradients = recording.count(|row| matches!(row, EventRecord::Signal { half: HalfName::Receive, .. }));
    assert!((1000..=50_000).contains(&gradients), "signals of the local half: {gradients}");
}

/// Chromium's estimate reaches the REMB within 1 % after two seconds, or four after an increase. Over five seconds it
/// sends close to that rate; at 150 kbit/s it sends less, because its smallest picture needs less.
#[test]
fn chromium_sends_at_the_rate_of_remb() {
    // REMB, kbit/s; its start, s; the smallest share of it that is sent. By default only the first two.
    const SCHEDULE: [(u64, i64, f64); 4] = [(300, 0, 0.80), (1000, 14, 0.90), (150, 28, 0.60), (300, 42, 0.80)];
    let steps = if std::env::var_os("PACELINE_CALLS").is_some() { 4 } else { 2 };
    let (schedule, end) = (&SCHEDULE[..steps], 14 * steps as i64);
    let mut controllers = Registry::standard();
    controllers.add(remb_steps::remb(
        schedule.iter().map(|(kbps, at, _)| (TimeDelta::from_secs(*at), Rate::from_kbps(*kbps))).collect(),
    ));
    let capacity = ["path.forward.capacity=3Mbps"];
    let Some(recording) = call_of(controllers, "remb", &format!("{end}s"), &capacity) else { return };
    // The schedule starts with the first packet.
    let begin = recording.events.iter().find_map(|row| match row {
        EventRecord::Arrived { at, packet, .. } if packet.class == PacketClass::Media => Some(*at),
        _ => None,
    });
    let begin = begin.unwrap();
    for (step, (kbps, at, least)) in schedule.iter().copied().enumerate() {
        let rises = step > 0 && schedule[step - 1].0 < kbps;
        let from = begin + TimeDelta::from_secs(at + if rises { 4 } else { 2 });
        let to = schedule.get(step + 1).map_or(Time::from_secs(end - 1), |next| begin + TimeDelta::from_secs(next.1));
        let available: Vec<f64> = recording.signal_between(HalfName::Send, 0, from, to);
        let off = available.iter().map(|bps| bps / kbps as f64 / 1e3).collect::<Vec<_>>();
        let mut window = from;
        let mut shares = Vec::new();
        while window + TimeDelta::from_secs(5) <= to {
            let until = window + TimeDelta::from_secs(5);
            let sent = recording.events.iter().filter_map(|row| match row {
                EventRecord::Sent { at, packet, .. }
                    if (window..until).contains(at) && !packet.class.is_from_receiver() =>
                {
                    // REMB counts RTP packets without IP and UDP headers.
                    Some(packet.size.saturating_sub(IP_UDP_HEADERS).as_bits())
                }
                _ => None,
            });
            shares.push(sent.sum::<u64>() as f64 / 5e3 / kbps as f64);
            window += TimeDelta::from_secs(1);
        }
        let within = off.iter().all(|off| (0.99..=1.01).contains(off));
        assert!((6..=13).contains(&off.len()) && within, "REMB {kbps} kbit/s: available share {off:.3?}");
        let within = shares.iter().all(|share| (least..=1.05).contains(share));
        assert!((4..=9).contains(&shares.len()) && within, "REMB {kbps} kbit/s: share sent in 5 s {shares:.3?}");
    }
}

/// A local sender with a real encoder; Chromium reports each packet and renders the frames.
#[cfg(feature = "video")]
#[test]
fn chromium_receives_from_a_local_sender() {
    let Some(recording) = call("gcc-tfb", "20s") else { return };
    recording.assert_valid_call();
    let targets =
        recording.count(|row| matches!(row, EventRecord::Decision { target, .. } if *target > Rate::from_kbps(50)));
    assert!((50..=2000).contains(&targets), "{targets} decisions");
    let decoded = recording.signal(HalfName::Receive, 0);
    let shown = decoded.iter().filter(|fps| (5.0..=40.0).contains(*fps)).count();
    assert!((14..=20).contains(&decoded.len()) && shown + 2 >= decoded.len(), "frames decoded: {decoded:?}");
}

#[cfg(feature = "video")]
#[test]
fn only_media_carries_the_controllers_ecn_codepoint() {
    let Some(recording) = call("scream", "6s") else { return };
    let came = |media: bool, wanted: Ecn| {
        recording.count(|row| {
            let EventRecord::Arrived { packet, ecn, .. } = row else { return false };
            let is_media = !matches!(packet.class, PacketClass::SenderControl | PacketClass::ReceiverControl);
            (is_media, *ecn) == (media, wanted)
        })
    };
    let (media, control) = ([true, false].map(|media| came(media, Ecn::Ect0)), came(false, Ecn::NotEct));
    assert!((50..=1500).contains(&media[0]) && media[1] == 0, "{media:?} packets with ECT(0)");
    assert!(came(true, Ecn::NotEct) == 0 && (20..=1500).contains(&control), "{control} reports and checks without");
}
