// SPDX-License-Identifier: MIT OR Apache-2.0
//! Authentication and encryption of a session by a secret that both ends know.
//!
//! Every datagram after the token is sealed with ChaCha20-Poly1305 (RFC 8439): a first byte that neither messages, RTP nor RTCP start with,
//! a counter, the ciphertext and its tag of 16 bytes. The counter is the nonce, so no two datagrams under a key have the same one. Each
//! direction of each session has a key of its own, derived (BLAKE3) from the secret, the identifier that the sender drew and the token that
//! the receiver made. A recorded session can therefore not be repeated, neither as a whole nor a part of it.

use crate::hosts::token::{SessionId, Token};
use crate::hosts::window::Window;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Key, KeyInit, Nonce};
use std::cell::Cell;

/// First byte of sealed datagrams. Messages start with 80, RTP and RTCP with 128 to 191.
const SEALED: u8 = 81;

/// Length of the part before the ciphertext.
const HEADER: usize = 1 + 8;

/// Bytes that sealing adds to a datagram.
pub const OVERHEAD: usize = HEADER + 16;

/// Minimum length of a secret, bytes.
pub const SECRET_MIN: usize = 16;

/// A secret that both ends know.
#[derive(Clone)]
pub struct Secret([u8; blake3::KEY_LEN]);

impl Secret {
    /// Reads a secret, without white space around it; `None` if it is shorter than [`SECRET_MIN`].
    pub fn new(text: &[u8]) -> Option<Self> {
        let text = text.trim_ascii();
        (text.len() >= SECRET_MIN).then(|| Self(blake3::derive_key("paceline 2026 hosts secret", text)))
    }

    /// Derives the keys of a session for its sender.
    pub fn sender(&self, id: SessionId, token: &Token) -> Keys {
        let [out, back] = self.derive(id, token);
        Keys { seal: Seal::new(&out), open: Open::new(&back) }
    }

    /// Derives the keys of a session for its receiver.
    pub fn receiver(&self, id: SessionId, token: &Token) -> Keys {
        let [out, back] = self.derive(id, token);
        Keys { seal: Seal::new(&back), open: Open::new(&out) }
    }

    fn derive(&self, id: SessionId, token: &Token) -> [[u8; blake3::KEY_LEN]; 2] {
        [0, 1].map(|direction| *self.hash(direction, id, token).as_bytes())
    }

    fn hash(&self, purpose: u8, id: SessionId, token: &Token) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&[purpose]);
        hasher.update(&id.0);
        hasher.update(&token.to_bytes());
        hasher.finalize()
    }
}

/// What the ends of the TCP connection of a session prove to each other with its first bytes. Without a secret, a proof shows only that its end
/// knows the handshake. Hashes are compared in constant time.
pub(crate) struct Proofs {
    /// The first bytes of the sender.
    pub(crate) request: blake3::Hash,
    /// The only bytes of the receiver, which answer them.
    pub(crate) answer: blake3::Hash,
}

impl Proofs {
    pub(crate) const LEN: usize = blake3::OUT_LEN;

    /// Derives the proofs of a session.
    pub(crate) fn new(secret: Option<&Secret>, id: SessionId, token: &Token) -> Self {
        let public = Secret(blake3::derive_key("paceline 2026 hosts without secret", b""));
        let [request, answer] = [2, 3].map(|purpose| secret.unwrap_or(&public).hash(purpose, id, token));
        Self { request, answer }
    }
}

/// The keys of one end of a session.
pub struct Keys {
    /// Seals what this end sends.
    pub seal: Seal,
    /// Opens what it receives.
    pub open: Open,
}

/// Returns whether a datagram is sealed.
pub fn is_sealed(bytes: &[u8]) -> bool {
    bytes.first() == Some(&SEALED)
}

fn nonce(counter: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&counter.to_be_bytes());
    Nonce::from(bytes)
}

/// Seals datagrams.
pub struct Seal {
    cipher: ChaCha20Poly1305,
    next: Cell<u64>,
}

impl Seal {
    fn new(key: &[u8; 32]) -> Self {
        Self { cipher: ChaCha20Poly1305::new(&Key::from(*key)), next: Cell::new(0) }
    }

    /// Returns the sealed datagram.
    pub fn seal(&self, msg: &[u8]) -> Vec<u8> {
        let counter = self.next.get();
        self.next.set(counter + 1);
        let mut sealed = vec![SEALED];
        sealed.extend_from_slice(&counter.to_be_bytes());
        let payload = Payload { msg, aad: &sealed };
        let ciphertext = self.cipher.encrypt(&nonce(counter), payload).expect("a datagram is short enough");
        sealed.extend_from_slice(&ciphertext);
        sealed
    }
}

/// Opens sealed datagrams, each once.
pub struct Open {
    cipher: ChaCha20Poly1305,
    window: Window,
}

impl Open {
    fn new(key: &[u8; 32]) -> Self {
        Self { cipher: ChaCha20Poly1305::new(&Key::from(*key)), window: Window::default() }
    }

    /// Opens a sealed datagram; `None` if it was altered, sealed with another key, opened before, or is too old.
    pub fn open(&mut self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (header, msg) = sealed.split_first_chunk::<HEADER>().filter(|_| is_sealed(sealed))?;
        let counter = u64::from_be_bytes(header[1..].try_into().expect("eight bytes"));
        if !self.window.is_new(counter) {
            return None;
        }
        let opened = self.cipher.decrypt(&nonce(counter), Payload { msg, aad: header }).ok()?;
        // Only authentic datagrams move the window.
        self.window.insert(counter);
        Some(opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::window::WINDOW;

    const ID: SessionId = SessionId([1; 8]);

    fn token(byte: u8) -> Token {
        Token::from_bytes(&[byte; Token::LEN])
    }

    fn secret() -> Secret {
        Secret::new(b" a secret of the test\n").unwrap()
    }

    #[test]
    fn a_datagram_is_opened_once_and_only_with_the_keys_of_its_session() {
        let (sender, mut receiver) = (secret().sender(ID, &token(1)), secret().receiver(ID, &token(1)));
        let sealed = sender.seal.seal(b"media");
        assert_eq!(sealed.len(), 5 + OVERHEAD);
        let others = [
            Secret::new(b"another secret of the test").unwrap().receiver(ID, &token(1)),
            secret().receiver(SessionId([2; 8]), &token(1)),
            secret().receiver(ID, &token(2)),
            // The other direction.
            secret().sender(ID, &token(1)),
        ];
        for mut other in others {
            assert_eq!(other.open.open(&sealed), None);
        }
        assert_eq!(receiver.open.open(&sealed).as_deref(), Some(&b"media"[..]));
        assert_eq!(receiver.open.open(&sealed), None, "a second time");
        let answer = receiver.seal.seal(b"feedback");
        let mut sender = sender;
        assert_eq!(sender.open.open(&answer).as_deref(), Some(&b"feedback"[..]));
    }

    #[test]
    fn an_altered_datagram_is_not_opened_and_does_no_harm() {
        let (sender, mut receiver) = (secret().sender(ID, &token(1)), secret().receiver(ID, &token(1)));
        let sealed = sender.seal.seal(b"media");
        for position in 0..sealed.len() {
            for bit in 0..8 {
                let mut altered = sealed.clone();
                altered[position] ^= 1 << bit;
                assert_eq!(receiver.open.open(&altered), None, "byte {position}");
            }
            assert_eq!(receiver.open.open(&sealed[..position]), None, "cut at {position}");
        }
        // A counter far ahead that was not authentic does not close the window.
        assert!(receiver.open.open(&sealed).is_some());
    }

    #[test]
    fn old_datagrams_are_not_opened() {
        let (sender, mut receiver) = (secret().sender(ID, &token(1)), secret().receiver(ID, &token(1)));
        let all: Vec<Vec<u8>> = (0..2 * WINDOW).map(|_| sender.seal.seal(b"x")).collect();
        assert!(receiver.open.open(&all[2 * WINDOW as usize - 1]).is_some());
        assert!(receiver.open.open(&all[WINDOW as usize + 64]).is_some(), "overtaken by fewer than the window");
        assert!(receiver.open.open(&all[WINDOW as usize - 1]).is_none(), "overtaken by more");
    }

    #[test]
    fn short_secrets_are_refused() {
        assert!(Secret::new(b"  15 bytes long  \n").is_none());
        assert!(Secret::new(b"16 bytes or more").is_some());
    }

    #[test]
    fn proofs_belong_to_one_session_one_secret_and_one_direction() {
        let secret = |text: &str| Secret::new(text.as_bytes()).unwrap();
        let (one, other) = (secret("the secret of one end"), secret("that of the other end"));
        let ours = Proofs::new(Some(&one), ID, &token(1));
        let again = Proofs::new(Some(&one), ID, &token(1));
        assert!((ours.request, ours.answer) == (again.request, again.answer) && ours.request != ours.answer);
        for others in [
            Proofs::new(Some(&other), ID, &token(1)),
            Proofs::new(None, ID, &token(1)),
            Proofs::new(Some(&one), SessionId([2; 8]), &token(1)),
            Proofs::new(Some(&one), ID, &token(2)),
        ] {
            assert!(ours.request != others.request && ours.answer != others.answer);
        }
    }
}
