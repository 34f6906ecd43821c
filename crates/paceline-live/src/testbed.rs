//! The test track as a world: a plan's hops become a link of real packets between two network namespaces, its media flows UDP
//! sockets, its TCP flows the kernel's own, and its time the machine's.

use crate::classify::{ByPort, port_of};
use crate::clock::Monotonic;
use crate::device::Device;
use crate::link::{Carried, Handling, Link, Side, percentiles};
use crate::media::{self, Lateness, MediaEnd};
use crate::namespace::Namespace;
use crate::rows::{Tell, merge};
use crate::tcp::{self, Program};
use crate::wait::Timing;
use crate::watch::Watch;
use crate::{Unavailable, broken};
use paceline::Registry;
use paceline_lab::machine::Machine;
use paceline_lab::network::{End, Network};
use paceline_lab::plan::{Direction, FlowKind, Plan};
use paceline_lab::rows::{Row, RowSink};
use paceline_lab::sim;
use paceline_lab::world::{Outcome, World, WorldError};
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

/// The test track.
#[derive(Clone, Copy, Debug)]
pub struct Testbed {
    /// How exactly the link and the ends keep their times.
    pub timing: Timing,
}

impl Default for Testbed {
    /// Sleeping: a run then takes a few per cent of a core, and a tenth of a millisecond is little beside a queue.
    fn default() -> Self {
        Self { timing: Timing::Sleep }
    }
}

impl Testbed {
    /// What this machine lacks to be a test track; `None`: nothing, for it has just been one.
    pub fn missing() -> Option<Unavailable> {
        Track::open().err()
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

/// Where a flow's data comes from.
fn sender_side(direction: Direction) -> Side {
    match direction {
        Direction::Forward => Side::Near,
        Direction::Reverse => Side::Far,
    }
}

impl World for Testbed {
    fn name(&self) -> &'static str {
        "testbed"
    }

    fn real_time(&self) -> bool {
        true
    }

    fn run(&self, plan: &Plan, registry: &Registry, seed: u64, rows: &mut dyn RowSink) -> Result<Outcome, WorldError> {
        let track = Track::open()?;
        if let Some(cause) = track.namespaces[0].within(|| Ok(tcp::missing(plan))).map_err(broken)? {
            let hint = "--set flow.ID.congestion=… names another".to_owned();
            return Err(WorldError::Unavailable { cause, hint });
        }
        track.run(*self, &left_out(plan), registry, seed, rows)
    }
}

/// Two namespaces and the devices that join them.
struct Track {
    namespaces: [Namespace; 2],
    devices: [Device; 2],
}

impl Track {
    fn open() -> Result<Self, Unavailable> {
        let namespaces = [Namespace::new()?, Namespace::new()?];
        for namespace in &namespaces {
            namespace.within(tcp::prepare).map_err(Unavailable::Settings)?;
        }
        let device = |side: Side| Device::open(&namespaces[side as usize], "track", ADDRESSES[side as usize]);
        let devices = [device(Side::Near)?, device(Side::Far)?];
        Ok(Self { namespaces, devices })
    }

    fn run(
        self,
        bed: Testbed,
        plan: &Plan,
        registry: &Registry,
        seed: u64,
        rows: &mut dyn RowSink,
    ) -> Result<Outcome, WorldError> {
        let Self { namespaces, devices } = self;
        let streams = Streams::new(seed);
        let watch = Watch::begin();
        let clock = Monotonic::starting_in(LEAD);
        let end = Time::ZERO + plan.duration;
        let senders: Vec<Side> = plan.flows.iter().map(|f| sender_side(f.direction)).collect();
        let flows = plan.flows.iter().map(|f| Carried { sender: sender_side(f.direction), stop: f.stop }).collect();
        let signals = rows.wants_signals();
        let stop = AtomicBool::new(false);
        let (to, told) = mpsc::channel();
        let (senders, streams, stop, namespaces) = (&senders, &streams, &stop, &namespaces);
        thread::scope(|scope| {
            // Whoever fails or ends makes the others end, too.
            let mut sides = Vec::new();
            for side in [Side::Near, Side::Far] {
                let to = to.clone();
                let serve = move || -> Result<Lateness, WorldError> {
                    let namespace = &namespaces[side as usize];
                    namespace.enter().map_err(Unavailable::Namespace)?;
                    let ends = media_ends(plan, registry, streams, senders, side, signals)?;
                    let programs = Programs { plan, streams, senders, side, clock, stop, to: &to };
                    thread::scope(|scope| {
                        // Programs that run already would otherwise be waited for until their own end.
                        let mut failing = Failing { stop, armed: true };
                        let running = programs.start(scope)?;
                        let late = media::run(ends, clock, bed.timing, end, stop, &to).map_err(broken)?;
                        running.into_iter().try_for_each(|program| join(program).map_err(broken))?;
                        failing.armed = false;
                        Ok(late)
                    })
                };
                sides.push(scope.spawn(ending(stop, serve)));
            }
            let link = {
                let to = to.clone();
                let carry = move || -> Result<(Outcome, Handling), WorldError> {
                    let mut tell = Tell { to };
                    let network = Network::new(plan, streams, &mut tell);
                    let mut classify = ByPort::new(plan, senders);
                    let link = Link::new(network, devices, &mut classify, flows, clock, bed.timing);
                    let (network, handling) = link.run(end, stop).map_err(broken)?;
                    Ok((network.outcome(), handling))
                };
                scope.spawn(ending(stop, carry))
            };
            drop(to);
            merge(&told, rows, || clock.now(), end);
            let late = sides.into_iter().map(join).collect::<Result<Vec<_>, _>>()?;
            let (outcome, handling) = join(link)?;
            let machine = machine(&watch, &handling, &late);
            Ok(Outcome { machine: Some(machine), ..outcome })
        })
    }
}

/// The kernel's TCP flows at one side.
struct Programs<'a> {
    plan: &'a Plan,
    streams: &'a Streams,
    senders: &'a [Side],
    side: Side,
    clock: Monotonic,
    stop: &'a AtomicBool,
    to: &'a Sender<Row>,
}

impl<'a> Programs<'a> {
    /// Starts a thread for each program, in the calling thread's namespace; listeners are there when this returns.
    fn start<'s>(&self, scope: &'s Scope<'s, 'a>) -> Result<Vec<ScopedJoinHandle<'s, io::Result<()>>>, WorldError> {
        let mut started = Vec::new();
        let (here, there) = (ADDRESSES[self.side as usize], ADDRESSES[self.side.other() as usize]);
        for (id, flow) in self.plan.flows.iter().enumerate() {
            let FlowKind::Tcp(plan) = &flow.kind else { continue };
            let (flow_id, port) = (FlowId(id as u16), port_of(id));
            let Self { clock, to, stop: cancelled, streams, .. } = *self;
            let stop = flow.stop.min(Time::ZERO + self.plan.duration);
            let program = move || Program { flow: flow_id, tcp: plan, stop, cancelled, clock, rows: to };
            if self.senders[id] == self.side {
                let start = sim::begin(flow, streams);
                let random = streams.stream(&format!("flow/{}/workload", flow.id));
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
fn machine(watch: &Watch, handling: &Handling, late: &[Lateness]) -> Machine {
    let mut wakes = Lateness::new_from(&handling.late);
    late.iter().for_each(|late| wakes.add(late).expect("the bounds are the same"));
    let (late_us, wake_us) = (percentiles(&handling.late), percentiles(&wakes));
    let (idle, others) = watch.shares();
    let disturbed = match () {
        () if handling.refused > 0 => Some(format!("{} packets were not taken by a device", handling.refused)),
        () if late_us.p99 > LINK_LATE => Some(format!("one packet in a hundred left {:.1} ms late", late_us.p99 / 1e3)),
        () if wake_us.p99 > WAKE_LATE => Some(format!("one timer in a hundred was {:.1} ms late", wake_us.p99 / 1e3)),
        () => None,
    };
    Machine { idle, others, late_us, wake_us, disturbed, attempts: 1 }
}

/// The ends of media flows on one side, whose namespace the calling thread is in.
fn media_ends(
    plan: &Plan,
    registry: &Registry,
    streams: &Streams,
    senders: &[Side],
    side: Side,
    signals: bool,
) -> Result<Vec<MediaEnd>, WorldError> {
    let mut ends = Vec::new();
    for (id, flow) in plan.flows.iter().enumerate() {
        let FlowKind::Media(media) = &flow.kind else { continue };
        let start = sim::begin(flow, streams);
        // Both ends are made, and one of them is used: the draws are then those of the simulator.
        let entry = paceline_lab::media::controller(flow, media, registry)?;
        let made = paceline_lab::media::build(id, flow, media, start, entry, streams, signals)?;
        let end = if senders[id] == side { End::Sender } else { End::Receiver };
        let (here, there) = (ADDRESSES[side as usize], ADDRESSES[side.other() as usize]);
        ends.push(MediaEnd::new(id, made, end, here, there, flow.stop).map_err(broken)?);
    }
    Ok(ends)
}
