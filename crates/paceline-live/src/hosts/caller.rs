// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sender's side of the handshake, without I/O.

use crate::hosts::message::{self, Message, Refusal, SessionId};
use crate::hosts::seal::{self, Keys, Proofs, Secret};
use crate::hosts::terms::Terms;
use crate::hosts::token::Token;
use paceline_units::{Time, TimeDelta};
use std::num::NonZero;

/// Time to the first repetition of a message; each further one takes twice as long, up to [`REPEAT_MAX`].
const REPEAT: TimeDelta = TimeDelta::from_millis(250);

/// Longest time between two repetitions.
const REPEAT_MAX: TimeDelta = TimeDelta::from_secs(1);

/// Time after which a caller gives up.
pub const GIVE_UP: TimeDelta = TimeDelta::from_secs(10);

/// State of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Messages are under way.
    Waiting,
    /// The session has started.
    Accepted,
    /// The receiver refused it.
    Refused(Refusal),
    /// No answer came.
    NoAnswer,
}

/// The state machine.
pub struct Caller<'a> {
    id: SessionId,
    terms: Vec<u8>,
    token: Option<Token>,
    status: Status,
    give_up: Time,
    next: Time,
    interval: TimeDelta,
    /// When the last message was first sent, and whether it was repeated.
    sent: Option<Time>,
    repeated: bool,
    rtt: Option<TimeDelta>,
    secret: Option<&'a Secret>,
    /// The keys of the session, once the token is there.
    keys: Option<Keys>,
    /// The TCP port of the receiver, once it has accepted.
    port: Option<NonZero<u16>>,
}

impl<'a> Caller<'a> {
    /// Creates a caller with a random identifier, and a secret if sessions are sealed.
    pub fn new(now: Time, id: SessionId, terms: &Terms, secret: Option<&'a Secret>) -> Self {
        Self {
            id,
            terms: terms.to_bytes(),
            token: None,
            status: Status::Waiting,
            give_up: now + GIVE_UP,
            next: now,
            interval: REPEAT,
            sent: None,
            repeated: false,
            rtt: None,
            secret,
            keys: None,
            port: None,
        }
    }

    /// Returns the keys of the session; `None` without a secret.
    pub fn into_keys(self) -> Option<Keys> {
        self.keys
    }

    /// Returns the TCP port of the receiver, and the proofs for a connection to it; `None` if it has opened none.
    pub(crate) fn tcp(&self) -> Option<(u16, Proofs)> {
        let proofs = Proofs::new(self.secret, self.id, self.token.as_ref()?);
        self.port.map(|port| (port.get(), proofs))
    }

    /// Returns the round-trip time of the hello and its answer; `None` if the hello was repeated, because it is not known which one
    /// was answered (RFC 6298, section 3).
    pub fn rtt(&self) -> Option<TimeDelta> {
        self.rtt
    }

    /// Returns the state.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Returns the time of the next call of [`poll_transmit`](Self::poll_transmit).
    pub fn poll_timeout(&self) -> Time {
        self.next.min(self.give_up)
    }

    /// Returns the message that is due, if there is one.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Vec<u8>> {
        if self.status != Status::Waiting {
            return None;
        }
        if now >= self.give_up {
            self.status = Status::NoAnswer;
            return None;
        }
        if now < self.next {
            return None;
        }
        self.next = now + self.interval;
        self.interval = (self.interval + self.interval).min(REPEAT_MAX);
        self.repeated |= self.sent.is_some();
        self.sent.get_or_insert(now);
        let message = match self.token {
            None => Message::Hello,
            Some(token) => Message::Start(token, &self.terms),
        };
        Some(message::write(self.id, message))
    }

    /// Handles a datagram from the address that was called.
    pub fn handle(&mut self, now: Time, bytes: &[u8]) {
        let opened = match &mut self.keys {
            Some(keys) if seal::is_sealed(bytes) => keys.open.open(bytes),
            _ => None,
        };
        let is_authentic = opened.is_some() || self.secret.is_none();
        let Ok((id, message)) = message::read(opened.as_deref().unwrap_or(bytes)) else { return };
        if id != self.id || self.status != Status::Waiting {
            return;
        }
        match message {
            Message::Challenge(token) if self.token.is_none() => {
                self.token = Some(token);
                self.rtt = self.sent.filter(|_| !self.repeated).map(|sent| now - sent);
                (self.next, self.interval) = (now, REPEAT);
                if let Some(secret) = self.secret {
                    let keys = secret.sender(self.id, &token);
                    // Every repetition is the same datagram.
                    self.terms = keys.seal.seal(&self.terms);
                    self.keys = Some(keys);
                }
            }
            Message::Accept(port) if self.token.is_some() && is_authentic => {
                (self.status, self.port) = (Status::Accepted, NonZero::new(port));
            }
            Message::Refuse(reason) => self.status = Status::Refused(reason),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::listener::{Action, Listener};
    use crate::hosts::terms::tests::terms;
    use proptest::prelude::*;
    use std::net::SocketAddr;

    const ID: SessionId = SessionId([3; 8]);

    fn caller() -> Caller<'static> {
        Caller::new(Time::ZERO, ID, &terms(), None)
    }

    /// Runs a handshake in which datagram number n is lost if bit n is set. Returns the state and its time.
    fn handshake(lost: u32) -> (Status, Time) {
        let (mut caller, mut listener) = (caller(), Listener::new([5; 32], None));
        let from: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let mut number = 0;
        let mut arrives = || {
            number += 1;
            lost >> (number - 1) & 1 == 0
        };
        let mut now = Time::ZERO;
        while caller.status() == Status::Waiting {
            now = now.max(caller.poll_timeout());
            let Some(bytes) = caller.poll_transmit(now).filter(|_| arrives()) else { continue };
            let reply = match listener.handle(now, from, &bytes) {
                Action::Reply(bytes) => bytes,
                Action::Decide(id, proposed, _) => {
                    assert_eq!(proposed, terms());
                    listener.session = Some((from, id));
                    message::write(id, Message::Accept(0))
                }
                Action::Repeat => message::write(ID, Message::Accept(0)),
                other => panic!("{other:?}"),
            };
            if arrives() {
                caller.handle(now, &reply);
            }
        }
        (caller.status(), now)
    }

    #[test]
    fn a_handshake_survives_losses_and_gives_up_without_answer() {
        assert_eq!(handshake(0), (Status::Accepted, Time::ZERO));
        for lost in 1..64 {
            let (status, at) = handshake(lost);
            assert!(status == Status::Accepted && at < Time::from_secs(5), "{lost:b}: {status:?} at {at}");
        }
        assert_eq!(handshake(u32::MAX >> 1), (Status::NoAnswer, Time::ZERO + GIVE_UP));
    }

    #[test]
    fn a_session_starts_only_if_both_ends_have_the_same_secret() {
        let secret = |text: &str| Secret::new(text.as_bytes()).unwrap();
        let secrets = [None, Some(secret("the secret of one end")), Some(secret("that of the other end"))];
        let from: SocketAddr = "127.0.0.1:9".parse().unwrap();
        for (here, ours) in secrets.iter().enumerate() {
            for there in 0..secrets.len() {
                let theirs = [None, Some(secret("the secret of one end")), Some(secret("that of the other end"))];
                let mut caller = Caller::new(Time::ZERO, ID, &terms(), ours.as_ref());
                let mut listener = Listener::new([5; 32], theirs.into_iter().nth(there).unwrap());
                for _ in 0..2 {
                    let bytes = caller.poll_transmit(Time::ZERO).unwrap();
                    match listener.handle(Time::ZERO, from, &bytes) {
                        Action::Reply(bytes) => caller.handle(Time::ZERO, &bytes),
                        Action::Decide(id, _, token) => {
                            let accept = message::write(id, Message::Accept(0));
                            let keys = listener.keys(id, &token);
                            let sealed = keys.map(|keys| keys.seal.seal(&accept));
                            // One that is not sealed is ignored.
                            if sealed.is_some() {
                                caller.handle(Time::ZERO, &accept);
                                assert_eq!(caller.status(), Status::Waiting);
                            }
                            caller.handle(Time::ZERO, sealed.as_deref().unwrap_or(&accept));
                        }
                        other => panic!("{other:?}"),
                    }
                }
                let expected = if here == there { Status::Accepted } else { Status::Refused(Refusal::Secret) };
                assert_eq!(caller.status(), expected, "{here} {there}");
                assert_eq!(listener.counters.other_secrets, u64::from(here != there));
            }
        }
    }

    #[test]
    fn the_round_trip_of_the_hello_is_known_if_it_was_not_repeated() {
        for repeats in [0, 1] {
            let mut caller = caller();
            let mut hello = caller.poll_transmit(Time::ZERO);
            for _ in 0..repeats {
                hello = caller.poll_transmit(caller.poll_timeout());
            }
            let mut listener = Listener::new([5; 32], None);
            let from: SocketAddr = "127.0.0.1:9".parse().unwrap();
            let Action::Reply(answer) = listener.handle(Time::ZERO, from, &hello.unwrap()) else { panic!("an answer") };
            caller.handle(Time::from_millis(300), &answer);
            assert_eq!(caller.rtt(), (repeats == 0).then_some(TimeDelta::from_millis(300)));
        }
    }

    #[test]
    fn a_receiver_of_another_version_refuses_and_the_caller_learns_why() {
        let mut caller = caller();
        let mut hello = caller.poll_transmit(Time::ZERO).unwrap();
        hello[4] = message::VERSION + 1;
        let from: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let Action::Reply(mut answer) = Listener::new([5; 32], None).handle(Time::ZERO, from, &hello) else {
            panic!("an answer")
        };
        // To a caller of the next version, an answer of this version is what one of the previous version is to this caller.
        answer[4] = message::VERSION - 1;
        caller.handle(Time::ZERO, &answer);
        assert_eq!(caller.status(), Status::Refused(Refusal::Version));
    }

    fn token() -> Token {
        Token::from_bytes(&[6; Token::LEN])
    }

    proptest! {
        #[test]
        fn only_an_answer_to_the_start_of_this_session_starts_it(
            datagrams in prop::collection::vec(message::tests::datagrams(ID, token()), 1..20)
        ) {
            let mut caller = caller();
            let mut has_token = false;
            for bytes in datagrams {
                let before = caller.status();
                caller.handle(Time::ZERO, &bytes);
                let (id, message) = message::read(&bytes).unwrap();
                has_token |= id == ID && matches!(message, Message::Challenge(_));
                let expected = match message {
                    _ if id != ID || before != Status::Waiting => before,
                    Message::Accept(_) if has_token => Status::Accepted,
                    Message::Refuse(reason) => Status::Refused(reason),
                    _ => before,
                };
                prop_assert_eq!(caller.status(), expected, "{:?}", message);
            }
        }

        #[test]
        fn without_the_secret_no_datagram_starts_a_session(
            datagrams in prop::collection::vec(message::tests::datagrams(ID, token()), 1..20)
        ) {
            let secret = Secret::new(b"the secret of this end").unwrap();
            let other = Secret::new(b"that of somebody on the path").unwrap().receiver(ID, &token());
            let mut caller = Caller::new(Time::ZERO, ID, &terms(), Some(&secret));
            for bytes in datagrams {
                caller.handle(Time::ZERO, &bytes);
                caller.handle(Time::ZERO, &other.seal.seal(&bytes));
                prop_assert!(caller.status() != Status::Accepted);
            }
        }

        #[test]
        fn random_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut caller = caller();
            caller.handle(Time::ZERO, &bytes);
            prop_assert_eq!(caller.status(), Status::Waiting);
        }
    }
}
