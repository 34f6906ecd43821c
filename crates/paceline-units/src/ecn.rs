// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ECN field of an IP header.

/// The ECN codepoint of a packet (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The transport is not ECN-capable.
    #[default]
    NotEct = 0,
    /// ECN-capable transport, codepoint 01; L4S senders use it (RFC 9331).
    Ect1 = 1,
    /// ECN-capable transport, codepoint 10.
    Ect0 = 2,
    /// Congestion experienced: a router marked the packet.
    Ce = 3,
}

impl Ecn {
    /// Returns the codepoint in the two lowest bits.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Returns whether a router may mark the packet instead of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}
