// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiver, over a UDP socket in real time: one session after the other.

use crate::hosts::endpoint::{Endpoint, Link, SILENCE, is_silent};
use crate::hosts::listener::{Action, Counters, Listener};
use crate::hosts::message::{self, Message, Refusal, SessionId, Totals};
use crate::hosts::report::{End, ReceiveReport, rate};
use crate::hosts::seal::{self, Secret};
use crate::hosts::session_flow::Flows;
use crate::hosts::summary::Closing;
use crate::hosts::tcp_receiver::{TcpReceiver, TcpSession};
use crate::hosts::terms::Terms;
use crate::hosts::token::Token;
use crate::testbed::clock::Monotonic;
use crate::testbed::socket::{ReceiveBuffers, Socket};
use crate::testbed::timing::{Role, Timing, enter_realtime};
use paceline::Registry;
use paceline_netsim::ControllerFailure;
use paceline_netsim::plan::FlowPlan;
use paceline_netsim::records::EventRecord;
use paceline_units::{Ecn, Rate, Time, TimeDelta};
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest wait, so that an interrupt is noticed.
const POLL_INTERVAL: TimeDelta = TimeDelta::from_millis(50);

/// Time beyond the agreed duration after which a session ends, whatever its sender does.
const OVERTIME: TimeDelta = SILENCE;

/// Time before the end of the media within which a bye counts as one at the end: clocks that differ by 100 ppm are 0.36 s apart after an
/// hour.
const END_TOLERANCE: TimeDelta = TimeDelta::from_millis(500);

/// Time for which a goodbye is repeated: a sender repeats its bye for 3 s.
const GOODBYE_TIME: TimeDelta = TimeDelta::from_secs(5);

/// Interval of progress reports.
const PROGRESS: TimeDelta = TimeDelta::from_millis(500);

/// The state of a receiver, twice per second.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverState {
    /// Counted datagrams.
    pub counters: Counters,
    /// Sessions that were accepted.
    pub sessions: u64,
    /// Sessions that run now.
    pub running: u64,
    /// What arrived in all sessions.
    pub totals: Totals,
}

/// A receiver that failed.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    #[error(transparent)]
    ControllerFailed(#[from] ControllerFailure),
    /// A socket failed.
    #[error("the socket failed: {0}")]
    Socket(#[from] io::Error),
}

/// What a receiver needs.
pub struct Receiver<'a> {
    pub socket: &'a Socket,
    /// The random key of its tokens.
    pub key: [u8; 32],
    /// The secret, if sessions are sealed.
    pub secret: Option<Secret>,
    /// The controllers that sessions may use.
    pub registry: &'a Registry,
    /// Highest rate of all flows together that a sender may let this end send.
    pub max_back_rate: Rate,
    /// Whether the controllers of these flows emit signals.
    pub signals: bool,
    /// Receives the terms of each session that starts, and the plans of the flows that this end sends in it.
    pub on_start: &'a dyn Fn(&Terms, Vec<FlowPlan>),
    /// Receives the events of the flows that this end sends, on the clock of the session.
    pub on_event: &'a dyn Fn(&EventRecord),
    /// Set to end the session and the receiver.
    pub stop: &'a AtomicBool,
}

impl Receiver<'_> {
    /// Serves sessions until it is stopped, or until `on_end`, which receives the result of each session, returns `false`. `progress`
    /// is called twice per second.
    pub fn run(
        &self,
        on_end: &mut dyn FnMut(&ReceiveReport) -> bool,
        progress: &mut dyn FnMut(&ReceiverState),
    ) -> Result<Counters, ReceiveError> {
        let tcp = TcpReceiver::start()?;
        enter_realtime(Role::Endpoint);
        let clock = Monotonic::starting_in(TimeDelta::ZERO);
        let listener = Listener::new(self.key, self.secret.clone());
        let mut server = Server { receiver: self, listener, tcp, session: None, over: None, failure: None };
        let (mut before, mut sessions) = (Totals::default(), 0);
        let mut next_progress = Time::ZERO;
        let mut buffers = ReceiveBuffers::default();
        let mut last = Time::ZERO;
        let mut left = Vec::new();
        loop {
            self.socket.receive(&clock, &mut buffers, |at, from, bytes, ecn| {
                // Calls of a flow never go back in time, although timestamps may.
                last = last.max(at);
                // After the end of a session `on_end` decides whether there is another one; its sender repeats the start.
                if left.is_empty() {
                    left.extend(server.handle(last, at, from, bytes, ecn));
                }
            })?;
            last = last.max(clock.now());
            let is_over = self.stop.load(Ordering::Relaxed);
            left.extend(server.handle_timeout(last, is_over));
            let failure = server.take_failure();
            if failure.is_some() {
                left.extend(server.leave(last, End::Interrupted));
            }
            if last >= next_progress {
                next_progress = last + PROGRESS;
                let now =
                    server.session.as_ref().map_or(Totals::default(), |session| session.endpoint.receive.totals());
                let (counters, running) = (server.listener.counters, u64::from(server.session.is_some()));
                progress(&ReceiverState { counters, sessions: sessions + running, running, totals: before.plus(&now) });
            }
            for report in left.drain(..) {
                (before, sessions) = (before.plus(&report.totals), sessions + 1);
                if !on_end(&report) && failure.is_none() {
                    server.linger(&clock, &mut buffers)?;
                    return Ok(server.listener.counters);
                }
            }
            if let Some(failure) = failure {
                return Err(failure.into());
            }
            if is_over {
                return Ok(server.listener.counters);
            }
            let due = server.session.as_ref().map_or(last + POLL_INTERVAL, |session| session.timeout(last));
            Timing::Sleep.wait(&[self.socket.fd()], due.min(last + POLL_INTERVAL) - clock.now());
        }
    }
}

impl Receiver<'_> {
    /// Builds the flows of a session.
    fn flows(&self, id: SessionId, terms: &Terms) -> Result<Flows, Refusal> {
        if terms.highest_bps(true) > self.max_back_rate.as_bps().into() {
            return Err(Refusal::Terms);
        }
        let sent = terms.plans(true, true, self.registry).ok_or(Refusal::Unknown)?;
        let flows = Flows::build(id, terms, false, (&sent, self.signals), self.registry);
        let flows = flows.map_err(|_| Refusal::Unknown)?;
        (self.on_start)(terms, sent);
        Ok(flows)
    }
}

/// The state of a receiver.
struct Server<'a> {
    receiver: &'a Receiver<'a>,
    listener: Listener,
    tcp: TcpReceiver,
    session: Option<Session<'a>>,
    over: Option<Over<'a>>,
    /// The failure of a controller in the session that is over.
    failure: Option<ControllerFailure>,
}

impl<'a> Server<'a> {
    /// Handles a datagram. Returns the result of a session that its sender left.
    fn handle(&mut self, now: Time, at: Time, from: SocketAddr, bytes: &[u8], ecn: Ecn) -> Option<ReceiveReport> {
        if let Some(session) = self.session.as_mut().filter(|session| session.endpoint.link.peer == from) {
            // The handshake may be repeated.
            let is_open = matches!(message::read(bytes), Ok((_, Message::Hello | Message::Start(..))));
            let opened = if is_open { Some(bytes.into()) } else { session.endpoint.link.open(bytes) };
            let Some(bytes) = opened else {
                self.listener.counters.unauthentic += 1;
                return None;
            };
            let (now_there, at) = (session.time(now), session.time(at));
            let is_handled = session.endpoint.handle(now_there, at, &bytes, ecn);
            return if is_handled { None } else { self.handle_control(now, from, &bytes) };
        }
        let over = self.over.as_mut().filter(|over| over.link.peer == from && now - over.at <= GOODBYE_TIME);
        if let Some(Over { link, goodbye, .. }) = over
            && let Some(opened) = link.open(bytes)
            && message::read(&opened) == Ok((link.id, Message::Bye))
        {
            link.transmit(goodbye, Ecn::NotEct);
            return None;
        }
        self.handle_control(now, from, bytes)
    }

    /// Handles a datagram that is not a packet of the session. Returns the result of a session that its sender left.
    fn handle_control(&mut self, now: Time, from: SocketAddr, bytes: &[u8]) -> Option<ReceiveReport> {
        let socket = self.receiver.socket;
        match self.listener.handle(now, from, bytes) {
            Action::Drop => {}
            Action::Reply(bytes) => socket.send(from, &bytes, Ecn::NotEct),
            Action::Repeat => self.session.iter().for_each(Session::accept),
            Action::Decide(id, terms, token) => match self.start(now, from, id, terms, &token) {
                Ok(session) => {
                    self.listener.session = Some((from, id));
                    session.accept();
                    self.session = Some(session);
                }
                Err(reason) => socket.send(from, &self.listener.refuse(id, reason), Ecn::NotEct),
            },
            Action::Leave => {
                let is_early = self.session.as_ref()?.media_left(now) > END_TOLERANCE;
                let report = self.end(now, if is_early { End::PeerLeft } else { End::Complete });
                if let Some(Over { link, goodbye, .. }) = &self.over {
                    link.transmit(goodbye, Ecn::NotEct);
                }
                return report;
            }
        }
        None
    }

    /// Starts a session.
    fn start(
        &self,
        now: Time,
        from: SocketAddr,
        id: SessionId,
        terms: Terms,
        token: &Token,
    ) -> Result<Session<'a>, Refusal> {
        let (socket, flows) = (self.receiver.socket, self.receiver.flows(id, &terms)?);
        let open = || self.tcp.open(socket.address()?, from.ip(), self.listener.proofs(id, token));
        let tcp = terms.tcp.then(open).transpose().map_err(|_| Refusal::Tcp)?;
        let link = Link { socket, peer: from, id, keys: self.listener.keys(id, token), refused: Cell::default() };
        let endpoint = Endpoint::new(link, &terms, flows, false, token.age(now));
        Ok(Session { endpoint, terms, tcp, started: now })
    }

    /// Handles timers that are due. Returns the result of a session that is over.
    fn handle_timeout(&mut self, now: Time, is_over: bool) -> Option<ReceiveReport> {
        let running = self.session.as_mut()?;
        running.handle_timeout(now, self.receiver.on_event);
        let end = running.end(now).or(is_over.then_some(End::Interrupted))?;
        self.leave(now, end)
    }

    /// Returns the failure of a controller of the session, or of the last one if that is over.
    fn take_failure(&mut self) -> Option<ControllerFailure> {
        self.failure.take().or_else(|| self.session.as_mut()?.endpoint.take_failure())
    }

    /// Ends the session before its sender does, and returns its result.
    fn leave(&mut self, now: Time, end: End) -> Option<ReceiveReport> {
        let report = self.end(now, end);
        // The sender learns of it; if this is lost, its silence rule applies.
        self.over.iter().for_each(|over| over.link.send(Message::Bye));
        report
    }

    /// Ends the session and returns its result.
    fn end(&mut self, now: Time, end: End) -> Option<ReceiveReport> {
        let mut over = self.session.take()?;
        self.failure = self.failure.take().or_else(|| over.endpoint.take_failure());
        // A lost answer to the start does no harm to the next session, whose keys are others.
        let report = over.finish(now, end, self.receiver.on_event);
        let closing = Closing { back: report.back.clone(), tcp_bytes: report.tcp.and_then(|tcp| tcp.bytes) };
        self.listener.session = None;
        let link = over.endpoint.link;
        let goodbye = message::write(link.id, Message::Goodbye(report.totals, &closing.to_bytes()));
        self.over = Some(Over { link, goodbye, at: now });
        Some(report)
    }

    /// Answers repeated byes for a second, in case that the goodbye was lost.
    fn linger(&mut self, clock: &Monotonic, buffers: &mut ReceiveBuffers) -> io::Result<()> {
        let end = clock.now() + TimeDelta::from_secs(1);
        let Receiver { socket, stop, .. } = *self.receiver;
        while clock.now() < end && !stop.load(Ordering::Relaxed) {
            Timing::Sleep.wait(&[socket.fd()], (end - clock.now()).min(POLL_INTERVAL));
            socket.receive(clock, buffers, |at, from, bytes, ecn| {
                let is_bye = matches!(message::read(bytes), Ok((_, Message::Bye)));
                if is_bye || seal::is_sealed(bytes) {
                    self.handle(at, at, from, bytes, ecn);
                }
            })?;
        }
        Ok(())
    }
}

/// The last session that is over. A lost goodbye is repeated.
struct Over<'a> {
    link: Link<'a>,
    goodbye: Vec<u8>,
    at: Time,
}

/// A session that runs. Its methods take times of the receiver's clock; its flows have a clock that starts with it.
struct Session<'a> {
    endpoint: Endpoint<'a>,
    terms: Terms,
    /// The TCP flow beside them.
    tcp: Option<TcpSession>,
    started: Time,
}

impl Session<'_> {
    /// Accepts it, with its TCP port.
    fn accept(&self) {
        self.endpoint.link.send(Message::Accept(self.tcp.as_ref().map_or(0, TcpSession::port)));
    }

    /// Returns a time on the clock of the session.
    fn time(&self, at: Time) -> Time {
        Time::ZERO + (at - self.started)
    }

    fn handle_timeout(&mut self, now: Time, on_event: &dyn Fn(&EventRecord)) {
        let now = self.time(now);
        self.endpoint.handle_timeout(now);
        while let Some(event) = self.endpoint.send.log.poll_event(now) {
            on_event(&event);
        }
    }

    /// Returns the time until the media end; negative after that.
    fn media_left(&self, now: Time) -> TimeDelta {
        self.started + self.terms.duration() - now
    }

    fn timeout(&self, now: Time) -> Time {
        let Endpoint { send, receive, .. } = &self.endpoint;
        let sent = send.poll_timeout().filter(|_| self.media_left(now).is_positive());
        let due = sent.into_iter().chain(receive.poll_timeout()).min();
        due.map_or(now + POLL_INTERVAL, |due| self.started + (due - Time::ZERO))
    }

    /// Returns why the session is over; `None` if it is not.
    fn end(&self, now: Time) -> Option<End> {
        let (left, now) = (self.media_left(now), self.time(now));
        let Endpoint { send, receive, .. } = &self.endpoint;
        let is_unheard = !send.is_empty() && left.is_positive() && is_silent(send.heard, now);
        if is_silent(receive.heard, now) || is_unheard {
            return Some(End::Silence);
        }
        (left <= TimeDelta::ZERO - OVERTIME).then_some(End::Complete)
    }

    fn finish(&mut self, now: Time, end: End, on_event: &dyn Fn(&EventRecord)) -> ReceiveReport {
        let now = self.time(now);
        self.endpoint.finish(now);
        let Endpoint { link, send, receive } = &mut self.endpoint;
        let media = (now - Time::ZERO).min(self.terms.duration());
        let back = (!send.is_empty()).then(|| send.summary(Time::ZERO + media));
        send.log.finish().iter().for_each(on_event);
        let (totals, lasted) = (receive.totals(), receive.lasted());
        ReceiveReport {
            peer: link.peer,
            terms: self.terms.clone(),
            end,
            totals,
            received_bps: if lasted.is_positive() { rate(totals.bytes, lasted) } else { 0.0 },
            lasted_s: lasted.as_secs_f64(),
            flows: receive.flow_totals(),
            tcp: self.tcp.as_mut().map(TcpSession::finish),
            back,
            media,
            knows_frames: end != End::Silence && (send.is_empty() || send.log.knows_frames()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::terms::tests::terms;
    use crate::hosts::testing;
    use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    /// A sender that sends no media.
    struct Client(UdpSocket);

    impl Client {
        fn new(receiver: SocketAddr) -> Self {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            socket.connect(receiver).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            Self(socket)
        }

        fn send(&self, id: SessionId, message: Message<'_>) {
            self.0.send(&message::write(id, message)).unwrap();
        }

        fn receive(&self) -> Vec<u8> {
            let mut bytes = vec![0; 2000];
            let len = self.0.recv(&mut bytes).expect("the receiver answers");
            bytes.truncate(len);
            bytes
        }

        fn token(&self, id: SessionId) -> Token {
            self.send(id, Message::Hello);
            match message::read(&self.receive()) {
                Ok((_, Message::Challenge(token))) => token,
                other => panic!("{other:?}"),
            }
        }

        fn start(&self, id: SessionId, token: Token, duration_ms: u64) {
            self.send(id, Message::Start(token, &Terms { duration_ms, ..terms() }.to_bytes()));
        }

        /// Waits for a message, whatever reports come before it.
        fn wait(&self, is_it: fn(&Message<'_>) -> bool) {
            while !message::read(&self.receive()).is_ok_and(|(_, message)| is_it(&message)) {}
        }
    }

    /// Serves sessions until `count` are over. Returns why each ended.
    fn serve(socket: &Socket, count: usize, on_start: &dyn Fn()) -> Vec<End> {
        let (registry, stop) = (testing::registry(), AtomicBool::new(false));
        let on_start = |_: &Terms, _| on_start();
        let receiver = Receiver { on_start: &on_start, ..testing::receiver(socket, &registry, &stop) };
        let mut ends = Vec::new();
        receiver.run(&mut |report| (ends.push(report.end), ends.len() < count).1, &mut |_| ()).unwrap();
        ends
    }

    #[test]
    fn a_session_is_complete_if_its_sender_leaves_at_the_end_and_not_before() {
        let socket = Socket::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = Client::new(socket.address().unwrap());
        let ends = thread::spawn(move || serve(&socket, 2, &|| ()));
        for (n, duration_ms) in [(1, 60_000), (2, 1000)] {
            let id = SessionId([n; 8]);
            client.start(id, client.token(id), duration_ms);
            client.wait(|message| matches!(message, Message::Accept(0)));
            thread::sleep(Duration::from_millis(if n == 2 { duration_ms } else { 0 }));
            // A repeated bye gets the same goodbye.
            for _ in 0..2 {
                client.send(id, Message::Bye);
                client.wait(|message| matches!(message, Message::Goodbye(..)));
            }
        }
        assert_eq!(ends.join().unwrap(), [End::PeerLeft, End::Complete]);
    }

    #[test]
    fn a_receiver_of_one_session_accepts_no_second_one() {
        let socket = Socket::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = Client::new(socket.address().unwrap());
        let (building, is_building) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel();
        let receiver = thread::spawn(move || {
            let on_start = || {
                building.send(()).unwrap();
                may_go_on.recv().unwrap();
            };
            serve(&socket, 1, &on_start)
        });
        let (first, second) = (SessionId([1; 8]), SessionId([2; 8]));
        let tokens = [client.token(first), client.token(second)];
        client.start(first, tokens[0], 60_000);
        is_building.recv().unwrap();
        // While the receiver builds the flows, its socket gets the end of the first session and the start of the second one.
        client.send(first, Message::Bye);
        client.start(second, tokens[1], 60_000);
        go_on.send(()).unwrap();
        drop(go_on);
        assert_eq!(receiver.join().expect("no second session is built"), [End::PeerLeft]);
    }
}
