//! What the ends of the TCP connection of a session prove to each other with its first bytes.
//!
//! Both proofs are keyed hashes (BLAKE3) of the identifier of the session and the token of its receiver, one for each direction. The key
//! is derived from the secret, if there is one. Without it, a proof shows only that its end knows the handshake.

use crate::hosts::message::SessionId;
use crate::hosts::seal::Secret;
use crate::hosts::token::Token;

/// Length of a proof, bytes.
pub const LEN: usize = blake3::OUT_LEN;

/// The proofs of a session.
pub struct Proofs {
    /// The first bytes of the sender.
    request: blake3::Hash,
    /// The only bytes of the receiver, which answer them.
    answer: blake3::Hash,
}

impl Proofs {
    /// Derives the proofs of a session.
    pub fn new(secret: Option<&Secret>, id: SessionId, token: &Token) -> Self {
        let open = Secret::none();
        let [request, answer] = secret.unwrap_or(&open).proofs(id, token);
        Self { request, answer }
    }

    /// Returns what the sender sends first.
    pub fn request(&self) -> &[u8; LEN] {
        self.request.as_bytes()
    }

    /// Returns what the receiver answers.
    pub fn answer(&self) -> &[u8; LEN] {
        self.answer.as_bytes()
    }

    /// Returns whether bytes are those of the sender, in constant time.
    pub fn is_request(&self, bytes: &[u8; LEN]) -> bool {
        self.request == *bytes
    }

    /// Returns whether bytes are those of the receiver, in constant time.
    pub fn is_answer(&self, bytes: &[u8; LEN]) -> bool {
        self.answer == *bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_belong_to_one_session_one_secret_and_one_direction() {
        let secret = |text: &str| Secret::new(text.as_bytes()).unwrap();
        let token = |byte| Token::from_bytes(&[byte; Token::LEN]);
        let (one, other) = (secret("the secret of one end"), secret("that of the other end"));
        let id = SessionId([1; 8]);
        let ours = Proofs::new(Some(&one), id, &token(1));
        let again = Proofs::new(Some(&one), id, &token(1));
        assert!(ours.is_request(again.request()) && ours.is_answer(again.answer()));
        assert!(!ours.is_request(again.answer()) && !ours.is_answer(again.request()));
        for others in [
            Proofs::new(Some(&other), id, &token(1)),
            Proofs::new(None, id, &token(1)),
            Proofs::new(Some(&one), SessionId([2; 8]), &token(1)),
            Proofs::new(Some(&one), id, &token(2)),
        ] {
            assert!(!ours.is_request(others.request()) && !ours.is_answer(others.answer()));
        }
    }
}
