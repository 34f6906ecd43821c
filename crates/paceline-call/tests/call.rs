//! Calls with a real browser, each twenty seconds: that rows and numbers come, and that nothing stays behind.

#![cfg(target_os = "linux")]

#[path = "../examples/end/steps.rs"]
mod steps;

use paceline::Registry;
use paceline_call::{BrowserWorld, registry};
use paceline_flow::IP_UDP_HEADERS;
use paceline_lab::rows::{HalfName, PacketClass, Row, RowSink};
use paceline_lab::scenario::{Changes, Origin, load};
use paceline_lab::world::World;
#[cfg(feature = "video")]
use paceline_units::Ecn;
use paceline_units::{Rate, Time, TimeDelta};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A link of 1 Mbit/s that loses nothing.
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

/// Whether this machine can hold a call; says so if not, and fails where `PACELINE_REQUIRE` asks for both.
fn possible() -> bool {
    let required = std::env::var("PACELINE_REQUIRE").unwrap_or_default();
    let required = ["chromium", "track"].iter().all(|one| required.split([',', ' ']).any(|r| r == *one));
    let missing = BrowserWorld::missing();
    if let Some((cause, hint)) = &missing {
        assert!(!required, "PACELINE_REQUIRE asks for calls: {cause}: {hint}");
        eprintln!("NOT TESTED: {cause}: {hint}");
    }
    missing.is_none()
}

#[derive(Default)]
struct Kept {
    rows: Vec<Row>,
    files: BTreeMap<String, usize>,
}

impl RowSink for Kept {
    fn row(&mut self, row: &Row) {
        self.rows.push(*row);
    }
    fn wants_signals(&self) -> bool {
        true
    }
    fn wants_artefacts(&self) -> bool {
        true
    }
    fn artefact(&mut self, name: &str, bytes: Vec<u8>) {
        self.files.insert(name.to_owned(), bytes.len());
    }
}

/// A call under this controller, so long.
fn call(controller: &str, duration: &str) -> Kept {
    call_of(Registry::standard(), controller, duration, &[])
}

/// The same with a controller of this registry, and with some of the link's keys set.
fn call_of(controllers: Registry, controller: &str, duration: &str, settings: &[&str]) -> Kept {
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
    let plan = load(&Origin::from_text("call", CALL), &changes, &registry).unwrap();
    let mut kept = Kept::default();
    BrowserWorld::default().run(&plan, &registry, 1, &mut kept).unwrap();
    kept
}

impl Kept {
    /// Mean rate that arrived from here on, kbit/s.
    fn rate(&self, from: i64) -> f64 {
        let arrived = self.rows.iter().filter_map(|row| match row {
            Row::Arrived { at, packet, .. } if *at >= Time::from_secs(from) && !packet.class.goes_back() => {
                Some(packet.size.as_bits())
            }
            _ => None,
        });
        arrived.sum::<u64>() as f64 / 1e3 / (20 - from) as f64
    }

    fn count(&self, of: impl Fn(&Row) -> bool) -> usize {
        self.rows.iter().filter(|row| of(row)).count()
    }

    /// Values of a signal.
    fn signal(&self, half: HalfName, index: u8) -> Vec<f64> {
        self.signal_between(half, index, Time::ZERO, Time::MAX)
    }

    /// Values of a signal between two times.
    fn signal_between(&self, half: HalfName, index: u8, from: Time, to: Time) -> Vec<f64> {
        let value = |row: &Row| match row {
            Row::Signal { at, half: of, signal, value, .. } if (*of, *signal) == (half, index) => {
                (from..to).contains(at).then_some(*value)
            }
            _ => None,
        };
        self.rows.iter().filter_map(value).collect()
    }

    /// What every call comes to, whoever is at its ends.
    fn is_a_call(&self) {
        assert!(self.rows.is_sorted_by_key(|row| row.at()));
        let sent = PacketClass::ALL.map(|class| {
            let of_class = |row: &Row| matches!(row, Row::Sent { packet, .. } if packet.class == class);
            (class.name(), self.count(of_class))
        });
        let rate = self.rate(8);
        assert!((300.0..=1010.0).contains(&rate), "{rate} kbit/s of 1000; packets: {sent:?}");
        let frames: Vec<Time> = self.rows.iter().filter(|row| matches!(row, Row::Frame { .. })).map(Row::at).collect();
        assert!((250..=600).contains(&frames.len()), "{} frames in 20 s", frames.len());
        // They come up to the end: what is left there is no longer than what counts as no freeze.
        let last = &frames[frames.len() - 31..];
        let (mean, left) = ((last[30] - last[0]) / 30, Time::from_secs(20) - last[30]);
        let most = mean + TimeDelta::from_millis(150);
        assert!((TimeDelta::ZERO..=most).contains(&left), "{left} without a frame, one each {mean} before");
    }
}

#[test]
fn two_browsers() {
    if !possible() {
        return;
    }
    let kept = call("chromium", "20s");
    kept.is_a_call();
    let decisions = kept.count(|row| matches!(row, Row::Decision { target, .. } if *target > Rate::from_kbps(50)));
    let (rtts, losses) = (
        kept.count(|row| matches!(row, Row::RoundTrip { .. })),
        kept.count(|row| matches!(row, Row::FractionLost { .. })),
    );
    assert!(
        (14..=20).contains(&decisions) && (10..=20).contains(&rtts) && (10..=20).contains(&losses),
        "{decisions} decisions, {rtts} round trips, {losses} losses"
    );
    assert!(kept.files.len() == 2 && kept.files.values().all(|len| *len > 1000), "{:?}", kept.files);
    for row in &kept.rows {
        match row {
            Row::RoundTrip { rtt, .. } => assert!((45.0..=600.0).contains(&rtt.as_millis_f64()), "{row:?}"),
            Row::Frame { at, captured, .. } => {
                assert!((20.0..=2000.0).contains(&(*at - *captured).as_millis_f64()), "{row:?}")
            }
            _ => {}
        }
    }
}

/// Over a link that loses every packet the ends do not find each other, and a run without a call is none.
#[test]
fn a_call_that_never_comes_up_breaks_the_run() {
    if !possible() {
        return;
    }
    let text = CALL.replace("[path.reverse]", "loss = \"100%\"\n[path.reverse]");
    let registry = registry(Registry::standard());
    let plan = load(&Origin::from_text("never", &text), &Changes::default(), &registry).unwrap();
    let mut kept = Kept::default();
    let error = BrowserWorld::default().run(&plan, &registry, 1, &mut kept).unwrap_err();
    assert!(error.to_string().contains("call `video`: the ends have not found each other"), "{error}");
    let control = |row: &Row| matches!(row, Row::Dropped { packet, .. } if packet.class == PacketClass::SenderControl);
    let (lost, last) = (kept.count(control), kept.rows.last().unwrap().at());
    assert!((10..=1000).contains(&lost), "{lost} checks were sent and lost");
    assert!(kept.rows.is_sorted_by_key(|row| row.at()), "what was lost has its place in time, too");
    assert!((Time::from_secs(9)..Time::from_secs(16)).contains(&last), "given up after 10 s: {last}");
}

/// A process of this test of its own, with a folder of its own for temporary files.
struct Victim {
    child: Child,
    folder: PathBuf,
}

impl Victim {
    fn start(name: &str, calls: u32) -> Self {
        let folder = std::env::temp_dir().join(format!("calls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "calls_one_after_the_other", "--ignored", "--nocapture"])
            .env("TMPDIR", &folder)
            .env("CALLS", calls.to_string())
            .spawn()
            .unwrap();
        Self { child, folder }
    }

    /// Its temporary files, and the processes that work on them and are not merely to be buried.
    fn left(&self) -> (Vec<PathBuf>, Vec<String>) {
        let files = std::fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        let folder = self.folder.to_str().unwrap().to_owned();
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let place = entry.ok()?.path();
            let words = std::fs::read_to_string(place.join("cmdline")).ok()?;
            let surroundings = std::fs::read(place.join("environ")).unwrap_or_default();
            let ours = words.contains(&folder) || String::from_utf8_lossy(&surroundings).contains(&folder);
            (ours && !words.is_empty()).then(|| words.replace('\0', " "))
        });
        (files, processes.collect())
    }

    /// Waits until nothing is left of it but its folder.
    fn leaves_nothing(self) {
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

/// Of a test that fails, too, nothing stays.
impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Its browsers may write for a moment.
        for _ in 0..50 {
            if std::fs::remove_dir_all(&self.folder).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// What this process holds: open files, threads, resident memory in MB.
fn held() -> [usize; 3] {
    let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
    [count("fd"), count("task"), pages * 4 / 1024]
}

/// What the tests below run as a process of its own.
#[test]
#[ignore = "a part of other tests"]
fn calls_one_after_the_other() {
    let calls: usize = std::env::var("CALLS").unwrap().parse().unwrap();
    let mut all = Vec::new();
    for _ in 0..calls {
        let kept = call("chromium", "4s");
        let frames = kept.count(|row| matches!(row, Row::Frame { .. }));
        assert!((10..=125).contains(&frames), "{frames} frames in 4 s");
        // Threads that read from a browser end when it has.
        std::thread::sleep(Duration::from_millis(500));
        all.push(held());
    }
    let ([files, threads, memory], [files_then, threads_then, memory_then]) = (all[calls - 1], all[0]);
    assert!(
        files <= files_then && threads <= threads_then && memory <= memory_then + 30,
        "files, threads, MB: {all:?}"
    );
}

/// `PACELINE_CALLS` says how many; thirty take four minutes.
#[test]
fn calls_leave_nothing_behind() {
    if !possible() {
        return;
    }
    let calls = std::env::var("PACELINE_CALLS").map_or(3, |calls| calls.parse().unwrap());
    let mut victim = Victim::start("in-turn", calls);
    assert!(victim.child.wait().unwrap().success());
    victim.leaves_nothing();
}

#[test]
fn a_call_that_is_killed_leaves_nothing_behind() {
    if !possible() {
        return;
    }
    let mut victim = Victim::start("killed", 1);
    let since = Instant::now();
    let in_a_call = |victim: &Victim| {
        let (_, processes) = victim.left();
        processes.iter().filter(|words| words.contains("--type=renderer")).count() >= 2
    };
    while !in_a_call(&victim) && since.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(in_a_call(&victim), "{:?}", victim.left());
    std::thread::sleep(Duration::from_millis(1500));
    victim.child.kill().unwrap();
    victim.child.wait().unwrap();
    victim.leaves_nothing();
}

/// Two calls of different kinds, one each way, and a kernel's CUBIC beside them.
#[test]
fn several_calls_and_tcp() {
    if !possible() {
        return;
    }
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
    let plan = load(&Origin::from_text("several", &text), &Changes::default(), &registry).unwrap();
    let mut kept = Kept::default();
    BrowserWorld::default().run(&plan, &registry, 1, &mut kept).unwrap();
    for (flow, name, least) in [(0, "video", 150), (1, "back", 150)] {
        let of = |row: &&Row| matches!(row, Row::Frame { flow: id, .. } if id.0 == flow);
        let frames: Vec<&Row> = kept.rows.iter().filter(of).collect();
        assert!((least..=360).contains(&frames.len()), "{name}: {} frames", frames.len());
        let begins = Time::from_secs(flow as i64);
        assert!(
            frames[0].at() > begins && frames[0].at() < begins + TimeDelta::from_secs(5),
            "{name}: {:?}",
            frames[0]
        );
    }
    let read = |row: &Row| match row {
        Row::Read { flow, size, .. } if flow.0 == 2 => size.as_bytes(),
        _ => 0,
    };
    let read: u64 = kept.rows.iter().map(read).sum();
    assert!((300_000..4_000_000).contains(&read), "TCP read {read} bytes of 3 Mbit/s");
}

/// Chromium sends no more than our receiver says, and follows it.
#[test]
fn a_browser_that_our_receiver_steers() {
    if !possible() {
        return;
    }
    let kept = call("gcc-2016", "20s");
    kept.is_a_call();
    let rembs = kept.count(|row| matches!(row, Row::Remb { .. }));
    let available = kept.signal(HalfName::Send, 0);
    assert!((15..=200).contains(&rembs), "{rembs} REMBs");
    let followed = available.iter().filter(|bps| (100e3..=1.5e6).contains(*bps)).count();
    assert!((14..=20).contains(&available.len()) && followed + 2 >= available.len(), "{available:?}");
    let gradients = kept.count(|row| matches!(row, Row::Signal { half: HalfName::Receive, .. }));
    assert!((1000..=50_000).contains(&gradients), "our half shows itself: {gradients}");
}

/// Chromium's estimate is what our receiver asks for, within 1 % and two seconds, four when it rises; and over five seconds
/// it sends what a video of that rate comes to: less at the lowest, where its smallest picture is not worth 150 kbit/s.
#[test]
fn a_browser_sends_what_our_receiver_asks_for() {
    if !possible() {
        return;
    }
    // kbit/s, from the second on, and the least share of it that is sent.
    const ASKED: [(u64, i64, f64); 4] = [(300, 0, 0.80), (1000, 14, 0.90), (150, 28, 0.60), (300, 42, 0.80)];
    const END: i64 = 56;
    let mut controllers = Registry::standard();
    controllers.add(steps::remb(
        ASKED.iter().map(|(kbps, at, _)| (TimeDelta::from_secs(*at), Rate::from_kbps(*kbps))).collect(),
    ));
    let kept = call_of(controllers, "remb", &format!("{END}s"), &["path.forward.capacity=3Mbps"]);
    // The steps count from the first packet on.
    let begin = kept.rows.iter().find_map(|row| match row {
        Row::Arrived { at, packet, .. } if packet.class == PacketClass::Media => Some(*at),
        _ => None,
    });
    let begin = begin.unwrap();
    for (step, (kbps, at, least)) in ASKED.into_iter().enumerate() {
        let rises = step > 0 && ASKED[step - 1].0 < kbps;
        let from = begin + TimeDelta::from_secs(at + if rises { 4 } else { 2 });
        let to = ASKED.get(step + 1).map_or(Time::from_secs(END - 1), |next| begin + TimeDelta::from_secs(next.1));
        let available: Vec<f64> = kept.signal_between(HalfName::Send, 0, from, to);
        let off = available.iter().map(|bps| bps / kbps as f64 / 1e3).collect::<Vec<_>>();
        let mut window = from;
        let mut shares = Vec::new();
        while window + TimeDelta::from_secs(5) <= to {
            let until = window + TimeDelta::from_secs(5);
            let sent = kept.rows.iter().filter_map(|row| match row {
                Row::Sent { at, packet, .. } if (window..until).contains(at) && !packet.class.goes_back() => {
                    // What REMB counts: RTP packets, without the headers below them.
                    Some(packet.size.saturating_sub(IP_UDP_HEADERS).as_bits())
                }
                _ => None,
            });
            shares.push(sent.sum::<u64>() as f64 / 5e3 / kbps as f64);
            window += TimeDelta::from_secs(1);
        }
        let within = off.iter().all(|off| (0.99..=1.01).contains(off));
        assert!((6..=13).contains(&off.len()) && within, "asked for {kbps}: available {off:.3?} of it");
        let within = shares.iter().all(|share| (least..=1.05).contains(share));
        assert!((4..=9).contains(&shares.len()) && within, "asked for {kbps}: sent in 5 s {shares:.3?} of it");
    }
}

/// Our end sends what a real encoder makes of the camera; the browser reports each packet, and shows the pictures.
#[cfg(feature = "video")]
#[test]
fn a_browser_that_our_sender_sends_to() {
    if !possible() {
        return;
    }
    let kept = call("gcc-tfb", "20s");
    kept.is_a_call();
    let targets = kept.count(|row| matches!(row, Row::Decision { target, .. } if *target > Rate::from_kbps(50)));
    assert!((50..=2000).contains(&targets), "{targets} decisions");
    let decoded = kept.signal(HalfName::Receive, 0);
    let shown = decoded.iter().filter(|fps| (5.0..=40.0).contains(*fps)).count();
    assert!((14..=20).contains(&decoded.len()) && shown + 2 >= decoded.len(), "frames decoded: {decoded:?}");
}

/// Media of our sender has its controller's codepoint on the link, and nothing else has.
#[cfg(feature = "video")]
#[test]
fn a_browser_that_our_sender_marks_its_media_for() {
    if !possible() {
        return;
    }
    let kept = call("scream", "6s");
    let came = |media: bool, wanted: Ecn| {
        kept.count(|row| {
            let Row::Arrived { packet, ecn, .. } = row else { return false };
            let is_media = !matches!(packet.class, PacketClass::SenderControl | PacketClass::ReceiverControl);
            (is_media, *ecn) == (media, wanted)
        })
    };
    let (media, control) = ([true, false].map(|media| came(media, Ecn::Ect0)), came(false, Ecn::NotEct));
    assert!((50..=1500).contains(&media[0]) && media[1] == 0, "{media:?} packets with ECT(0)");
    assert!(came(true, Ecn::NotEct) == 0 && (20..=1500).contains(&control), "{control} reports and checks without");
}
