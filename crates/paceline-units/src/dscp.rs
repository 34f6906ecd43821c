// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Differentiated Services codepoint of an IP header.

use crate::ParseError;
use alloc::string::ToString;
use core::fmt;
use core::str::FromStr;

/// The DSCP of a packet: the six upper bits of the DS field (RFC 2474, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dscp(u8);

/// The codepoints with a name: RFC 2474 (CS), RFC 2597 (AF), RFC 3246 (EF), RFC 5865 (VA), RFC 8622 (LE).
const NAMES: [(&str, u8); 23] = [
    ("DF", 0),
    ("LE", 1),
    ("CS1", 8),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("CS2", 16),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("CS3", 24),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("CS4", 32),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("CS5", 40),
    ("VA", 44),
    ("EF", 46),
    ("CS6", 48),
    ("CS7", 56),
];

impl Dscp {
    /// Default forwarding, 0 (RFC 2474, section 4.1).
    pub const DEFAULT: Self = Self(0);

    /// Returns the codepoint in the six lowest bits.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0x3f)
    }

    /// Returns the codepoint, 0 to 63.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

/// Parses a name such as `EF` or `AF41`, or a number from 0 to 63.
impl FromStr for Dscp {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let named = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text.trim())).map(|(_, bits)| *bits);
        let bits = named.or_else(|| text.trim().parse().ok().filter(|bits| *bits < 64));
        bits.map(Self).ok_or_else(|| ParseError::new(text, "a DSCP, by name or from 0 to 63", "AF41"))
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, bits)| *bits == self.0) {
            Some((name, _)) => f.pad(name),
            None => f.pad(&self.0.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_codepoints() {
        for (text, bits) in [("EF", 46), ("ef", 46), (" AF41", 34), ("CS1", 8), ("le", 1), ("0", 0), ("63", 63)] {
            assert_eq!(text.parse::<Dscp>().map(Dscp::bits), Ok(bits), "{text}");
        }
        for text in ["64", "-1", "AF44", "", "E F"] {
            assert!(text.parse::<Dscp>().is_err(), "{text}");
        }
        for (name, bits) in NAMES {
            let dscp = Dscp::from_bits(bits | 0xc0);
            assert_eq!((dscp.bits(), dscp.to_string().as_str()), (bits, name));
        }
        assert_eq!(Dscp::from_bits(5).to_string(), "5");
        // AFxy is 8x + 2y (RFC 2597, section 6), CSx is 8x (RFC 2474, section 4.2.2).
        for (x, y) in [(1, 1), (2, 3), (4, 1)] {
            assert_eq!(format!("AF{x}{y}").parse::<Dscp>(), Ok(Dscp::from_bits(8 * x + 2 * y)));
            assert_eq!(format!("CS{x}").parse::<Dscp>(), Ok(Dscp::from_bits(8 * x)));
        }
    }
}
