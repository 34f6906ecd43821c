//! The programs against a real kernel: over the loopback interface of a namespace, and over a wire between two that is
//! looked at. Without the privilege these tests say so and pass, unless the environment's `PACELINE_REQUIRE` names `track`.

mod wire;

use super::*;
use crate::namespace::Namespace;
use paceline::Registry;
use paceline_flow::tcp::{CONGESTION, TcpConfig, TcpSender, Workload, pause, transfer_size};
use paceline_lab::plan::FlowKind;
use paceline_lab::scenario::{Changes, Origin, load};
use paceline_units::{DataSize, Streams};
use wire::Wire;

/// Where the programs are: in one namespace, or in two.
struct Place {
    namespaces: [Namespace; 2],
    addresses: [Ipv4Addr; 2],
}

/// What came of a run.
struct Came {
    rows: Vec<Row>,
    /// Size and time of each transfer that is done.
    done: Vec<(DataSize, TimeDelta)>,
    /// What the sender answered, and when it and the receiver were through.
    sent: io::Result<()>,
    ended: [Time; 2],
}

/// Two new namespaces; `None`, and a word about it: this process may not make any.
fn namespaces() -> Option<[Namespace; 2]> {
    let made = Namespace::new().and_then(|one| Ok([one, Namespace::new()?]));
    if let Err(error) = &made {
        let required = std::env::var("PACELINE_REQUIRE").is_ok_and(|l| l.split([',', ' ']).any(|r| r == "track"));
        assert!(!required, "PACELINE_REQUIRE asks for the test track: {error}");
        eprintln!("NOT TESTED: {error}");
    }
    let namespaces = made.ok()?;
    for namespace in &namespaces {
        namespace.within(prepare).unwrap();
    }
    Some(namespaces)
}

/// Both programs on one machine.
fn loopback() -> Option<Place> {
    let [one, _] = namespaces()?;
    let same = one.within(Namespace::current).unwrap();
    Some(Place { namespaces: [one, same], addresses: [Ipv4Addr::LOCALHOST; 2] })
}

fn tcp(congestion: &'static str, workload: Workload) -> TcpPlan {
    TcpPlan { config: TcpConfig { congestion, ..TcpConfig::default() }, workload }
}

fn run(place: &Place, tcp: &TcpPlan, stop: Time) -> Came {
    let cancelled = AtomicBool::new(false);
    let clock = Monotonic::starting_in(TimeDelta::from_millis(20));
    run_until(place, tcp, stop, &cancelled, clock)
}

fn run_until(place: &Place, tcp: &TcpPlan, stop: Time, cancelled: &AtomicBool, clock: Monotonic) -> Came {
    let (rows, told) = mpsc::channel();
    let program = Program { flow: FLOW, tcp, stop, cancelled, clock, rows: &rows };
    let (here, there) = (place.addresses[0], place.addresses[1]);
    let [near, far] = &place.namespaces;
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
            let mut tell = |at: Time, event: TcpSenderEvent| events.push((at, event));
            let random = Streams::new(7).stream("flow/tcp/workload");
            let sent = sender::Sender::new(&program, here, to, random, &mut tell).run(Time::ZERO);
            (sent, clock.now())
        });
        let (sent, ended) = sender.join().unwrap();
        (sent, [ended, receiver.join().unwrap()])
    });
    drop(rows);
    let mut came = Came { rows: told.iter().collect(), done: Vec::new(), sent, ended };
    for (at, event) in events {
        match event {
            TcpSenderEvent::TransferDone { size, took } => came.done.push((size, took)),
            TcpSenderEvent::Signal(signal, value) => {
                came.rows.push(Row::Signal { at, flow: FLOW, half: HalfName::Send, signal, value });
            }
        }
    }
    came
}

impl Came {
    /// When and how much was read.
    fn reads(&self) -> impl Iterator<Item = (Time, u64)> {
        self.rows.iter().filter_map(|row| match row {
            Row::Read { at, flow: FLOW, size } => Some((*at, size.as_bytes())),
            _ => None,
        })
    }

    fn read(&self) -> u64 {
        self.reads().map(|(_, size)| size).sum()
    }

    /// Values of a signal of the simulated sender.
    fn signal(&self, name: &str) -> Vec<f64> {
        let index = TcpSender::SIGNALS.iter().position(|spec| spec.name == name).unwrap() as u8;
        let values = self.rows.iter().filter_map(|row| match row {
            Row::Signal { signal, value, .. } if *signal == index => Some(*value),
            _ => None,
        });
        values.collect()
    }
}

const FLOW: FlowId = FlowId(3);
const SECOND: Time = Time::from_secs(1);

#[test]
fn bulk_runs_under_every_congestion_control_that_there_is() {
    let Some(place) = loopback() else { return };
    for (name, ..) in CONGESTION {
        if !kernel::has(kernel_name(name)) {
            eprintln!("NOT TESTED: this kernel has no `{name}`");
            continue;
        }
        let plan = tcp(name, Workload::Bulk);
        let came = run(&place, &plan, Time::from_millis(300));
        came.sent.as_ref().unwrap();
        assert!(came.read() > 1_000_000, "{}: {} bytes", name, came.read());
        let (first, last) = (came.reads().next().unwrap().0, came.reads().last().unwrap().0);
        assert!(first > Time::ZERO && last < SECOND, "{}: {first} to {last}", name);
        assert!(!came.signal("cwnd").is_empty() && !came.signal("srtt").is_empty());
    }
}

#[test]
fn the_kernel_says_that_it_does_what_was_asked() {
    let Some(place) = loopback() else { return };
    place.namespaces[0]
        .within(|| {
            let (rows, cancelled) = (mpsc::channel().0, AtomicBool::new(false));
            for (ours, kernels) in [("cubic", "cubic"), ("new-reno", "reno")] {
                let plan = tcp(ours, Workload::Bulk);
                let listener = listen(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0), &plan.config)?;
                let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, listener.local_addr()?.port());
                let clock = Monotonic::starting_in(TimeDelta::ZERO);
                let program =
                    Program { flow: FlowId(0), tcp: &plan, stop: SECOND, cancelled: &cancelled, clock, rows: &rows };
                let random = Streams::new(1).stream("workload");
                let mut tell = |_, _| {};
                let sender = sender::Sender::new(&program, Ipv4Addr::LOCALHOST, to, random, &mut tell);
                let socket = sender.open()?;
                let says = socket.tcp_congestion()?;
                assert_eq!(std::str::from_utf8(&says).unwrap().trim_end_matches('\0'), kernels);
                assert_eq!(socket.local_addr()?.as_socket_ipv4().unwrap().ip(), &Ipv4Addr::LOCALHOST);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn an_unknown_congestion_control_is_named() {
    let Some(place) = loopback() else { return };
    let came = run(&place, &tcp("of-nobody", Workload::Bulk), Time::from_millis(50));
    assert!(came.sent.unwrap_err().to_string().contains("`of-nobody`"));
}

#[test]
fn a_plan_is_missing_what_the_kernel_lacks() {
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
    let (origin, changes) = (Origin::from_text("two.toml", text), Changes::default());
    let mut plan = load(&origin, &changes, &Registry::standard()).unwrap();
    assert_eq!(missing(&plan), None, "every kernel has cubic");
    let FlowKind::Tcp(tcp) = &mut plan.flows[1].kind else { panic!("it is a TCP flow") };
    tcp.config.congestion = "of-nobody";
    let missing = missing(&plan).unwrap();
    assert!(missing.contains("`of-nobody`") && missing.contains("reno"), "{missing}");
}

#[test]
fn settings_are_those_of_the_namespace_alone() {
    let Some([one, _]) = namespaces() else { return };
    let read = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem");
    let numbers = |text: String| text.split_whitespace().map(|n| n.parse().unwrap()).collect::<Vec<u64>>();
    assert_eq!(numbers(one.within(read).unwrap()), [4096, 33_554_432, 33_554_432]);
    let fresh = Namespace::new().unwrap();
    assert_ne!(numbers(fresh.within(read).unwrap())[1], 33_554_432, "another namespace keeps its own");
}

/// Sizes and pauses are the simulator's: the same stream, in the same order.
#[test]
fn short_transfers_have_the_drawn_sizes_and_pauses() {
    let Some(place) = loopback() else { return };
    let size = (DataSize::from_bytes(1_000), DataSize::from_bytes(300_000));
    let mean = TimeDelta::from_millis(10);
    let came = run(&place, &tcp("cubic", Workload::Short { size, pause: mean }), SECOND);
    came.sent.as_ref().unwrap();
    assert!(came.done.len() >= 5, "{} transfers", came.done.len());
    let mut random = Streams::new(7).stream("flow/tcp/workload");
    let (mut bytes, mut busy) = (0, TimeDelta::ZERO);
    for (number, (done, took)) in came.done.iter().enumerate() {
        assert_eq!(*done, transfer_size(&mut random, size), "transfer {number}");
        assert!(took.is_positive(), "transfer {number}");
        bytes += done.as_bytes();
        busy += *took + pause(&mut random, mean);
    }
    let next = transfer_size(&mut random, size).as_bytes();
    assert!((bytes..=bytes + next).contains(&came.read()), "{bytes} and perhaps part of {next}: {}", came.read());
    assert!(busy > TimeDelta::ZERO && busy < TimeDelta::from_millis(1_200), "one after the other: {busy}");
}

#[test]
fn on_off_sends_in_its_periods() {
    let Some(place) = loopback() else { return };
    let (on, off) = (TimeDelta::from_millis(100), TimeDelta::from_millis(400));
    let came = run(&place, &tcp("cubic", Workload::OnOff { on, off }), Time::from_millis(1_400));
    came.sent.as_ref().unwrap();
    // The third period begins at 1 s. A thread may be late, so that a period's rest is read in the pause.
    let mut periods = [0; 3];
    for (at, size) in came.reads() {
        let since = (at - Time::ZERO).as_nanos() % (on + off).as_nanos();
        assert!(since < 400_000_000, "{at} is long after a period");
        periods[(at.as_nanos() / (on + off).as_nanos()) as usize] += size;
    }
    assert!(periods.iter().all(|bytes| *bytes > 100_000), "{periods:?}");
}

#[test]
fn programs_end_at_the_stop_and_when_cancelled() {
    let Some(place) = loopback() else { return };
    let soon = TimeDelta::from_millis(100);
    for workload in [
        Workload::Bulk,
        Workload::Short {
            size: (DataSize::from_bytes(1 << 40), DataSize::from_bytes(1 << 40)),
            pause: TimeDelta::ZERO,
        },
        Workload::OnOff { on: TimeDelta::from_secs(5), off: TimeDelta::from_secs(5) },
    ] {
        let stop = Time::from_millis(200);
        let came = run(&place, &tcp("cubic", workload), stop);
        came.sent.as_ref().unwrap();
        for ended in came.ended {
            assert!(ended >= stop && ended < stop + soon, "{workload:?}: {ended}");
        }
    }
    let cancelled = AtomicBool::new(false);
    let clock = Monotonic::starting_in(TimeDelta::ZERO);
    let plan = tcp("cubic", Workload::Bulk);
    let (came, at) = std::thread::scope(|scope| {
        let running = scope.spawn(|| run_until(&place, &plan, Time::from_secs(60), &cancelled, clock));
        std::thread::sleep(Duration::from_millis(200));
        cancelled.store(true, Ordering::Relaxed);
        let at = clock.now();
        (running.join().unwrap(), at)
    });
    came.sent.as_ref().unwrap();
    assert!(came.read() > 0);
    assert!(came.ended.iter().all(|ended| *ended < at + soon), "{at}: {:?}", came.ended);
}

/// Without an answer the connection waits for the whole run, and the programs end in time all the same.
#[test]
fn a_connection_that_does_not_come_about_ends_with_the_flow() {
    let Some(namespaces) = namespaces() else { return };
    let wire = Wire::between(&namespaces, None);
    wire.cut();
    let place = Place { namespaces, addresses: wire::ADDRESSES };
    let stop = Time::from_millis(300);
    let came = run(&place, &tcp("cubic", Workload::Bulk), stop);
    came.sent.as_ref().unwrap();
    assert!(came.ended.iter().all(|ended| *ended >= stop && *ended < stop + TimeDelta::from_millis(100)));
    assert_eq!(came.rows, []);
}

#[test]
fn a_refusal_is_an_error() {
    let Some(place) = loopback() else { return };
    // Another machine's loopback: nobody listens there.
    let place = Place { namespaces: namespaces().unwrap(), ..place };
    let came = run(&place, &tcp("cubic", Workload::Bulk), Time::from_millis(100));
    assert_eq!(came.sent.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    assert_eq!(came.rows, []);
}

/// Full segments, and the signals of a window that losses halve. Each way takes 10 ms.
#[test]
fn a_wire_sees_full_segments_and_signals_tell_of_losses() {
    for segment in [1448, 1000] {
        let Some(namespaces) = namespaces() else { return };
        let wire = Wire::between(&namespaces, Some(400));
        let place = Place { namespaces, addresses: wire::ADDRESSES };
        let mut plan = tcp("new-reno", Workload::Bulk);
        plan.config.segment = DataSize::from_bytes(segment);
        let came = run(&place, &plan, Time::from_millis(1_500));
        came.sent.as_ref().unwrap();
        let sizes = wire.seen().sizes();
        let full = sizes.iter().filter(|payload| **payload == segment).count();
        assert_eq!(sizes.iter().max(), Some(&segment));
        assert!(sizes.len() > 400 && full * 100 > sizes.len() * 95, "{full} of {}", sizes.len());
        assert!(came.read() > 400 * segment && came.read() <= sizes.iter().sum(), "{} bytes", came.read());

        let cwnd = came.signal("cwnd");
        assert!(cwnd.len() > 10 && cwnd.iter().all(|bytes| bytes % segment as f64 == 0.0), "{cwnd:?}");
        let (least, most) =
            (cwnd.iter().fold(f64::MAX, |a, b| a.min(*b)), cwnd.iter().fold(0.0, |a: f64, b| a.max(*b)));
        assert!(least >= segment as f64 && most >= 1.5 * least && most < 1e6, "{cwnd:?}");
        let srtt = came.signal("srtt");
        assert!(!srtt.is_empty() && srtt.iter().all(|ms| (20.0..500.0).contains(ms)), "{srtt:?}");
        let state = came.signal("state");
        assert!(state.contains(&0.0) && state.contains(&2.0) && state.iter().all(|s| *s <= 3.0), "{state:?}");
        let threshold = came.signal("ssthresh");
        assert!(!threshold.is_empty() && threshold.iter().all(|bytes| *bytes < 1e6), "{threshold:?}");
        assert!(came.signal("W_max").is_empty());
    }
}

#[test]
fn the_receivers_window_holds() {
    let mut flights = Vec::new();
    for window in [Some(60_000), None] {
        let Some(namespaces) = namespaces() else { return };
        let wire = Wire::between(&namespaces, None);
        let place = Place { namespaces, addresses: wire::ADDRESSES };
        let mut plan = tcp("cubic", Workload::Bulk);
        plan.config.receive_window = window.map(DataSize::from_bytes);
        run(&place, &plan, Time::from_millis(500)).sent.unwrap();
        flights.push(wire.seen().flight());
    }
    assert!((50_000..=60_000).contains(&flights[0]), "{} bytes under way", flights[0]);
    assert!(flights[1] > 120_000, "{} bytes under way without it", flights[1]);
}

#[test]
fn a_stranger_gets_no_connection() {
    let Some(place) = loopback() else { return };
    let (rows, told) = mpsc::channel();
    let (cancelled, clock) = (AtomicBool::new(false), Monotonic::starting_in(TimeDelta::ZERO));
    let tcp = tcp("cubic", Workload::Bulk);
    let program = Program { flow: FLOW, tcp: &tcp, stop: SECOND, cancelled: &cancelled, clock, rows: &rows };
    let own = place.addresses[0];
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
            // The program resets it, sooner or later; until then its socket takes what it likes.
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
    place.namespaces[0].within(run).unwrap();
    drop(rows);
    let read = told.iter().map(|row| match row {
        Row::Read { size, .. } => size.as_bytes(),
        other => panic!("{other:?}"),
    });
    assert_eq!(read.sum::<u64>(), 2000);
}
