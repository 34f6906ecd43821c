//! The sender of a session, over a UDP socket in real time.

use crate::hosts::caller::{Caller, Status};
use crate::hosts::drift::Drift;
use crate::hosts::flow_number::Ssrcs;
use crate::hosts::link::Link;
use crate::hosts::message::{self, Message, Refusal, SessionId, Totals};
use crate::hosts::receive_side::ReceiveSide;
use crate::hosts::seal::{Open, Secret};
use crate::hosts::send_side::{FlowReport, SendSide};
use crate::hosts::session_flow::Flows;
use crate::hosts::statistics::Sample;
use crate::hosts::summary::{Closing, Summary};
use crate::hosts::tcp_sender::{TcpSender, TcpSent};
use crate::hosts::terms::Terms;
use crate::testbed::clock::Monotonic;
use crate::testbed::lateness::Lateness;
use crate::testbed::socket::{ReceiveBuffers, Socket};
use crate::testbed::timing::{Role, Timing, enter_realtime};
use paceline_netsim::ControllerFailure;
use paceline_netsim::plan::Plan;
use paceline_netsim::records::{EventObserver, EventRecord};
use paceline_netsim::world::WorldError;
use paceline_units::{Ecn, FlowId, Rate, Time, TimeDelta};
use serde::Serialize;
use std::io;
use std::net::SocketAddr;
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

/// The reason why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Its duration was over.
    Complete,
    /// This end was interrupted.
    Interrupted,
    /// The peer left.
    PeerLeft,
    /// The peer was silent for ten seconds ([`crate::hosts::silence`]).
    Silence,
}

/// A session that did not start, or that failed.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The receiver did not answer.
    #[error("no answer from {0}")]
    NoAnswer(SocketAddr),
    /// The receiver refused the session.
    #[error("{0} refused the session: {why}", why = .1.describe())]
    Refused(SocketAddr, Refusal),
    /// It was interrupted before it started.
    #[error("interrupted before the session started")]
    Interrupted,
    /// A controller failed.
    #[error(transparent)]
    ControllerFailed(#[from] ControllerFailure),
    /// A socket failed.
    #[error("the socket failed: {0}")]
    Socket(#[from] io::Error),
}

impl SendError {
    /// Returns the error of the run of this plan and seed.
    pub fn in_run(self, plan: &Plan, seed: u64) -> WorldError {
        let cause = self.to_string();
        match self {
            Self::NoAnswer(_) => {
                let hint = "start `paceline recv --bind 0.0.0.0:9777` there (`[::]:9777` for IPv6), and let UDP pass through its \
                            firewall";
                WorldError::Unavailable { cause, hint: hint.to_owned() }
            }
            Self::ControllerFailed(failure) => failure.in_run(plan, seed),
            Self::Refused(..) | Self::Interrupted | Self::Socket(_) => WorldError::Broken { cause },
        }
    }
}

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

/// The result of a session.
pub struct SendReport {
    /// Why it ended.
    pub end: End,
    /// Time from its start to the last media.
    pub lasted: TimeDelta,
    /// Packets and bytes that were sent.
    pub sent: Totals,
    /// What the receiver counted.
    pub received: Totals,
    /// Packets whose fate is known: all if the receiver confirmed its totals, else those up to the latest that arrived.
    pub known_packets: u64,
    /// Whether the receiver answered the bye, so that its totals are complete.
    pub confirmed: bool,
    /// Whether the frames that the receiver rendered are known up to the end.
    pub knows_frames: bool,
    /// Delays above the smallest one.
    pub variation: Sample,
    /// Round-trip times of receiver reports.
    pub rtt: Sample,
    /// The drift between the clocks of the two hosts; `None` if none was seen.
    pub drift: Option<Drift>,
    /// Each flow.
    pub flows: Vec<FlowReport>,
    /// The flows of the other direction; `None` if there are none.
    pub back: Option<BackReport>,
    /// The TCP flow beside the media; `None` if there is none.
    pub tcp: Option<TcpReport>,
    /// Lateness of timers.
    pub lateness: Lateness,
    /// Packets that the system did not accept.
    pub send_failures: u64,
    /// Reported packets that were never sent, or that were reported before.
    pub unknown_arrivals: u64,
    /// Datagrams of other sources, and malformed ones.
    pub strangers: u64,
}

/// The result of the flows from the receiver to the sender.
pub struct BackReport {
    /// What arrived of each flow.
    pub flows: Vec<Totals>,
    /// What the receiver measured of them; `None` if its goodbye did not arrive.
    pub measured: Option<Summary>,
}

/// The result of the TCP flow.
pub struct TcpReport {
    /// What was sent.
    pub sent: TcpSent,
    /// Bytes that the receiver counted, at most those that were sent; `None` if it had no connection, or if its goodbye did not arrive.
    pub received: Option<u64>,
}

/// What a sender needs.
pub struct Sender<'a> {
    /// Its socket.
    pub socket: &'a Socket,
    /// The address of the receiver.
    pub peer: SocketAddr,
    /// The terms.
    pub terms: &'a Terms,
    /// Random identifier of the session.
    pub id: SessionId,
    /// The secret, if the session is sealed.
    pub secret: Option<&'a Secret>,
    /// The accuracy with which packets leave.
    pub timing: Timing,
    /// Set to end the session.
    pub stop: &'a AtomicBool,
}

impl Sender<'_> {
    /// Makes the handshake, then sends media until the session ends. The flows start when the session does.
    ///
    /// # Errors
    /// The session did not start, or a controller or the socket failed.
    pub fn run(
        &self,
        flows: Flows,
        observer: &mut dyn EventObserver,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<SendReport, SendError> {
        let mut buffers = ReceiveBuffers::default();
        let mut early = Vec::new();
        let caller = self.handshake(&mut buffers, &mut early)?;
        let round_trip = caller.rtt();
        let rtt = round_trip.unwrap_or(TimeDelta::ZERO);
        let tcp = caller.tcp().filter(|_| self.terms.tcp);
        let keys = caller.into_keys();
        let tcp = tcp.map(|(port, proofs)| TcpSender::start(SocketAddr::new(self.peer.ip(), port), self.id, proofs));
        let tcp = tcp.transpose()?;
        let (seal, open) = keys.map(|keys| (keys.seal, keys.open)).unzip();
        enter_realtime(Role::Endpoint);
        let clock = Monotonic::starting_in(TimeDelta::ZERO);
        let count = flows.forward.len();
        let ssrcs = || Ssrcs::of_session(self.id, self.terms);
        let back = (!flows.back.is_empty()).then(|| ReceiveSide::new(ssrcs(), flows.back, count, Time::ZERO));
        let mut session = Session {
            sender: self,
            link: Link { socket: self.socket, peer: self.peer, id: self.id, seal },
            open,
            side: SendSide::new(ssrcs(), flows.forward, 0, Time::ZERO, self.terms.duration(), rtt),
            back,
            goodbye: None,
            closing: None,
            peer_left: false,
            strangers: 0,
        };
        if let Some(rtt) = round_trip {
            session.side.log.push(EventRecord::RoundTrip { at: Time::ZERO, flow: FlowId(0), rtt });
        }
        if observer.wants_taps() {
            session.side.enable_taps();
        }
        early.iter().for_each(|(bytes, ecn)| session.handle_datagram(clock.now(), self.peer, bytes, *ecn, true));
        let end = session.send_media(&clock, &mut buffers, observer, progress)?;
        let lasted = (clock.now() - Time::ZERO).min(self.terms.duration());
        // The bye must not wait for a connection attempt.
        tcp.iter().for_each(TcpSender::stop);
        session.leave(&clock, &mut buffers, end)?;
        let tcp = tcp.map(TcpSender::finish);
        session.side.log.finish().iter().for_each(|event| observer.on_event(event));
        if let Some(failure) = session.take_failure() {
            return Err(failure.into());
        }
        let Session { mut side, back, goodbye, closing, strangers, .. } = session;
        let Closing { back: measured, tcp_bytes } = closing.unwrap_or_default();
        Ok(SendReport {
            end,
            lasted,
            sent: *side.log.sent(),
            received: *side.log.received(),
            known_packets: match goodbye {
                Some(_) => side.log.sent().packets,
                None => side.log.packets_up_to_latest(),
            },
            confirmed: goodbye.is_some(),
            knows_frames: goodbye.is_some() && side.log.knows_frames(),
            variation: side.log.variation(),
            rtt: side.rtt.above(TimeDelta::ZERO),
            drift: side.drift(),
            flows: side.finish(Time::ZERO + lasted),
            back: back.map(|back| BackReport { flows: back.flow_totals(), measured }),
            tcp: tcp.map(|sent| TcpReport { received: tcp_bytes.map(|bytes| bytes.min(sent.bytes)), sent }),
            send_failures: side.send_failures,
            unknown_arrivals: side.log.unknown(),
            strangers: strangers + side.malformed,
            lateness: side.lateness,
        })
    }

    /// Returns the caller of a session that the receiver has accepted. A receiver that sends media starts with its answer, so `early`
    /// gets what the socket had behind it.
    fn handshake(
        &self,
        buffers: &mut ReceiveBuffers,
        early: &mut Vec<(Vec<u8>, Ecn)>,
    ) -> Result<Caller<'_>, SendError> {
        let clock = Monotonic::starting_in(TimeDelta::ZERO);
        let mut caller = Caller::new(clock.now(), self.id, self.terms, self.secret);
        loop {
            if let Some(bytes) = caller.poll_transmit(clock.now()) {
                self.socket.send(self.peer, &bytes, Ecn::NotEct);
            }
            match caller.status() {
                Status::Accepted => return Ok(caller),
                Status::Refused(reason) => return Err(SendError::Refused(self.peer, reason)),
                Status::NoAnswer => return Err(SendError::NoAnswer(self.peer)),
                Status::Waiting if self.stop.load(Ordering::Relaxed) => return Err(SendError::Interrupted),
                Status::Waiting => {}
            }
            Timing::Sleep.wait(&[self.socket.fd()], (caller.poll_timeout() - clock.now()).min(POLL_INTERVAL));
            self.socket.receive(&clock, buffers, |_, from, bytes, ecn| {
                if from != self.peer {
                    return;
                }
                if matches!(caller.status(), Status::Accepted) && early.len() < EARLY_MAX {
                    early.push((bytes.to_vec(), ecn));
                } else {
                    caller.handle(clock.now(), bytes);
                }
            })?;
        }
    }
}

/// A session that has started.
struct Session<'a> {
    sender: &'a Sender<'a>,
    link: Link<'a>,
    /// Opens sealed datagrams; `None` if the session is not sealed.
    open: Option<Open>,
    side: SendSide,
    back: Option<ReceiveSide>,
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
        observer: &mut dyn EventObserver,
        progress: &mut dyn FnMut(&Progress),
    ) -> io::Result<End> {
        let stop = Time::ZERO + self.sender.terms.duration();
        let (mut next_progress, mut bytes_before) = (Time::ZERO + PROGRESS, 0);
        let sender = self.sender;
        loop {
            self.receive(clock, buffers, true)?;
            let now = self.side.advance(clock.now());
            let link = &self.link;
            self.side.handle_timeout(now, &mut |bytes, ecn| link.transmit(bytes, ecn));
            if let Some(back) = &mut self.back {
                back.handle_timeout(now, &mut |output| link.transmit_output(output));
            }
            self.side.take_taps().iter().for_each(|tapped| observer.on_tap(&tapped.packet()));
            while let Some(event) = self.side.log.poll_event(now) {
                observer.on_event(&event);
            }
            if now >= next_progress {
                let bytes = self.side.log.received().bytes;
                let span = now - next_progress + PROGRESS;
                let received = (bytes - bytes_before) as f64 * 8.0 / span.as_secs_f64();
                (bytes_before, next_progress) = (bytes, now + PROGRESS);
                progress(&Progress {
                    elapsed: now - Time::ZERO,
                    received: Rate::from_bps_f64(received),
                    target: self.side.target(),
                    variation: self.side.log.recent_variation(),
                    rtt: self.side.latest_rtt(),
                    loss: self.side.loss(),
                    marked: self.side.log.received().marked,
                });
            }
            match () {
                () if sender.stop.load(Ordering::Relaxed) || self.has_failed() => return Ok(End::Interrupted),
                () if self.peer_left => return Ok(End::PeerLeft),
                () if now >= stop => return Ok(End::Complete),
                () if self.side.liveness.is_silent(now) => return Ok(End::Silence),
                () => {}
            }
            let back = self.back.as_ref().map_or(stop, ReceiveSide::poll_timeout);
            let due = self.side.poll_timeout().unwrap_or(stop).min(back).min(stop).min(now + POLL_INTERVAL);
            sender.timing.wait(&[sender.socket.fd()], due - clock.now());
        }
    }

    fn has_failed(&self) -> bool {
        self.side.failure.is_some() || self.back.as_ref().is_some_and(|back| back.failure.is_some())
    }

    fn take_failure(&mut self) -> Option<ControllerFailure> {
        self.side.failure.take().or_else(|| self.back.as_mut()?.failure.take())
    }

    /// Leaves the session, and waits for the totals of the receiver.
    fn leave(&mut self, clock: &Monotonic, buffers: &mut ReceiveBuffers, end: End) -> io::Result<()> {
        let socket = self.sender.socket;
        let began = clock.now();
        let mut next = began;
        if let Some(back) = &mut self.back {
            back.finish(began, &mut |output| self.link.transmit_output(output));
        }
        // A peer that is gone needs a bye only in case that it hears but cannot answer.
        let patience = if matches!(end, End::PeerLeft | End::Silence) { TimeDelta::ZERO } else { BYE_TIME };
        loop {
            let now = clock.now();
            if now >= next {
                self.link.send(Message::Bye);
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
        let socket = self.sender.socket;
        socket.receive(clock, buffers, |at, from, bytes, ecn| self.handle_datagram(at, from, bytes, ecn, media))
    }

    /// Handles a datagram that arrived at `at`.
    fn handle_datagram(&mut self, at: Time, from: SocketAddr, bytes: &[u8], ecn: Ecn, media: bool) {
        let opened = self.open.as_mut().map(|open| open.open(bytes));
        let bytes = match &opened {
            None => bytes,
            Some(Some(opened)) => opened,
            Some(None) => &[],
        };
        if from != self.sender.peer || bytes.is_empty() {
            self.strangers += 1;
        } else if message::is_message(bytes) {
            let now = self.side.advance(at);
            self.handle_message(now, bytes);
        } else if media {
            let now = self.side.advance(at);
            let back = self.back.as_mut().filter(|_| !self.side.is_feedback(bytes));
            let link = &self.link;
            match back {
                Some(back) => {
                    let is_ours = back.handle_packet(now, at, bytes, ecn, &mut |o| link.transmit_output(o));
                    self.strangers += u64::from(!is_ours);
                }
                None => self.side.handle_rtcp(now, bytes, ecn, &mut |bytes, ecn| link.transmit(bytes, ecn)),
            }
        }
    }

    fn handle_message(&mut self, now: Time, bytes: &[u8]) {
        match message::read(bytes) {
            Ok((id, message)) if id == self.sender.id => match message {
                Message::Arrivals(body) => self.side.handle_report(now, body),
                Message::Bye => self.peer_left = true,
                Message::Goodbye(totals, summary) => {
                    self.side.log.handle_totals(&totals);
                    self.goodbye = Some(totals);
                    self.closing = Closing::from_bytes(summary);
                }
                // Repetitions of the handshake.
                _ => {}
            },
            _ => self.strangers += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::listener::Counters;
    use crate::hosts::receiver::{ReceiveError, ReceiveReport};
    use crate::hosts::terms::FlowTerms;
    use crate::hosts::terms::tests::{flow, terms};
    use crate::hosts::testing;
    use std::net::{Ipv4Addr, SocketAddrV4};
    use std::thread;

    fn socket() -> Socket {
        Socket::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap()
    }

    type Received = Result<(Vec<ReceiveReport>, Counters), ReceiveError>;

    /// Makes a session with a flow of each direction under these controllers.
    fn session(duration_ms: u64, controllers: [&str; 2]) -> (Result<SendReport, SendError>, Received) {
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
        let (socket, id, stop) = (socket(), SessionId([8; 8]), AtomicBool::new(false));
        let sender =
            Sender { socket: &socket, peer, terms: &terms, id, secret: None, timing: Timing::Sleep, stop: &stop };
        let sent = sender.run(testing::flows(id, &terms), &mut (), &mut |_| ());
        (sent, receiver.join().unwrap())
    }

    #[test]
    fn both_ends_of_a_session_know_its_packets() {
        let (sent, received) = session(1000, ["googcc"; 2]);
        let (sent, (reports, counters)) = (sent.unwrap_or_else(|error| panic!("{error}")), received.unwrap());
        let ([received], Some(back)) = (&*reports, &sent.back) else { panic!("one session, both ways") };
        assert_eq!((sent.end, received.end), (End::Complete, End::Complete));
        assert!(sent.sent.packets > 0 && sent.confirmed);
        assert_eq!((sent.received.packets, received.totals.packets), (sent.sent.packets, sent.sent.packets));
        assert!(back.flows[0].packets > 0);
        assert_eq!((sent.strangers, sent.unknown_arrivals, counters.strangers), (0, 0, 0));
    }

    /// Checks a failure that is due at 300 ms. Loaded machines are late.
    fn check(failure: &ControllerFailure) {
        assert_eq!((&*failure.controller, failure.failure.to_string()), ("failing", "gave up".to_owned()));
        assert!((Time::from_millis(300)..Time::from_secs(5)).contains(&failure.at), "{:?}", failure.at);
    }

    #[test]
    fn failure_of_a_controller_ends_the_session_at_both_ends() {
        let (sent, received) = session(20_000, ["failing", "googcc"]);
        let Err(SendError::ControllerFailed(failure)) = sent else { panic!("the sender's controller failed") };
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
