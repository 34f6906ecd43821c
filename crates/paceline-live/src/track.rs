//! The track of a run in real time: two network namespaces, a link of real packets between them, the kernel's TCP flows at
//! either side, and the rows of all in one order of time. What the ends of media flows are is the world's: [`MediaEnds`].

use crate::classify::port_of;
use crate::clock::Monotonic;
use crate::device::Device;
use crate::link::{Carried, Classify, Handling, Link, Side, percentiles};
use crate::media::Lateness;
use crate::namespace::Namespace;
use crate::rows::{Tell, merge};
use crate::tcp::{self, Program};
use crate::wait::Timing;
use crate::watch::Watch;
use crate::{Unavailable, broken};
use paceline::Registry;
use paceline_lab::machine::Machine;
use paceline_lab::moves::Moves;
use paceline_lab::network::Network;
use paceline_lab::plan::{Direction, FlowKind, Plan};
use paceline_lab::rows::{Row, RowSink};
use paceline_lab::sim;
use paceline_lab::world::{Outcome, WorldError};
use paceline_units::{FlowId, Streams, Time, TimeDelta};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, Scope, ScopedJoinHandle};

/// Address of each side. Nobody else can be there: namespaces are the run's own.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];

/// For everybody to be in place before time zero.
const LEAD: TimeDelta = TimeDelta::from_millis(200);

/// The address of a side of the link.
pub fn address_of(side: Side) -> Ipv4Addr {
    ADDRESSES[side as usize]
}

/// Where a flow's data comes from.
pub fn sender_side(direction: Direction) -> Side {
    match direction {
        Direction::Forward => Side::Near,
        Direction::Reverse => Side::Far,
    }
}

/// A run, as each of those sees it who make it.
#[derive(Clone)]
pub struct Run<'a> {
    /// What is run.
    pub plan: &'a Plan,
    /// The controllers that there are.
    pub registry: &'a Registry,
    /// What is random in it.
    pub streams: &'a Streams,
    /// On which side each flow's data begins.
    pub senders: &'a [Side],
    /// Whether somebody wants to know what controllers have inside.
    pub signals: bool,
    /// Its time, which is below zero until all are in place.
    pub clock: Monotonic,
    /// How exactly times are kept.
    pub timing: Timing,
    /// When it is over.
    pub end: Time,
    /// Set when it is over before that: somebody failed.
    pub stop: &'a AtomicBool,
    /// Who is told rows, each within a second of its time.
    pub told: Sender<Row>,
}

impl Run<'_> {
    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.clock.now() >= self.end
    }
}

/// The ends of a run's media flows.
pub trait MediaEnds: Sync {
    /// Who tells the packets of all flows apart on the link.
    fn classify<'a>(&'a self, run: &Run<'a>) -> Box<dyn Classify + 'a>;

    /// Serves the ends on one side until the run is over, on a thread in that side's namespace, and answers how late their
    /// timers were served.
    ///
    /// # Errors
    /// An end cannot be made, or broke.
    fn serve(&self, side: Side, run: &Run<'_>) -> Result<Lateness, WorldError>;

    /// Does whatever else there is to do while the run lasts, on a thread of its own.
    ///
    /// # Errors
    /// It broke.
    fn conduct(&self, run: &Run<'_>) -> Result<(), WorldError> {
        let _ = run;
        Ok(())
    }

    /// Why the run shows the machine and not the path, beside what the track sees of that; asked when it is over.
    fn disturbed(&self) -> Option<String> {
        None
    }
}

/// Two namespaces and the devices that join them.
pub struct Track {
    namespaces: [Namespace; 2],
    devices: [Device; 2],
    moves: Option<Moves>,
}

impl Track {
    /// Makes both.
    ///
    /// # Errors
    /// The machine does not allow it.
    pub fn open() -> Result<Self, Unavailable> {
        let namespaces = [Namespace::new()?, Namespace::new()?];
        for namespace in &namespaces {
            namespace.within(tcp::prepare).map_err(Unavailable::Settings)?;
        }
        let device = |side: Side| Device::open(&namespaces[side as usize], "track", address_of(side));
        let devices = [device(Side::Near)?, device(Side::Far)?];
        Ok(Self { namespaces, devices, moves: None })
    }

    /// The same track, whose link is moved where that is asked for.
    pub fn moved_by(self, moves: Option<Moves>) -> Self {
        Self { moves, ..self }
    }

    /// The network of a side.
    pub fn namespace(&self, side: Side) -> &Namespace {
        &self.namespaces[side as usize]
    }

    /// Runs a plan between these ends; what only the simulator can do of it is left out.
    ///
    /// # Errors
    /// The kernel lacks something, or somebody failed, upon which all others have ended.
    pub fn run(
        self,
        timing: Timing,
        ends: &dyn MediaEnds,
        plan: &Plan,
        registry: &Registry,
        seed: u64,
        rows: &mut dyn RowSink,
    ) -> Result<Outcome, WorldError> {
        if let Some(cause) = self.namespaces[0].within(|| Ok(tcp::missing(plan))).map_err(broken)? {
            let hint = "--set flow.ID.congestion=… names another".to_owned();
            return Err(WorldError::Unavailable { cause, hint });
        }
        let Self { namespaces, devices, moves } = self;
        let plan = left_out(plan);
        let streams = Streams::new(seed);
        let senders: Vec<Side> = plan.flows.iter().map(|f| sender_side(f.direction)).collect();
        let stop = AtomicBool::new(false);
        let (told, all_told) = mpsc::channel();
        let watch = Watch::begin();
        let clock = Monotonic::starting_in(LEAD);
        let run = Run {
            plan: &plan,
            registry,
            streams: &streams,
            senders: &senders,
            signals: rows.wants_signals(),
            clock,
            timing,
            end: Time::ZERO + plan.duration,
            stop: &stop,
            told,
        };
        let end = run.end;
        thread::scope(|scope| {
            // Whoever fails or ends makes the others end, too.
            let mut sides = Vec::new();
            for side in [Side::Near, Side::Far] {
                let (run, namespace) = (run.clone(), &namespaces[side as usize]);
                let serve = move || -> Result<Lateness, WorldError> {
                    namespace.enter().map_err(Unavailable::Namespace)?;
                    thread::scope(|scope| {
                        // Programs that run already would otherwise be waited for until their own end.
                        let mut failing = Failing { stop: run.stop, armed: true };
                        let running = programs(&run, side, scope)?;
                        let late = ends.serve(side, &run)?;
                        running.into_iter().try_for_each(|program| join(program).map_err(broken))?;
                        failing.armed = false;
                        Ok(late)
                    })
                };
                sides.push(scope.spawn(ending(&stop, serve)));
            }
            let conduct = {
                let run = run.clone();
                scope.spawn(ending(&stop, move || ends.conduct(&run)))
            };
            let moves = moves.as_ref();
            let link = scope.spawn(ending(&stop, move || carry(&run, ends, devices, moves)));
            merge(&all_told, rows, || clock.now(), end);
            let late = sides.into_iter().map(join).collect::<Result<Vec<_>, _>>();
            // What the conductor says is the cause, where it is a cause: the ends know only that they are to end.
            join(conduct)?;
            let (outcome, handling) = join(link)?;
            let machine = machine(&watch, &handling, &late?, || ends.disturbed());
            Ok(Outcome { machine: Some(machine), ..outcome })
        })
    }
}

/// What a plan has that only the simulator can do.
fn left_out(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    for flow in &mut plan.flows {
        flow.host = None;
    }
    plan
}

/// The link, from time zero to the end.
fn carry(
    run: &Run<'_>,
    ends: &dyn MediaEnds,
    devices: [Device; 2],
    moves: Option<&Moves>,
) -> Result<(Outcome, Handling), WorldError> {
    let mut tell = Tell { to: run.told.clone() };
    let network = Network::new(run.plan, run.streams, &mut tell);
    let mut classify = ends.classify(run);
    let carried = run.plan.flows.iter().zip(run.senders);
    let carried = carried.map(|(flow, sender)| Carried { sender: *sender, stop: flow.stop }).collect();
    let link = Link::new(network, devices, &mut *classify, carried, run.clock, run.timing);
    let link = match moves {
        Some(moves) => link.moved_by(moves, run.plan),
        None => link,
    };
    let (network, handling) = link.run(run.end, run.stop).map_err(broken)?;
    Ok((network.outcome(), handling))
}

/// Starts a thread for each TCP program of a side, in the calling thread's namespace; listeners are there when this returns.
fn programs<'s, 'a: 's>(
    run: &'a Run<'_>,
    side: Side,
    scope: &'s Scope<'s, 'a>,
) -> Result<Vec<ScopedJoinHandle<'s, io::Result<()>>>, WorldError> {
    let mut started = Vec::new();
    let (here, there) = (address_of(side), address_of(side.other()));
    for (id, flow) in run.plan.flows.iter().enumerate() {
        let FlowKind::Tcp(plan) = &flow.kind else { continue };
        let (flow_id, port) = (FlowId(id as u16), port_of(id));
        let (cancelled, clock, rows, stop) = (run.stop, run.clock, &run.told, flow.stop.min(run.end));
        let program = move || Program { flow: flow_id, tcp: plan, stop, cancelled, clock, rows };
        if run.senders[id] == side {
            let start = sim::begin(flow, run.streams);
            let random = run.streams.stream(&format!("flow/{}/workload", flow.id));
            let send = move || tcp::send(&program(), here, SocketAddrV4::new(there, port), start, random);
            started.push(scope.spawn(ending(cancelled, send)));
        } else {
            let listener = tcp::listen(SocketAddrV4::new(here, port), &plan.config).map_err(broken)?;
            let receive = move || tcp::receive(&program(), &listener, there);
            started.push(scope.spawn(ending(cancelled, receive)));
        }
    }
    Ok(started)
}

/// Makes everybody stop when it goes while it is armed, by an error or a panic.
struct Failing<'a> {
    stop: &'a AtomicBool,
    armed: bool,
}

impl Drop for Failing<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Lets everybody know when `act` has failed.
fn ending<T, E>(stop: &AtomicBool, act: impl FnOnce() -> Result<T, E>) -> impl FnOnce() -> Result<T, E> {
    move || {
        let mut failing = Failing { stop, armed: true };
        let done = act();
        failing.armed = done.is_err();
        done
    }
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A link that hands one packet in a hundred over later than this shows the machine: the tightest tolerance of a
/// published delay is 15 ms.
const LINK_LATE: f64 = 2e3;

/// The same of timers of the ends, which pace packets and answer: a frame's packets are some milliseconds apart.
const WAKE_LATE: f64 = 5e3;

/// What the machine did to a run, and whether it was too much.
fn machine(
    watch: &Watch,
    handling: &Handling,
    late: &[Lateness],
    ends_disturbed: impl FnOnce() -> Option<String>,
) -> Machine {
    let mut wakes = Lateness::new_from(&handling.late);
    late.iter().for_each(|late| wakes.add(late).expect("the bounds are the same"));
    let (late_us, wake_us) = (percentiles(&handling.late), percentiles(&wakes));
    let (idle, others) = watch.shares();
    let disturbed = match () {
        () if handling.refused > 0 => Some(format!("{} packets were not taken by a device", handling.refused)),
        () if late_us.p99 > LINK_LATE => Some(format!("one packet in a hundred left {:.1} ms late", late_us.p99 / 1e3)),
        () if wake_us.p99 > WAKE_LATE => Some(format!("one timer in a hundred was {:.1} ms late", wake_us.p99 / 1e3)),
        () => ends_disturbed(),
    };
    Machine { idle, others, late_us, wake_us, disturbed, attempts: 1 }
}
