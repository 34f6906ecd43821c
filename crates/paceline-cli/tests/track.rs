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
    let required = std::env::var("PACELINE_REQUIRE").is_ok_and(|all| all.split(',').any(|one| one == "track"));
    assert!(!required, "there is no track, and PACELINE_REQUIRE asks for it: {}", text(&output.stderr));
    eprintln!("SKIPPED: {}", text(&output.stderr));
    false
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

/// The processes below a link: its holders and the command, outermost first.
fn holders(marker: &str) -> Vec<u32> {
    let of = |entry: std::io::Result<std::fs::DirEntry>| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let words: Vec<&[u8]> = words.split(|b| *b == 0).collect();
        (words.contains(&marker.as_bytes()) && !words.contains(&&b"link"[..])).then_some(pid)
    };
    let mut all: Vec<u32> = std::fs::read_dir("/proc").unwrap().filter_map(of).collect();
    all.sort_unstable();
    all
}

fn kill(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn whoever_is_killed_nothing_is_left() {
    if !track() {
        return;
    }
    for (index, who) in ["link", "outer", "inner", "command"].into_iter().enumerate() {
        let marker = format!("{}.{index}", 100_000 + std::process::id());
        let (mut link, device) = running(&marker);
        let below = holders(&marker);
        match who {
            "link" => kill("-KILL", link.id()),
            "outer" => kill("-KILL", below[0]),
            "inner" => kill("-KILL", below[1]),
            _ => kill("-KILL", below[2]),
        }
        link.wait().unwrap();
        soon(&format!("{who} killed: no process is left"), || holders(&marker).is_empty());
        soon(&format!("{who} killed: no device is left"), || !Path::new("/sys/class/net").join(&device).exists());
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
    for n in 0..20u8 {
        let began = Instant::now();
        client.send_to(&[n; 100], &near).unwrap();
        let mut buffer = [0; 2000];
        let len = client.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..len], &[n; 100]);
        assert!(began.elapsed() >= Duration::from_millis(60), "{:?}", began.elapsed());
    }
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
