// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures throughput and lateness of a link of real packets on this host: `cargo xtask track` prints the tables.
//!
//! One program sends datagrams at a given rate from one namespace, another counts them in a second namespace.

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBufForce;
use paceline::Registry;
use paceline_live::testbed::Testbed;
use paceline_live::testbed::classify::SingleFlow;
use paceline_live::testbed::clock::Monotonic;
use paceline_live::testbed::device::Device;
use paceline_live::testbed::five_tuple::FiveTupleHash;
use paceline_live::testbed::host_monitor::HostMonitor;
use paceline_live::testbed::link::{Link, LinkFlow, LinkStats, Side};
use paceline_live::testbed::namespace::Namespace;
use paceline_live::testbed::timing::{Role, Timing, enter_realtime};
use paceline_netsim::network::Network;
use paceline_netsim::records::{EventObserver, EventRecord};
use paceline_netsim::world::World;
use paceline_scenario::{self, Changes, Origin};
use paceline_units::{RandomStreams, Time, TimeDelta};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use std::io::IoSliceMut;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
const PORT: u16 = 9;

#[derive(Default)]
struct EventCounts {
    dropped: u64,
    arrived: u64,
}

impl EventObserver for EventCounts {
    fn on_event(&mut self, event: &EventRecord) {
        match event {
            EventRecord::Dropped { .. } => self.dropped += 1,
            EventRecord::Arrived { .. } => self.arrived += 1,
            _ => {}
        }
    }
}

struct Trial {
    name: &'static str,
    /// Packets per second, and bytes of each with headers.
    rate: u64,
    size: usize,
    /// Packets per burst, as of a sender without pacing.
    burst: usize,
    path: &'static str,
    timing: Timing,
}

const WIDE: &str = "capacity = \"1.2Gbps\"\ndelay = \"5ms\"";
const FAIR: &str = "capacity = \"1.2Gbps\"\ndelay = \"5ms\"\nqueue = { discipline = \"fq-codel\" }";
const UNLIMITED: &str = "delay = \"5ms\"";
const NARROW: &str = "capacity = \"100Mbps\"\ndelay = \"10ms\"";

#[rustfmt::skip]
const TRIALS: &[Trial] = &[
    Trial { name: "1 Gbit/s of 1500 B", rate: 83_333, size: 1500, burst: 16, path: WIDE, timing: Timing::PRECISE },
    Trial { name: "1 Gbit/s of 1500 B, fq-codel", rate: 83_333, size: 1500, burst: 16, path: FAIR, timing: Timing::PRECISE },
    Trial { name: "200,000 a second of 100 B", rate: 200_000, size: 100, burst: 32, path: UNLIMITED, timing: Timing::PRECISE },
    Trial { name: "5,000 a second, precise", rate: 5_000, size: 1200, burst: 1, path: NARROW, timing: Timing::PRECISE },
    Trial { name: "5,000 a second, sleep", rate: 5_000, size: 1200, burst: 1, path: NARROW, timing: Timing::Sleep },
];

fn main() {
    let seconds: i64 = std::env::args().nth(1).map_or(5, |s| s.parse().expect("seconds"));
    println!(
        "trial | sent | read | dropped by the model | send failures | received | late p50, µs | p99, µs | max, µs | core"
    );
    for trial in TRIALS {
        let (sent, received, counted, stats, busy) = run(trial, seconds);
        let late = stats.late_us();
        println!(
            "{} | {sent} | {} | {} | {} | {received} | {:.1} | {:.1} | {:.0} | {:.0} %",
            trial.name,
            stats.received,
            counted.dropped,
            stats.send_failures,
            late.p50,
            late.p99,
            late.max,
            busy * 100.0
        );
    }
    println!("\ntrial | arrived | timers late p50, µs | p99, µs | max, µs | link p99, µs | machine");
    for timing in [Timing::PRECISE, Timing::Sleep] {
        endpoints(seconds, timing);
    }
}

/// Measures the lateness of the ends of a media flow at 100 Mbit/s, 10,000 packets per second.
fn endpoints(seconds: i64, timing: Timing) {
    let text = format!(
        "id = \"ends\"\ntitle = \"ends\"\nduration = \"{seconds}s\"\n[path.forward]\ncapacity = \"200Mbps\"\ndelay = \"5ms\"\n\
         [[flow]]\nid = \"video\"\ncontroller = \"fixed\"\nstart_rate = \"100Mbps\"\n\
         encoder = {{ source = \"ideal\", max = \"100Mbps\" }}"
    );
    let registry = Registry::standard();
    let scenario =
        paceline_scenario::load(&Origin::from_text("ends", text), &Changes::default(), &registry).expect("it is valid");
    let mut counted = EventCounts::default();
    let outcome = Testbed { timing, ..Testbed::default() }.run(&scenario.plan, &registry, 1, &mut counted).unwrap();
    let machine = outcome.machine.expect("it ran in real time");
    println!(
        "ends at 100 Mbit/s, {timing:?} | {} | {:.1} | {:.1} | {:.0} | {:.1} | {:.0} %",
        counted.arrived,
        machine.wake_us.p50,
        machine.wake_us.p99,
        machine.wake_us.max,
        machine.late_us.p99,
        (1.0 - machine.idle - machine.others) * 100.0
    );
}

fn run(trial: &Trial, seconds: i64) -> (u64, u64, EventCounts, LinkStats, f64) {
    let text = format!(
        "id = \"speed\"\ntitle = \"speed\"\nduration = \"1h\"\n[path.forward]\n{}\n[[flow]]\nid = \"all\"\nkind = \"tcp\"",
        trial.path
    );
    let registry = Registry::standard();
    let scenario = paceline_scenario::load(&Origin::from_text("speed", text), &Changes::default(), &registry)
        .expect("it is valid");
    let [near, far] = [Namespace::new(), Namespace::new()].map(|n| n.expect("privilege"));
    let ports = [Device::open(&near, "speed", NEAR).unwrap(), Device::open(&far, "speed", FAR).unwrap()];
    let clock = Monotonic::starting_in(TimeDelta::from_millis(200));
    let (over, stop, received) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    let mut counted = EventCounts::default();
    let streams = RandomStreams::new(1);
    let (sent, stats, busy) = thread::scope(|scope| {
        let sink = scope.spawn(|| {
            far.enter().unwrap();
            count(&over, &received);
        });
        let sender = scope.spawn(|| {
            near.enter().unwrap();
            send(trial, seconds, clock)
        });
        let (counted, streams, stop, plan) = (&mut counted, &streams, &stop, &scenario.plan);
        let link = scope.spawn(move || {
            let mut classifier = SingleFlow::ip(FiveTupleHash::new(&RandomStreams::new(1)));
            let network = Network::new(plan, streams, counted);
            let end = Time::from_secs(seconds + 1);
            let flows = vec![LinkFlow { sender: Side::Near, stop: end }];
            let link = Link::new(network, ports, &mut classifier, flows, clock, trial.timing);
            let monitor = HostMonitor::start_for_this_thread();
            let (_, stats) = link.run(end, stop).unwrap();
            (stats, monitor.own_share())
        });
        let (stats, busy) = link.join().unwrap();
        let sent = sender.join().unwrap();
        thread::sleep(Duration::from_millis(100));
        over.store(true, Ordering::Relaxed);
        sink.join().unwrap();
        (sent, stats, busy)
    });
    (sent, received.into_inner(), counted, stats, busy)
}

/// Sends at the rate of the trial, catching up in bursts. Returns the number of packets sent.
fn send(trial: &Trial, seconds: i64, clock: Monotonic) -> u64 {
    enter_realtime(Role::Endpoint);
    let socket = UdpSocket::bind((NEAR, PORT)).unwrap();
    let state = UdpSocketState::new((&socket).into()).unwrap();
    state.set_send_buffer_size((&socket).into(), 4 << 20).unwrap();
    let segment = trial.size - 28;
    let contents = vec![0; segment * trial.burst];
    let transmit = Transmit {
        destination: (FAR, PORT).into(),
        ecn: None,
        contents: &contents,
        segment_size: (trial.burst > 1).then_some(segment),
        src_ip: None,
    };
    let period = TimeDelta::from_nanos(1_000_000_000 * trial.burst as i64 / trial.rate as i64);
    let mut due = Time::ZERO;
    let mut sent = 0;
    while due < Time::from_secs(seconds) {
        let left = due - clock.now();
        if left > TimeDelta::ZERO {
            Timing::Sleep.wait(&[], left);
            continue;
        }
        match state.try_send((&socket).into(), &transmit) {
            Ok(()) => sent += trial.burst as u64,
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}"),
        }
        due += period;
    }
    sent
}

fn count(over: &AtomicBool, received: &AtomicU64) {
    let socket = UdpSocket::bind((FAR, PORT)).unwrap();
    let state = UdpSocketState::new((&socket).into()).unwrap();
    enter_realtime(Role::Endpoint);
    setsockopt(&socket, RcvBufForce, &(64 << 20)).unwrap();
    let mut buffers = vec![vec![0u8; 65_536]; 16];
    let mut metas = [RecvMeta::default(); 16];
    while !over.load(Ordering::Relaxed) {
        let mut slices: Vec<IoSliceMut<'_>> = buffers.iter_mut().map(|b| IoSliceMut::new(b)).collect();
        match state.recv((&socket).into(), &mut slices, &mut metas) {
            Ok(n) => {
                let count: usize = metas[..n].iter().map(|m| m.len.div_ceil(m.stride.max(1))).sum();
                received.fetch_add(count as u64, Ordering::Relaxed);
            }
            Err(_) => {
                use std::os::fd::AsFd;
                Timing::Sleep.wait(&[socket.as_fd()], TimeDelta::from_millis(50));
            }
        }
    }
}
