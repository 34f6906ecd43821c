// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine after links, calls and receivers that start and end in random orders: as before. And the packets that reach a command behind
//! a link.

use super::hosts::signal;
use super::machine::{Machine, difference, is_available, loading, neighbours, processes, state, wait_for, within};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage, sendto, socket};
use paceline_units::{RandomStream, RandomStreams};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_paceline");

/// Programs that run at the same time in a round.
const AT_ONCE: usize = 6;

/// What may run. Each ends by itself after about a second, except receivers, which SIGINT ends as documented.
const PROGRAMS: [&[&str]; 7] = [
    &["link", "--keep-root", "--nat", "--", "sleep", "0.7"],
    &["link", "--user", "nobody", "--nat", "--", "grep", "-q", "nameserver 100.127.", "/etc/resolv.conf"],
    &["link", "--keep-root", "--nat", "--", "sh", "-c", "setsid sleep 30 & sleep 0.5"],
    &["link", "--keep-root", "--delay", "5ms", "--", "sleep", "0.7"],
    &["call", "--world", "testbed", "--set", "duration=1s"],
    &["call", "--watch", "--world", "testbed", "--set", "duration=1s"],
    &["recv", "--bind", "127.0.0.1:0"],
];

/// A link that ends at the start of the second after the next: many end at once.
const TOGETHER: &[&str] =
    &["link", "--keep-root", "--nat", "--", "sh", "-c", "sleep $(date +%N | awk '{ print 2 - $1 / 1e9 }')"];

/// The end of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Normal,
    /// A signal to the program itself, to one of the processes that it started, or to the last of these: COMMAND.
    Program(&'static str),
    Helper(&'static str, u64),
    Command(&'static str),
}

impl End {
    fn draw(random: &mut RandomStream) -> Self {
        let name = ["-INT", "-TERM", "-KILL", "-KILL"][random.bits() as usize % 4];
        match random.bits() % 6 {
            0 | 1 => Self::Normal,
            2 | 3 => Self::Program(name),
            4 => Self::Helper(name, random.bits()),
            _ => Self::Command(name),
        }
    }
}

/// Draws six programs: which, when each starts and when its end comes, in milliseconds. In one round of four, links with `--nat` start and
/// end at once; in one, links with `--nat` meet anything.
fn draw(seed: u64) -> Vec<(&'static [&'static str], u64, End, u64)> {
    let random = &mut RandomStreams::new(seed).stream("machine-state");
    if seed.is_multiple_of(4) {
        return vec![(TOGETHER, 0, End::Normal, 0); AT_ONCE];
    }
    let spread = [0, 0, 300][random.bits() as usize % 3];
    let of = if seed % 4 == 1 { 3 } else { PROGRAMS.len() };
    let mut one = || {
        let start = random.bits() % (spread + 1);
        (PROGRAMS[random.bits() as usize % of], start, End::draw(random), start + random.bits() % 900)
    };
    (0..AT_ONCE).map(|_| one()).collect()
}

/// Runs six programs. Returns whether one left rules, as documented: because it was killed, or `nft` was.
fn round(machine: &Machine, folder: &Path, seed: u64) -> bool {
    let plan = draw(seed);
    let mut steps: Vec<(u64, usize, bool)> = Vec::new();
    for (index, (_, start, _, end)) in plan.iter().enumerate() {
        steps.extend([(*start, index, true), (*end, index, false)]);
    }
    steps.sort_unstable_by_key(|(at, index, starts)| (*at, !starts, *index));
    let (began, mut started, mut leaves) = (Instant::now(), BTreeMap::new(), false);
    for (at, index, starts) in steps {
        thread::sleep(Duration::from_millis(at).saturating_sub(began.elapsed()));
        let ((arguments, _, end, _), name) = (plan[index], format!("{seed}-{index}"));
        if starts {
            started.insert(index, machine.start(Path::new(PROGRAM), arguments, folder, &name));
            continue;
        }
        let program = started[&index].id();
        let mut others: Vec<_> = processes(folder, Some(&name)).into_iter().filter(|(id, _)| *id != program).collect();
        others.sort_unstable();
        let (signals, target) = match end {
            End::Normal if arguments[0] == "recv" => ("-INT", Some((program, String::new()))),
            End::Normal => continue,
            End::Program(name) => {
                leaves |= name == "-KILL" && arguments.contains(&"--nat");
                (name, Some((program, String::new())))
            }
            End::Helper(name, which) => (name, others.get(which as usize % others.len().max(1)).cloned()),
            End::Command(name) => (name, others.pop()),
        };
        if let Some((process, words)) = target {
            let is_guard = words.contains("\0hold-command\0");
            leaves |= words.starts_with("nft\0") || process != program && words.starts_with(PROGRAM) && !is_guard;
            // It may have ended.
            let _ = std::process::Command::new("kill").args([signals, &process.to_string()]).output();
        }
    }
    for (index, mut child) in started {
        let (arguments, _, end, _) = plan[index];
        // A receiver that was not ended: its helper was the target, and it has none.
        if arguments[0] == "recv" && end != End::Normal && !matches!(end, End::Program(_)) {
            signal("-TERM", child.id());
        }
        let what = format!("seed {seed}, {arguments:?}, {end:?}");
        let (status, _) = wait_for(&what, Duration::from_secs(30), || child.try_wait().unwrap());
        let said = || fs::read_to_string(folder.join(format!("{seed}-{index}.err"))).unwrap();
        // Bounds of a call of 1 s; a receiver that was interrupted before it had a handler.
        let is_fine = match arguments[0] {
            "call" => matches!(status.code(), Some(0 | 1)),
            "recv" => matches!(status.code(), Some(0) | None),
            _ => status.success(),
        };
        assert!(end != End::Normal || is_fine, "{what}: {status}: {}", said());
        assert!(!said().contains("could not be removed") || leaves, "{what}: {}", said());
    }
    wait_for("no process is left", Duration::from_secs(10), || processes(folder, None).is_empty().then_some(()));
    leaves
}

/// A machine whose name server is on loopback, and whose default routes lead to its neighbour, which routes addresses of links to it.
fn machine_and_neighbour() -> [Machine; 2] {
    let [machine, neighbour] = neighbours();
    machine.sh("ip route add default via 192.0.2.1; ip -6 route add default via 2001:db8::1");
    neighbour.sh("ip route add 100.127.0.0/16 via 192.0.2.2; ip -6 route add fd3b:91c4:7e52::/48 via 2001:db8::2");
    [machine, neighbour]
}

/// Calls `act` on a thread whose `/etc/resolv.conf` names a server on loopback.
fn with_local_resolver<T: Send>(folder: &Path, act: impl FnOnce() -> T + Send) -> T {
    let file = folder.join("resolv.conf");
    fs::write(&file, "nameserver 127.0.0.53\n").unwrap();
    let mounted = || {
        unshare(CloneFlags::CLONE_NEWNS).unwrap();
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>).unwrap();
        let place = fs::canonicalize("/etc/resolv.conf").unwrap();
        mount(Some(&file), &place, None::<&str>, MsFlags::MS_BIND, None::<&str>).unwrap();
        act()
    };
    thread::scope(|scope| scope.spawn(mounted).join()).unwrap_or_else(|panic| resume_unwind(panic))
}

/// `PACELINE_FULL=1` makes 200 rounds of six programs in place of 8, `PACELINE_STATE_ROUNDS` another number.
#[test]
fn the_machine_is_as_before_after_random_starts_ends_and_kills() {
    if !is_available() {
        return;
    }
    let _loading = loading();
    let number = |name: &str| Some(std::env::var(name).ok()?.parse::<u64>().unwrap());
    let usual = if std::env::var_os("PACELINE_FULL").is_some() { 200 } else { 8 };
    let first = number("PACELINE_STATE_SEED").unwrap_or(0);
    let seeds = first..first + number("PACELINE_STATE_ROUNDS").unwrap_or(usual);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    with_local_resolver(folder, || {
        let [machine, _neighbour] = machine_and_neighbour();
        machine.sh("echo 0 > /proc/sys/net/ipv6/conf/all/forwarding");
        let clean = || {
            let arguments = ["link", "--keep-root", "--nat", "--", "true"];
            let status = machine.start(Path::new(PROGRAM), &arguments, folder, "clean").wait().unwrap();
            assert!(status.success(), "{}", fs::read_to_string(folder.join("clean.err")).unwrap());
        };
        // The first use loads modules of the kernel, which bring settings.
        clean();
        let (before, mut cleanings) = (state(&machine, folder), 0);
        for seed in seeds.clone() {
            if round(&machine, folder, seed) {
                clean();
                cleanings += 1;
            }
            let left = difference(&before, &state(&machine, folder));
            assert_eq!(left, [""; 0], "after the round of seed {seed}: {:#?}", draw(seed));
        }
        let kills = seeds.clone().flat_map(draw).filter(|(_, _, end, _)| format!("{end:?}").contains("-KILL")).count();
        println!("seeds {seeds:?}, {AT_ONCE} programs each, {kills} kills; cleaned {cleanings} times, as documented");
    });
}

/// A link whose command sleeps, and the process and the addresses of the command.
struct Behind {
    link: Child,
    command: u32,
    addresses: [IpAddr; 2],
}

impl Behind {
    fn start(machine: &Machine, folder: &Path, name: &str, more: &[&str]) -> Self {
        let arguments = [&["link", "--keep-root"], more, &["--", "sleep", "120"]].concat();
        let link = machine.start(Path::new(PROGRAM), &arguments, folder, name);
        let messages = folder.join(name).with_extension("err");
        let ready = || {
            let command = processes(folder, Some(name)).into_iter().find(|(_, words)| words.starts_with("sleep\0"))?.0;
            let said = fs::read_to_string(&messages).unwrap();
            let (_, at) = said.split_once("the command is at ")?;
            let (near, _) = at.split_once(", this side")?;
            let (ipv4, ipv6) = near.split_once(", ")?;
            Some((command, [ipv4.parse().unwrap(), ipv6.parse().unwrap()]))
        };
        let ((command, addresses), _) = wait_for(name, Duration::from_secs(20), ready);
        Self { link, command, addresses }
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        signal("-TERM", self.link.id());
        self.link.wait().unwrap();
    }
}

/// Returns the number of IP packets that the network of a process received: IPv4 and IPv6.
fn received(process: u32) -> [u64; 2] {
    let read = |file: &str| fs::read_to_string(format!("/proc/{process}/net/{file}")).unwrap();
    let (snmp, snmp6) = (read("snmp"), read("snmp6"));
    let ipv4 =
        snmp.lines().filter_map(|line| line.strip_prefix("Ip: ")).nth(1).unwrap().split(' ').nth(2).unwrap().to_owned();
    let ipv6 = snmp6.lines().find_map(|line| line.strip_prefix("Ip6InReceives")).unwrap().trim().to_owned();
    [ipv4, ipv6].map(|count| count.parse().unwrap())
}

const PORT: u16 = 9000;

/// Answers UDP and TCP at a port in the network of a process, until the sockets are dropped.
fn serve(process: u32) -> (UdpSocket, TcpListener) {
    within(process, || (UdpSocket::bind(("::", PORT)).unwrap(), TcpListener::bind(("::", PORT)).unwrap()))
}

/// Sends a datagram, a SYN or an echo request from the network of a process. Returns whether a connection, or an answer, came back
/// within `wait`.
fn send(from: u32, protocol: &str, to: IpAddr, wait: Duration) -> bool {
    within(from, || match protocol {
        "TCP" => TcpStream::connect_timeout(&(to, PORT).into(), wait).is_ok(),
        "UDP" => {
            let local: SocketAddr = if to.is_ipv4() { "0.0.0.0:0".parse().unwrap() } else { "[::]:0".parse().unwrap() };
            let socket = UdpSocket::bind(local).unwrap();
            socket.set_read_timeout(Some(wait)).unwrap();
            socket.send_to(b"x", (to, PORT)).is_ok() && socket.recv(&mut [0; 9]).is_ok()
        }
        _ => {
            let (family, protocol, kind) = match to {
                IpAddr::V4(_) => (AddressFamily::Inet, SockProtocol::Icmp, 8),
                IpAddr::V6(_) => (AddressFamily::Inet6, SockProtocol::IcmpV6, 128),
            };
            let mut request = [kind, 0, 0, 0, 0, 1, 0, 1];
            // The kernel computes that of ICMPv6.
            request[2..4].copy_from_slice(&(!(u16::from(kind) << 8) - 2).to_be_bytes());
            let socket = socket(family, SockType::Raw, SockFlag::empty(), protocol).unwrap();
            let _ = sendto(
                socket.as_raw_fd(),
                &request,
                &SockaddrStorage::from(SocketAddr::from((to, 0))),
                nix::sys::socket::MsgFlags::empty(),
            );
            let socket = UdpSocket::from(socket);
            socket.set_read_timeout(Some(wait)).unwrap();
            // Other messages, such as the request itself on loopback, and errors.
            let mut buffer = [0; 200];
            let reply = |len: usize, buffer: &[u8]| match to {
                IpAddr::V4(_) => len >= 28 && buffer[20] == 0,
                IpAddr::V6(_) => buffer[0] == 129,
            };
            while let Ok(len) = socket.recv(&mut buffer) {
                if reply(len, &buffer) {
                    return true;
                }
            }
            false
        }
    })
}

/// While `--nat` runs, packets reach a command only from its own machine, or as answers; and the command reaches no loopback address.
#[test]
fn nothing_from_outside_reaches_a_command_while_nat_runs() {
    if !is_available() {
        return;
    }
    let _loading = loading();
    let folder = tempfile::tempdir().unwrap();
    with_local_resolver(folder.path(), || {
        thread::scope(|scope| {
            for forwarding in ["0", "1"] {
                let place = folder.path();
                scope.spawn(move || only_answers_reach_commands(place, forwarding));
            }
        });
    });
}

/// Sends packets on a machine whose IPv4 is forwarded or not, and whose IPv6 is.
fn only_answers_reach_commands(folder: &Path, forwarding: &str) {
    let [machine, neighbour] = machine_and_neighbour();
    machine.sh(&format!(
        "echo {forwarding} > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"
    ));
    let start = |name: &str, more: &[&str]| Behind::start(&machine, folder, &format!("{name}{forwarding}"), more);
    let (plain, nat, other) = (start("plain", &[]), start("nat", &["--nat"]), start("other", &["--nat"]));
    [nat.command, plain.command, neighbour.process(), machine.process()].into_iter().for_each(echo);
    // What is expected comes at once, but not on a busy machine.
    let wait = |expected| Duration::from_millis(if expected { 3000 } else { 300 });
    let try_all = |what: &str, from: u32, to: u32, addresses: [IpAddr; 2], expected: bool| {
        for (version, address) in addresses.into_iter().enumerate() {
            for protocol in ["UDP", "TCP", "ICMP"] {
                let before = received(to)[version];
                let answered = send(from, protocol, address, wait(expected));
                thread::sleep(Duration::from_millis(50));
                let arrived = received(to)[version] > before;
                let what = format!("{protocol} to {address}, {what}; forwarding {forwarding}");
                assert_eq!((arrived, answered), (expected, expected), "{what}");
            }
        }
    };
    for (to, place) in [(&nat, "a command with --nat"), (&plain, "a command without")] {
        for (from, source) in [(&machine, "its machine"), (&neighbour, "a neighbour")] {
            try_all(
                &format!("{place}, from {source}"),
                from.process(),
                to.command,
                to.addresses,
                source == "its machine",
            );
        }
        try_all(&format!("{place}, from another command"), other.command, to.command, to.addresses, false);
    }
    let outside = ["192.0.2.1", "2001:db8::1"].map(|address| address.parse().unwrap());
    try_all("a neighbour, from a command", nat.command, neighbour.process(), outside, true);
    // A command with the rights of root can send to the machine's loopback, where the name server is.
    let routes = "ip route del local 127.0.0.0/8 dev lo table local; ip route add 127.0.0.0/8 dev paceline src $0; \
                  echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet";
    let command = nat.command.to_string();
    let near = nat.addresses[0].to_string();
    let entered =
        std::process::Command::new("nsenter").args(["-t", &command, "-n", "sh", "-ec", routes, &near]).status();
    assert!(entered.unwrap().success());
    let loopback = "127.0.0.9".parse().unwrap();
    let answered = [(machine.process(), true), (nat.command, false)]
        .map(|(from, expected)| send(from, "UDP", loopback, wait(expected)));
    assert_eq!(
        answered,
        [true, false],
        "the loopback of the machine, from it and from a command; forwarding {forwarding}"
    );
}

/// Answers datagrams and accepts connections in the network of a process, for as long as the test runs.
fn echo(process: u32) {
    let (datagrams, connections) = serve(process);
    thread::spawn(move || {
        let mut buffer = [0; 9];
        while let Ok((_, peer)) = datagrams.recv_from(&mut buffer) {
            let _ = datagrams.send_to(b"y", peer);
        }
    });
    thread::spawn(move || connections.incoming().flatten().for_each(|mut peer| drop(peer.write_all(b"y"))));
}
