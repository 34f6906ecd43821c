//! The programs against a real kernel: over the loopback interface of a namespace, and over a wire between two that is
//! looked at. Without the privilege these tests say so and pass, unless the environment's `PACELINE_REQUIRE` names `track`.

mod wire;

use super::*;
use crate::namespace::Namespace;
use paceline::Registry;
use paceline_flow::tcp::{CONGESTION, TcpConfig, TcpSender, Workload, pause, transfer_size};
use paceline_lab::plan::{FlowKind, Plan};
use paceline_lab::scenario::{Changes, Origin, load};
use paceline_units::{DataSize, Streams};
use std::sync::{Mutex, MutexGuard, PoisonError};
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

/// One test at a time has the track; `None`, and a word about it: this process may not have one.
fn track() -> Option<MutexGuard<'static, ()>> {
    static TRACK: Mutex<()> = Mutex::new(());
    if let Err(error) = Namespace::new() {
        let required = std::env::var("PACELINE_REQUIRE").is_ok_and(|l| l.split([',', ' ']).any(|r| r == "track"));
        assert!(!required, "PACELINE_REQUIRE asks for the test track: {error}");
        eprintln!("NOT TESTED: {error}");
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

/// Both programs on one machine.
fn loopback() -> Place {
    let [one, _] = namespaces();
    let same = one.within(Namespace::current).unwrap();
    Place { namespaces: [one, same], addresses: [Ipv4Addr::LOCALHOST; 2] }
}

/// What depends on when the machine finds time for threads is to hold in one of a few runs.
fn sometime(check: impl Fn() -> Result<(), String>) {
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
            if sent.is_err() {
                cancelled.store(true, Ordering::Relaxed);
            }
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
    let Some(_track) = track() else { return };
    let place = loopback();
    for (name, ..) in CONGESTION {
        if !kernel::has(kernel_name(name)) {
            eprintln!("NOT TESTED: this kernel has no `{name}`");
            continue;
        }
        sometime(|| {
            let stop = Time::from_millis(400);
            let came = run(&place, &tcp(name, Workload::Bulk), stop);
            came.sent.as_ref().unwrap();
            ensure(came.read() > 1_000_000, || format!("{name}: {} bytes", came.read()))?;
            let (first, last) = (came.reads().next().unwrap().0, came.reads().last().unwrap().0);
            assert!(first > Time::ZERO, "{name}: {first}");
            ensure(last < stop + TimeDelta::from_millis(100), || format!("{name}: {last}"))?;
            assert!(!came.signal("cwnd").is_empty() && !came.signal("srtt").is_empty());
            Ok(())
        });
    }
}

#[test]
fn the_kernel_says_that_it_does_what_was_asked() {
    let Some(_track) = track() else { return };
    let place = loopback();
    place.namespaces[0]
        .within(|| {
            let (rows, cancelled) = (mpsc::channel().0, AtomicBool::new(false));
            for (ours, kernels) in [("cubic", "cubic"), ("new-reno", "reno"), ("bbr", "bbr")] {
                if !kernel::has(kernels) {
                    eprintln!("NOT TESTED: this kernel has no `{kernels}`");
                    continue;
                }
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
    let Some(_track) = track() else { return };
    let place = loopback();
    let came = run(&place, &tcp("of-nobody", Workload::Bulk), Time::from_secs(60));
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
    let Some(_track) = track() else { return };
    let [one, _] = namespaces();
    let missing = |plan: &Plan| one.within(|| Ok(missing(plan))).unwrap();
    let (origin, changes) = (Origin::from_text("two.toml", text), Changes::default());
    let mut plan = load(&origin, &changes, &Registry::standard()).unwrap();
    assert_eq!(missing(&plan), None, "every kernel has cubic");
    let FlowKind::Tcp(tcp) = &mut plan.flows[1].kind else { panic!("it is a TCP flow") };
    tcp.config.congestion = "of-nobody";
    let missing = missing(&plan).unwrap();
    assert!(missing.contains("no TCP congestion control `of-nobody`") && missing.contains("reno"), "{missing}");
}

#[test]
fn settings_are_those_of_the_namespace_alone() {
    let Some(_track) = track() else { return };
    let [one, _] = namespaces();
    let read = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem");
    let numbers = |text: String| text.split_whitespace().map(|n| n.parse().unwrap()).collect::<Vec<u64>>();
    assert_eq!(numbers(one.within(read).unwrap()), [4096, 33_554_432, 33_554_432]);
    let fresh = Namespace::new().unwrap();
    assert_ne!(numbers(fresh.within(read).unwrap())[1], 33_554_432, "another namespace keeps its own");
}

/// Sizes and pauses are the simulator's: the same stream, in the same order.
#[test]
fn short_transfers_have_the_drawn_sizes_and_pauses() {
    let Some(_track) = track() else { return };
    let place = loopback();
    let size = (DataSize::from_bytes(1_000), DataSize::from_bytes(300_000));
    let mean = TimeDelta::from_millis(10);
    sometime(|| {
        let came = run(&place, &tcp("cubic", Workload::Short { size, pause: mean }), SECOND);
        came.sent.as_ref().unwrap();
        let mut random = Streams::new(7).stream("flow/tcp/workload");
        let (mut bytes, mut busy) = (0, TimeDelta::ZERO);
        for (number, (done, took)) in came.done.iter().enumerate() {
            assert_eq!(*done, transfer_size(&mut random, size), "transfer {number}");
            assert!(took.is_positive(), "transfer {number}");
            ensure(busy < TimeDelta::from_secs(1), || format!("transfer {number} cannot have begun after {busy}"))?;
            bytes += done.as_bytes();
            busy += *took + pause(&mut random, mean);
        }
        let next = transfer_size(&mut random, size).as_bytes();
        let read = came.read();
        assert!((bytes..=bytes + next).contains(&read), "{bytes} and perhaps part of {next}: {read}");
        ensure(came.done.len() >= 5, || format!("{} transfers", came.done.len()))
    });
}

#[test]
fn on_off_sends_in_its_periods() {
    let Some(_track) = track() else { return };
    let place = loopback();
    let (on, off) = (TimeDelta::from_millis(100), TimeDelta::from_millis(400));
    sometime(|| {
        // The third period begins at 1 s.
        let came = run(&place, &tcp("cubic", Workload::OnOff { on, off }), Time::from_millis(1_400));
        came.sent.as_ref().unwrap();
        let mut periods = [0; 3];
        for (at, size) in came.reads() {
            let (number, since) =
                ((at.as_nanos() / (on + off).as_nanos()) as usize, at.as_nanos() % (on + off).as_nanos());
            ensure(since < 200_000_000, || format!("{at} is long after a period"))?;
            periods[number] += size;
        }
        ensure(periods.iter().all(|bytes| *bytes > 100_000), || format!("{periods:?}"))
    });
}

#[test]
fn programs_end_at_the_stop_and_when_cancelled() {
    let Some(_track) = track() else { return };
    let place = loopback();
    let soon = TimeDelta::from_millis(100);
    let large = DataSize::from_bytes(1 << 40);
    for workload in [
        Workload::Bulk,
        Workload::Short { size: (large, large), pause: TimeDelta::ZERO },
        Workload::OnOff { on: TimeDelta::from_secs(5), off: TimeDelta::from_secs(5) },
    ] {
        sometime(|| {
            let stop = Time::from_millis(200);
            let came = run(&place, &tcp("cubic", workload), stop);
            came.sent.as_ref().unwrap();
            assert!(came.ended.iter().all(|ended| *ended >= stop), "{workload:?}: {:?}", came.ended);
            ensure(came.ended.iter().all(|ended| *ended < stop + soon), || format!("{workload:?}: {:?}", came.ended))
        });
    }
    sometime(|| {
        let cancelled = AtomicBool::new(false);
        let clock = Monotonic::starting_in(TimeDelta::ZERO);
        let plan = tcp("cubic", Workload::Bulk);
        let (came, at) = std::thread::scope(|scope| {
            let running = scope.spawn(|| run_until(&place, &plan, Time::from_secs(60), &cancelled, clock));
            std::thread::sleep(Duration::from_millis(200));
            let at = clock.now();
            cancelled.store(true, Ordering::Relaxed);
            (running.join().unwrap(), at)
        });
        came.sent.as_ref().unwrap();
        assert!(came.ended.iter().all(|ended| *ended >= at), "{at}: {:?}", came.ended);
        ensure(came.read() > 0 && came.ended.iter().all(|ended| *ended < at + soon), || {
            format!("{} bytes, {at}: {:?}", came.read(), came.ended)
        })
    });
}

/// Without an answer the connection waits for the whole run, and the programs end in time all the same.
#[test]
fn a_connection_that_does_not_come_about_ends_with_the_flow() {
    let Some(_track) = track() else { return };
    let namespaces = namespaces();
    let wire = Wire::between(&namespaces, None);
    wire.cut();
    let place = Place { namespaces, addresses: wire::ADDRESSES };
    let stop = Time::from_millis(300);
    sometime(|| {
        let came = run(&place, &tcp("cubic", Workload::Bulk), stop);
        came.sent.as_ref().unwrap();
        assert_eq!(came.rows, []);
        assert!(came.ended.iter().all(|ended| *ended >= stop), "{:?}", came.ended);
        let late = stop + TimeDelta::from_millis(100);
        ensure(came.ended.iter().all(|ended| *ended < late), || format!("{:?}", came.ended))
    });
}

#[test]
fn a_refusal_is_an_error() {
    let Some(_track) = track() else { return };
    // Another machine's loopback: nobody listens there.
    let place = Place { namespaces: namespaces(), addresses: [Ipv4Addr::LOCALHOST; 2] };
    let came = run(&place, &tcp("cubic", Workload::Bulk), Time::from_secs(60));
    assert_eq!(came.sent.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    assert_eq!(came.rows, []);
}

/// Full segments, and the signals of a window that losses halve. Each way takes 10 ms.
#[test]
fn a_wire_sees_full_segments_and_signals_tell_of_losses() {
    let Some(_track) = track() else { return };
    for segment in [1448, 1000] {
        sometime(|| {
            let namespaces = namespaces();
            let wire = Wire::between(&namespaces, Some(400));
            let place = Place { namespaces, addresses: wire::ADDRESSES };
            let mut plan = tcp("new-reno", Workload::Bulk);
            plan.config.segment = DataSize::from_bytes(segment);
            let came = run(&place, &plan, Time::from_secs(2));
            came.sent.as_ref().unwrap();
            let sizes = wire.seen().sizes();
            let full = sizes.iter().filter(|payload| **payload == segment).count();
            ensure(sizes.len() > 400, || format!("{} segments", sizes.len()))?;
            assert_eq!(sizes.iter().max(), Some(&segment));
            assert!(full * 100 > sizes.len() * 95, "{full} of {}", sizes.len());
            assert!(came.read() > 0 && came.read() <= sizes.iter().sum(), "{} bytes", came.read());

            let cwnd = came.signal("cwnd");
            assert!(cwnd.iter().all(|bytes| *bytes >= segment as f64 && bytes % segment as f64 == 0.0), "{cwnd:?}");
            assert!(cwnd.windows(2).all(|pair| pair[0] != pair[1]), "told when it changes: {cwnd:?}");
            let srtt = came.signal("srtt");
            assert!(!srtt.is_empty() && srtt.iter().all(|ms| (20.0..2_000.0).contains(ms)), "{srtt:?}");
            let state = came.signal("state");
            assert!(state[0] == 0.0 && state.iter().all(|state| *state <= 3.0), "{state:?}");
            assert!(came.signal("W_max").is_empty());

            let halved = cwnd.windows(2).any(|pair| pair[1] < pair[0]);
            ensure(halved && state.contains(&2.0), || format!("{cwnd:?} {state:?}"))?;
            let threshold = came.signal("ssthresh");
            assert!(!threshold.is_empty() && threshold.iter().all(|bytes| *bytes < 1e6), "{threshold:?}");
            Ok(())
        });
    }
}

#[test]
fn the_receivers_window_holds() {
    let Some(_track) = track() else { return };
    for window in [Some(30_000), None] {
        sometime(|| {
            let namespaces = namespaces();
            let wire = Wire::between(&namespaces, None);
            let place = Place { namespaces, addresses: wire::ADDRESSES };
            let mut plan = tcp("cubic", Workload::Bulk);
            plan.config.receive_window = window.map(DataSize::from_bytes);
            run(&place, &plan, SECOND).sent.unwrap();
            let flight = wire.seen().flight();
            match window {
                Some(window) => {
                    ensure(flight <= window && flight >= window * 2 / 3, || format!("{flight} bytes under way"))
                }
                None => ensure(flight > 60_000, || format!("{flight} bytes under way without a limit")),
            }
        });
    }
}

#[test]
fn a_stranger_gets_no_connection() {
    let Some(_track) = track() else { return };
    let place = loopback();
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
