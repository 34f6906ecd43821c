//! What an end of a session sends to the other one, sealed or not.

use crate::hosts::message::{self, Message, SessionId};
use crate::hosts::receive_side::Output;
use crate::hosts::seal::Seal;
use crate::testbed::socket::Socket;
use paceline_units::Ecn;
use std::io;
use std::net::SocketAddr;

/// The way to the other end.
pub(crate) struct Link<'a> {
    pub(crate) socket: &'a Socket,
    pub(crate) peer: SocketAddr,
    pub(crate) id: SessionId,
    /// Seals datagrams; `None` if the session is not sealed.
    pub(crate) seal: Option<Seal>,
}

impl Link<'_> {
    /// Sends a datagram. Returns whether the system accepted it.
    pub(crate) fn transmit(&self, bytes: &[u8], ecn: Ecn) -> bool {
        let sent = match &self.seal {
            None => self.socket.try_send(self.peer, bytes, ecn),
            Some(seal) => self.socket.try_send(self.peer, &seal.seal(bytes), ecn),
        };
        // An ICMP message on an earlier packet is no failure of this one.
        sent.is_ok() || sent.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    }

    /// Sends a message.
    pub(crate) fn send(&self, message: Message<'_>) {
        self.transmit(&message::write(self.id, message), Ecn::NotEct);
    }

    /// Sends what a receiving side has due.
    pub(crate) fn transmit_output(&self, output: Output<'_>) {
        match output {
            Output::Rtcp(bytes, ecn) => drop(self.transmit(bytes, ecn)),
            Output::Arrivals(body) => self.send(Message::Arrivals(body)),
        }
    }
}
