// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiver's side of the handshake, without I/O.
//!
//! A hello gets a token, a keyed hash of address and time, in a shorter datagram, and leaves no state. A session starts only when the
//! token comes back from the address that it names, within ten seconds, and only once. Everything else is counted and dropped.

use crate::hosts::message::{self, Malformed, Message, Refusal, SessionId};
use crate::hosts::seal::{self, Keys, Proofs, Secret};
use crate::hosts::terms::Terms;
use crate::hosts::token::{Invalid, TOKEN_LIFETIME, Token, TokenKey};
use paceline_units::Time;
use serde::Serialize;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Maximum number of sessions that start, or are refused after a valid token, within the lifetime of a token.
const STARTS_MAX: usize = 64;

/// Datagrams that a receiver counted and, but for hellos, dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Hellos that got a token.
    pub hellos: u64,
    /// Neither a control message nor a packet of the session.
    pub strangers: u64,
    /// Control messages with wrong length or content, or unexpected ones.
    pub malformed: u64,
    /// Hellos of other versions of the protocol.
    pub other_versions: u64,
    /// Tokens of another address, another session or another key.
    pub forged: u64,
    /// Tokens older than ten seconds.
    pub expired: u64,
    /// Tokens of sessions that are over.
    pub replayed: u64,
    /// Sessions that were refused after a valid token.
    pub refused: u64,
    /// Sessions whose sender had another secret, or of which only one end had one.
    pub other_secrets: u64,
    /// Datagrams of a sealed session that were not sealed, altered, or that arrived before.
    pub unauthentic: u64,
    /// Messages of a session from another address, or of a session that does not exist.
    pub outside_session: u64,
}

impl Counters {
    /// Returns the counts of dropped datagrams, and what they were.
    pub fn dropped(&self) -> [(u64, &'static str); 9] {
        [
            (self.strangers, "of no session"),
            (self.malformed, "malformed"),
            (self.other_versions, "of other versions"),
            (self.forged, "with forged tokens"),
            (self.expired, "with expired tokens"),
            (self.replayed, "with used tokens"),
            (self.refused, "refused sessions"),
            (self.unauthentic, "not authentic"),
            (self.outside_session, "of other sessions"),
        ]
    }
}

/// What to do after a datagram.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Nothing: the datagram was dropped.
    Drop,
    /// Send these bytes to the source of the datagram.
    Reply(Vec<u8>),
    /// Set [`Listener::session`], or call [`Listener::refuse`]. The token gives the keys of the session ([`Listener::keys`]).
    Decide(SessionId, Terms, Token),
    /// The sender of the session repeats its start: accept it again.
    Repeat,
    /// The sender of the session leaves: end it.
    Leave,
}

/// The state machine.
pub struct Listener {
    key: TokenKey,
    /// The sender of the session that runs, and its identifier. `None` ends it.
    pub session: Option<(SocketAddr, SessionId)>,
    /// Sessions whose start was decided within the lifetime of a token, oldest first.
    started: VecDeque<(Time, SessionId)>,
    /// The last session that was refused after its flows were looked at, to repeat a lost refusal.
    refused: Option<(SessionId, Refusal)>,
    /// The secret, if sessions are sealed.
    secret: Option<Secret>,
    /// Counted datagrams.
    pub counters: Counters,
}

impl Listener {
    /// Creates a listener with a random key, and a secret if sessions are sealed.
    pub fn new(random: [u8; 32], secret: Option<Secret>) -> Self {
        let (key, started) = (TokenKey::new(random), VecDeque::with_capacity(STARTS_MAX));
        Self { key, session: None, started, refused: None, secret, counters: Counters::default() }
    }

    /// Returns the keys of a session; `None` without a secret.
    pub fn keys(&self, id: SessionId, token: &Token) -> Option<Keys> {
        self.secret.as_ref().map(|secret| secret.receiver(id, token))
    }

    /// Handles a datagram that is not RTP or RTCP of the session.
    pub fn handle(&mut self, now: Time, from: SocketAddr, bytes: &[u8]) -> Action {
        let counters = &mut self.counters;
        let (id, message) = match message::read(bytes) {
            Ok(read) => read,
            Err(Malformed::Version(id)) => {
                counters.other_versions += 1;
                return Action::Reply(message::write(id, Message::Refuse(Refusal::Version)));
            }
            Err(Malformed::Foreign) => return drop_as(&mut counters.strangers),
            Err(Malformed::Content) => return drop_as(&mut counters.malformed),
        };
        let is_running = self.session == Some((from, id));
        match message {
            Message::Hello => {
                counters.hellos += 1;
                Action::Reply(message::write(id, Message::Challenge(self.key.make(now, from, id))))
            }
            Message::Start(token, terms) => match self.key.check(now, from, id, &token) {
                Err(Invalid::Forged) => drop_as(&mut counters.forged),
                Err(Invalid::Expired) => drop_as(&mut counters.expired),
                Ok(()) if is_running => Action::Repeat,
                Ok(()) => self.start(now, id, token, terms),
            },
            Message::Bye if is_running => Action::Leave,
            Message::Bye => drop_as(&mut counters.outside_session),
            // Messages that a receiver sends.
            _ => drop_as(&mut counters.malformed),
        }
    }

    /// Handles a start with a valid token.
    fn start(&mut self, now: Time, id: SessionId, token: Token, terms: &[u8]) -> Action {
        while self.started.front().is_some_and(|(at, _)| now - *at > TOKEN_LIFETIME) {
            self.started.pop_front();
        }
        if self.started.iter().any(|(_, started)| *started == id) {
            if let Some((_, reason)) = self.refused.filter(|(refused, _)| *refused == id) {
                return Action::Reply(message::write(id, Message::Refuse(reason)));
            }
            return drop_as(&mut self.counters.replayed);
        }
        if self.session.is_some() || self.started.len() >= STARTS_MAX {
            return Action::Reply(self.refuse(id, Refusal::Busy));
        }
        let opened = match self.keys(id, &token) {
            Some(mut keys) => keys.open.open(terms),
            None => (!seal::is_sealed(terms)).then(|| terms.to_vec()),
        };
        let Some(terms) = opened else {
            self.counters.other_secrets += 1;
            return Action::Reply(self.refuse(id, Refusal::Secret));
        };
        match Terms::from_bytes(&terms) {
            // Also if the session is refused: to look at its flows takes time, so a token does that once.
            Some(terms) => {
                self.started.push_back((now, id));
                Action::Decide(id, terms, token)
            }
            None => Action::Reply(self.refuse(id, Refusal::Terms)),
        }
    }

    /// Returns the proofs of the TCP connection of a session.
    pub(crate) fn proofs(&self, id: SessionId, token: &Token) -> Proofs {
        Proofs::new(self.secret.as_ref(), id, token)
    }

    /// Refuses a session, and returns the bytes to send.
    pub fn refuse(&mut self, id: SessionId, reason: Refusal) -> Vec<u8> {
        self.counters.refused += 1;
        if self.started.iter().any(|(_, started)| *started == id) {
            self.refused = Some((id, reason));
        }
        message::write(id, Message::Refuse(reason))
    }
}

/// Counts a datagram that is dropped.
fn drop_as(counter: &mut u64) -> Action {
    *counter += 1;
    Action::Drop
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::message::HELLO_LEN;
    use crate::hosts::terms::tests::terms;
    use paceline_units::TimeDelta;
    use proptest::prelude::*;

    const ID: SessionId = SessionId([1; 8]);

    fn peer() -> SocketAddr {
        "192.0.2.1:5000".parse().unwrap()
    }

    fn listener() -> Listener {
        Listener::new([42; 32], None)
    }

    fn token(listener: &mut Listener, now: Time, from: SocketAddr) -> Token {
        let Action::Reply(bytes) = listener.handle(now, from, &message::write(ID, Message::Hello)) else {
            panic!("a hello gets an answer")
        };
        match message::read(&bytes) {
            Ok((ID, Message::Challenge(token))) => token,
            other => panic!("{other:?}"),
        }
    }

    fn start(listener: &mut Listener, now: Time, from: SocketAddr, token: Token) -> Action {
        listener.handle(now, from, &message::write(ID, Message::Start(token, &terms().to_bytes())))
    }

    #[test]
    fn a_returned_token_starts_one_session() {
        let (mut listener, now) = (listener(), Time::from_secs(100));
        let token = token(&mut listener, now, peer());
        assert_eq!(listener.session, None, "a hello leaves no state");
        assert_eq!(start(&mut listener, now, peer(), token), Action::Decide(ID, terms(), token));
        listener.session = Some((peer(), ID));
        assert_eq!(start(&mut listener, now, peer(), token), Action::Repeat, "its answer was lost");
        assert_eq!(listener.handle(now, peer(), &message::write(ID, Message::Bye)), Action::Leave);
        listener.session = None;
        assert_eq!(listener.handle(now, peer(), &message::write(ID, Message::Bye)), Action::Drop);
        // The same token again.
        assert_eq!(start(&mut listener, now + TOKEN_LIFETIME, peer(), token), Action::Drop);
        assert_eq!(listener.counters.replayed, 1);
    }

    #[test]
    fn a_refused_session_is_looked_at_once() {
        let (mut listener, now) = (listener(), Time::from_secs(100));
        let token = token(&mut listener, now, peer());
        assert_eq!(start(&mut listener, now, peer(), token), Action::Decide(ID, terms(), token));
        let refusal = listener.refuse(ID, Refusal::Unknown);
        for _ in 0..3 {
            assert_eq!(start(&mut listener, now, peer(), token), Action::Reply(refusal.clone()));
        }
        assert_eq!((listener.counters.refused, listener.counters.replayed), (1, 0));
    }

    #[test]
    fn tokens_are_bound_to_address_session_key_and_time() {
        let (mut listener, now) = (listener(), Time::from_secs(100));
        let token = token(&mut listener, now, peer());
        for other in ["192.0.2.2:5000", "192.0.2.1:5001", "[2001:db8::1]:5000"] {
            assert_eq!(start(&mut listener, now, other.parse().unwrap(), token), Action::Drop);
        }
        let other_session = message::write(SessionId([2; 8]), Message::Start(token, &terms().to_bytes()));
        assert_eq!(listener.handle(now, peer(), &other_session), Action::Drop);
        let mut forged = token.to_bytes();
        for position in 0..Token::LEN {
            forged[position] ^= 1;
            assert_eq!(start(&mut listener, now, peer(), Token::from_bytes(&forged)), Action::Drop);
            forged[position] ^= 1;
        }
        assert_eq!(listener.counters.forged, 4 + Token::LEN as u64);
        assert_eq!(start(&mut Listener::new([43; 32], None), now, peer(), token), Action::Drop, "another key");
        let late = now + TOKEN_LIFETIME;
        assert_eq!(start(&mut listener, late + TimeDelta::from_nanos(1), peer(), token), Action::Drop);
        assert_eq!(listener.counters.expired, 1);
        assert_eq!(start(&mut listener, late, peer(), token), Action::Decide(ID, terms(), token), "the latest time");
    }

    #[test]
    fn a_second_sender_is_refused() {
        let (mut listener, now) = (listener(), Time::from_secs(100));
        listener.session = Some(("192.0.2.9:1".parse().unwrap(), SessionId([9; 8])));
        let token = token(&mut listener, now, peer());
        let refusal = message::write(ID, Message::Refuse(Refusal::Busy));
        assert_eq!(start(&mut listener, now, peer(), token), Action::Reply(refusal));
        let bye = message::write(SessionId([9; 8]), Message::Bye);
        assert_eq!(listener.handle(now, peer(), &bye), Action::Drop, "the bye of another address");
        assert_eq!((listener.counters.refused, listener.counters.outside_session), (1, 1));
        assert!(listener.session.is_some());
    }

    #[test]
    fn a_flood_of_hellos_needs_no_memory_and_gets_no_more_bytes_than_it_sends() {
        let (mut listener, mut sent, mut received) = (listener(), 0, 0);
        let capacity = listener.started.capacity();
        for n in 0..100_000u32 {
            let from = SocketAddr::from((n.to_be_bytes(), n as u16));
            let mut hello = message::write(SessionId([n as u8; 8]), Message::Hello);
            hello[4] += (n % 2) as u8; // every second one of another version
            received += hello.len();
            if let Action::Reply(bytes) = listener.handle(Time::from_nanos(n.into()), from, &hello) {
                assert!(bytes.len() < HELLO_LEN);
                sent += bytes.len();
            }
        }
        assert!(sent > 0 && sent < received, "{sent} of {received}");
        assert_eq!((listener.started.len(), listener.started.capacity()), (0, capacity));
        assert_eq!((listener.counters.hellos, listener.counters.other_versions), (50_000, 50_000));
    }

    #[test]
    fn sessions_that_start_within_the_lifetime_of_a_token_are_bounded() {
        let mut listener = listener();
        for n in 0..=STARTS_MAX {
            let (now, id) = (Time::from_millis(n as i64), SessionId([n as u8; 8]));
            let token = listener.key.make(now, peer(), id);
            let bytes = message::write(id, Message::Start(token, &terms().to_bytes()));
            match listener.handle(now, peer(), &bytes) {
                Action::Decide(..) if n < STARTS_MAX => {}
                Action::Reply(_) if n == STARTS_MAX => {}
                other => panic!("session {n}: {other:?}"),
            }
        }
        assert_eq!((listener.started.len(), listener.counters.refused), (STARTS_MAX, 1));
    }

    /// Bytes that are partly those of messages.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let bytes = prop::collection::vec(any::<u8>(), 0..200);
        let message = (any::<u8>(), 0u8..10, bytes.clone()).prop_map(|(version, kind, rest)| {
            let mut bytes = b"PLHO".to_vec();
            bytes.extend([if version < 128 { message::VERSION } else { version }, kind]);
            bytes.extend(rest);
            bytes
        });
        prop_oneof![bytes, message]
    }

    /// A valid token of the peer and the session.
    fn valid() -> Token {
        listener().key.make(Time::ZERO, peer(), ID)
    }

    proptest! {
        #[test]
        fn only_a_valid_token_from_its_address_starts_a_session_and_replies_are_no_longer_than_requests(
            datagrams in prop::collection::vec(
                (prop_oneof![bytes(), message::tests::datagrams(ID, valid())], prop_oneof![Just(peer()), any::<[u8; 4]>().prop_map(|ip| (ip, 1).into())]),
                1..50
            )
        ) {
            let (mut listener, mut decided) = (listener(), false);
            for (n, (bytes, from)) in datagrams.iter().enumerate() {
                let valid_start = message::write(ID, Message::Start(valid(), &terms().to_bytes()));
                let is_valid = *bytes == valid_start && *from == peer();
                match listener.handle(Time::from_millis(n as i64), *from, bytes) {
                    Action::Decide(id, terms, _) => {
                        prop_assert!(is_valid && !decided, "{id:?} {terms:?}");
                        decided = true;
                    }
                    // A token is used once.
                    Action::Drop => prop_assert!(!is_valid || decided),
                    Action::Reply(reply) => prop_assert!(reply.len() <= bytes.len() && !is_valid),
                    Action::Repeat | Action::Leave => prop_assert!(false, "there is no session"),
                }
            }
        }
    }
}
