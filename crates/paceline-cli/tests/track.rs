//! The command on the test track: links, runs in real time, and what is left of either.
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn paceline(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
    command.args(arguments);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether this machine has a track; says so if not, and fails where `PACELINE_REQUIRE` names it.
fn track() -> bool {
    let output = paceline(&["link", "--", "true"]).output().unwrap();
    if output.status.success() {
        return true;
    }
    assert_eq!(output.status.code(), Some(3), "it is there, and does not work: {}", text(&output.stderr));
    assert!(!is_required(), "there is no track, and PACELINE_REQUIRE asks for it: {}", text(&output.stderr));
    eprintln!("SKIPPED: {}", text(&output.stderr));
    false
}

fn is_required() -> bool {
    std::env::var("PACELINE_REQUIRE").is_ok_and(|all| all.split([',', ' ']).any(|one| one == "track"))
}

/// Waits for something that happens soon on a machine that has other things to do, too.
fn soon(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(20), "in vain: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Serves `bytes` bytes to whoever connects, once.
fn server(bytes: usize) -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || listener.accept().unwrap().0.write_all(&vec![0; bytes]).unwrap());
    port
}

#[test]
fn a_command_behind_a_link_gets_what_the_link_gives() {
    if !track() {
        return;
    }
    let port = server(250_000);
    let script = format!("cat < /dev/tcp/$PACELINE_FAR/{port} | wc -c; exit 7");
    let options =
        ["link", "--down", "2Mbps", "--delay", "20ms", "--queue", "100ms", "--json", "--", "bash", "-c", &script];
    let output = paceline(&options).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "the command's: {}", text(&output.stderr));
    assert!(text(&output.stderr).contains("250000"), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let back = &document["links"][1];
    let capacity = back["capacity_bps"].as_f64().unwrap();
    assert!(back["id"] == "reverse" && (1.9999e6..=2.0001e6).contains(&capacity), "{back}");
    // 250 kB take a second at 2 Mbit/s; connecting and the end take some round trips, and a loaded machine some more.
    let (seconds, used) = (document["duration_s"].as_f64().unwrap(), back["utilization"].as_f64().unwrap());
    assert!((1.0..20.0).contains(&seconds), "{seconds} s");
    let bytes = used * 2e6 * seconds / 8.0;
    assert!((250_000.0..400_000.0).contains(&bytes), "{bytes} bytes in {seconds} s");
    assert!(back["queue_ms"]["max"].as_f64().unwrap() <= 106.1, "the limit, and one packet's service: {back}");
    assert_eq!((&document["refused"], &document["world"]), (&Value::from(0), &Value::from("link")));
}

/// A link with a command that can be told from all others, and the name of its device here.
fn running(marker: &str) -> (Child, String) {
    let mut child =
        paceline(&["link", "--timing", "sleep", "--", "sleep", marker]).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    let number = said.split("100.127.").nth(2).and_then(|rest| rest.split('.').next());
    let device = format!("paceline{}", number.unwrap_or_else(|| panic!("{said}")));
    soon("the command runs", || holders(marker).len() == 3);
    assert!(Path::new("/sys/class/net").join(&device).exists(), "{device}");
    (child, device)
}

/// The processes below a link: its holders, outer before inner, and the command.
fn holders(marker: &str) -> Vec<u32> {
    let of = |entry: std::io::Result<std::fs::DirEntry>| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let has = |word: &str| words.split(|b| *b == 0).any(|w| w == word.as_bytes());
        let depth = if has("outer") { 0 } else { 1 + u8::from(!has("inner")) };
        (has(marker) && !has("link")).then_some((depth, pid))
    };
    let mut all: Vec<(u8, u32)> = std::fs::read_dir("/proc").unwrap().filter_map(of).collect();
    all.sort_unstable();
    all.into_iter().map(|(_, pid)| pid).collect()
}

fn kill(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn whoever_is_killed_nothing_is_left() {
    if !track() {
        return;
    }
    let signals = ["-KILL", "-TERM"];
    let who = ["link", "outer", "inner", "command"].into_iter().flat_map(|who| signals.map(|signal| (who, signal)));
    for (index, (who, signal)) in who.enumerate() {
        let marker = format!("{}.{index}", 100_000 + std::process::id());
        let (mut link, device) = running(&marker);
        let below = holders(&marker);
        match who {
            "link" => kill(signal, link.id()),
            "outer" => kill(signal, below[0]),
            "inner" => kill(signal, below[1]),
            _ => kill(signal, below[2]),
        }
        let status = link.wait().unwrap();
        assert!(who == "link" || !status.success(), "a killed command is no success: {who} {signal} {status}");
        soon(&format!("{who} {signal}: no process is left"), || holders(&marker).is_empty());
        soon(&format!("{who} {signal}: no device is left"), || !Path::new("/sys/class/net").join(&device).exists());
    }
}

#[test]
fn two_links_at_once_have_nothing_in_common() {
    if !track() {
        return;
    }
    let markers = [1, 2].map(|n| format!("{}.5{n}", 200_000 + std::process::id()));
    let [mut one, mut other] = [running(&markers[0]), running(&markers[1])];
    assert_ne!(one.1, other.1);
    for (link, marker) in [(&mut one, &markers[0]), (&mut other, &markers[1])] {
        kill("-TERM", link.0.id());
        assert!(link.0.wait().unwrap().success(), "an ended link is no failure");
        soon("it is gone", || holders(marker).is_empty());
    }
}

#[test]
fn a_relay_needs_no_privilege_and_delays() {
    let echo = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = echo.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 2000];
        while let Ok((n, from)) = echo.recv_from(&mut buffer) {
            let _ = echo.send_to(&buffer[..n], from);
        }
    });
    let pair = format!("127.0.0.1:0={target}");
    let mut relay = paceline(&["link", "--delay", "30ms", "--relay", &pair, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(relay.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    let near = said.split_whitespace().nth(1).unwrap().to_owned();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut least = Duration::MAX;
    for n in 0..20u8 {
        let began = Instant::now();
        client.send_to(&[n; 100], &near).unwrap();
        let mut buffer = [0; 2000];
        let len = client.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..len], &[n; 100]);
        least = least.min(began.elapsed());
    }
    // Twice 30 ms, and what a loaded machine adds to the luckiest of twenty.
    assert!((60..120).contains(&least.as_millis()), "{least:?}");
    kill("-INT", relay.id());
    let mut printed = String::new();
    relay.stdout.as_mut().unwrap().read_to_string(&mut printed).unwrap();
    assert!(relay.wait().unwrap().success());
    let document: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&document["packets"], &document["refused"]), (&Value::from(40), &Value::from(0)));
}

#[test]
fn a_scenario_runs_in_real_time() {
    if !track() {
        return;
    }
    let options = ["run", "mmsys16/table1", "--world", "testbed", "--set", "duration=6s", "--json"];
    let output = paceline(&options).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let run = &document["runs"][0];
    assert_eq!(run["world"], "testbed");
    let (used, machine) = (run["link"]["utilization"].as_f64().unwrap(), &run["machine"]);
    assert!((0.3..=1.0).contains(&used), "{used}");
    assert!((1..=3).contains(&machine["attempts"].as_u64().unwrap()), "{machine}");
    let (median, most) = (machine["late_us"]["p50"].as_f64().unwrap(), machine["late_us"]["max"].as_f64().unwrap());
    assert!(median > 0.0 && median <= most, "{machine}");
    let wall = run["wall_s"].as_f64().unwrap();
    assert!((6.0..60.0).contains(&wall), "real time takes its time: {wall}");
}

/// The command without the capabilities, as for somebody who is not root.
fn without_privilege(arguments: &[&str]) -> Option<Output> {
    let drop = "--bounding-set=-sys_admin,-net_admin";
    let trial = Command::new("setpriv").args([drop, "true"]).output().ok()?;
    let command = env!("CARGO_BIN_EXE_paceline");
    trial.status.success().then(|| Command::new("setpriv").args([drop, command]).args(arguments).output().unwrap())
}

#[test]
fn without_privilege_it_says_what_is_missing() {
    for arguments in [&["run", "mmsys16/table1", "--world", "testbed"][..], &["link", "--", "true"]] {
        let Some(output) = without_privilege(arguments) else {
            assert!(!is_required(), "setpriv cannot take capabilities away here, and PACELINE_REQUIRE asks for it");
            eprintln!("SKIPPED: setpriv cannot take capabilities away here");
            return;
        };
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("CAP_SYS_ADMIN"), "{}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_wrong_link_gets_a_hint() {
    for (arguments, wanted) in [
        (&["link"][..], "--relay"),
        (&["link", "--capacity", "fast", "--", "true"], "no rate"),
        (&["link", "--relay", "here", "--"], "LISTEN=TARGET"),
        (&["link", "--delay", "soon", "--", "true"], "delay"),
    ] {
        let output = paceline(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(wanted), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_user_namespace_is_privilege_enough() {
    if !track() {
        return;
    }
    let unshare = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net"]).args(words).output()
    };
    if !unshare(&["true"]).is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: no user namespaces here");
        return;
    }
    let command = env!("CARGO_BIN_EXE_paceline");
    let output = unshare(&[command, "link", "--", "sh", "-c", "exit 5"]).unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
    let run = ["run", "mmsys16/table1", "--world", "testbed", "--set", "duration=3s", "--json"];
    let output = unshare(&[&[command], &run[..]].concat()).unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    assert_eq!(document["runs"][0]["world"], "testbed");
}

#[test]
fn a_command_out_of_time_is_ended_and_said_to_be() {
    if !track() {
        return;
    }
    let marker = format!("{}.9", 300_000 + std::process::id());
    for arguments in [&["link", "--duration", "1s"][..], &["link", "mmsys16/table1", "--duration", "1s"]] {
        let output = paceline(&[arguments, &["--", "sleep", &marker]].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(124), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("--duration"), "{}", text(&output.stderr));
        soon("the command is gone", || holders(&marker).is_empty());
    }
}

#[test]
fn words_that_are_no_text_are_refused_or_passed_on() {
    use std::os::unix::ffi::OsStrExt;
    let odd = std::ffi::OsStr::from_bytes(b"a\xffb");
    let output = paceline(&["run"]).arg(odd).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    if track() {
        let output = paceline(&["link", "--", "sh", "-c", "test ${#0} -gt 2"]).arg(odd).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
}
