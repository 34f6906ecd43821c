// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sessions between two machines, one after the other, over a path with losses: SIGKILL of either end, another address, an outage. A further
//! session lasts for the whole time.

use super::machine::{difference, is_available, loading, neighbours, processes, state, wait_for};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

const FLOWS: [&str; 7] = ["--flows", "20", "--max-rate", "100kbps", "--start-rate", "60kbps", "--json"];

/// What happens in a round. With `PACELINE_SOAK_MINUTES` each round takes 30 s; without, the first two happen once.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    KillSender,
    KillReceiver,
    OtherAddress,
    /// Of 4 s.
    Outage,
}

const KINDS: [Kind; 4] = [Kind::KillSender, Kind::KillReceiver, Kind::OtherAddress, Kind::Outage];

/// An end that hears nothing ends after 10 s; the session may have begun its last wait before.
const SILENCE: std::ops::Range<f64> = 9.0..13.0;

/// Returns the documents of a file with JSON.
fn documents(file: &Path) -> Vec<Value> {
    let text = fs::read(file).unwrap_or_default();
    // The last one may be half written.
    serde_json::Deserializer::from_slice(&text).into_iter().map_while(Result::ok).collect()
}

/// Returns the resident memory of a process in MB, and its number of open files.
fn resources(process: u32) -> (f64, usize) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let resident =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok());
    let files = fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
    (resident.map_or(f64::NAN, |kilobytes: f64| kilobytes / 1024.0), files)
}

#[test]
fn sessions_end_as_documented_and_leave_nothing_although_ends_are_killed() {
    if !is_available() {
        return;
    }
    let _loading = loading();
    let minutes = std::env::var("PACELINE_SOAK_MINUTES").ok().map(|minutes| minutes.parse::<u64>().unwrap());
    let (rounds, pace) = minutes.map_or((2, Duration::ZERO), |minutes| (2 * minutes as usize, Duration::from_secs(30)));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // A build may replace the program meanwhile.
    let program = &folder.join("paceline");
    fs::copy(env!("CARGO_BIN_EXE_paceline"), program).unwrap();
    let [there, here] = neighbours();
    for machine in [&there, &here] {
        machine.sh("nft 'add table inet path; add chain inet path loss { type filter hook input priority 0; }; add rule inet path loss numgen random mod 100 < 2 drop'");
    }
    // Mounts and named namespaces are of the whole machine, on which others may work meanwhile.
    let state = |machine| {
        let mut lines = state(machine, folder);
        lines.retain(|line| !line.starts_with("cat /proc/thread-self/mountinfo") && !line.starts_with("ip netns"));
        lines
    };
    let before = [&there, &here].map(state);
    let listen = |name: &str, options: &[&str]| {
        let receiver = there.start(program, &[&["recv", "--json"], options].concat(), folder, name);
        let messages = folder.join(name).with_extension("err");
        let is_ready = || fs::read_to_string(&messages).unwrap().contains("listening at").then_some(());
        wait_for("the receiver listens", Duration::from_secs(10), is_ready);
        receiver
    };
    let send = |name: &str, to: &str, duration: u64| {
        let duration = format!("{duration}s");
        here.start(program, &[&["send", to, "--duration", &duration], &FLOWS[..]].concat(), folder, name)
    };
    let started = Instant::now();
    let long = minutes.map(|minutes| {
        let receiver = listen("long-recv", &["--once", "--bind", "[2001:db8::2]:9778"]);
        [send("long-send", "[2001:db8::2]:9778", 60 * minutes), receiver]
    });
    let mut receiver = (String::new(), None::<Child>);
    let (mut kills, mut first) = (0, None);
    for round in 0..rounds {
        let kind = KINDS[round % KINDS.len()];
        if receiver.1.is_none() {
            let name = format!("recv{round}");
            receiver = (name.clone(), Some(listen(&name, &["--bind", "192.0.2.2:9777"])));
        }
        let [printed, messages] = ["out", "err"].map(|kind| folder.join(&receiver.0).with_extension(kind));
        let sessions = || fs::read_to_string(&messages).unwrap().matches("session:").count();
        let (before, ended) = (sessions(), documents(&printed).len());
        let name = format!("send{round}");
        let mut sender = send(&name, "192.0.2.2", if kind == Kind::Outage { 12 } else { 60 });
        let what = format!("round {round}, {kind:?}");
        wait_for(&format!("{what}: a session starts"), Duration::from_secs(10), || (sessions() > before).then_some(()));
        thread::sleep(Duration::from_millis(2000 + 1700 * (round as u64 % 3)));
        let mut kill = |process: &mut Child| {
            process.kill().unwrap();
            process.wait().unwrap();
            kills += 1;
        };
        match kind {
            Kind::KillSender => kill(&mut sender),
            Kind::KillReceiver => kill(&mut receiver.1.take().unwrap()),
            Kind::OtherAddress => {
                let [old, new] = [round / 4, round / 4 + 1].map(|n| if n % 2 == 0 { "192.0.2.1" } else { "192.0.2.3" });
                here.sh(&format!("ip addr del {old}/24 dev in0; ip addr add {new}/24 dev in0"));
            }
            Kind::Outage => {
                there.sh("nft 'add chain inet path cut { type filter hook input priority -1; policy drop; }'");
                thread::sleep(Duration::from_secs(4));
                there.sh("nft delete chain inet path cut");
            }
        }
        // The ends that live, and after which time they ended.
        let (event, mut ends) = (Instant::now(), Vec::new());
        let limit = Duration::from_secs(40);
        let (wanted, within) = if kind == Kind::Outage { ("complete", 0.0..13.0) } else { ("silence", SILENCE) };
        if kind != Kind::KillSender {
            let (status, _) = wait_for(&format!("{what}: the sender ends"), limit, || sender.try_wait().unwrap());
            assert_eq!(status.code(), Some(i32::from(wanted == "silence")), "{what}");
            ends.push((documents(&folder.join(&name).with_extension("out"))[0]["end"].clone(), event.elapsed()));
        }
        if kind != Kind::KillReceiver {
            let document = || documents(&printed).into_iter().nth(ended);
            let (document, _) = wait_for(&format!("{what}: the receiver reports"), limit, document);
            ends.push((document["end"].clone(), event.elapsed()));
        }
        for (end, after) in &ends {
            assert!(end == wanted && within.contains(&after.as_secs_f64()), "{what}: {ends:?}");
        }
        let all: Vec<u32> = long.iter().flatten().chain(&receiver.1).map(Child::id).collect();
        let all: Vec<(f64, usize)> = all.into_iter().map(resources).collect();
        println!(
            "{:.0} s, {what}: {ends:.1?}; MB and files of the long ends and the receiver: {all:.1?}",
            started.elapsed().as_secs_f64()
        );
        if round >= 4
            && let Some([sender, receiver]) = all.first_chunk()
        {
            let first = first.get_or_insert([*sender, *receiver]);
            for (now, first) in [sender, receiver].into_iter().zip(first) {
                assert!(now.0 < first.0 * 1.5 + 4.0 && now.1 == first.1, "{what}: {first:?} at first, now {now:?}");
            }
        }
        thread::sleep((pace * (round as u32 + 1)).saturating_sub(started.elapsed()));
    }
    for (mut end, name) in long.into_iter().flatten().zip(["long-send", "long-recv"]) {
        wait_for("the long session ends", Duration::from_secs(60), || end.try_wait().unwrap());
        assert_eq!(documents(&folder.join(name).with_extension("out"))[0]["end"], "complete", "{name}");
    }
    if let Some(mut receiver) = receiver.1 {
        super::hosts::signal("-INT", receiver.id());
        assert!(receiver.wait().unwrap().success());
    }
    here.sh("ip -4 addr flush dev in0; ip addr add 192.0.2.1/24 dev in0");
    assert_eq!(processes(folder, None), []);
    for (machine, before) in [&there, &here].into_iter().zip(&before) {
        assert_eq!(difference(before, &state(machine)), [""; 0]);
    }
    println!("{rounds} sessions, {kills} kills in {:.0} s: nothing is left", started.elapsed().as_secs_f64());
}
