// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control messages: datagrams beside RTP and RTCP on the same port.
//!
//! Each starts with four bytes that no RTP or RTCP packet starts with (the first byte is 80; RFC 7983, section 7, gives 128 to 191 to
//! RTP and RTCP), the version of the protocol, the kind of the message, and the identifier of the session. Integers are big-endian.

use crate::hosts::seal;
use crate::hosts::token::Token;
use serde::Serialize;

pub use crate::hosts::token::SessionId;

/// The version of the protocol.
pub const VERSION: u8 = 7;

/// First bytes of every message.
const MAGIC: [u8; 4] = *b"PLHO";

/// Length of the common header.
const HEADER: usize = MAGIC.len() + 2 + 8;

/// Length of a hello. The answer to it is shorter, so that a receiver never amplifies.
pub const HELLO_LEN: usize = 64;

/// Maximum length of the terms of a session, bytes. A start with them, sealed or not, has at most 1200 bytes.
pub const TERMS_MAX: usize = 1100;

/// Maximum length of the summary in a goodbye, bytes.
pub const SUMMARY_MAX: usize = 1000;

/// The reason for which a receiver refuses a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    /// It speaks another version of the protocol.
    Version = 1,
    /// It serves another session.
    Busy = 2,
    /// It does not accept the terms.
    Terms = 3,
    /// It does not have the controller or the source.
    Unknown = 4,
    /// It has another secret, or only one of both ends has one.
    Secret = 5,
    /// It cannot open a TCP port.
    Tcp = 6,
}

impl Refusal {
    const ALL: [Self; 6] = [Self::Version, Self::Busy, Self::Terms, Self::Unknown, Self::Secret, Self::Tcp];

    /// Describes the reason.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Version => "it speaks another version of the protocol; use the same version of paceline at both ends",
            Self::Busy => "it serves another session; try again later",
            Self::Terms => {
                "it does not accept the terms; use rates up to 10 Gbit/s together and a duration from 1 s to 1 h, and back no more \
                 than its --max-back-rate"
            }
            Self::Secret => "the secrets differ; give both ends the same --secret-file, or none",
            Self::Tcp => "it cannot open a TCP port; try again without --with tcp",
            Self::Unknown => {
                "it does not have the controller or the source; use the same version of paceline at both ends"
            }
        }
    }
}

/// What a receiver counted over a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// RTP packets that arrived.
    #[serde(rename = "received_packets")]
    pub packets: u64,
    /// Their bytes, IP and UDP headers included.
    #[serde(rename = "received_bytes")]
    pub bytes: u64,
    /// Those that were marked as congestion experienced (RFC 3168).
    #[serde(rename = "marked_packets")]
    pub marked: u64,
    /// Frames that were rendered.
    pub frames: u64,
    /// Frames that were given up.
    pub frames_dropped: u64,
}

impl Totals {
    /// Returns the sums of both.
    pub fn plus(&self, more: &Self) -> Self {
        Self {
            packets: self.packets + more.packets,
            bytes: self.bytes + more.bytes,
            marked: self.marked + more.marked,
            frames: self.frames + more.frames,
            frames_dropped: self.frames_dropped + more.frames_dropped,
        }
    }
}

/// Length of the totals.
const TOTALS: usize = 5 * 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A sender requests a token.
    Hello,
    /// A receiver gives a token.
    Challenge(Token),
    /// A sender returns the token, with the terms of the session.
    Start(Token, &'a [u8]),
    /// A receiver accepts the session, and has this TCP port open for it; 0 for none.
    Accept(u16),
    /// A receiver refuses the session.
    Refuse(Refusal),
    /// A receiver reports arrivals (`arrivals.rs`).
    Arrivals(&'a [u8]),
    /// An end leaves the session.
    Bye,
    /// The receiver's answer to the bye of a sender: what arrived, and a summary as JSON ([`crate::hosts::summary::Closing`]).
    Goodbye(Totals, &'a [u8]),
}

/// The reason why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The first bytes are others.
    Foreign,
    /// A hello of another version of the protocol, in a session of this identifier.
    Version(SessionId),
    /// The length or the content is wrong.
    Content,
}

/// Returns the bytes of a message.
pub fn write(id: SessionId, message: Message<'_>) -> Vec<u8> {
    let (kind, body) = match message {
        Message::Hello => (1, vec![0; HELLO_LEN - HEADER]),
        Message::Challenge(token) => (2, token.to_bytes().to_vec()),
        Message::Start(token, terms) => (3, [&token.to_bytes()[..], terms].concat()),
        Message::Accept(port) => (4, port.to_be_bytes().to_vec()),
        Message::Refuse(reason) => (5, vec![reason as u8]),
        Message::Arrivals(body) => (6, body.to_vec()),
        Message::Bye => (7, Vec::new()),
        Message::Goodbye(totals, summary) => {
            let Totals { packets, bytes, marked, frames, frames_dropped } = totals;
            let counts = [packets, bytes, marked, frames, frames_dropped].map(u64::to_be_bytes);
            (8, [counts.as_flattened(), summary].concat())
        }
    };
    [&MAGIC[..], &[VERSION, kind], &id.0, &body].concat()
}

/// Returns whether bytes start as a message does.
pub fn is_message(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Reads a message. A refusal for the version is the same in every version.
///
/// # Errors
/// The bytes are no message of this version.
pub fn read(bytes: &[u8]) -> Result<(SessionId, Message<'_>), Malformed> {
    let rest = bytes.strip_prefix(&MAGIC).ok_or(Malformed::Foreign)?;
    let ([version, kind, id @ ..], body) = rest.split_first_chunk::<{ HEADER - 4 }>().ok_or(Malformed::Content)?;
    let id = SessionId(*id);
    if *version != VERSION {
        // The answer to a hello of another version has the version of the receiver.
        if *kind == 5 && *body == [Refusal::Version as u8] {
            return Ok((id, Message::Refuse(Refusal::Version)));
        }
        let is_hello = *kind == 1 && bytes.len() >= HELLO_LEN;
        return Err(if is_hello { Malformed::Version(id) } else { Malformed::Content });
    }
    let message = match kind {
        1 if bytes.len() == HELLO_LEN => Message::Hello,
        2 => Message::Challenge(Token::from_bytes(body.try_into().map_err(|_| Malformed::Content)?)),
        3 => {
            let (token, terms) = body.split_first_chunk().ok_or(Malformed::Content)?;
            if terms.len() > TERMS_MAX + seal::OVERHEAD {
                return Err(Malformed::Content);
            }
            Message::Start(Token::from_bytes(token), terms)
        }
        4 => Message::Accept(u16::from_be_bytes(body.try_into().map_err(|_| Malformed::Content)?)),
        5 => match body {
            [code] => {
                let known = Refusal::ALL.into_iter().find(|reason| *reason as u8 == *code);
                Message::Refuse(known.ok_or(Malformed::Content)?)
            }
            _ => return Err(Malformed::Content),
        },
        6 => Message::Arrivals(body),
        7 if body.is_empty() => Message::Bye,
        8 if (TOTALS..=TOTALS + SUMMARY_MAX).contains(&body.len()) => {
            let (totals, summary) = body.split_at(TOTALS);
            let (counts, _) = totals.as_chunks::<8>();
            let count = |index: usize| u64::from_be_bytes(counts[index]);
            let (packets, bytes, marked) = (count(0), count(1), count(2));
            let totals = Totals { packets, bytes, marked, frames: count(3), frames_dropped: count(4) };
            Message::Goodbye(totals, summary)
        }
        _ => return Err(Malformed::Content),
    };
    Ok((id, message))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::hosts::terms::tests::terms;
    use proptest::prelude::*;

    const ID: SessionId = SessionId([7; 8]);

    /// Well-formed messages of every kind in this session or another one. Their tokens are this one, this one with one other byte, or random.
    pub(crate) fn datagrams(ours: SessionId, token: Token) -> impl Strategy<Value = Vec<u8>> {
        let changed = (0..Token::LEN, 1u8..).prop_map(move |(position, change)| {
            let mut bytes = token.to_bytes();
            bytes[position] ^= change;
            Token::from_bytes(&bytes)
        });
        let random = prop::array::uniform::<_, { Token::LEN }>(any::<u8>()).prop_map(|bytes| Token::from_bytes(&bytes));
        let tokens = prop_oneof![Just(token), changed, random];
        let ids = prop_oneof![Just(ours), any::<[u8; 8]>().prop_map(SessionId)];
        let body = prop::collection::vec(any::<u8>(), 0..100);
        (1..=8, ids, tokens, any::<prop::sample::Index>(), body).prop_map(|(kind, id, token, reason, body)| {
            let start = terms().to_bytes();
            let totals = Totals { packets: body.len() as u64, ..Totals::default() };
            let message = match kind {
                1 => Message::Hello,
                2 => Message::Challenge(token),
                3 => Message::Start(token, &start),
                4 => Message::Accept(body.len() as u16),
                5 => Message::Refuse(*reason.get(&Refusal::ALL)),
                6 => Message::Arrivals(&body),
                7 => Message::Bye,
                _ => Message::Goodbye(totals, &body),
            };
            write(id, message)
        })
    }

    #[test]
    fn messages_survive_writing_and_reading() {
        let token = Token::from_bytes(&[9; Token::LEN]);
        let totals = Totals { packets: 1, bytes: 2, marked: 3, frames: 4, frames_dropped: 5 };
        let messages = [
            Message::Hello,
            Message::Challenge(token),
            Message::Start(token, b"{}"),
            Message::Accept(9777),
            Message::Refuse(Refusal::Busy),
            Message::Arrivals(&[1, 2, 3]),
            Message::Bye,
            Message::Goodbye(totals, b"{}"),
        ];
        for message in messages {
            let bytes = write(ID, message);
            assert_eq!(read(&bytes), Ok((ID, message)));
            assert!(is_message(&bytes) && !(128..=191).contains(&bytes[0]), "it is no RTP");
        }
    }

    #[test]
    fn other_bytes_are_no_message() {
        assert_eq!(read(&[0x80, 96, 0, 1]), Err(Malformed::Foreign));
        let hello = write(ID, Message::Hello);
        assert_eq!(read(&hello[..63]), Err(Malformed::Content), "a short hello would be amplified");
        let mut other = hello.clone();
        other[4] = VERSION + 1;
        assert_eq!(read(&other), Err(Malformed::Version(ID)));
        for (reason, read_as) in
            [(Refusal::Version, Ok((ID, Message::Refuse(Refusal::Version)))), (Refusal::Busy, Err(Malformed::Content))]
        {
            let mut other = write(ID, Message::Refuse(reason));
            other[4] = VERSION + 1;
            assert_eq!(read(&other), read_as, "{reason:?}");
        }
        let long =
            write(ID, Message::Start(Token::from_bytes(&[0; Token::LEN]), &[b' '; TERMS_MAX + seal::OVERHEAD + 1]));
        assert_eq!(read(&long), Err(Malformed::Content));
        assert!(read(&long[..long.len() - 1]).is_ok() && long.len() <= 1201);
    }
}
