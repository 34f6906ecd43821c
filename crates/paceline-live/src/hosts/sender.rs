// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sender of a session, over a UDP socket in real time.

use crate::hosts::caller::{Caller, Status};
use crate::hosts::diagnosis::{Evidence, diagnose};
use crate::hosts::endpoint::{Endpoint, Link, is_silent};
use crate::hosts::host_facts::{HostFacts, HostWatch, Route};
use crate::hosts::message::{self, Message, SessionId, Totals};
use crate::hosts::report::{BackReport, End, Measured, Received, SendReport, TcpReport, rate};
use crate::hosts::seal::Secret;
use crate::hosts::session_flow::Flows;
use crate::hosts::summary::Closing;
use crate::hosts::tcp_sender::TcpSender;
use crate::hosts::terms::Terms;
use crate::testbed::clock::{ClockReadings, Monotonic};
use crate::testbed::lateness;
use crate::testbed::socket::{ReceiveBuffers, Socket};
use crate::testbed::timing::{Role, Timing, enter_realtime};
use paceline_netsim::plan::{FlowPlan, Plan};
use paceline_netsim::records::{EventObserver, EventRecord};
use paceline_netsim::world::WorldError;
use paceline_units::{Ecn, FlowId, Rate, Time, TimeDelta};
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Interval of progress reports.
const PROGRESS: TimeDelta = TimeDelta::from_millis(500);

/// Datagrams behind the answer to a start that are kept; the others count as lost.
const EARLY_MAX: usize = 256;

/// Longest wait, so that an interrupt is noticed.
const POLL_INTERVAL: TimeDelta = TimeDelta::from_millis(50);

/// Interval, and time in total, in which a bye is repeated until the receiver answers.
const BYE_INTERVAL: TimeDelta = TimeDelta::from_millis(250);
const BYE_TIME: TimeDelta = TimeDelta::from_secs(3);

/// The state of a session, twice per second.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time since its start.
    pub elapsed: TimeDelta,
    /// Received rate since the last progress, as reported.
    pub received: Rate,
    /// Sum of the targets of the controllers.
    pub target: Rate,
    /// Mean delay above the smallest one, in the last report.
    pub variation: Option<TimeDelta>,
    /// Latest round-trip time.
    pub rtt: Option<TimeDelta>,
    /// Fraction lost of the last receiver reports.
    pub loss: f64,
    /// Packets that arrived marked as congestion experienced, as reported.
    pub marked: u64,
}

/// The receiver of sessions, and what this host needs to reach it.
pub struct Peer {
    /// The socket of this host.
    pub socket: Socket,
    /// The address of the receiver.
    pub address: SocketAddr,
    /// The secret, if sessions are sealed.
    pub secret: Option<Secret>,
    /// The accuracy with which packets leave.
    pub timing: Timing,
    /// Set to end a session.
    pub stop: Arc<AtomicBool>,
}

/// The sender of a session.
pub(crate) struct Sender<'a> {
    pub(crate) peer: &'a Peer,
    pub(crate) terms: &'a Terms,
    /// The plan of the flows that it sends.
    pub(crate) plan: &'a Plan,
    /// Random identifier of the session.
    pub(crate) id: SessionId,
}

impl Sender<'_> {
    /// Makes the handshake, then sends media until the session ends. The flows start when the session does.
    ///
    /// # Errors
    /// The session did not start, or a controller or the socket failed.
    pub(crate) fn run(
        &self,
        flows: Flows,
        observer: &mut dyn EventObserver,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<SendReport, WorldError> {
        let mut buffers = ReceiveBuffers::default();
        let mut early = Vec::new();
        let caller = self.handshake(&mut buffers, &mut early)?;
        let rtt = caller.rtt();
        let tcp = caller.tcp().filter(|_| self.terms.tcp);
        let Peer { socket, address, .. } = self.peer;
        let link = Link { socket, peer: *address, id: self.id, keys: caller.into_keys(), refused: Cell::default() };
        let tcp = tcp.map(|(port, proofs)| TcpSender::start(SocketAddr::new(address.ip(), port), self.id, proofs));
        let tcp = tcp.transpose().map_err(socket_failed)?;
        enter_realtime(Role::Endpoint);
        let clock = Monotonic::starting_in(TimeDelta::ZERO);
        let endpoint = Endpoint::new(link, self.terms, flows, true, rtt.unwrap_or(TimeDelta::ZERO));
        let mut session =
            Session { sender: self, endpoint, goodbye: None, closing: None, peer_left: false, strangers: 0 };
        let mut host = HostWatch::new(clock.now(), ClockReadings::now(), Route::to(*address));
        if let Some(rtt) = rtt {
            session.endpoint.send.log.push(EventRecord::RoundTrip { at: Time::ZERO, flow: FlowId(0), rtt });
        }
        if observer.wants_taps() {
            session.endpoint.send.enable_taps();
        }
        early.iter().for_each(|(bytes, ecn)| session.handle_datagram(clock.now(), *address, bytes, *ecn, true));
        let end = session.send_media(&clock, &mut buffers, &mut host, observer, progress).map_err(socket_failed)?;
        let lasted = (clock.now() - Time::ZERO).min(self.terms.duration());
        host.check(ClockReadings::now(), Route::to(*address));
        let host = host.facts(session.endpoint.link.refused.get());
        // The bye must not wait for a connection attempt.
        tcp.iter().for_each(TcpSender::stop);
        session.leave(&clock, &mut buffers, end).map_err(socket_failed)?;
        let tcp = tcp.map(TcpSender::finish).map(|sent| {
            let received = session.closing.as_ref().and_then(|closing| closing.tcp_bytes);
            let received_bytes = received.map(|bytes| bytes.min(sent.bytes));
            TcpReport { received_bps: received_bytes.map(|bytes| rate(bytes, lasted)), received_bytes, sent }
        });
        session.endpoint.send.log.finish().iter().for_each(|event| observer.on_event(event));
        match session.endpoint.take_failure() {
            Some(failure) => Err(failure.in_run(self.plan, self.terms.seed)),
            None => Ok(session.report(end, lasted, tcp, host)),
        }
    }

    /// Returns the caller of a session that the receiver has accepted. A receiver that sends media starts with its answer, so `early`
    /// gets what the socket had behind it.
    fn handshake(
        &self,
        buffers: &mut ReceiveBuffers,
        early: &mut Vec<(Vec<u8>, Ecn)>,
    ) -> Result<Caller<'_>, WorldError> {
        let Peer { socket, address, secret, stop, .. } = self.peer;
        let clock = Monotonic::starting_in(TimeDelta::ZERO);
        let mut caller = Caller::new(clock.now(), self.id, self.terms, secret.as_ref());
        loop {
            if let Some(bytes) = caller.poll_transmit(clock.now()) {
                socket.send(*address, &bytes, Ecn::NotEct);
            }
            match caller.status() {
                Status::Accepted => return Ok(caller),
                Status::Refused(reason) => {
                    return Err(broken(format!("{address} refused the session: {}", reason.describe())));
                }
                Status::NoAnswer => {
                    let hint = "start `paceline recv --bind 0.0.0.0:9777` there (`[::]:9777` for IPv6), and let UDP pass through its \
                                firewall";
                    let cause = format!("no answer from {address}");
                    return Err(WorldError::Unavailable { cause, hint: hint.to_owned() });
                }
                Status::Waiting if stop.load(Ordering::Relaxed) => {
                    return Err(broken("interrupted before the session started"));
                }
                Status::Waiting => {}
            }
            Timing::Sleep.wait(&[socket.fd()], (caller.poll_timeout() - clock.now()).min(POLL_INTERVAL));
            let received = socket.receive(&clock, buffers, |_, from, bytes, ecn| {
                if from != *address {
                    return;
                }
                if matches!(caller.status(), Status::Accepted) && early.len() < EARLY_MAX {
                    early.push((bytes.to_vec(), ecn));
                } else {
                    caller.handle(clock.now(), bytes);
                }
            });
            received.map_err(broken)?;
        }
    }
}

/// Returns the error of a session that did not start, or whose socket failed.
fn broken(cause: impl ToString) -> WorldError {
    WorldError::Broken { cause: cause.to_string() }
}

fn socket_failed(error: io::Error) -> WorldError {
    broken(format!("the socket failed: {error}"))
}

/// A session that has started.
struct Session<'a> {
    sender: &'a Sender<'a>,
    endpoint: Endpoint<'a>,
    goodbye: Option<Totals>,
    closing: Option<Closing>,
    peer_left: bool,
    strangers: u64,
}

impl Session<'_> {
    fn send_media(
        &mut self,
        clock: &Monotonic,
        buffers: &mut ReceiveBuffers,
        host: &mut HostWatch,
        observer: &mut dyn EventObserver,
        progress: &mut dyn FnMut(&Progress),
    ) -> io::Result<End> {
        let stop = Time::ZERO + self.sender.terms.duration();
        let (mut next_progress, mut bytes_before) = (Time::ZERO + PROGRESS, 0);
        let peer = self.sender.peer;
        let mut due = clock.now();
        loop {
            self.receive(clock, buffers, true)?;
            let now = self.endpoint.send.advance(clock.now());
            if host.handle_wake(now, due) {
                host.check(ClockReadings::now(), Route::to(peer.address));
            }
            self.endpoint.handle_timeout(now);
            let side = &mut self.endpoint.send;
            side.take_taps().iter().for_each(|tapped| observer.on_tap(&tapped.packet()));
            while let Some(event) = side.log.poll_event(now) {
                observer.on_event(&event);
            }
            if now >= next_progress {
                let bytes = side.log.received.bytes;
                let received = rate(bytes - bytes_before, now - next_progress + PROGRESS);
                (bytes_before, next_progress) = (bytes, now + PROGRESS);
                progress(&Progress {
                    elapsed: now - Time::ZERO,
                    received: Rate::from_bps_f64(received),
                    target: side.target(),
                    variation: side.log.recent,
                    rtt: side.latest_rtt(),
                    loss: side.loss(),
                    marked: side.log.received.marked,
                });
            }
            let is_silent = is_silent(side.heard, now);
            match () {
                () if peer.stop.load(Ordering::Relaxed) || self.endpoint.has_failed() => return Ok(End::Interrupted),
                () if self.peer_left => return Ok(End::PeerLeft),
                () if now >= stop => return Ok(End::Complete),
                () if is_silent => return Ok(End::Silence),
                () => {}
            }
            due = self.endpoint.poll_timeout().map_or(stop, |due| due.min(stop)).min(now + POLL_INTERVAL);
            peer.timing.wait(&[peer.socket.fd()], due - clock.now());
        }
    }

    /// Leaves the session, and waits for the totals of the receiver.
    fn leave(&mut self, clock: &Monotonic, buffers: &mut ReceiveBuffers, end: End) -> io::Result<()> {
        let socket = &self.sender.peer.socket;
        let began = clock.now();
        let mut next = began;
        self.endpoint.finish(began);
        // A peer that is gone needs a bye only in case that it hears but cannot answer.
        let patience = if matches!(end, End::PeerLeft | End::Silence) { TimeDelta::ZERO } else { BYE_TIME };
        loop {
            let now = clock.now();
            if now >= next {
                self.endpoint.link.send(Message::Bye);
                next = now + BYE_INTERVAL;
            }
            if self.goodbye.is_some() || now - began >= patience {
                return Ok(());
            }
            Timing::Sleep.wait(&[socket.fd()], next - now);
            self.receive(clock, buffers, false)?;
        }
    }

    /// Handles received datagrams; RTP and RTCP only while media are sent.
    fn receive(&mut self, clock: &Monotonic, buffers: &mut ReceiveBuffers, media: bool) -> io::Result<()> {
        let socket = &self.sender.peer.socket;
        socket.receive(clock, buffers, |at, from, bytes, ecn| self.handle_datagram(at, from, bytes, ecn, media))
    }

    /// Handles a datagram that arrived at `at`.
    fn handle_datagram(&mut self, at: Time, from: SocketAddr, bytes: &[u8], ecn: Ecn, media: bool) {
        let opened = if from == self.sender.peer.address { self.endpoint.link.open(bytes) } else { None };
        let Some(bytes) = opened.filter(|bytes| !bytes.is_empty()) else {
            self.strangers += 1;
            return;
        };
        let now = self.endpoint.send.advance(at);
        let is_late = !media && !message::is_message(&bytes);
        if is_late || self.endpoint.handle(now, at, &bytes, ecn) {
            return;
        }
        match message::read(&bytes) {
            Ok((id, message)) if id == self.sender.id => match message {
                Message::Bye => self.peer_left = true,
                Message::Goodbye(totals, summary) => {
                    self.endpoint.send.log.handle_totals(&totals);
                    self.goodbye = Some(totals);
                    self.closing = Closing::from_bytes(summary);
                }
                // Repetitions of the handshake.
                _ => {}
            },
            _ => self.strangers += 1,
        }
    }

    fn report(mut self, end: End, lasted: TimeDelta, tcp: Option<TcpReport>, host: HostFacts) -> SendReport {
        let (side, receive) = (&mut self.endpoint.send, &self.endpoint.receive);
        let confirmed = self.goodbye.is_some();
        let mut summary = side.summary(Time::ZERO + lasted);
        if confirmed {
            summary.known_packets = summary.sent_packets;
        }
        let measured = Measured::new(&summary, lasted);
        let target_share = side.late_target(Time::ZERO + lasted).as_bps_f64() / highest(self.sender.plan).as_bps_f64();
        let evidence = Evidence {
            received_packets: measured.received_packets,
            silent: end == End::Silence,
            loss_ratio: measured.loss_ratio,
            // A controller may hold its target while all streams pause.
            target_share: if target_share < 1.0 { target_share } else { 1.0 },
            variation_p95_ms: measured.delay_variation_ms.p95.unwrap_or(0.0),
            drift: side.drift(),
            late_p99_ms: lateness::percentiles(&side.lateness).p99 / 1e3,
            lasted_s: lasted.as_secs_f64(),
            sent_packets: measured.sent_packets,
            host,
            lost_large: side.log.lost_large(),
            frozen_ratio: None,
            tcp_bps: tcp.as_ref().and_then(|tcp| tcp.received_bps),
        };
        let (verdict, why) = diagnose(&evidence);
        let totals = side.log.received;
        let back = |closing: Option<Closing>| BackReport {
            received: Received::new(&receive.totals(), lasted),
            flows: receive.flow_totals().iter().map(|totals| Received::new(totals, lasted)).collect(),
            measured: closing.and_then(|closing| closing.back).map(|summary| Measured::new(&summary, lasted)),
        };
        SendReport {
            end,
            lasted_s: lasted.as_secs_f64(),
            target_use: if measured.target_bps > 0.0 { measured.received_bps / measured.target_bps } else { 0.0 },
            measured,
            frames: confirmed.then_some(totals.frames),
            frames_dropped: confirmed.then_some(totals.frames_dropped),
            confirmed,
            unknown_arrivals: side.log.unknown,
            stranger_datagrams: self.strangers + side.malformed,
            flows: side.finish(Time::ZERO + lasted),
            back: (!receive.is_empty()).then(|| back(self.closing)),
            tcp,
            verdict,
            why,
            evidence,
            knows_frames: confirmed && side.log.knows_frames(),
            lateness: side.lateness.clone(),
        }
    }
}

/// Returns the mean of the highest rate of all active flows on the network over the second half, headers included.
fn highest(plan: &Plan) -> Rate {
    let half = plan.duration.scale(0.5);
    let highest = |flow: &FlowPlan| {
        let (from, to) = (flow.start.max(Time::ZERO + half), flow.stop.min(Time::ZERO + plan.duration));
        let share = (to - from).max(TimeDelta::ZERO).as_secs_f64() / half.as_secs_f64();
        Some(flow.media()?.mean_max_rate(from, to.max(from)).scale(share))
    };
    plan.flows.iter().filter_map(highest).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::listener::Counters;
    use crate::hosts::receiver::ReceiveError;
    use crate::hosts::report::ReceiveReport;
    use crate::hosts::terms::FlowTerms;
    use crate::hosts::terms::tests::{flow, terms};
    use crate::hosts::testing;
    use paceline_netsim::ControllerFailure;
    use std::net::{Ipv4Addr, SocketAddrV4};
    use std::thread;

    fn socket() -> Socket {
        Socket::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap()
    }

    type Received = Result<(Vec<ReceiveReport>, Counters), ReceiveError>;

    /// Makes a session with a flow of each direction under these controllers.
    fn session(duration_ms: u64, controllers: [&str; 2]) -> (Result<SendReport, WorldError>, Received) {
        let there = socket();
        let peer = there.address().unwrap();
        let receiver = thread::spawn(move || {
            let (registry, stop) = (testing::registry(), AtomicBool::new(false));
            let mut reports = Vec::new();
            let receiver = testing::receiver(&there, &registry, &stop);
            let counters = receiver.run(&mut |report| (reports.push(report.clone()), false).1, &mut |_| ());
            counters.map(|counters| (reports, counters))
        });
        let [forward, back] = controllers.map(|name| FlowTerms { controller: name.to_owned(), ..flow() });
        let terms = Terms { flows: vec![forward, FlowTerms { back: true, ..back }], duration_ms, ..terms() };
        let (id, stop) = (SessionId([8; 8]), Arc::default());
        let peer = Peer { socket: socket(), address: peer, secret: None, timing: Timing::Sleep, stop };
        let (plan, flows) = testing::sender(id, &terms);
        let sender = Sender { peer: &peer, terms: &terms, plan: &plan, id };
        let sent = sender.run(flows, &mut (), &mut |_| ());
        (sent, receiver.join().unwrap())
    }

    /// Checks a failure that is due at 300 ms. Loaded machines are late.
    fn check(failure: &ControllerFailure) {
        assert_eq!((&*failure.controller, failure.failure.to_string()), ("failing", "gave up".to_owned()));
        assert!((Time::from_millis(300)..Time::from_secs(5)).contains(&failure.at), "{:?}", failure.at);
    }

    #[test]
    fn failure_of_a_controller_ends_the_session_at_both_ends() {
        let (sent, received) = session(20_000, ["failing", "googcc"]);
        let Err(WorldError::ControllerFailed { failure, .. }) = sent else { panic!("the sender's controller failed") };
        check(&failure);
        let ends: Vec<End> = received.unwrap().0.iter().map(|report| report.end).collect();
        assert_eq!(ends, [End::PeerLeft]);
        let (sent, received) = session(20_000, ["googcc", "failing"]);
        let Err(ReceiveError::ControllerFailed(failure)) = received else {
            panic!("the controller of the receiver's flow failed")
        };
        check(&failure);
        assert_eq!(sent.map_or_else(|error| panic!("{error}"), |report| report.end), End::PeerLeft);
    }
}
