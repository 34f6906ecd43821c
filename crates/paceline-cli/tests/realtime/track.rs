// SPDX-License-Identifier: MIT OR Apache-2.0
//! Emulated links and runs in real time, and their cleanup.

use super::hosts::{Background, signal};
use super::machine::wait_for;
use super::{paceline, stderr};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Returns whether this machine can emulate links. If not, prints the reason, or fails if `PACELINE_REQUIRE` names `track`.
fn track() -> bool {
    let output = paceline(&["link", "--keep-root", "--", "true"]).output().unwrap();
    if output.status.success() {
        return true;
    }
    assert_eq!(output.status.code(), Some(3), "the link failed: {}", stderr(&output));
    assert!(!is_required(), "PACELINE_REQUIRE names `track`, but: {}", stderr(&output));
    eprintln!("SKIPPED: {}", stderr(&output));
    false
}

pub fn is_required() -> bool {
    std::env::var("PACELINE_REQUIRE").is_ok_and(|all| all.split([',', ' ']).any(|one| one == "track"))
}

/// Waits until `condition` is true, up to 20 s.
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, Duration::from_secs(20), || condition().then_some(()));
}

/// Sends `bytes` bytes to the first client at an address, and returns the port.
fn server(address: &str, bytes: usize) -> u16 {
    let listener = TcpListener::bind(address).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || listener.accept().unwrap().0.write_all(&vec![0; bytes]).unwrap());
    port
}

#[test]
fn a_link_limits_rate_and_queue_of_a_command() {
    if !track() {
        return;
    }
    limits_rate_and_queue(server("0.0.0.0:0", 250_000), "PACELINE_FAR");
    // A machine without IPv6 has no such file or disables it.
    if fs::read_to_string("/proc/sys/net/ipv6/conf/default/disable_ipv6").is_ok_and(|text| text.trim() == "0") {
        limits_rate_and_queue(server("[::]:0", 250_000), "PACELINE_FAR6");
    }
}

/// A command downloads 250 kB from the address in a variable at 2 Mbit/s.
fn limits_rate_and_queue(port: u16, variable: &str) {
    let script = format!("cat < /dev/tcp/${variable}/{port} | wc -c; exit 7");
    let link = ["link", "--keep-root", "--down", "2Mbps", "--delay", "20ms", "--queue", "100ms", "--json"];
    let output = paceline(&link).args(["--", "bash", "-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "the exit code of the command: {}", stderr(&output));
    assert!(stderr(&output).contains("250000"), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let back = &document["links"][1];
    let capacity = back["capacity_bps"].as_f64().unwrap();
    assert!(back["id"] == "reverse" && (1.9999e6..=2.0001e6).contains(&capacity), "{back}");
    // 250 kB take 1 s at 2 Mbit/s; connection setup and teardown take some round trips, and a loaded machine more.
    let (seconds, used) = (document["duration_s"].as_f64().unwrap(), back["utilization"].as_f64().unwrap());
    assert!((1.0..20.0).contains(&seconds), "{seconds} s");
    let bytes = used * 2e6 * seconds / 8.0;
    assert!((250_000.0..400_000.0).contains(&bytes), "{bytes} bytes in {seconds} s");
    assert!(
        back["queue_ms"]["max"].as_f64().unwrap() <= 106.1,
        "the limit plus the serialisation of one packet: {back}"
    );
    assert_eq!((&document["refused"], &document["world"]), (&Value::from(0), &Value::from("link")));
}

/// ADSL has 12 Mbit/s to the user and 1 Mbit/s from the user, where the command is unless the name says otherwise.
#[test]
fn a_link_has_the_path_of_a_preset() {
    if !track() {
        return;
    }
    for (name, capacities) in [("adsl-up", [1e6, 12e6]), ("dsl", [1e6, 12e6]), ("adsl-down", [12e6, 1e6])] {
        let output = paceline(&["link", "--preset", name, "--keep-root", "--json", "--", "true"]).output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        for (link, bps) in capacities.into_iter().enumerate() {
            let capacity = document["links"][link]["capacity_bps"].as_f64().unwrap();
            assert!((0.999 * bps..=1.001 * bps).contains(&capacity), "{name}: {document}");
        }
    }
    let output = paceline(&["link", "--preset", "adls", "--keep-root", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean `adsl-up`?"), "{}", stderr(&output));
}

/// Starts a link whose command has a unique argument, and returns the name of its device.
fn start_link(marker: &str) -> (Child, String) {
    let mut child = paceline(&["link", "--keep-root", "--timing", "sleep", "--", "sleep", marker])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first line warns of the rights of the command.
    let lines = BufReader::new(child.stderr.as_mut().unwrap()).lines().map(Result::unwrap);
    let line = lines.take(2).collect::<Vec<_>>().join(" ");
    let number = line.split("100.127.").nth(2).and_then(|rest| rest.split('.').next());
    let device = format!("paceline{}", number.unwrap_or_else(|| panic!("{line}")));
    wait_until("the command starts", || children(marker).len() == 3);
    assert!(Path::new("/sys/class/net").join(&device).exists(), "{device}");
    (child, device)
}

/// Returns the child processes of a link: the outer guard, the inner guard, and the command.
fn children(marker: &str) -> Vec<u32> {
    let child = |entry: std::io::Result<fs::DirEntry>| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let has = |word: &str| words.split(|b| *b == 0).any(|w| w == word.as_bytes());
        let depth = if has("outer") { 0 } else { 1 + u8::from(!has("inner")) };
        (has(marker) && !has("link")).then_some((depth, pid))
    };
    let mut all: Vec<(u8, u32)> = fs::read_dir("/proc").unwrap().filter_map(child).collect();
    all.sort_unstable();
    all.into_iter().map(|(_, pid)| pid).collect()
}

#[test]
fn killing_any_process_of_a_link_removes_the_others_and_the_device() {
    if !track() {
        return;
    }
    let signals = ["-KILL", "-TERM"];
    let targets = ["link", "outer", "inner", "command"].into_iter().flat_map(|t| signals.map(|name| (t, name)));
    for (index, (target, name)) in targets.enumerate() {
        let marker = format!("{}.{index}", 100_000 + std::process::id());
        let (mut link, device) = start_link(&marker);
        let children_before = children(&marker);
        let process = match target {
            "link" => link.id(),
            "outer" => children_before[0],
            "inner" => children_before[1],
            _ => children_before[2],
        };
        signal(name, process);
        let status = link.wait().unwrap();
        assert!(target == "link" || !status.success(), "a killed command fails: {target} {name} {status}");
        wait_until(&format!("{target} {name}: no process is left"), || children(&marker).is_empty());
        wait_until(&format!("{target} {name}: no device is left"), || {
            !Path::new("/sys/class/net").join(&device).exists()
        });
    }
}

#[test]
fn two_links_are_independent() {
    if !track() {
        return;
    }
    let markers = [1, 2].map(|n| format!("{}.5{n}", 200_000 + std::process::id()));
    let [mut one, mut other] = [start_link(&markers[0]), start_link(&markers[1])];
    assert_ne!(one.1, other.1);
    for (link, marker) in [(&mut one, &markers[0]), (&mut other, &markers[1])] {
        signal("-TERM", link.0.id());
        assert!(link.0.wait().unwrap().success(), "SIGTERM ends a link without failure");
        wait_until("the link is gone", || children(marker).is_empty());
    }
}

#[test]
fn a_relay_delays_packets_without_privilege() {
    let echo = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = echo.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 2000];
        while let Ok((n, from)) = echo.recv_from(&mut buffer) {
            let _ = echo.send_to(&buffer[..n], from);
        }
    });
    let pair = format!("127.0.0.1:0={target}");
    let relay = Background::start(&["link", "--delay", "30ms", "--relay", &pair, "--json"], "from ");
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut shortest = Duration::MAX;
    for n in 0..20u8 {
        let started = Instant::now();
        client.send_to(&[n; 100], &relay.address).unwrap();
        let mut buffer = [0; 2000];
        let len = client.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..len], &[n; 100]);
        shortest = shortest.min(started.elapsed());
    }
    // Twice 30 ms, plus scheduling delay on a loaded machine.
    assert!((60..120).contains(&shortest.as_millis()), "{shortest:?}");
    signal("-INT", relay.child.id());
    let document: Value = serde_json::from_str(&relay.output()).unwrap();
    assert_eq!((&document["packets"], &document["refused"]), (&Value::from(40), &Value::from(0)));
}

#[test]
fn a_scenario_runs_in_real_time() {
    if !track() {
        return;
    }
    let options = ["run", "mmsys16/table1", "--world", "testbed", "--set", "duration=6s", "--json"];
    let output = paceline(&options).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let run = &document["runs"][0];
    assert_eq!(run["world"], "testbed");
    let (used, machine) = (run["link"]["utilization"].as_f64().unwrap(), &run["machine"]);
    assert!((0.3..=1.0).contains(&used), "{used}");
    assert!((1..=3).contains(&machine["attempts"].as_u64().unwrap()), "{machine}");
    let (median, most) = (machine["late_us"]["p50"].as_f64().unwrap(), machine["late_us"]["max"].as_f64().unwrap());
    assert!(median > 0.0 && median <= most, "{machine}");
    let wall = run["wall_s"].as_f64().unwrap();
    assert!((6.0..60.0).contains(&wall), "a run in real time lasts as long as the scenario: {wall}");
}

/// Runs the command without capabilities, as for a user who is not root.
fn without_privilege(arguments: &[&str]) -> Option<Output> {
    let drop = "--bounding-set=-sys_admin,-net_admin";
    let trial = Command::new("setpriv").args([drop, "true"]).output().ok()?;
    let command = env!("CARGO_BIN_EXE_paceline");
    trial.status.success().then(|| Command::new("setpriv").args([drop, command]).args(arguments).output().unwrap())
}

#[test]
fn names_the_missing_privilege() {
    for arguments in [&["run", "mmsys16/table1", "--world", "testbed"][..], &["link", "--keep-root", "--", "true"]] {
        let Some(output) = without_privilege(arguments) else {
            assert!(!is_required(), "PACELINE_REQUIRE names `track`, but setpriv cannot drop capabilities");
            eprintln!("SKIPPED: setpriv cannot drop capabilities");
            return;
        };
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("CAP_SYS_ADMIN"), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn bad_arguments_get_a_hint() {
    for (arguments, wanted) in [
        (&["link"][..], "--relay"),
        (&["link", "--capacity", "fast", "--", "true"], "neither a rate nor a file"),
        (&["link", "--relay", "here", "--"], "LISTEN=TARGET"),
        (&["link", "--delay", "soon", "--", "true"], "delay"),
    ] {
        let output = paceline(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(wanted), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn a_user_namespace_is_sufficient() {
    if !track() {
        return;
    }
    let unshare = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net"]).args(words).output()
    };
    if !unshare(&["true"]).is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: no user namespaces");
        return;
    }
    let command = env!("CARGO_BIN_EXE_paceline");
    let output = unshare(&[command, "link", "--", "sh", "-c", "exit 5"]).unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    let run = ["run", "mmsys16/table1", "--world", "testbed", "--set", "duration=3s", "--json"];
    let output = unshare(&[&[command], &run[..]].concat()).unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert_eq!(document["runs"][0]["world"], "testbed");
}

#[test]
fn duration_ends_link_and_command() {
    if !track() {
        return;
    }
    let marker = format!("{}.9", 300_000 + std::process::id());
    for arguments in [&["link", "--duration", "1s"][..], &["link", "mmsys16/table1", "--duration", "1s"]] {
        let output = paceline(&[arguments, &["--keep-root", "--", "sleep", &marker]].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(124), "{}", stderr(&output));
        assert!(stderr(&output).contains("--duration"), "{}", stderr(&output));
        wait_until("the command is gone", || children(&marker).is_empty());
    }
}

#[test]
fn arguments_that_are_not_utf8_are_rejected_or_passed_to_the_command() {
    use std::os::unix::ffi::OsStrExt;
    let odd = std::ffi::OsStr::from_bytes(b"a\xffb");
    let output = paceline(&["run"]).arg(odd).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    if track() {
        let output =
            paceline(&["link", "--keep-root", "--", "sh", "-c", "test ${#0} -gt 2"]).arg(odd).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

/// Returns whether this machine can emulate links and has the programs that scripts of tests need.
pub fn has_tools() -> bool {
    let has = |program: &&str| Command::new(program).arg("-V").output().is_ok();
    let missing = ["nft", "ip", "python3"].into_iter().find(|program| !has(program));
    if let Some(missing) = missing {
        assert!(!is_required(), "PACELINE_REQUIRE names `track`, but {missing} is missing");
        eprintln!("SKIPPED: {missing} is missing");
    }
    missing.is_none() && track()
}

/// Returns whether the tests run as root and may become another user.
pub fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

#[test]
fn the_command_runs_as_the_calling_user() {
    if !track() || !is_root() {
        return;
    }
    let tells = "id -u; sed -n 's/^CapEff:\\s*//p' /proc/self/status; echo $USER";
    let run = |arguments: &[&str], sudo: Option<&str>| {
        let mut link = paceline(&[&["link"], arguments, &["--", "sh", "-c", tells]].concat());
        link.env_remove("SUDO_UID");
        if let Some(uid) = sudo {
            link.env("SUDO_UID", uid);
        }
        let output = link.env("USER", "root").output().unwrap();
        (
            String::from_utf8_lossy(&output.stdout).lines().take(3).map(str::to_owned).collect::<Vec<_>>(),
            stderr(&output),
        )
    };
    let nobody = Command::new("id").args(["-u", "nobody"]).output().unwrap();
    let nobody = String::from_utf8_lossy(&nobody.stdout).trim().to_owned();
    let without_rights = [&nobody, "0000000000000000", "nobody"];
    assert_eq!(run(&["--user", "nobody"], None).0, without_rights);
    assert_eq!(run(&[], Some(&nobody)).0, without_rights);
    let (own, said) = run(&["--keep-root"], None);
    assert!(own[0] == "0" && own[1] != "0000000000000000" && own[2] == "root", "{own:?}");
    assert!(said.contains("warning: COMMAND runs as root"), "{said}");
    for (arguments, sudo, message) in [
        (&["--user", "no-such-user"][..], None, "no user"),
        (&[], Some("x"), "no user"),
        (&[], None, "--keep-root"),
        (&[], Some("0"), "--keep-root"),
    ] {
        let (printed, said) = run(arguments, sudo);
        assert!(printed.is_empty() && said.contains(message), "{printed:?} {said}");
    }
}

/// Chromium refuses to run as root, and has a sandbox of its own.
#[test]
fn chromium_loads_a_page_over_the_link() {
    let is_there = Command::new("chromium").arg("--version").output().is_ok_and(|output| output.status.success());
    if !track() || !is_root() || !is_there {
        return;
    }
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 2048]);
                let page = "<p>carried by the link</p>";
                let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n", page.len());
                let _ = write!(stream, "{head}Connection: close\r\n\r\n{page}");
            });
        }
    });
    let load = format!(
        "export HOME=$(mktemp -d); cd; timeout 40 chromium --headless --disable-gpu --dump-dom http://$PACELINE_FAR:{port}/; \
         rm -rf \"$HOME\""
    );
    let link = ["link", "--user", "nobody", "--delay", "10ms", "--capacity", "5Mbps", "--", "sh", "-c", &load];
    let output = paceline(&link).current_dir("/").output().unwrap();
    let page = String::from_utf8_lossy(&output.stdout);
    assert!(page.contains("carried by the link"), "{page} {}", stderr(&output));
}

#[test]
fn a_command_behind_masquerading_reaches_other_networks_and_leaves_nothing() {
    if !has_tools() || !is_root() {
        return;
    }
    // A network and mount namespace stands for the machine; another one, behind a pair of devices, for the world outside.
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/realtime/nat.sh");
    let mut machine = Command::new("timeout");
    machine.args(["-s", "KILL", "60", "unshare", "-n", "-m", "sh", script, env!("CARGO_BIN_EXE_paceline")]);
    let output = machine.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let expected = [
        "masqueraded: hi from 192.0.2.2",
        "IPv6: nothing",
        "IPv6 masqueraded: hi from 2001:db8::2",
        "name server: 100.127.0.1 answers dns",
        "left: tables 0, forwarding 0, nameserver 127.0.0.53",
        "without: nothing",
        "killed: tables 1, forwarding 1",
        "next: tables 0, forwarding 0",
        "nested: hi from 192.0.2.2",
        "IPv6 nested: hi from 2001:db8::2",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected, "{}", stderr(&output));
}
