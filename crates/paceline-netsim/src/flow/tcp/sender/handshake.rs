// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handshake of each connection: SYN, SYN-ACK, and the ACK that completes it.
//!
//! Owns the state and the number of the connection, and the transmissions of its SYN.

use crate::flow::tcp::segment::{Flags, Segment};
use paceline_units::{Time, TimeDelta};

/// With more transmissions of the SYN, the initial window is one segment (RFC 6928, section 2).
const SYN_TRIES_MAX: u32 = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ConnectionState {
    #[default]
    Closed,
    SynSent,
    Established,
}

#[derive(Debug, Default)]
pub(super) struct Handshake {
    state: ConnectionState,
    connection: u32,
    syn_sent: Time,
    syn_tries: u32,
    /// A SYN or the ACK of the handshake is ready to be sent.
    control: bool,
}

impl Handshake {
    pub fn state(&self) -> ConnectionState {
        self.state
    }

    pub fn connection(&self) -> u32 {
        self.connection
    }

    pub fn reduces_initial_window(&self) -> bool {
        self.syn_tries > SYN_TRIES_MAX
    }

    pub fn begin(&mut self) {
        let connection = self.connection + 1;
        *self = Self { state: ConnectionState::SynSent, connection, control: true, ..Self::default() };
    }

    /// Repeats the SYN.
    pub fn retry(&mut self) {
        self.control = true;
    }

    /// Returns the SYN or the ACK that completes the handshake, if it is ready.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        if !core::mem::take(&mut self.control) {
            return None;
        }
        let segment = Segment { connection: self.connection, ..Segment::default() };
        if self.state == ConnectionState::SynSent {
            self.syn_sent = now;
            self.syn_tries += 1;
            return Some(Segment { flags: Flags { syn: true, ack: false }, ..segment });
        }
        Some(Segment { flags: Flags { syn: false, ack: true }, sequence: 1, acknowledgment: 1, ..segment })
    }

    /// Returns the round-trip time of the SYN, if it is unambiguous.
    pub fn handle_syn_ack(&mut self, now: Time) -> Option<TimeDelta> {
        self.state = ConnectionState::Established;
        self.control = true;
        (self.syn_tries == 1).then_some(now - self.syn_sent)
    }

    pub fn close(&mut self) {
        self.state = ConnectionState::Closed;
    }
}
