// SPDX-License-Identifier: MIT OR Apache-2.0
//! Application-defined packets (APP; RFC 3550, section 6.7): a subtype, a name of four characters, and 32-bit words of data.
//! This crate reads the name `NADA` with subtype 0. It returns the data of other names unchanged.
//!
//! `NADA` carries the feedback of RFC 8698, section 5.3, whose 48 bits two words hold:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! |m|      x_curr, 0.1 ms         |           reserved            |
//! |                       r_recv, bit/s                           |
//! ```
//!
//! `m` is the mode (`rmode`: 0 accelerated ramp-up, 1 gradual update). The reserved bits are written as zero and ignored.
//! There is no time in it, so a receiver writes it after a report. A value outside the range of its field is written as the
//! nearest value in range.

use crate::bytes::{be16, be32, put};
use crate::compound_writer::{APPLICATION, CompoundWriter};
use crate::{WireError, WriteError};
use paceline_units::{Rate, TimeDelta};

const NADA: [u8; 4] = *b"NADA";
const NADA_LEN: usize = 8;

/// The unit of `x_curr`.
const SIGNAL_UNIT: TimeDelta = TimeDelta::from_micros(100);
const GRADUAL: u16 = 0x8000;

/// The feedback of a NADA receiver (RFC 8698, section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NadaFeedback {
    /// `rmode`: true for gradual rate update, false for accelerated ramp-up.
    pub gradual: bool,
    /// `x_curr`, the composite congestion signal: 0 to 3.2767 s.
    pub signal: TimeDelta,
    /// `r_recv`, the receiving rate.
    pub rate: Rate,
}

/// Reads the data of an APP packet; `None` for another name. `subtype` is the five-bit field that other packet types use as a
/// count.
pub(crate) fn read(subtype: u8, name: [u8; 4], data: &[u8]) -> Result<Option<NadaFeedback>, WireError> {
    if (subtype, name) != (0, NADA) {
        return Ok(None);
    }
    let b: &[u8; NADA_LEN] = data.try_into().map_err(|_| WireError::AppLength)?;
    let first = be16(b, 0);
    let signal = SIGNAL_UNIT * i64::from(first & !GRADUAL);
    Ok(Some(NadaFeedback { gradual: first & GRADUAL != 0, signal, rate: Rate::from_bps(be32(b, 4).into()) }))
}

impl CompoundWriter<'_> {
    /// Writes an APP packet of this name and subtype, whose lower five bits count, with these words of data.
    pub fn app(&mut self, ssrc: u32, subtype: u8, name: [u8; 4], words: &[u32]) -> Result<(), WriteError> {
        let data = self.application(ssrc, subtype & 0x1F, name, 4 * words.len())?;
        for (index, word) in words.iter().enumerate() {
            put(data, 4 * index, word.to_be_bytes());
        }
        Ok(())
    }

    /// Writes NADA feedback.
    pub fn nada(&mut self, ssrc: u32, feedback: &NadaFeedback) -> Result<(), WriteError> {
        let data = self.application(ssrc, 0, NADA, NADA_LEN)?;
        // To the nearest unit, halves up.
        let units = (feedback.signal + SIGNAL_UNIT / 2).as_nanos().div_euclid(SIGNAL_UNIT.as_nanos());
        let signal = units.clamp(0, i64::from(!GRADUAL)) as u16;
        let rate = u32::try_from(feedback.rate.as_bps()).unwrap_or(u32::MAX);
        put(data, 0, (signal | if feedback.gradual { GRADUAL } else { 0 }).to_be_bytes());
        put(data, 2, [0; 2]);
        put(data, 4, rate.to_be_bytes());
        Ok(())
    }

    /// Writes SSRC and name. Returns the data, which the caller fills.
    fn application(&mut self, ssrc: u32, subtype: u8, name: [u8; 4], len: usize) -> Result<&mut [u8], WriteError> {
        let (head, data) = self.packet(APPLICATION, subtype, 8 + len)?.split_at_mut(8);
        put(head, 0, ssrc.to_be_bytes());
        put(head, 4, name);
        Ok(data)
    }
}
