// SPDX-License-Identifier: MIT OR Apache-2.0
//! The airtime of 802.11 frames.

use paceline_units::{DataSize, Rate, TimeDelta};

/// Service and tail bits of an OFDM frame: IEEE 802.11-2020, 17.3.2, 16 + 6 bits.
const SERVICE_AND_TAIL_BITS: u64 = 22;
/// An ACK frame: IEEE 802.11-2020, 9.3.1.4.
const ACK: DataSize = DataSize::from_bytes(14);
/// A compressed block ACK frame: IEEE 802.11-2020, 9.3.1.8.2.
const BLOCK_ACK: DataSize = DataSize::from_bytes(32);
/// The delimiter before each MPDU of an A-MPDU: IEEE 802.11-2020, 9.7.1.
const DELIMITER: u64 = 4;
/// MPDUs of an A-MPDU are padded to a multiple of this, except the last.
const ALIGNMENT: u64 = 4;

/// The durations and sizes that the airtime of a frame depends on, besides its rate.
#[derive(Clone, Copy, Debug)]
pub struct Phy {
    /// Preamble and PHY header of a data frame.
    pub preamble: TimeDelta,
    /// Symbol, to which frames are rounded up; zero for a PHY without OFDM.
    pub symbol: TimeDelta,
    /// What the MAC adds to an IP packet: MAC header, frame check sequence, LLC and SNAP headers.
    pub header: DataSize,
    /// Preamble and PHY header of an acknowledgement.
    pub ack_preamble: TimeDelta,
    pub ack_rate: Rate,
}

impl Phy {
    /// Returns the airtime of a data frame with `size` at `rate`.
    pub fn data(&self, size: DataSize, rate: Rate) -> TimeDelta {
        frame(self.preamble, self.symbol, size, rate)
    }

    /// Returns the airtime of the acknowledgement of a frame with this number of MPDUs.
    pub fn ack(&self, mpdus: usize) -> TimeDelta {
        frame(self.ack_preamble, self.symbol, if mpdus > 1 { BLOCK_ACK } else { ACK }, self.ack_rate)
    }
}

/// Returns the airtime of a frame: preamble and header, then service bits, data and tail bits in whole symbols (IEEE
/// 802.11-2020, 17.4.3).
fn frame(preamble: TimeDelta, symbol: TimeDelta, size: DataSize, rate: Rate) -> TimeDelta {
    const NANOS: u128 = 1_000_000_000;
    let (bits, rate) = (u128::from(size.as_bits()), u128::from(rate.as_bps().max(1)));
    let nanos = |nanos: u128| TimeDelta::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX / 4));
    match u128::try_from(symbol.as_nanos()) {
        Ok(symbol) if symbol > 0 => {
            let symbols = ((bits + u128::from(SERVICE_AND_TAIL_BITS)) * NANOS).div_ceil(rate * symbol);
            preamble + nanos(symbols * symbol)
        }
        _ => preamble + nanos((bits * NANOS).div_ceil(rate)),
    }
}

/// The MPDUs of a frame, and their size: one MPDU alone, or an A-MPDU.
#[derive(Clone, Copy, Debug, Default)]
pub struct FrameSize {
    pub mpdus: usize,
    /// Size of the MPDUs with delimiters, padding included.
    padded: u64,
    last_padding: u64,
}

impl FrameSize {
    pub fn with(self, mpdu: DataSize) -> Self {
        let padding = mpdu.as_bytes().next_multiple_of(ALIGNMENT) - mpdu.as_bytes();
        let padded = self.padded + DELIMITER + mpdu.as_bytes() + padding;
        Self { mpdus: self.mpdus + 1, padded, last_padding: padding }
    }

    pub fn size(self) -> DataSize {
        let unpadded = self.padded - self.last_padding;
        DataSize::from_bytes(if self.mpdus == 1 { unpadded - DELIMITER } else { unpadded })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(t: i64) -> TimeDelta {
        TimeDelta::from_micros(t)
    }

    fn phy(preamble: i64, header: u64) -> Phy {
        let (ack_preamble, ack_rate) = (us(20), Rate::from_kbps(24_000));
        Phy { preamble: us(preamble), symbol: us(4), header: DataSize::from_bytes(header), ack_preamble, ack_rate }
    }

    fn airtime(phy: &Phy, packets: usize, kbps: u64) -> TimeDelta {
        let mpdu = DataSize::from_bytes(1500) + phy.header;
        let size = (0..packets).fold(FrameSize::default(), |frame, _| frame.with(mpdu)).size();
        phy.data(size, Rate::from_kbps(kbps))
    }

    /// Airtimes by hand: 802.11a at 54 Mbit/s, 216 bits a symbol: 12310 bits are 57 symbols. 802.11n at 52 Mbit/s, 208 bits a
    /// symbol: 12326 bits are 60 symbols; 16 MPDUs of 1538 + 4 bytes with 15 times 2 bytes of padding are 24 702 bytes, 951
    /// symbols.
    #[test]
    fn airtime_is_that_of_whole_symbols() {
        assert_eq!(airtime(&phy(20, 36), 1, 54_000), us(20 + 57 * 4));
        assert_eq!(airtime(&phy(40, 38), 1, 52_000), us(40 + 60 * 4));
        assert_eq!(airtime(&phy(40, 38), 16, 52_000), us(40 + 951 * 4));
        assert_eq!((phy(40, 38).ack(1), phy(40, 38).ack(2)), (us(28), us(32)));
    }

    /// Bianchi 2000, table II: 8184 bits of payload, 272 of MAC header and 128 of PHY header at 1 Mbit/s.
    #[test]
    fn airtime_without_symbols_is_that_of_the_bits() {
        let bits = DataSize::from_bytes((8184 + 272) / 8);
        assert_eq!(frame(us(128), TimeDelta::ZERO, bits, Rate::from_kbps(1000)), us(8184 + 272 + 128));
        assert_eq!(frame(us(128), TimeDelta::ZERO, ACK, Rate::from_kbps(1000)), us(112 + 128));
    }

    #[test]
    fn an_mpdu_alone_has_no_delimiter_and_the_last_no_padding() {
        let sizes = [1, 2, 3].map(|mpdus| {
            let frame = (0..mpdus).fold(FrameSize::default(), |frame, _| frame.with(DataSize::from_bytes(101)));
            frame.size().as_bytes()
        });
        assert_eq!(sizes, [101, 104 + 4 + 4 + 101, 2 * 108 + 105]);
    }
}
