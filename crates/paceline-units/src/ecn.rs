//! The ECN field of an IP header.

/// ECN codepoint of a packet (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not understand ECN.
    #[default]
    NotEct = 0,
    /// ECN-capable, codepoint 01 (L4S senders).
    Ect1 = 1,
    /// ECN-capable, codepoint 10.
    Ect0 = 2,
    /// Congestion experienced: a router marked the packet instead of dropping it.
    Ce = 3,
}

impl Ecn {
    /// The codepoint of the two lowest bits.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Whether a router may mark the packet in place of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}
