// SPDX-License-Identifier: MIT OR Apache-2.0
//! One end of a session that runs: its flows, and the way to the other end.

use crate::hosts::flow_number::Ssrcs;
use crate::hosts::host_facts::Refused;
use crate::hosts::message::{self, Message, SessionId};
use crate::hosts::receive_side::ReceiveSide;
use crate::hosts::seal::Keys;
use crate::hosts::send_side::SendSide;
use crate::hosts::session_flow::Flows;
use crate::hosts::terms::Terms;
use crate::testbed::socket::Socket;
use paceline_netsim::ControllerFailure;
use paceline_units::{Ecn, Time, TimeDelta};
use std::borrow::Cow;
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;

/// The time without feedback after which a sender stops, and without packets after which a receiver ends a session. RFC 8083,
/// section 4.1, lets a sender continue for three RTCP intervals of 5 s; this is stricter. The guard of every controller lowers the
/// rate long before.
pub(crate) const SILENCE: TimeDelta = TimeDelta::from_secs(10);

/// Returns whether an end that was last heard then is silent for too long.
pub(crate) fn is_silent(heard: Time, now: Time) -> bool {
    now - heard >= SILENCE
}

/// The way to the other end.
pub(crate) struct Link<'a> {
    pub(crate) socket: &'a Socket,
    pub(crate) peer: SocketAddr,
    pub(crate) id: SessionId,
    /// Those of a sealed session.
    pub(crate) keys: Option<Keys>,
    /// Datagrams that the system did not accept.
    pub(crate) refused: Cell<Refused>,
}

impl Link<'_> {
    /// Sends a datagram, and counts it if the system does not accept it.
    pub(crate) fn transmit(&self, bytes: &[u8], ecn: Ecn) {
        let sent = match &self.keys {
            None => self.socket.try_send(self.peer, bytes, ecn),
            Some(keys) => self.socket.try_send(self.peer, &keys.seal.seal(bytes), ecn),
        };
        // An ICMP message on an earlier packet is no failure of this one.
        if let Some(error) = sent.err().filter(|error| error.kind() != io::ErrorKind::ConnectionRefused) {
            let mut refused = self.refused.get();
            refused.add(&error);
            self.refused.set(refused);
        }
    }

    pub(crate) fn send(&self, message: Message<'_>) {
        self.transmit(&message::write(self.id, message), Ecn::NotEct);
    }

    /// Opens a datagram of the other end; `None` if it is not authentic.
    pub(crate) fn open<'b>(&mut self, bytes: &'b [u8]) -> Option<Cow<'b, [u8]>> {
        match &mut self.keys {
            None => Some(bytes.into()),
            Some(keys) => keys.open.open(bytes).map(Cow::Owned),
        }
    }
}

/// One end of a session. Its flows start at time zero.
pub(crate) struct Endpoint<'a> {
    pub(crate) link: Link<'a>,
    pub(crate) send: SendSide,
    pub(crate) receive: ReceiveSide,
}

impl<'a> Endpoint<'a> {
    /// Creates the sender or the receiver of a session, after a handshake with this round-trip time; zero if it is not known.
    pub(crate) fn new(link: Link<'a>, terms: &Terms, flows: Flows, is_sender: bool, rtt: TimeDelta) -> Self {
        let ssrcs = || Ssrcs::of_session(link.id, terms);
        let count = terms.count(false);
        let (first_sent, first_received) = if is_sender { (0, count) } else { (count, 0) };
        let send = SendSide::new(ssrcs(), flows.sent, first_sent, Time::ZERO, terms.duration(), rtt);
        let receive = ReceiveSide::new(ssrcs(), flows.received, first_received, Time::ZERO);
        Self { link, send, receive }
    }

    /// Handles a datagram that arrived at `at`; `now` is not before an earlier call. Returns whether it is RTP, RTCP or a report of arrivals of
    /// this session.
    pub(crate) fn handle(&mut self, now: Time, at: Time, bytes: &[u8], ecn: Ecn) -> bool {
        let Self { link, send, receive } = self;
        let transmit = &mut |bytes: &[u8], ecn| link.transmit(bytes, ecn);
        if message::is_message(bytes) {
            let Ok((id, Message::Arrivals(body))) = message::read(bytes) else { return false };
            let is_ours = id == link.id && !send.is_empty();
            if is_ours {
                send.handle_report(now, body);
            }
            is_ours
        } else if send.is_feedback(bytes) {
            send.handle_rtcp(now, bytes, ecn, transmit);
            true
        } else {
            receive.handle_packet(now, at, bytes, ecn, transmit)
        }
    }

    /// Handles timers that are due, and sends what is due.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        let Self { link, send, receive } = self;
        let transmit = &mut |bytes: &[u8], ecn| link.transmit(bytes, ecn);
        send.handle_timeout(now, transmit);
        receive.handle_timeout(now, transmit);
    }

    /// Returns the time of the next timer.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.send.poll_timeout().into_iter().chain(self.receive.poll_timeout()).min()
    }

    /// Sends every report of arrivals that was not sent twice, at the end of the session.
    pub(crate) fn finish(&mut self, now: Time) {
        self.receive.finish(now, &mut |bytes, ecn| self.link.transmit(bytes, ecn));
    }

    /// Returns whether a controller has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.send.failure.is_some() || self.receive.failure.is_some()
    }

    /// Returns the first failure of a controller.
    pub(crate) fn take_failure(&mut self) -> Option<ControllerFailure> {
        self.send.failure.take().or_else(|| self.receive.failure.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_silent_ten_seconds_after_it_was_heard_and_not_before() {
        let (heard, end) = (Time::from_secs(1), Time::from_secs(11));
        assert!(!is_silent(heard, end - TimeDelta::from_nanos(1)) && is_silent(heard, end));
    }
}
