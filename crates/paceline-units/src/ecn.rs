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
