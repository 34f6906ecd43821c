// SPDX-License-Identifier: MIT OR Apache-2.0
//! The messages from a receive half to its send half.

use paceline_units::{Rate, TimeDelta};

/// A message from a receive half to its send half. A half ignores the messages that it does not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message {
    /// The receiver estimated maximum bitrate (REMB).
    Remb(Rate),
    /// NADA's feedback.
    Nada(NadaReport),
    /// A message of one algorithm.
    App(AppMessage),
}

impl Message {
    /// Returns whether this message makes an older one superfluous: it states a rate anew. The others are parts of a
    /// measurement.
    pub fn replaces(&self, older: &Self) -> bool {
        matches!((self, older), (Self::Remb(_), Self::Remb(_)) | (Self::Nada(_), Self::Nada(_)))
    }
    /// Returns the kind.
    pub fn kind(&self) -> MessageKind {
        match self {
            Self::Remb(_) => MessageKind::Remb,
            Self::Nada(_) => MessageKind::Nada,
            Self::App(_) => MessageKind::App,
        }
    }
}

/// The kind of a [`Message`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageKind {
    /// [`Message::Remb`], which other stacks send as well.
    Remb,
    /// [`Message::Nada`].
    Nada,
    /// [`Message::App`].
    App,
}

/// An application-defined message (APP of RFC 3550, section 6.7). It reaches the send half as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppMessage {
    name: [u8; 4],
    subtype: u8,
    len: u8,
    words: [u32; Self::WORDS_MAX],
}

impl AppMessage {
    /// The most words of data.
    pub const WORDS_MAX: usize = 16;
    /// The name that [`Message::Nada`] uses with subtype 0.
    pub const RESERVED: [u8; 4] = *b"NADA";

    /// Returns a message with this name of four ASCII characters, a subtype below 32, and up to 16 words of data; `None` if a
    /// part is out of range or the name is reserved.
    pub fn new(name: [u8; 4], subtype: u8, data: &[u32]) -> Option<Self> {
        let is_reserved = subtype == 0 && name == Self::RESERVED;
        if !name.is_ascii() || subtype >= 32 || data.len() > Self::WORDS_MAX || is_reserved {
            return None;
        }
        let mut words = [0; Self::WORDS_MAX];
        words[..data.len()].copy_from_slice(data);
        Some(Self { name, subtype, len: data.len() as u8, words })
    }
    /// Returns the name.
    pub fn name(&self) -> [u8; 4] {
        self.name
    }
    /// Returns the subtype.
    pub fn subtype(&self) -> u8 {
        self.subtype
    }
    /// Returns the data.
    pub fn data(&self) -> &[u32] {
        &self.words[..self.len as usize]
    }
}

/// The report of a NADA receiver (RFC 8698, section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NadaReport {
    /// `rmode`.
    pub mode: NadaMode,
    /// `x_curr`, the composite congestion signal, in steps of 0.1 ms.
    pub signal: TimeDelta,
    /// `r_recv`.
    pub incoming: Rate,
}

/// The rate adaptation mode of a NADA sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NadaMode {
    /// Accelerated ramp-up: the path has spare capacity.
    RampUp,
    /// Gradual update, by the congestion signal and its change.
    Gradual,
}

impl NadaMode {
    /// Names, in order of [`index`](Self::index).
    pub const NAMES: &'static [&'static str] = &["ramp-up", "gradual"];
    /// Returns the mode as a signal value.
    pub fn index(self) -> f64 {
        self as u8 as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn app_message_has_bounds_and_reserved_names() {
        let message = AppMessage::new(*b"MINE", 31, &[7; 16]).unwrap();
        assert_eq!((message.name(), message.subtype(), message.data()), (*b"MINE", 31, &[7; 16][..]));
        assert_eq!(AppMessage::new(*b"MINE", 32, &[]), None);
        assert_eq!(AppMessage::new(*b"MINE", 0, &[0; 17]), None);
        assert_eq!(AppMessage::new([200; 4], 0, &[]), None);
        assert_eq!(AppMessage::new(*b"NADA", 0, &[]), None);
        assert!(AppMessage::new(*b"NADA", 1, &[]).is_some());
    }
}
