// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tokens that prove an address: a keyed hash of address, session and time. A receiver keeps no state for a token that it gave.

use paceline_units::{Time, TimeDelta};
use std::net::{IpAddr, SocketAddr};

/// The time for which a token is valid: some retransmissions of the handshake.
pub(crate) const TOKEN_LIFETIME: TimeDelta = TimeDelta::from_secs(10);

/// The identifier of a session, which the sender draws at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub [u8; 8]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The time of its creation on the receiver's clock, ns.
    made: i64,
    /// The keyed hash.
    hash: [u8; blake3::OUT_LEN],
}

impl Token {
    /// Returns the time since it was made: the round-trip time, or more if its answer was repeated.
    pub(crate) fn age(self, now: Time) -> TimeDelta {
        (now - Time::from_nanos(self.made)).max(TimeDelta::ZERO)
    }

    /// Length in messages.
    pub const LEN: usize = 8 + blake3::OUT_LEN;

    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&self.made.to_be_bytes());
        bytes[8..].copy_from_slice(&self.hash);
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let (made, hash) = bytes.split_first_chunk().expect("it is longer");
        Self { made: i64::from_be_bytes(*made), hash: hash.try_into().expect("the rest is the hash") }
    }
}

/// The reason why a token is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// Its hash is not that of this address and session.
    Forged,
    /// It is too old.
    Expired,
}

/// Makes and checks tokens.
pub struct TokenKey([u8; blake3::KEY_LEN]);

impl TokenKey {
    /// Creates a key from random bytes.
    pub fn new(random: [u8; blake3::KEY_LEN]) -> Self {
        Self(random)
    }

    /// Makes a token for an address and a session.
    pub fn make(&self, now: Time, from: SocketAddr, id: SessionId) -> Token {
        let made = now.as_nanos();
        Token { made, hash: *self.hash(made, from, id).as_bytes() }
    }

    /// Checks a token of this address and session.
    pub fn check(&self, now: Time, from: SocketAddr, id: SessionId, token: &Token) -> Result<(), Invalid> {
        // Hashes are compared in constant time.
        if self.hash(token.made, from, id) != blake3::Hash::from_bytes(token.hash) {
            return Err(Invalid::Forged);
        }
        // An authentic token was made in the past.
        if now - Time::from_nanos(token.made) > TOKEN_LIFETIME { Err(Invalid::Expired) } else { Ok(()) }
    }

    fn hash(&self, made: i64, from: SocketAddr, id: SessionId) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&made.to_be_bytes());
        hasher.update(&id.0);
        hasher.update(&from.port().to_be_bytes());
        match from.ip() {
            IpAddr::V4(ip) => hasher.update(&ip.octets()),
            IpAddr::V6(ip) => hasher.update(&ip.octets()),
        };
        hasher.finalize()
    }
}
