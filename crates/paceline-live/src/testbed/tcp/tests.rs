// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the programs with the kernel: over the loopback interface of a namespace, and over an observed wire between two
//! namespaces. Without privilege these tests are skipped, unless `PACELINE_REQUIRE` contains `track`.

mod wire;

use super::*;
use crate::testbed::namespace::Namespace;
use paceline::Registry;
use paceline_netsim::flow::tcp::{CONGESTION, TcpConfig, TcpSender, Workload, draw_pause, draw_transfer_size};
use paceline_netsim::plan::{FlowKind, Plan};
use paceline_scenario::{Changes, Origin, load};
use paceline_units::{DataSize, RandomStreams};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wire::Wire;

/// The namespaces of the programs, equal or different.
struct Network {
    namespaces: [Namespace; 2],
    addresses: [Ipv4Addr; 2],
}

struct RunReport {
    events: Vec<EventRecord>,
    /// Size and duration of each complete transfer.
    done: Vec<(DataSize, TimeDelta)>,
    /// Result of the sender, and when sender and receiver ended.
    sent: io::Result<()>,
    ended: [Time; 2],
}

/// Locks the testbed for one test. If it is not available, prints why and returns `None`.
fn lock_testbed() -> Option<MutexGuard<'static, ()>> {
    static TRACK: Mutex<()> = Mutex::new(());
    if let Err(error) = Namespace::new() {
        let required = std::env::var("PACELINE_REQUIRE").is_ok_and(|l| l.split([',', ' ']).any(|r| r == "track"));
        assert!(!required, "PACELINE_REQUIRE contains track, which is not available: {error}");
        eprintln!("SKIPPED: {error}");
        return None;
    }
    Some(TRACK.lock().unwrap_or_else(PoisonError::into_inner))
}

fn namespaces() -> [Namespace; 2] {
    [0, 1].map(|_| {
        let namespace = Namespace::new().unwrap();
        namespace.within(prepare).unwrap();
        namespace
    })
}

/// Returns a network with both programs in one namespace.
fn loopback() -> Network {
    let [one, _] = namespaces();
    let same = one.within(Namespace::current).unwrap();
    Network { namespaces: [one, same], addresses: [Ipv4Addr::LOCALHOST; 2] }
}

/// Returns two namespaces and the wire between them, which drops every `lost`-th packet with data.
fn wired(lost: Option<u64>) -> (Network, Wire) {
    let namespaces = namespaces();
    let wire = Wire::between(&namespaces, lost);
    (Network { namespaces, addresses: wire::ADDRESSES }, wire)
}

/// Repeats a check that depends on thread scheduling; one of eight runs has to pass.
fn retry(check: impl Fn() -> Result<(), String>) {
    const RUNS: u32 = 8;
    let mut complaints = Vec::new();
    for _ in 0..RUNS {
        match check() {
            Ok(()) => return,
            Err(complaint) => complaints.push(complaint),
        }
    }
    panic!("{complaints:#?}");
}

fn ensure(holds: bool, complaint: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(complaint()) }
}

fn tcp(congestion: &'static str, workload: Workload) -> TcpPlan {
    TcpPlan { config: TcpConfig { congestion, ..TcpConfig::default() }, workload }
}

fn run(network: &Network, tcp: &TcpPlan, stop: Time) -> RunReport {
    let cancelled = AtomicBool::new(false);
    let clock = Monotonic::starting_in(TimeDelta::from_millis(20));
    run_until(network, tcp, stop, &cancelled, clock)
}

fn run_until(network: &Network, tcp: &TcpPlan, stop: Time, cancelled: &AtomicBool, clock: Monotonic) -> RunReport {
    let (sender, emitted) = mpsc::channel();
    let program = TcpProgram { flow: FLOW, tcp, stop, cancelled, clock, events: &sender };
    let (here, there) = (network.addresses[0], network.addresses[1]);
    let [near, far] = &network.namespaces;
    let listener = far.within(|| listen(SocketAddrV4::new(there, 0), &tcp.config)).unwrap();
    let to = SocketAddrV4::new(there, listener.local_addr().unwrap().port());
    let mut events = Vec::new();
    let (sent, ended) = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            far.enter().unwrap();
            receive(&program, &listener, here).unwrap();
            clock.now()
        });
        let sender = scope.spawn(|| {
            near.enter().unwrap();
            let mut emit = |at: Time, event: TcpSenderEvent| events.push((at, event));
            let random = RandomStreams::new(7).stream("flow/tcp/workload");
            let sent = sender::Sender::new(&program, here, to, random, &mut emit).run(Time::ZERO);
            if sent.is_err() {
                cancelled.store(true, Ordering::Relaxed);
            }
            (sent, clock.now())
        });
        let (sent, ended) = sender.join().unwrap();
        (sent, [ended, receiver.join().unwrap()])
    });
    drop(sender);
    let mut report = RunReport { events: emitted.iter().collect(), done: Vec::new(), sent, ended };
    for (at, event) in events {
        match event {
            TcpSenderEvent::TransferDone { size, took } => report.done.push((size, took)),
            TcpSenderEvent::Signal(signal, value) => {
                report.events.push(EventRecord::Signal { at, flow: FLOW, half: HalfName::Send, signal, value });
            }
        }
    }
    report
}

impl RunReport {
    /// Returns time and size of each read.
    fn reads(&self) -> impl Iterator<Item = (Time, u64)> {
        self.events.iter().filter_map(|event| match event {
            EventRecord::Read { at, flow: FLOW, size } => Some((*at, size.as_bytes())),
            _ => None,
        })
    }

    fn read(&self) -> u64 {
        self.reads().map(|(_, size)| size).sum()
    }

    /// Returns the values of a signal of the simulated sender.
    fn signal(&self, name: &str) -> Vec<f64> {
        let index = TcpSender::SIGNALS.iter().position(|spec| spec.name == name).unwrap() as u8;
        let values = self.events.iter().filter_map(|event| match event {
            EventRecord::Signal { signal, value, .. } if *signal == index => Some(*value),
            _ => None,
        });
        values.collect()
    }
}

const FLOW: FlowId = FlowId(3);
const SECOND: Time = Time::from_secs(1);

#[test]
fn bulk_runs_with_every_available_congestion_control() {
    let Some(_testbed) = lock_testbed() else { return };
    let network = loopback();
    for (name, ..) in CONGESTION {
        if !kernel::has(kernel_name(name)) {
            eprintln!("SKIPPED: this kernel has no `{name}`");
            continue;
        }
        retry(|| {
            let stop = Time::from_millis(400);
            let report = run(&network, &tcp(name, Workload::Bulk), stop);
            report.sent.as_ref().unwrap();
            ensure(report.read() > 1_000_000, || format!("{name}: {} bytes", report.read()))?;
            let (first, last) = (report.reads().next().unwrap().0, report.reads().last().unwrap().0);
            assert!(first > Time::ZERO, "{name}: {first}");
            ensure(last < stop + TimeDelta::from_millis(100), || format!("{name}: {last}"))?;
            assert!(!report.signal("cwnd").is_empty() && !report.signal("srtt").is_empty());
            Ok(())
        });
    }
}

#[test]
fn kernel_uses_the_requested_congestion_control() {
    let Some(_testbed) = lock_testbed() else { return };
    let network = loopback();
    network.namespaces[0]
        .within(|| {
            let (events, cancelled) = (mpsc::channel().0, AtomicBool::new(false));
            for (ours, kernels) in [("cubic", "cubic"), ("new-reno", "reno"), ("bbr", "bbr")] {
                if !kernel::has(kernels) {
                    eprintln!("SKIPPED: this kernel has no `{kernels}`");
                    continue;
                }
                let plan = tcp(ours, Workload::Bulk);
                let listener = listen(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0), &plan.config)?;
                let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, listener.local_addr()?.port());
                let clock = Monotonic::starting_in(TimeDelta::ZERO);
                let program = TcpProgram {
                    flow: FlowId(0),
                    tcp: &plan,
                    stop: SECOND,
                    cancelled: &cancelled,
                    clock,
                    events: &events,
                };
                let random = RandomStreams::new(1).stream("workload");
                let mut emit = |_, _| {};
                let sender = sender::Sender::new(&program, Ipv4Addr::LOCALHOST, to, random, &mut emit);
                let socket = sender.open()?;
                let used = socket.tcp_congestion()?;
                assert_eq!(std::str::from_utf8(&used).unwrap().trim_end_matches('\0'), kernels);
                assert_eq!(socket.local_addr()?.as_socket_ipv4().unwrap().ip(), &Ipv4Addr::LOCALHOST);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn error_names_the_unknown_congestion_control() {
    let Some(_testbed) = lock_testbed() else { return };
    let network = loopback();
    let report = run(&network, &tcp("unknown", Workload::Bulk), Time::from_secs(60));
    assert!(report.sent.unwrap_err().to_string().contains("`unknown`"));
}

#[test]
fn missing_names_the_unavailable_congestion_control() {
    let text = r#"
        id = "test/two"
        title = "Two"
        source = "none"
        duration = "1s"
        [path.forward]
        capacity = "1Mbps"
        [[flow]]
        id = "media"
        kind = "media"
        controller = "fixed"
        [[flow]]
        id = "tcp"
        kind = "tcp"
    "#;
    let Some(_testbed) = lock_testbed() else { return };
    let [one, _] = namespaces();
    let missing = |plan: &Plan| one.within(|| Ok(missing(plan))).unwrap();
    let (origin, changes) = (Origin::from_text("two.toml", text), Changes::default());
    let mut plan = load(&origin, &changes, &Registry::standard()).unwrap().plan;
    assert_eq!(missing(&plan), None, "every kernel has cubic");
    let FlowKind::Tcp(tcp) = &mut plan.flows[1].kind else { panic!("it is a TCP flow") };
    tcp.config.congestion = "unknown";
    let missing = missing(&plan).unwrap();
    assert!(missing.contains("no TCP congestion control `unknown`") && missing.contains("reno"), "{missing}");
}

#[test]
fn settings_apply_to_one_namespace() {
    let Some(_testbed) = lock_testbed() else { return };
    let [one, _] = namespaces();
    let read = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem");
    let numbers = |text: String| text.split_whitespace().map(|n| n.parse().unwrap()).collect::<Vec<u64>>();
    assert_eq!(numbers(one.within(read).unwrap()), [4096, 33_554_432, 33_554_432]);
    let fresh = Namespace::new().unwrap();
    assert_ne!(numbers(fresh.within(read).unwrap())[1], 33_554_432, "another namespace keeps its defaults");
}

/// Sizes and pauses use the same random stream in the same order as in the simulator.
#[test]
fn short_transfers_use_the_drawn_sizes_and_pauses() {
    let Some(_testbed) = lock_testbed() else { return };
    let network = loopback();
    let size = (DataSize::from_bytes(1_000), DataSize::from_bytes(300_000));
    let mean = TimeDelta::from_millis(10);
    retry(|| {
        let report = run(&network, &tcp("cubic", Workload::Short { size, pause: mean, begins_off: false }), SECOND);
        report.sent.as_ref().unwrap();
        let mut random = RandomStreams::new(7).stream("flow/tcp/workload");
        let (mut bytes, mut busy) = (0, TimeDelta::ZERO);
        for (number, (done, took)) in report.done.iter().enumerate() {
            assert_eq!(*done, draw_transfer_size(&mut random, size), "transfer {number}");
            assert!(took.is_positive(), "transfer {number}");
            ensure(busy < TimeDelta::from_secs(1), || format!("transfer {number} started after {busy}"))?;
            bytes += done.as_bytes();
            busy += *took + draw_pause(&mut random, mean);
        }
        let next = draw_transfer_size(&mut random, size).as_bytes();
        let read = report.read();
        assert!((bytes..=bytes + next).contains(&read), "{bytes} and part of {next}: {read}");
        ensure(report.done.len() >= 5, || format!("{} transfers", report.done.len()))
    });
}

#[test]
fn on_off_sends_only_in_on_periods() {
    let Some(_testbed) = lock_testbed() else { return };
    let network = loopback();
    let (on, off) = (TimeDelta::from_millis(100), TimeDelta::from_millis(400));
    retry(|| {
        // The third period begins at 1 s.
        let report = run(&network, &tcp("cubic", Workload::OnOff { on, off }), Time::from_millis(1_400));
        report.sent.as_ref().unwrap();
        let mut periods = [0; 3];
        for (at, size) in report.reads() {
            let (number, since) =
                ((at.as_nanos() / (on + off).as_nanos()) as usize, at.as_nanos() % (on + off).as_nanos());
            ensure(since < 200_000_000, || format!("{at} is long after a period"))?;
            periods[number] += size;
        }
        ensure(periods.iter().all(|bytes| *bytes > 100_000), || format!("{periods:?}"))
    });
}

#[test]
fn programs_end_at_stop_and_on_cancellation() {
    let Some(_testbed) = lock_testbed() else { return };
    let network = loopback();
    let soon = TimeDelta::from_millis(100);
    let large = DataSize::from_bytes(1 << 40);
    for workload in [
        Workload::Bulk,
        Workload::Short { size: (large, large), pause: TimeDelta::ZERO, begins_off: false },
        Workload::OnOff { on: TimeDelta::from_secs(5), off: TimeDelta::from_secs(5) },
    ] {
        retry(|| {
            let stop = Time::from_millis(200);
            let report = run(&network, &tcp("cubic", workload), stop);
            report.sent.as_ref().unwrap();
            assert!(report.ended.iter().all(|ended| *ended >= stop), "{workload:?}: {:?}", report.ended);
            ensure(report.ended.iter().all(|ended| *ended < stop + soon), || {
                format!("{workload:?}: {:?}", report.ended)
            })
        });
    }
    retry(|| {
        let cancelled = AtomicBool::new(false);
        let clock = Monotonic::starting_in(TimeDelta::ZERO);
        let plan = tcp("cubic", Workload::Bulk);
        let (report, at) = std::thread::scope(|scope| {
            let running = scope.spawn(|| run_until(&network, &plan, Time::from_secs(60), &cancelled, clock));
            std::thread::sleep(Duration::from_millis(200));
            let at = clock.now();
            cancelled.store(true, Ordering::Relaxed);
            (running.join().unwrap(), at)
        });
        report.sent.as_ref().unwrap();
        assert!(report.ended.iter().all(|ended| *ended >= at), "{at}: {:?}", report.ended);
        ensure(report.read() > 0 && report.ended.iter().all(|ended| *ended < at + soon), || {
            format!("{} bytes, {at}: {:?}", report.read(), report.ended)
        })
    });
}

/// Without a reply the connection stays pending for the whole run, and the programs end on time.
#[test]
fn pending_connection_ends_with_the_flow() {
    let Some(_testbed) = lock_testbed() else { return };
    let (network, wire) = wired(None);
    wire.cut();
    let stop = Time::from_millis(300);
    retry(|| {
        let report = run(&network, &tcp("cubic", Workload::Bulk), stop);
        report.sent.as_ref().unwrap();
        assert_eq!(report.events, []);
        assert!(report.ended.iter().all(|ended| *ended >= stop), "{:?}", report.ended);
        let late = stop + TimeDelta::from_millis(100);
        ensure(report.ended.iter().all(|ended| *ended < late), || format!("{:?}", report.ended))
    });
}

#[test]
fn refused_connection_is_an_error() {
    let Some(_testbed) = lock_testbed() else { return };
    // The loopback interface of another namespace has no listener.
    let network = Network { namespaces: namespaces(), addresses: [Ipv4Addr::LOCALHOST; 2] };
    let report = run(&network, &tcp("cubic", Workload::Bulk), Time::from_secs(60));
    assert_eq!(report.sent.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    assert_eq!(report.events, []);
}

/// Full segments, and the signals of a window that losses halve. A round trip takes 20 ms.
#[test]
fn segments_are_full_and_signals_show_losses() {
    let Some(_testbed) = lock_testbed() else { return };
    for segment in [1448, 1000] {
        retry(|| {
            let (network, wire) = wired(Some(400));
            let mut plan = tcp("new-reno", Workload::Bulk);
            plan.config.segment = DataSize::from_bytes(segment);
            let report = run(&network, &plan, Time::from_secs(2));
            report.sent.as_ref().unwrap();
            let sizes = wire.take_log().sizes();
            let full = sizes.iter().filter(|payload| **payload == segment).count();
            ensure(sizes.len() > 400, || format!("{} segments", sizes.len()))?;
            assert_eq!(sizes.iter().max(), Some(&segment));
            assert!(full * 100 > sizes.len() * 95, "{full} of {}", sizes.len());
            assert!(report.read() > 0 && report.read() <= sizes.iter().sum(), "{} bytes", report.read());

            let cwnd = report.signal("cwnd");
            assert!(cwnd.iter().all(|bytes| *bytes >= segment as f64 && bytes % segment as f64 == 0.0), "{cwnd:?}");
            assert!(cwnd.windows(2).all(|pair| pair[0] != pair[1]), "emitted on change: {cwnd:?}");
            let srtt = report.signal("srtt");
            assert!(!srtt.is_empty() && srtt.iter().all(|ms| (20.0..2_000.0).contains(ms)), "{srtt:?}");
            let state = report.signal("state");
            assert!(state[0] == 0.0 && state.iter().all(|state| *state <= 3.0), "{state:?}");
            assert!(report.signal("W_max").is_empty());

            let halved = cwnd.windows(2).any(|pair| pair[1] < pair[0]);
            ensure(halved && state.contains(&2.0), || format!("{cwnd:?} {state:?}"))?;
            let threshold = report.signal("ssthresh");
            assert!(!threshold.is_empty() && threshold.iter().all(|bytes| *bytes < 1e6), "{threshold:?}");
            Ok(())
        });
    }
}

#[test]
fn receive_window_limits_the_flight_size() {
    let Some(_testbed) = lock_testbed() else { return };
    for window in [Some(30_000), None] {
        retry(|| {
            let (network, wire) = wired(None);
            let mut plan = tcp("cubic", Workload::Bulk);
            plan.config.receive_window = window.map(DataSize::from_bytes);
            run(&network, &plan, SECOND).sent.unwrap();
            let flight = wire.take_log().flight();
            match window {
                Some(window) => {
                    ensure(flight <= window && flight >= window * 2 / 3, || format!("{flight} bytes in flight"))
                }
                None => ensure(flight > 60_000, || format!("{flight} bytes in flight without a limit")),
            }
        });
    }
}

#[test]
fn connections_from_other_addresses_are_reset() {
    let Some(_testbed) = lock_testbed() else { return };
    let network = loopback();
    let (sender, emitted) = mpsc::channel();
    let (cancelled, clock) = (AtomicBool::new(false), Monotonic::starting_in(TimeDelta::ZERO));
    let tcp = tcp("cubic", Workload::Bulk);
    let program = TcpProgram { flow: FLOW, tcp: &tcp, stop: SECOND, cancelled: &cancelled, clock, events: &sender };
    let own = network.addresses[0];
    let run = || {
        let listener = listen(SocketAddrV4::new(own, 0), &tcp.config)?;
        let at = listener.local_addr()?;
        std::thread::scope(|scope| {
            let receiver = scope.spawn(|| receive(&program, &listener, own));
            let from = |address: [u8; 4]| {
                let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
                socket.bind(&SocketAddrV4::new(address.into(), 0).into())?;
                socket.connect(&at.into())?;
                io::Result::Ok(socket)
            };
            let stranger = from([127, 0, 0, 2])?;
            let known = from(own.octets())?;
            known.send(&[1; 1000])?;
            // Until the program resets the connection, its socket accepts data.
            let refused = (0..100).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                stranger.send_with_flags(&[1; 7], nix::libc::MSG_NOSIGNAL).is_err()
            });
            assert!(refused);
            known.send(&[1; 1000])?;
            known.shutdown(std::net::Shutdown::Write)?;
            receiver.join().unwrap()
        })
    };
    network.namespaces[0].within(run).unwrap();
    drop(sender);
    let read = emitted.iter().map(|event| match event {
        EventRecord::Read { size, .. } => size.as_bytes(),
        other => panic!("{other:?}"),
    });
    assert_eq!(read.sum::<u64>(), 2000);
}
