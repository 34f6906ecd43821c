// SPDX-License-Identifier: MIT OR Apache-2.0
//! The testbed of a run in real time: two network namespaces, a link of real packets between them, and the kernel's TCP
//! flows at both sides. It merges all events in order of time. A world provides the media endpoints: [`MediaEndpoints`].

use crate::testbed::classify::port_of;
use crate::testbed::clock::Monotonic;
use crate::testbed::device::{Device, MTU};
use crate::testbed::error::{Unavailable, broken};
use crate::testbed::event_merge::{EventSender, merge};
use crate::testbed::host_monitor::HostMonitor;
use crate::testbed::lateness::{self, Lateness};
use crate::testbed::link::{Classifier, Link, LinkFlow, LinkStats, Side};
use crate::testbed::namespace::Namespace;
use crate::testbed::tcp::{self, TcpProgram};
pub use crate::testbed::testbed_run::TestbedRun;
use crate::testbed::timing::Timing;
use paceline::Registry;
use paceline_netsim::flow::tcp::Workload;
use paceline_netsim::link_control::LinkControl;
use paceline_netsim::network::Network;
use paceline_netsim::plan::{Direction, FlowKind, FlowPlan, Plan};
use paceline_netsim::records::{EventObserver, HostStats};
use paceline_netsim::sim;
use paceline_netsim::world::{Outcome, WorldError};
use paceline_units::{DataSize, FlowId, RandomStreams, Time, TimeDelta};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, Scope, ScopedJoinHandle};

/// Address of each side. The namespaces are private, so no other host has these addresses.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];

/// Time before time zero in which all threads start.
const STARTUP: TimeDelta = TimeDelta::from_millis(200);

/// Returns the address of a side of the link.
pub fn address_of(side: Side) -> Ipv4Addr {
    ADDRESSES[side as usize]
}

/// Returns the side of a flow's sender.
pub fn sender_side(direction: Direction) -> Side {
    match direction {
        Direction::Forward => Side::Near,
        Direction::Reverse => Side::Far,
    }
}

/// The media endpoints of a run.
pub trait MediaEndpoints: Sync {
    /// Returns the classifier of the packets on the link.
    fn classify<'a>(&'a self, run: &TestbedRun<'a>) -> Box<dyn Classifier + 'a>;

    /// Runs the endpoints of one side until the run is over, on a thread in that side's namespace. Returns how late their
    /// timers were handled.
    fn serve(&self, side: Side, run: &TestbedRun<'_>) -> Result<Lateness, WorldError>;

    /// Runs further tasks during the run, on a separate thread.
    fn conduct(&self, run: &TestbedRun<'_>) -> Result<(), WorldError> {
        let _ = run;
        Ok(())
    }

    /// Returns the reason why the measurement is disturbed at the endpoints, for causes that the testbed cannot detect.
    /// Called after the run.
    fn disturbed(&self) -> Option<String> {
        None
    }
}

/// Two namespaces and the devices that join them.
pub struct TestbedNetwork {
    namespaces: [Namespace; 2],
    devices: [Device; 2],
    link_control: Option<LinkControl>,
}

impl TestbedNetwork {
    /// Creates namespaces and devices.
    pub fn open() -> Result<Self, Unavailable> {
        let namespaces = [Namespace::new()?, Namespace::new()?];
        for namespace in &namespaces {
            namespace.within(tcp::prepare).map_err(Unavailable::Settings)?;
        }
        let device = |side: Side| Device::open(&namespaces[side as usize], "track", address_of(side));
        let devices = [device(Side::Near)?, device(Side::Far)?];
        Ok(Self { namespaces, devices, link_control: None })
    }

    /// Sets the source of link updates.
    pub fn with_link_control(self, link_control: Option<LinkControl>) -> Self {
        Self { link_control, ..self }
    }

    pub fn namespace(&self, side: Side) -> &Namespace {
        &self.namespaces[side as usize]
    }

    /// Runs a plan with these media endpoints. Models of hosts are ignored, because the hosts are real.
    ///
    /// # Errors
    /// The kernel lacks a feature, the link control is stopped already, or a controller or a thread failed; every other thread has
    /// then ended.
    pub fn run(
        self,
        timing: Timing,
        endpoints: &dyn MediaEndpoints,
        plan: &Plan,
        registry: &Registry,
        seed: u64,
        observer: &mut dyn EventObserver,
    ) -> Result<Outcome, WorldError> {
        if self.link_control.as_ref().is_some_and(LinkControl::is_stopped) {
            return Err(WorldError::Broken { cause: "interrupted".to_owned() });
        }
        if let Some(error) = only_simulated(plan) {
            return Err(error);
        }
        if let Some(cause) = self.namespaces[0].within(|| Ok(tcp::missing(plan))).map_err(broken)? {
            let hint = "choose another with --set flow.ID.congestion=…".to_owned();
            return Err(WorldError::Unavailable { cause, hint });
        }
        if let Some(cause) = tcp::ecn_problem(plan) {
            let hint = "choose another with --set flow.ID.ecn=…".to_owned();
            return Err(WorldError::Unavailable { cause, hint });
        }
        for namespace in &self.namespaces {
            namespace.within(|| tcp::set_ecn(plan)).map_err(broken)?;
        }
        let Self { namespaces, devices, link_control } = self;
        let plan = without_host_models(plan);
        let streams = RandomStreams::new(seed);
        let senders: Vec<Side> = plan.flows.iter().map(|f| sender_side(f.direction)).collect();
        let stop = AtomicBool::new(false);
        let (sender, events) = mpsc::channel();
        let monitor = HostMonitor::start();
        let clock = Monotonic::starting_in(STARTUP);
        let run = TestbedRun {
            plan: &plan,
            registry,
            seed,
            streams: &streams,
            senders: &senders,
            signals: observer.wants_signals(),
            clock,
            timing,
            end: Time::ZERO + plan.duration,
            stop: &stop,
            events: sender,
        };
        let end = run.end;
        thread::scope(|scope| {
            // A thread that fails ends the others.
            let mut sides = Vec::new();
            for side in [Side::Near, Side::Far] {
                let (run, namespace) = (run.clone(), &namespaces[side as usize]);
                let serve = move || -> Result<Lateness, WorldError> {
                    namespace.enter().map_err(Unavailable::Namespace)?;
                    thread::scope(|scope| {
                        // After an error, end the programs that already run instead of waiting for their end.
                        let mut guard = StopGuard { stop: run.stop, armed: true };
                        let running = programs(&run, side, scope)?;
                        let late = endpoints.serve(side, &run)?;
                        running.into_iter().try_for_each(|program| join(program).map_err(broken))?;
                        guard.armed = false;
                        Ok(late)
                    })
                };
                sides.push(scope.spawn(stop_on_error(&stop, serve)));
            }
            let conduct = {
                let run = run.clone();
                scope.spawn(stop_on_error(&stop, move || endpoints.conduct(&run)))
            };
            let control = link_control.as_ref();
            let link = scope.spawn(stop_on_error(&stop, move || carry(&run, endpoints, devices, control)));
            merge(&events, observer, || clock.now(), end);
            let late = sides.into_iter().map(join).collect::<Result<Vec<_>, _>>();
            if let Err(error @ WorldError::ControllerFailed { .. }) = late {
                return Err(error);
            }
            // Report an error of `conduct` first: the endpoints only know that the run has ended.
            join(conduct)?;
            let (outcome, stats) = join(link)?;
            let machine = host_stats(&monitor, &stats, &late?, || endpoints.disturbed());
            Ok(Outcome { machine: Some(machine), ..outcome })
        })
    }
}

fn without_host_models(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    for flow in &mut plan.flows {
        flow.host = None;
    }
    plan
}

/// Runs the link, from time zero to the end.
fn carry(
    run: &TestbedRun<'_>,
    endpoints: &dyn MediaEndpoints,
    devices: [Device; 2],
    control: Option<&LinkControl>,
) -> Result<(Outcome, LinkStats), WorldError> {
    let mut sender = EventSender(run.events.clone());
    let network = Network::new(run.plan, run.streams, &mut sender);
    let mut classifier = endpoints.classify(run);
    let flows = run.plan.flows.iter().zip(run.senders);
    let flows = flows.map(|(flow, sender)| LinkFlow { sender: *sender, stop: flow.stop }).collect();
    let mut link = Link::new(network, devices, &mut *classifier, flows, run.clock, run.timing);
    if let Some(control) = control {
        link = link.with_link_control(control, run.plan);
    }
    let (network, stats) = link.run(run.end, run.stop).map_err(broken)?;
    Ok((network.outcome(), stats))
}

/// Starts a thread for each TCP program of a side, in the calling thread's namespace. Listeners exist when this returns.
fn programs<'s, 'a: 's>(
    run: &'a TestbedRun<'_>,
    side: Side,
    scope: &'s Scope<'s, 'a>,
) -> Result<Vec<ScopedJoinHandle<'s, io::Result<()>>>, WorldError> {
    let mut started = Vec::new();
    let (here, there) = (address_of(side), address_of(side.other()));
    for (id, flow) in run.plan.flows.iter().enumerate() {
        let FlowKind::Tcp(plan) = &flow.kind else { continue };
        let (flow_id, port) = (FlowId(id as u16), port_of(id));
        let (cancelled, clock, events, stop) = (run.stop, run.clock, &run.events, flow.stop.min(run.end));
        let program = move || TcpProgram { flow: flow_id, tcp: plan, stop, cancelled, clock, events };
        if run.senders[id] == side {
            let start = sim::start_time(flow, run.streams);
            let random = run.streams.stream(&format!("flow/{}/workload", flow.id));
            let send = move || tcp::send(&program(), here, SocketAddrV4::new(there, port), start, random);
            started.push(scope.spawn(stop_on_error(cancelled, send)));
        } else {
            let listener = tcp::listen(SocketAddrV4::new(here, port), &plan.config).map_err(broken)?;
            let receive = move || tcp::receive(&program(), &listener, there);
            started.push(scope.spawn(stop_on_error(cancelled, receive)));
        }
    }
    Ok(started)
}

/// Returns an error if the plan has what only the simulator can do.
fn only_simulated(plan: &Plan) -> Option<WorldError> {
    let unavailable = |flow: &FlowPlan, what: &str, hint: &str| {
        let cause = format!("flow `{}` {what}, which only the simulator can do", flow.id);
        WorldError::Unavailable { cause, hint: format!("run it with --world sim, or {hint}") }
    };
    if let Some(flow) = plan.coupled_flow() {
        return Some(unavailable(flow, "is coupled with others", "leave `coupling` out"));
    }
    if let Some(flow) = plan.flow_over_tcp() {
        return Some(unavailable(flow, "carries its media over TCP", "leave `transport` out"));
    }
    let mtu = DataSize::from_bytes(MTU.into());
    if let Some(flow) = plan.flows.iter().find(|flow| flow.largest_packet() > mtu) {
        return Some(unavailable(
            flow,
            &format!("has packets above the {MTU} bytes of a device"),
            "choose smaller ones",
        ));
    }
    let bursts =
        |flow: &&FlowPlan| matches!(&flow.kind, FlowKind::Tcp(tcp) if matches!(tcp.workload, Workload::Bursts { .. }));
    let flow = plan.flows.iter().find(bursts)?;
    Some(unavailable(flow, "starts its transfers together with others", "choose the workload `short`"))
}

/// Ends the run when it is dropped while armed, after an error or a panic.
struct StopGuard<'a> {
    stop: &'a AtomicBool,
    armed: bool,
}

impl Drop for StopGuard<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Wraps `act` so that its failure ends the run.
fn stop_on_error<T, E>(stop: &AtomicBool, act: impl FnOnce() -> Result<T, E>) -> impl FnOnce() -> Result<T, E> {
    move || {
        let mut guard = StopGuard { stop, armed: true };
        let result = act();
        guard.armed = result.is_err();
        result
    }
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Limit of the 99th percentile of the link's lateness, µs. The tightest tolerance of a published delay is 15 ms.
const MAX_LINK_LATE: f64 = 2e3;

/// Returns the statistics of the host, and whether it disturbed the run.
fn host_stats(
    monitor: &HostMonitor,
    link: &LinkStats,
    late: &[Lateness],
    endpoints_disturbed: impl FnOnce() -> Option<String>,
) -> HostStats {
    let mut wakes = lateness::empty();
    late.iter().for_each(|late| wakes.add(late).expect("the bounds are the same"));
    let (late_us, wake_us) = (link.late_us(), lateness::percentiles(&wakes));
    let (idle, others) = monitor.shares();
    let disturbed = match () {
        () if link.send_failures > 0 => Some(format!("a device did not accept {} packets", link.send_failures)),
        () if late_us.p99 > MAX_LINK_LATE => {
            Some(format!("the link sent 1 % of packets {:.1} ms late or later", late_us.p99 / 1e3))
        }
        () => lateness::disturbance(&wake_us).or_else(endpoints_disturbed),
    };
    HostStats { idle, others, late_us, wake_us, disturbed, attempts: 1 }
}
