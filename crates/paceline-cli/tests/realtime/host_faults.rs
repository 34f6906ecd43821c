// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults of the own host during a session: the verdict names them, and never contradicts the table.

use super::hosts::folder;
use super::stderr;
use serde_json::Value;
use std::fs;
use std::process::Command;

/// A session between two network namespaces: what happens before it, one second after its start, two seconds later, and
/// which verdict it has, with these words in its reason, and which facts about the host are not zero.
struct Fault {
    name: &'static str,
    before: &'static str,
    begin: &'static str,
    end: &'static str,
    verdicts: &'static [&'static str],
    why: &'static str,
    facts: &'static [&'static str],
}

/// The facts about the host that are counted. An interruption of the process may have other causes: those have limits.
const FACTS: [&str; 6] = [
    "/refused/too_large",
    "/refused/unreachable",
    "/refused/forbidden",
    "/refused/buffers_full",
    "/refused/other",
    "/address_changes",
];
/// The process did not run for two seconds.
const STALLS: &str = "/stalled_s";

const FAULTS: &[Fault] = &[
    Fault {
        name: "an MTU below the size of packets",
        before: "ip link set near mtu 1000",
        begin: "true",
        end: "true",
        verdicts: &["local-network"],
        why: "packets above the MTU of its interface, 1000 B",
        facts: &["/refused/too_large"],
    },
    Fault {
        name: "an MTU of the receiver below the size of packets",
        before: "nsenter -t $outside -n ip link set far mtu 1000",
        begin: "true",
        end: "true",
        verdicts: &["loss-limited"],
        why: "as if the path or the receiver had an MTU below 1280 B",
        facts: &[],
    },
    Fault {
        name: "the smallest MTU of IPv4",
        before: "ip link set near mtu 576",
        begin: "true",
        end: "true",
        verdicts: &["local-network"],
        why: "packets above the MTU of its interface, 576 B",
        facts: &["/refused/too_large"],
    },
    Fault {
        name: "an MTU that is large enough",
        before: "ip link set near mtu 1280",
        begin: "true",
        end: "true",
        // On a busy machine the sender may be late.
        verdicts: &["steady", "delay-limited", "sender-too-slow"],
        why: "",
        facts: &[],
    },
    Fault {
        name: "a change of the address",
        before: "true",
        begin: "echo 1 > /proc/sys/net/ipv4/conf/near/promote_secondaries; ip addr add 192.0.2.3/24 dev near; ip addr \
                del 192.0.2.1/24 dev near",
        end: "true",
        // The controller begins anew on the new path.
        verdicts: &["steady", "delay-limited"],
        why: "the local address changed, at last to 192.0.2.3",
        facts: &["/address_changes"],
    },
    Fault {
        name: "a processor that others use",
        before: "true",
        begin: "(for turn in $(seq 25); do kill -STOP $sender; sleep 0.07; kill -CONT $sender; sleep 0.01; done) &",
        end: "true",
        verdicts: &["sender-too-slow"],
        why: "",
        facts: &[],
    },
    Fault {
        name: "a full queue of the interface",
        before: "true",
        begin: "tc qdisc replace dev near root tbf rate 16kbit burst 1600 limit 10mb",
        end: "tc qdisc del dev near root",
        verdicts: &["sender-too-slow"],
        why: "buffers of this host were full for",
        facts: &["/refused/buffers_full"],
    },
    Fault {
        name: "an interface that goes down",
        before: "true",
        begin: "ip link set near down",
        end: "ip link set near up",
        verdicts: &["local-network"],
        why: "no route, or the interface was down",
        facts: &["/refused/unreachable"],
    },
    Fault {
        name: "a sender that is stopped",
        before: "true",
        begin: "kill -STOP $sender",
        end: "kill -CONT $sender",
        verdicts: &["sender-too-slow"],
        why: "this process did not run for",
        facts: &[STALLS],
    },
    Fault {
        name: "a receiver that is stopped",
        before: "true",
        begin: "kill -STOP $receiver",
        end: "kill -CONT $receiver",
        verdicts: &["video-frozen", "delay-limited", "loss-limited", "sender-too-slow"],
        why: "the video was frozen for",
        facts: &[],
    },
];

const SCRIPT: &str = r#"
paceline=$1 folder=$2
trap 'kill -CONT $sender $receiver 2> /dev/null; kill $sender $receiver $outside 2> /dev/null' EXIT
unshare -n sleep 60 &
outside=$!
until [ "$(readlink /proc/$outside/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.1; done
until ip link add near type veth peer name far netns $outside 2> /dev/null; do sleep 0.1; done
ip addr add 192.0.2.1/24 dev near
ip link set near up
nsenter -t $outside -n sh -c 'ip addr add 192.0.2.2/24 dev far; ip link set far up'
eval "$3"
nsenter -t $outside -n "$paceline" recv --once --json --bind 192.0.2.2:9777 > "$folder/received" 2> "$folder/messages" &
receiver=$!
until [ -s "$folder/messages" ]; do sleep 0.1; done
"$paceline" send 192.0.2.2 --duration 6s --json > "$folder/sent" &
sender=$!
until grep -q session: "$folder/messages"; do sleep 0.1; done
sleep 1
eval "$4"
sleep 2
eval "$5"
wait $sender $receiver
"#;

/// Returns whether this machine has namespaces; if not, prints so, or fails if `PACELINE_REQUIRE` names `track`.
fn has_namespaces() -> bool {
    let has = Command::new("unshare").args(["-n", "ip", "link"]).output().is_ok_and(|ip| ip.status.success());
    if !has {
        assert!(!super::track::is_required(), "PACELINE_REQUIRE names `track`, but there are no namespaces, or no ip");
        eprintln!("SKIPPED: no network namespaces, or no ip");
    }
    has
}

const FULL_DISK: &str = r#"
paceline=$1 folder=$2
trap 'kill $receiver 2> /dev/null' EXIT
ip link set lo up
mount -t tmpfs -o size=4m none "$folder"
cd "$folder"
"$paceline" recv --once --json --bind 127.0.0.1:9778 > /dev/null 2> messages &
receiver=$!
until [ -s messages ]; do sleep 0.1; done
"$paceline" send 127.0.0.1:9778 --duration 3s --json --out out &
sender=$!
until grep -q session: messages; do sleep 0.1; done
cat /dev/zero > filler 2> /dev/null
wait $sender
"#;

#[test]
fn a_session_is_printed_although_the_disk_is_full() {
    if !has_namespaces() {
        return;
    }
    let folder = folder("full-disk");
    fs::create_dir_all(&folder).unwrap();
    let mut machine = Command::new("timeout");
    machine.args(["60", "unshare", "-n", "-m", "sh", "-c", FULL_DISK, "sh", env!("CARGO_BIN_EXE_paceline")]);
    let output = machine.arg(&folder).output().unwrap();
    let (code, errors) = (output.status.code(), stderr(&output));
    assert!(code == Some(2) && (errors.contains("No space left") || errors.contains("is full")), "{code:?} {errors}");
    let sent: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{errors}"));
    let arrived = sent["evidence"]["received_packets"].as_u64().unwrap();
    assert!((50..5000).contains(&arrived), "{sent}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn verdicts_name_faults_of_the_own_host() {
    if !has_namespaces() {
        return;
    }
    let _quiet = super::machine::quiet();
    let traffic_control =
        "ip link add name na type veth peer name nb; tc qdisc add dev na root tbf rate 1mbit burst 1600 limit 10mb";
    let shapes = Command::new("unshare")
        .args(["-n", "sh", "-ec", traffic_control])
        .status()
        .is_ok_and(|status| status.success());
    for Fault { name, before, begin, end, verdicts, why, facts } in FAULTS {
        if begin.starts_with("tc ") && !shapes {
            eprintln!("SKIPPED: {name}, because this kernel has no token bucket, or there is no tc");
            continue;
        }
        let folder = folder("host-faults");
        fs::create_dir_all(&folder).unwrap();
        let mut machine = Command::new("timeout");
        machine.args(["60", "unshare", "-n", "sh", "-c", SCRIPT, "sh", env!("CARGO_BIN_EXE_paceline")]);
        let output = machine.arg(&folder).args([before, begin, end]).output().unwrap();
        let text = fs::read_to_string(folder.join("sent")).unwrap();
        let sent: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{name}: {}", stderr(&output)));
        let (verdict, reason) = (sent["verdict"].as_str().unwrap(), sent["why"].as_str().unwrap());
        assert!(verdicts.contains(&verdict) && reason.contains(why), "{name}: {verdict}: {reason}");
        let host = &sent["evidence"]["host"];
        for fact in FACTS {
            let is_expected = facts.contains(&fact);
            assert_eq!(host.pointer(fact).unwrap() != 0, is_expected, "{name}: {fact}: {host}");
        }
        let mtu = before.strip_prefix("ip link set near mtu ").map_or(1500, |mtu| mtu.parse().unwrap());
        assert_eq!(host["mtu"], mtu, "{name}: {host}");
        let stalled_s = host["stalled_s"].as_f64().unwrap();
        assert_eq!((1.9..6.0).contains(&stalled_s), facts.contains(&STALLS), "{name}: {host}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
